//! Reads a tenant's own files: names them by content, sanitises SVGs, and removes the metadata of images.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::images::metadata::strip;
use crate::images::svg;
use crate::media::media_type::is_svg;
use crate::resources::asset::Asset;
use content::report::{Diagnostic, Report};
use content::tenant::Site;
use content::tenant::assets::file_of;

/// Returns the tenant's files as they are served, by key.
#[must_use]
pub(crate) fn tenant_assets(site: &Site, report: &mut Report) -> BTreeMap<String, Asset> {
    let assets = site.assets.iter().map(|(key, bytes)| {
        let file = site.name_of(&file_of(key));
        let (asset, found) = tenant_asset(key, bytes, &file);
        report.extend(found);
        (key.clone(), asset)
    });
    let large = site.large.iter();
    let large = large.map(|(key, file)| (key.clone(), Asset::of_large(key, file)));
    assets.chain(large).collect()
}

/// Returns one of the tenant's files and the diagnostics about it. Diagnostics name it `file`.
#[must_use]
pub(crate) fn tenant_asset(path: &str, bytes: &Bytes, file: &str) -> (Asset, Vec<Diagnostic>) {
    if !is_svg(path) {
        return (Asset::of_tenant(path, strip(bytes)), Vec::new());
    }
    // An invalid SVG is an error that blocks the release, so the empty placeholder is never served.
    let (svg, found) =
        svg::sanitise(bytes, file).unwrap_or_else(|wrong| (String::new(), vec![*wrong]));
    (Asset::of_tenant(path, svg.into()), found)
}
