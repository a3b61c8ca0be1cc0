//! `manifest.json`, as types: what the build says of its files. Written by `build/manifest.mjs`.

use std::collections::BTreeMap;

use serde::Deserialize;

/// What the bundle holds.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct BundleManifest {
    /// Version of React, such as `19.3.1`.
    pub react: String,
    /// Which of React's two builds it is.
    pub mode: BundleMode,
    /// The module that the loader fetches for the first island: React and what mounts it.
    pub runtime: Module,
    /// The islands by name.
    pub islands: BTreeMap<String, Island>,
}

/// React's builds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BundleMode {
    /// Small and quiet.
    Production,
    /// Reports every hydration mismatch; its server script calls `console`, which the caller must provide.
    Development,
}

/// A file for the browser.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Module {
    /// Its name, which holds a hash of its content.
    pub file: String,
    /// The files that it imports statically, and those that these import: what to preload along with it.
    pub imports: Vec<String>,
}

/// A component that templates may place on a page.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Island {
    /// Name of its module, which holds a hash of its content.
    pub file: String,
    /// The files that the module imports, directly or not: what to preload along with it.
    pub imports: Vec<String>,
    /// Whether it renders on the server. One that does not gets an empty element and `render="browser"`.
    pub server: bool,
    /// JSON Schema of its props.
    pub props: serde_json::Value,
}

impl BundleManifest {
    /// Every file name in the manifest, with what names it.
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
    fn a_manifest_is_read() {
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
    fn every_named_file_is_listed_with_its_reason() {
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
    fn an_incomplete_manifest_is_refused() {
        let error = serde_json::from_str::<BundleManifest>(r#"{"react": "19.3.1"}"#).unwrap_err();
        assert!(
            error.to_string().contains("missing field `mode`"),
            "{error}"
        );
    }
}
