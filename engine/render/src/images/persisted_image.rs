//! Image specs in persisted form: [`PersistedSpec`] identifies a spec, and [`PersistedSource`] is its source.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{ImageSource, ImageSpec, RasterFormat};
use crate::images::svg::fonts::Fonts;

/// An image spec without its source.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PersistedSpec {
    form: RasterFormat,
    digest: [u8; 32],
    file: String,
}

/// The source and background of an image spec.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PersistedSource {
    /// The source; `None` if the image is rendered already.
    source: Option<SourceReference>,
    ground: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
enum SourceReference {
    /// An SVG.
    Svg(String),
    /// The hashed name of an author's image.
    Image(String),
}

impl ImageSpec {
    /// Returns the spec without its source.
    pub(crate) fn persisted_spec(&self) -> PersistedSpec {
        PersistedSpec {
            form: self.form,
            digest: self.digest,
            file: self.file.clone(),
        }
    }

    /// Returns the source and background. The source is `None` if the image is rendered already.
    pub(crate) fn persisted_source(&self) -> PersistedSource {
        let source = self.source().as_ref().map(|source| match source {
            ImageSource::Svg(svg) => SourceReference::Svg(svg.to_string()),
            ImageSource::Image(name, _) => SourceReference::Image(name.clone()),
        });
        PersistedSource {
            source,
            ground: self.ground.as_deref().map(ToOwned::to_owned),
        }
    }
}

impl From<PersistedSpec> for ImageSpec {
    fn from(outline: PersistedSpec) -> Self {
        Self {
            source: Mutex::new(None),
            form: outline.form,
            ground: None,
            fonts: Arc::default(),
            digest: outline.digest,
            file: outline.file,
        }
    }
}

impl PersistedSource {
    /// Adds the source to a spec. `original` returns the bytes of an author's image by its hashed name.
    ///
    /// Returns whether the spec has a source now.
    pub(crate) fn add_to(
        self,
        spec: &mut ImageSpec,
        fonts: &Arc<Fonts>,
        original: impl FnOnce(&str) -> Option<Bytes>,
    ) -> bool {
        let source = self.source.and_then(|source| match source {
            SourceReference::Svg(svg) => Some(ImageSource::Svg(svg.into())),
            SourceReference::Image(name) => {
                let bytes = original(&name)?;
                Some(ImageSource::Image(name, bytes))
            }
        });
        let is_there = source.is_some();
        spec.source = Mutex::new(source);
        spec.ground = self.ground.map(Arc::from);
        spec.fonts = Arc::clone(fonts);
        is_there
    }
}
