//! A tenant's icon, in the forms that browsers and phones ask for.
//!
//! The icon is the tenant's `assets/icon.svg`, else the one that its theme names.

use std::sync::Arc;

use super::{Drawing, PictureFormat};
use crate::images::svg::weight::TooHeavy;
use crate::resources::asset::Asset;
use crate::theme::{Scope, asset_of};
use content::report::{Code, Diagnostic, Place};
use content::tenant::{Site, assets};

/// The file of a tenant's own icon, below its `assets`.
const OWN: &str = "icon.svg";

/// The icon of a tenant.
#[derive(Debug)]
pub(crate) struct Icons {
    /// The file: a path of the tenant's assets or of the theme.
    pub(crate) path: String,
    /// For `/favicon.ico`, which browsers and others ask for unasked.
    pub(crate) favicon: Arc<Drawing>,
    /// For a phone's home screen (Apple, 180 pixels).
    pub(crate) touch: Arc<Drawing>,
    /// For the web manifest: 192 and 512 pixels.
    pub(crate) manifest: [Arc<Drawing>; 2],
}

impl Icons {
    /// The icon of a tenant, when it or its theme has one, or why it cannot be drawn.
    pub(crate) fn of(
        site: &Site,
        scope: &Scope,
        ground: Option<&str>,
    ) -> Result<Option<Self>, Diagnostic> {
        let themed = scope.templates.theme.manifest.icon.as_deref();
        let found = [Some(OWN), themed].into_iter().flatten().find_map(|path| {
            let svg = text_of(asset_of(scope, path)?)?;
            Some((path.to_owned(), svg))
        });
        let Some((path, svg)) = found else {
            return Ok(None);
        };
        // The largest is the most work.
        let largest = PictureFormat::Png(512, 512);
        super::check(&svg, &scope.templates.fonts, (512, 512))
            .map_err(|heavy| too_heavy(heavy, file_of(&path, site, scope), &svg))?;
        let file = file_of(&path, site, scope);
        let svg: Arc<str> = svg.into();
        let drawing = |form| {
            let fonts = &scope.templates.fonts;
            let drawing = Drawing::new(Arc::clone(&svg), form, ground, fonts);
            Arc::new(drawing.of_file(file.clone()))
        };
        Ok(Some(Self {
            path,
            favicon: drawing(PictureFormat::Ico(48)),
            touch: drawing(PictureFormat::Png(180, 180)),
            manifest: [drawing(PictureFormat::Png(192, 192)), drawing(largest)],
        }))
    }

    /// The name of the largest picture below `/assets/`.
    pub(crate) fn largest_file(&self) -> String {
        let [_, largest] = &self.manifest;
        largest.file_name("icon")
    }

    /// The pictures with their file names below `/assets/`.
    pub(crate) fn files(&self) -> impl Iterator<Item = (String, &Arc<Drawing>)> {
        let touch = std::iter::once((self.touch.file_name("touch-icon"), &self.touch));
        let manifest = self.manifest.iter();
        touch.chain(manifest.map(|icon| (icon.file_name("icon"), icon)))
    }
}

/// How reports name the icon's file: the tenant's or the theme's.
fn file_of(path: &str, site: &Site, scope: &Scope) -> String {
    if scope.prepared.assets.contains_key(path) {
        site.name_of(&assets::file_of(path))
    } else {
        format!("{}/{path}", scope.templates.theme.label)
    }
}

/// Points at the element.
fn too_heavy(heavy: TooHeavy, file: String, svg: &str) -> Diagnostic {
    let diagnostic = Diagnostic::error(Code::TooLarge, file, heavy.message)
        .hint("an icon is drawn in four sizes: give it a simpler drawing, `assets/icon.svg`");
    match heavy.place {
        Some((line, column)) => diagnostic.at(
            Place {
                line,
                column,
                length: 1,
            },
            svg,
        ),
        None => diagnostic,
    }
}

fn text_of(asset: &Asset) -> Option<String> {
    std::str::from_utf8(&asset.bytes)
        .ok()
        .map(ToOwned::to_owned)
}
