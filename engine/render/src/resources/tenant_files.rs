//! A tenant's own files: named by their content, its drawings made harmless, its pictures freed of metadata.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::images::metadata::stripped;
use crate::images::svg;
use crate::media::media_type::is_drawing;
use crate::resources::asset::Asset;
use content::report::{Diagnostic, Report};
use content::tenant::Site;
use content::tenant::assets::file_of;

/// A tenant's files by their keys, as they are served.
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

/// One of a tenant's files, with what is to be said of it. `file` is how reports name it.
#[must_use]
pub(crate) fn tenant_asset(path: &str, bytes: &Bytes, file: &str) -> (Asset, Vec<Diagnostic>) {
    if !is_drawing(path) {
        return (Asset::of_tenant(path, stripped(bytes)), Vec::new());
    }
    // What is no drawing is an error, so that nobody ever sees what stands in for it.
    let (svg, found) =
        svg::clean(bytes, file).unwrap_or_else(|wrong| (String::new(), vec![*wrong]));
    (Asset::of_tenant(path, svg.into()), found)
}
