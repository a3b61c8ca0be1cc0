//! The types of `manifest.json`, which `build/manifest.mjs` writes.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The content of the bundle.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct BundleManifest {
    /// The version of React, such as `19.3.1`.
    pub react: String,
    /// The build of React in the bundle.
    pub mode: BundleMode,
    /// The module that the loader fetches for the first island: React and the code that mounts islands.
    pub runtime: Module,
    /// The islands by name.
    pub islands: BTreeMap<String, Island>,
}

/// The builds of React.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BundleMode {
    /// Small, without diagnostics.
    Production,
    /// Reports every hydration mismatch. The server script calls `console`, which the caller must provide.
    Development,
}

/// A file for the browser.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Module {
    /// The file name, which contains a hash of the content.
    pub file: String,
    /// The files that the module imports statically, directly or not; a page preloads them with it.
    pub imports: Vec<String>,
}

/// A component that templates may place on a page.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Island {
    /// The file name of the island's module, which contains a hash of the content.
    pub file: String,
    /// The files that the module imports, directly or not; a page preloads them with it.
    pub imports: Vec<String>,
    /// Whether the island renders on the server. Otherwise it gets an empty element with `render="browser"`.
    pub server: bool,
    /// The JSON Schema of the island's props.
    pub props: serde_json::Value,
}

impl BundleManifest {
    /// Returns every file name in the manifest, with the island or part that names it.
    pub(crate) fn named_files(&self) -> impl Iterator<Item = (&str, &str)> {
        let runtime = std::iter::once(&self.runtime.file).chain(&self.runtime.imports);
        let islands = self.islands.iter().flat_map(|(name, island)| {
            std::iter::once(&island.file)
                .chain(&island.imports)
                .map(|file| (name.as_str(), file.as_str()))
        });
        runtime
            .map(|file| ("runtime", file.as_str()))
            .chain(islands)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = r#"{
        "react": "19.3.1",
        "mode": "production",
        "runtime": {"file": "runtime.B.js", "imports": ["react.C.js"]},
        "islands": {
            "Toaster": {"file": "Toaster.E.js", "imports": [], "server": false, "props": {"type": "object"}},
            "Header": {"file": "Header.D.js", "imports": ["react.C.js"], "server": true, "props": {"type": "object"}}
        }
    }"#;

    #[test]
    fn manifest_is_parsed() {
        let manifest: BundleManifest = serde_json::from_str(MANIFEST).unwrap();
        assert_eq!(manifest.mode, BundleMode::Production);
        assert_eq!(manifest.runtime.imports, ["react.C.js"]);
        assert_eq!(
            manifest.islands.keys().collect::<Vec<_>>(),
            ["Header", "Toaster"]
        );
        assert!(manifest.islands["Header"].server);
        assert!(!manifest.islands["Toaster"].server);
    }

    #[test]
    fn every_named_file_is_listed_with_its_user() {
        let manifest: BundleManifest = serde_json::from_str(MANIFEST).unwrap();
        let named: Vec<_> = manifest.named_files().collect();
        assert_eq!(
            named,
            [
                ("runtime", "runtime.B.js"),
                ("runtime", "react.C.js"),
                ("Header", "Header.D.js"),
                ("Header", "react.C.js"),
                ("Toaster", "Toaster.E.js"),
            ]
        );
    }

    #[test]
    fn incomplete_manifest_is_refused() {
        let error = serde_json::from_str::<BundleManifest>(r#"{"react": "19.3.1"}"#).unwrap_err();
        assert!(
            error.to_string().contains("missing field `mode`"),
            "{error}"
        );
    }
}
