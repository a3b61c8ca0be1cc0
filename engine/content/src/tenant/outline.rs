//! An outline of a site: its manifest, and its pages without their content. Addresses and lists of pages need only the outline, but it cannot be rendered.
//!
//! Outlines are persisted, so that an unchanged folder is not read again after a restart.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{FrontMatter, MANIFEST, Manifest, Page, Site, ThemedValues};
use crate::name::TenantId;
use crate::schema::FormattedText;

/// An outline as serialised.
#[derive(Serialize, Deserialize)]
struct PersistedOutline {
    manifest: Manifest,
    translated: Vec<Manifest>,
    /// The text of the manifest as the author wrote it.
    text: Option<String>,
    formatted: Vec<FormattedText>,
    pages: Vec<PersistedPage>,
}

#[derive(Serialize, Deserialize)]
struct PersistedPage {
    path: String,
    file: String,
    front: FrontMatter,
    body_line: usize,
}

impl Site {
    /// Reduces the site to its outline.
    #[must_use]
    pub fn outline(mut self) -> Self {
        for page in self.pages.values_mut() {
            page.body = String::new();
            page.formatted = Vec::new();
            page.front.sections = Vec::new();
        }
        self.assets = BTreeMap::new();
        self.large = BTreeMap::new();
        self.written = ThemedValues::outline(self.written.texts.remove(MANIFEST));
        self
    }

    /// Serialises an outline that still has all its pages. Returns `None` if it cannot be serialised.
    #[must_use]
    pub fn outline_to_bytes(&self) -> Option<Vec<u8>> {
        let page = |page: &Page| PersistedPage {
            path: page.path.clone(),
            file: page.file.clone(),
            front: page.front.clone(),
            body_line: page.body_line,
        };
        let persisted = PersistedOutline {
            manifest: self.manifest.clone(),
            translated: self.translated.clone(),
            text: self.written.texts.get(MANIFEST).cloned(),
            formatted: self.formatted.clone(),
            pages: self.pages.values().map(|boxed| page(boxed)).collect(),
        };
        serde_json::to_vec(&persisted).ok()
    }

    /// Deserialises an outline. Returns `None` if the bytes are not valid.
    #[must_use]
    pub fn outline_of_bytes(id: TenantId, label: String, bytes: &[u8]) -> Option<Self> {
        let persisted: PersistedOutline = serde_json::from_slice(bytes).ok()?;
        let page = |page: PersistedPage| Page {
            path: page.path,
            file: page.file,
            front: page.front,
            formatted: Vec::new(),
            body: String::new(),
            body_line: page.body_line,
            hidden: None,
        };
        let pages = persisted.pages.into_iter().map(page);
        Some(Self {
            id,
            label,
            manifest: persisted.manifest,
            translated: persisted.translated,
            formatted: persisted.formatted,
            pages: pages
                .map(|page| (page.path.clone(), Box::new(page)))
                .collect(),
            hidden: BTreeMap::new(),
            assets: BTreeMap::new(),
            large: BTreeMap::new(),
            written: ThemedValues::outline(persisted.text),
        })
    }
}
