//! The UI bundle as the engine uses it, from this binary or from a folder.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use sha2::{Digest as _, Sha256};

use crate::manifest::BundleManifest;

pub(crate) type ClientFiles = BTreeMap<Cow<'static, str>, Cow<'static, [u8]>>;

/// The parts of a bundle that is not checked yet.
pub(crate) struct BundleParts {
    pub(crate) manifest: Cow<'static, str>,
    pub(crate) server_script: Cow<'static, str>,
    pub(crate) dev_script: Cow<'static, str>,
    pub(crate) loader: Cow<'static, str>,
    pub(crate) client: ClientFiles,
    pub(crate) brotli: ClientFiles,
}

/// The islands, ready to be rendered and served.
#[derive(Debug, Clone)]
pub struct Bundle {
    manifest: BundleManifest,
    server_script: Cow<'static, str>,
    dev_script: Cow<'static, str>,
    loader: Cow<'static, str>,
    client: ClientFiles,
    /// Brotli-compressed files, by the name of the original. May be incomplete.
    brotli: ClientFiles,
    id: String,
}

/// Error of loading a bundle.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// A part of the bundle's folder is missing or cannot be read.
    #[error("cannot read `{}` of the UI bundle: {source}; build the bundle with `node ui/build.mjs --out DIR`", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// This version of the program cannot parse `manifest.json`.
    #[error(
        "`manifest.json` of the UI bundle is not valid for this version: {0}; build the bundle again"
    )]
    BundleManifest(#[from] serde_json::Error),
    /// The manifest names a file that does not exist.
    #[error("the UI bundle has no `client/{file}` for `{user}`: build the bundle again")]
    Missing {
        /// The name of the file.
        file: String,
        /// The island or part that needs the file.
        user: String,
    },
}

impl Bundle {
    /// Reads a bundle from disk, as `node ui/build.mjs --out DIR` writes it.
    ///
    /// # Errors
    /// When a part is missing or cannot be read, or the manifest cannot be parsed.
    pub fn from_dir(dir: &Path) -> Result<Bundle, BundleError> {
        let client = read_all(&dir.join("client"))?;
        // Compressed files are optional: missing ones are compressed at startup.
        let compressed = Some(dir.join("brotli")).filter(|folder| folder.is_dir());
        let brotli =
            compressed.map_or_else(|| Ok(ClientFiles::new()), |folder| read_all(&folder))?;
        let text = |name: &str| {
            let path = dir.join(name);
            fs::read_to_string(&path)
                .map(Cow::Owned)
                .map_err(read_error(&path))
        };
        Bundle::new(BundleParts {
            manifest: text("manifest.json")?,
            server_script: text("server.js")?,
            dev_script: text("dev.js")?,
            loader: text("loader.js")?,
            client,
            brotli,
        })
    }

    pub(crate) fn new(parts: BundleParts) -> Result<Bundle, BundleError> {
        let id = id(&parts);
        let manifest: BundleManifest = serde_json::from_str(&parts.manifest)?;
        for (user, file) in manifest.named_files() {
            if !parts.client.contains_key(file) {
                return Err(BundleError::Missing {
                    file: file.to_owned(),
                    user: user.to_owned(),
                });
            }
        }
        Ok(Bundle {
            manifest,
            server_script: parts.server_script,
            dev_script: parts.dev_script,
            loader: parts.loader,
            client: parts.client,
            brotli: parts.brotli,
            id,
        })
    }

    /// Returns the manifest.
    pub fn manifest(&self) -> &BundleManifest {
        &self.manifest
    }

    /// Returns the files for the browser, as name and content, sorted by name. Names contain a hash, so a name
    /// never stands for two contents.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.client
            .iter()
            .map(|(name, bytes)| (name.as_ref(), bytes.as_ref()))
    }

    /// Returns a file for the browser in the encoding `br` (RFC 7932), if the build compressed the file.
    pub fn brotli(&self, name: &str) -> Option<&[u8]> {
        self.brotli.get(name).map(AsRef::as_ref)
    }

    /// Returns the server script. It sets the globals `render(name, propsJson, prefix)` and `renderStatic(name,
    /// propsJson)`, each of which returns HTML or throws.
    pub fn server_script(&self) -> &str {
        &self.server_script
    }

    /// Returns the script of `serve --dev`, which reloads an open page when its files change. It is only for
    /// authors, and not among [`Bundle::files`].
    pub fn dev_script(&self) -> &str {
        &self.dev_script
    }

    /// Returns the loader, a module that each page with islands contains. It fetches the other modules from the
    /// folder of the island's own module.
    pub fn loader(&self) -> &str {
        &self.loader
    }

    /// Returns the SHA-256 of all parts, in hexadecimal. Equal bundles have equal ids.
    pub fn id(&self) -> &str {
        &self.id
    }
}

/// Reads the files of a folder, by name.
fn read_all(folder: &Path) -> Result<ClientFiles, BundleError> {
    let mut files = ClientFiles::new();
    for entry in fs::read_dir(folder).map_err(read_error(folder))? {
        let path = entry.map_err(read_error(folder))?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        files.insert(
            Cow::Owned(name.to_owned()),
            Cow::Owned(fs::read(&path).map_err(read_error(&path))?),
        );
    }
    Ok(files)
}

fn read_error(path: &Path) -> impl Fn(io::Error) -> BundleError {
    move |source| BundleError::Read {
        path: path.to_owned(),
        source,
    }
}

fn id(parts: &BundleParts) -> String {
    let mut hash = Sha256::new();
    let mut add = |bytes: &[u8]| {
        // The length separates the parts: `a`, `bc` differs from `ab`, `c`.
        hash.update(bytes.len().to_le_bytes());
        hash.update(bytes);
    };
    add(parts.manifest.as_bytes());
    add(parts.server_script.as_bytes());
    add(parts.dev_script.as_bytes());
    add(parts.loader.as_bytes());
    for (name, bytes) in parts.client.iter().chain(&parts.brotli) {
        add(name.as_bytes());
        add(bytes);
    }
    hash.finalize().iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = r#"{
        "react": "19.3.1",
        "mode": "production",
        "runtime": {"file": "runtime.B.js", "imports": []},
        "islands": {}
    }"#;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["client", "brotli"] {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        for (name, text) in files {
            fs::write(dir.path().join(name), text).unwrap();
        }
        dir
    }

    fn refusal(files: &[(&str, &str)]) -> String {
        let dir = folder(files);
        let message = Bundle::from_dir(dir.path()).unwrap_err().to_string();
        message.replace(&dir.path().display().to_string(), "DIR")
    }

    #[test]
    fn folder_is_read_completely() {
        let dir = folder(&[
            ("manifest.json", MANIFEST),
            ("server.js", "globalThis.render = 1"),
            ("dev.js", "3"),
            ("client/runtime.B.js", "2"),
            ("brotli/runtime.B.js", "4"),
            ("loader.js", "1"),
        ]);
        let bundle = Bundle::from_dir(dir.path()).unwrap();
        let files: Vec<_> = bundle.files().collect();
        assert_eq!(files, [("runtime.B.js", b"2".as_slice())]);
        assert_eq!(bundle.brotli("runtime.B.js"), Some(b"4".as_slice()));
        assert_eq!(bundle.brotli("other.js"), None);
        assert_eq!(bundle.server_script(), "globalThis.render = 1");
        assert_eq!(bundle.dev_script(), "3");
        assert_eq!(bundle.loader(), "1");
    }

    #[test]
    fn id_depends_on_every_part() {
        let files = [
            ("manifest.json", MANIFEST),
            ("server.js", ""),
            ("dev.js", ""),
            ("loader.js", "1"),
            ("client/runtime.B.js", "2"),
        ];
        let id = |files: &[(&str, &str)]| {
            Bundle::from_dir(folder(files).path())
                .unwrap()
                .id()
                .to_owned()
        };
        let before = id(&files);
        assert_eq!(before.len(), 64);
        assert_eq!(before, id(&files));
        for changed in 0..files.len() {
            let mut files = files;
            let text = format!("{} ", files[changed].1);
            files[changed].1 = &text;
            assert_ne!(before, id(&files), "{}", files[changed].0);
        }
    }

    #[test]
    fn missing_folder_is_named() {
        let message = Bundle::from_dir(Path::new("/nowhere/dist"))
            .unwrap_err()
            .to_string();
        assert!(
            message.starts_with("cannot read `/nowhere/dist/client` of the UI bundle: "),
            "{message}"
        );
    }

    #[test]
    fn missing_script_is_named() {
        let message = refusal(&[("manifest.json", MANIFEST)]);
        assert!(
            message.starts_with("cannot read `DIR/server.js` of the UI bundle"),
            "{message}"
        );
    }

    #[test]
    fn invalid_manifest_is_refused() {
        let message = refusal(&[
            ("manifest.json", "[]"),
            ("server.js", ""),
            ("dev.js", ""),
            ("loader.js", ""),
        ]);
        assert!(
            message.starts_with("`manifest.json` of the UI bundle is not valid for this version"),
            "{message}"
        );
    }

    #[test]
    fn missing_file_of_the_manifest_is_named() {
        let message = refusal(&[
            ("manifest.json", MANIFEST),
            ("server.js", ""),
            ("dev.js", ""),
            ("loader.js", "1"),
        ]);
        assert_eq!(
            message,
            "the UI bundle has no `client/runtime.B.js` for `runtime`: build the bundle again"
        );
    }

    #[test]
    fn embedded_bundle_is_complete() {
        let bundle = Bundle::embedded().unwrap();
        assert!(bundle.manifest().islands.contains_key("Header"));
        assert!(bundle.server_script().contains("globalThis.render"));
        assert!(
            bundle
                .files()
                .all(|(name, bytes)| name.ends_with(".js") && !bytes.is_empty())
        );
        let runtime = &bundle.manifest().runtime.file;
        assert!(
            bundle
                .brotli(runtime)
                .is_some_and(|compressed| !compressed.is_empty())
        );
    }
}
