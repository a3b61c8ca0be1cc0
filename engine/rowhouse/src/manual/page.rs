//! A page of the reference, and the files that people wrote.

use rust_embed::RustEmbed;
use thiserror::Error;

/// What people wrote: the tenant, the examples of the reference, and what shows section types.
#[derive(RustEmbed)]
#[folder = "manual"]
pub(super) struct AuthoredFiles;

/// Where the examples lie, which are no files of the tenant.
pub(super) const EXAMPLES: &str = "examples/";

/// Where the theme of the manual lies.
pub(super) const THEME: &str = "theme/";

/// Where the pages lie of which a theme's section types are shown.
pub(super) const SAMPLE: &str = "sample/";

impl AuthoredFiles {
    /// The files below a folder by their paths within it.
    pub(super) fn below(folder: &str) -> impl Iterator<Item = (String, Vec<u8>)> {
        Self::iter().filter_map(move |path| {
            let within = path.strip_prefix(folder)?.to_owned();
            Some((within, Self::get(&path)?.data.into_owned()))
        })
    }
}

/// Why there is no manual: a bug of the program.
#[derive(Debug, Error)]
pub enum ManualError {
    /// A file of the manual is not inside the program.
    #[error("the manual has no file `{0}`")]
    NoFile(String),
    /// A theme inside the program cannot be read.
    #[error("the theme `{0}` inside the program has errors")]
    Theme(&'static str),
    /// The metrics cannot be listed.
    #[error("the metrics cannot be listed")]
    Metrics(#[from] std::fmt::Error),
}

/// A page of the reference.
pub(super) struct ReferencePage {
    /// The name of its file.
    pub(super) name: String,
    /// Its title.
    pub(super) title: String,
    /// What search results say.
    pub(super) description: String,
    /// The Markdown.
    pub(super) body: String,
}

impl ReferencePage {
    /// The file.
    pub(super) fn text(&self) -> Vec<u8> {
        let Self {
            title,
            description,
            body,
            ..
        } = self;
        format!("---\ntitle: {title}\ndescription: {description}\n---\n{body}").into_bytes()
    }
}

/// A file of [`EXAMPLES`].
pub(super) fn example(name: &str) -> Result<String, ManualError> {
    let path = format!("{EXAMPLES}{name}");
    let file = AuthoredFiles::get(&path).ok_or(ManualError::NoFile(path))?;
    Ok(String::from_utf8_lossy(&file.data).into_owned())
}
