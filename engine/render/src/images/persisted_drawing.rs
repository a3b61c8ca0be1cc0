//! Drawings as they outlive the process that named them: [`DrawingOutline`]s tell them apart, and [`DrawingMaterial`] is what they are drawn from.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{Drawing, PictureFormat, Subject};
use crate::images::svg::fonts::Fonts;

/// A drawing without what is drawn.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DrawingOutline {
    form: PictureFormat,
    digest: [u8; 32],
    file: String,
}

/// What is drawn.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DrawingMaterial {
    /// None where it was drawn.
    source: Option<DrawingSource>,
    ground: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
enum DrawingSource {
    /// A drawing as SVG.
    Svg(String),
    /// A picture as its author made it, by its hashed name.
    Picture(String),
}

impl Drawing {
    /// It without what is drawn.
    pub(crate) fn outline(&self) -> DrawingOutline {
        DrawingOutline {
            form: self.form,
            digest: self.digest,
            file: self.file.clone(),
        }
    }

    /// What is drawn, as far as that is still to be done.
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
    /// Adds what is drawn to a drawing without. Whether it can be drawn: `original` gives the bytes of a picture by its hashed name.
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
