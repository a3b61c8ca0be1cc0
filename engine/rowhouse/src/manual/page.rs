//! A generated page of the reference, and the written files of the manual.
//!
//! **Invariant:** knows no content of a page.

use rust_embed::RustEmbed;
use thiserror::Error;

/// The written files: the tenant, the examples of the reference, and the pages and the theme for frames.
#[derive(RustEmbed)]
#[folder = "manual"]
pub(super) struct AuthoredFiles;

/// The folder of the examples, which are not files of the tenant.
pub(super) const EXAMPLES: &str = "examples/";

/// The folder with the theme of the manual.
pub(super) const THEME: &str = "theme/";

/// The folder with the pages of the tenants in frames.
pub(super) const SAMPLE: &str = "sample/";

impl AuthoredFiles {
    /// Returns the files in a folder, by their paths relative to it.
    pub(super) fn below(folder: &str) -> impl Iterator<Item = (String, Vec<u8>)> {
        Self::iter().filter_map(move |path| {
            let within = path.strip_prefix(folder)?.to_owned();
            Some((within, Self::get(&path)?.data.into_owned()))
        })
    }
}

/// The reason why the manual cannot be made: a bug of the program.
#[derive(Debug, Error)]
pub enum ManualError {
    /// A file of the manual is missing in the program.
    #[error("the manual has no file `{0}`")]
    NoFile(String),
    /// A built-in theme cannot be read.
    #[error("the built-in theme `{0}` has errors")]
    Theme(&'static str),
    /// The metrics cannot be listed.
    #[error("the metrics cannot be listed")]
    Metrics(#[from] std::fmt::Error),
}

/// A generated page of the reference.
pub(super) struct ReferencePage {
    /// The name of the file, without its ending.
    pub(super) name: String,
    /// The title.
    pub(super) title: String,
    /// The description for search results.
    pub(super) description: String,
    /// The text in Markdown, without front matter.
    pub(super) body: String,
}

impl ReferencePage {
    /// Returns the bytes of the file, with front matter.
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

/// Returns the text of a file in [`EXAMPLES`].
pub(super) fn example(name: &str) -> Result<String, ManualError> {
    let path = format!("{EXAMPLES}{name}");
    let file = AuthoredFiles::get(&path).ok_or(ManualError::NoFile(path))?;
    Ok(String::from_utf8_lossy(&file.data).into_owned())
}
