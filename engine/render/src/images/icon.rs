//! A tenant's icon in the sizes and formats that browsers and phones request.
//!
//! The source is the tenant's `assets/icon.svg`, else the icon that its theme names.

use std::sync::Arc;

use super::{ImageSpec, RasterFormat};
use crate::images::svg::weight::WeightError;
use crate::resources::asset::Asset;
use crate::theme::{PageScope, asset_of};
use content::report::{Code, Diagnostic, TextPosition};
use content::tenant::{Site, assets};

/// The path of a tenant's own icon below `assets`.
const OWN_ICON: &str = "icon.svg";

/// The icon of a tenant in all sizes.
#[derive(Debug)]
pub(crate) struct Icons {
    /// The source file: a path in the tenant's assets or in the theme.
    pub(crate) path: String,
    /// For `/favicon.ico`, which clients request without a link to it.
    pub(crate) favicon: Arc<ImageSpec>,
    /// For a phone's home screen: 180 pixels (Apple).
    pub(crate) touch: Arc<ImageSpec>,
    /// For the web manifest: 192 and 512 pixels.
    pub(crate) manifest: [Arc<ImageSpec>; 2],
}

impl Icons {
    /// Prepares the icon of a tenant. Returns `None` if neither the tenant nor its theme has one, and an error if drawing it takes too much work.
    pub(crate) fn of(
        site: &Site,
        scope: &PageScope,
        ground: Option<&str>,
    ) -> Result<Option<Self>, Diagnostic> {
        let themed = scope.templates.theme.manifest.icon.as_deref();
        let found = [Some(OWN_ICON), themed]
            .into_iter()
            .flatten()
            .find_map(|path| {
                let svg = text_of(asset_of(scope, path)?)?;
                Some((path.to_owned(), svg))
            });
        let Some((path, svg)) = found else {
            return Ok(None);
        };
        // The largest size takes the most work.
        let largest = RasterFormat::Png(512, 512);
        super::check(&svg, &scope.templates.fonts, (512, 512))
            .map_err(|heavy| too_heavy(heavy, file_of(&path, site, scope), &svg))?;
        let file = file_of(&path, site, scope);
        let svg: Arc<str> = svg.into();
        let spec = |form| {
            let fonts = &scope.templates.fonts;
            let spec = ImageSpec::new(Arc::clone(&svg), form, ground, fonts);
            Arc::new(spec.of_file(file.clone()))
        };
        Ok(Some(Self {
            path,
            favicon: spec(RasterFormat::Ico(48)),
            touch: spec(RasterFormat::Png(180, 180)),
            manifest: [spec(RasterFormat::Png(192, 192)), spec(largest)],
        }))
    }

    /// Returns the file name of the largest size below `/assets/`.
    pub(crate) fn largest_file(&self) -> String {
        let [_, largest] = &self.manifest;
        largest.file_name("icon")
    }

    /// Returns the image specs with their file names below `/assets/`.
    pub(crate) fn files(&self) -> impl Iterator<Item = (String, &Arc<ImageSpec>)> {
        let touch = std::iter::once((self.touch.file_name("touch-icon"), &self.touch));
        let manifest = self.manifest.iter();
        touch.chain(manifest.map(|icon| (icon.file_name("icon"), icon)))
    }
}

/// Returns the name of the icon's file in diagnostics: the tenant's file, else the theme's.
fn file_of(path: &str, site: &Site, scope: &PageScope) -> String {
    if scope.prepared.assets.contains_key(path) {
        site.name_of(&assets::file_of(path))
    } else {
        format!("{}/{path}", scope.templates.theme.label)
    }
}

/// Makes a diagnostic that points at the costly element.
fn too_heavy(heavy: WeightError, file: String, svg: &str) -> Diagnostic {
    let diagnostic = Diagnostic::error(Code::TooLarge, file, heavy.message)
        .hint("add a simpler SVG as `assets/icon.svg`; the icon is drawn in four sizes");
    match heavy.place {
        Some((line, column)) => diagnostic.at(
            TextPosition {
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
