//! Drawings in persisted form: [`DrawingOutline`] identifies a drawing, and [`DrawingMaterial`] is its source.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{Drawing, PictureFormat, Subject};
use crate::images::svg::fonts::Fonts;

/// A drawing without its source.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DrawingOutline {
    form: PictureFormat,
    digest: [u8; 32],
    file: String,
}

/// The source and background of a drawing.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DrawingMaterial {
    /// The source; `None` if the image is drawn already.
    source: Option<DrawingSource>,
    ground: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
enum DrawingSource {
    /// An SVG.
    Svg(String),
    /// The hashed name of an author's image.
    Picture(String),
}

impl Drawing {
    /// Returns the drawing without its source.
    pub(crate) fn outline(&self) -> DrawingOutline {
        DrawingOutline {
            form: self.form,
            digest: self.digest,
            file: self.file.clone(),
        }
    }

    /// Returns the source and background. The source is `None` if the image is drawn already.
    pub(crate) fn material(&self) -> DrawingMaterial {
        let source = self.subject().as_ref().map(|subject| match subject {
            Subject::Svg(svg) => DrawingSource::Svg(svg.to_string()),
            Subject::Picture(name, _) => DrawingSource::Picture(name.clone()),
        });
        DrawingMaterial {
            source,
            ground: self.ground.as_deref().map(ToOwned::to_owned),
        }
    }
}

impl From<DrawingOutline> for Drawing {
    fn from(outline: DrawingOutline) -> Self {
        Self {
            subject: Mutex::new(None),
            form: outline.form,
            ground: None,
            fonts: Arc::default(),
            digest: outline.digest,
            file: outline.file,
        }
    }
}

impl DrawingMaterial {
    /// Adds the source to a drawing. `original` returns the bytes of an author's image by its hashed name.
    ///
    /// Returns whether the drawing has a source now.
    pub(crate) fn add_to(
        self,
        drawing: &mut Drawing,
        fonts: &Arc<Fonts>,
        original: impl FnOnce(&str) -> Option<Bytes>,
    ) -> bool {
        let subject = self.source.and_then(|source| match source {
            DrawingSource::Svg(svg) => Some(Subject::Svg(svg.into())),
            DrawingSource::Picture(name) => {
                let bytes = original(&name)?;
                Some(Subject::Picture(name, bytes))
            }
        });
        let is_there = subject.is_some();
        drawing.subject = Mutex::new(subject);
        drawing.ground = self.ground.map(Arc::from);
        drawing.fonts = Arc::clone(fonts);
        is_there
    }
}
