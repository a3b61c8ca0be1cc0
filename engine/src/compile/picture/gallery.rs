//! Keeps what was drawn for as long as something shows it.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use rayon::prelude::*;

use super::super::encode::{self, Effort};
use super::super::memo::{self, Memo};
use super::super::policy::{self, Kind};
use super::{Drawing, Form, Picture};
use crate::snapshot::{Body, Resource};

/// What was drawn, by the digest of its drawing. What cannot be drawn is kept too, so that nobody tries again.
#[derive(Debug, Default)]
pub struct Gallery {
    drawn: HashMap<[u8; 32], Option<Arc<Resource>>>,
}

impl Gallery {
    /// The picture, when it is there.
    #[must_use]
    pub fn get(&self, picture: &Picture) -> Option<&Arc<Resource>> {
        self.drawn.get(&picture.drawing.digest)?.as_ref()
    }

    /// Draws what is missing, `most` pictures at once, and forgets what is shown no more. Says for each picture that could not be drawn where it was to be, and why; `None` when nothing was missing.
    pub fn draw<'a>(
        &mut self,
        pictures: impl Iterator<Item = (&'a Picture, &'a Memo)>,
        secure: bool,
        most: usize,
    ) -> Option<Vec<String>> {
        let wanted: HashMap<[u8; 32], (&Picture, &Memo)> = pictures
            .map(|(picture, memo)| (picture.drawing.digest, (picture, memo)))
            .collect();
        for (digest, (_, memo)) in &wanted {
            // It stays in the memo for as long as it is shown.
            memo.known(&key(digest));
        }
        self.drawn.retain(|digest, _| wanted.contains_key(digest));
        let missing: Vec<(&[u8; 32], &(&Picture, &Memo))> = wanted
            .iter()
            .filter(|(digest, _)| !self.drawn.contains_key(*digest))
            .take(most)
            .collect();
        if missing.is_empty() {
            return None;
        }
        let drawn: Vec<_> = missing
            .into_par_iter()
            .map(|(digest, (picture, memo))| {
                (*digest, *picture, resource(&picture.drawing, secure, memo))
            })
            .collect();
        let mut failures = Vec::new();
        for (digest, picture, result) in drawn {
            if let Err(reason) = &result {
                failures.push(format!("{}{}: {reason}", picture.host, picture.path));
            }
            self.drawn.insert(digest, result.ok().map(Arc::new));
        }
        failures.sort();
        Some(failures)
    }
}

fn key(digest: &[u8; 32]) -> memo::Key {
    memo::key("picture", &[digest])
}

fn resource(drawing: &Drawing, secure: bool, memo: &Memo) -> Result<Resource, String> {
    // A drawing that the renderer cannot bear must not end the thread that keeps all tenants.
    let draw = || {
        let drawn = catch_unwind(AssertUnwindSafe(|| drawing.draw()));
        drawn.unwrap_or_else(|_| Err("the renderer failed".to_owned()))
    };
    let bytes = memo.get(key(&drawing.digest), || draw().map(Bytes::from))?;
    // The icon has a fixed name, all others have their hash in it.
    let (kind, media_type) = match drawing.form {
        Form::Png(..) => (Kind::Immutable, "image/png"),
        Form::Ico(_) => (Kind::Plain, "image/vnd.microsoft.icon"),
    };
    Ok(Resource::Body(Body {
        status: StatusCode::OK,
        fields: policy::fields(&kind, media_type, secure),
        last_modified: None,
        cache_tag: None,
        variants: encode::variants(bytes, false, Effort::Page),
    }))
}
