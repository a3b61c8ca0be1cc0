//! Files by which the app stores' systems associate a host with an app.
//!
//! These files are served only on the tenant's own hosts: an association covers a complete host, and the domain belongs to the root tenant.

use serde_json::{Value as Json, json};

use crate::resources::asset::ASSETS;
use content::name::reserved::{APP_ADS, APPLE_ASSOCIATION, ASSET_LINKS};
use content::tenant::Site;
use content::tenant::app::{AndroidApp, AppleApp};

/// Returns the association files of a tenant's app: path, media type and text.
pub(super) fn files(site: &Site) -> Vec<(&'static str, &'static str, String)> {
    const JSON: &str = "application/json";
    let Some(app) = &site.manifest.app else {
        return Vec::new();
    };
    let apple = app.apple.as_ref().map(|apple| {
        (
            APPLE_ASSOCIATION,
            JSON,
            apple_association(apple, site).to_string(),
        )
    });
    let android = app
        .android
        .as_ref()
        .map(|android| (ASSET_LINKS, JSON, asset_links(android).to_string()));
    let ads = (!app.ads.is_empty()).then(|| {
        let lines = app
            .ads
            .iter()
            .map(|record| format!("{}\n", record.as_str()));
        (APP_ADS, "text/plain; charset=utf-8", lines.collect())
    });
    apple.into_iter().chain(android).chain(ads).collect()
}

/// Writes Apple's association file: which links open the app, and that the app may use the site's passwords (Apple, 'Supporting associated domains').
///
/// Without a list in the manifest, every link opens the app except for pages and files of the site.
fn apple_association(apple: &AppleApp, site: &Site) -> Json {
    let id = format!("{}.{}", apple.team.as_str(), apple.bundle.as_str());
    let links: Vec<Json> = if apple.links.is_empty() {
        let pages = site.pages.values().flat_map(|page| page.paths());
        let files = format!("{ASSETS}*");
        let downloads = site.manifest.downloads().chain(site.manifest.files());
        let downloads = downloads.map(|(path, _)| path);
        pages
            .map(ToOwned::to_owned)
            .chain(downloads)
            .chain([files])
            .map(|path| json!({"/": path, "exclude": true}))
            .chain([json!({"/": "*"})])
            .collect()
    } else {
        let links = apple.links.iter();
        links.map(|link| json!({"/": link.as_str()})).collect()
    };
    json!({
        "applinks": {"details": [{"appIDs": [id], "components": links}]},
        "webcredentials": {"apps": [id]},
    })
}

/// Writes Google's association file: the app may open the host's links and use its passwords (Google, 'Digital Asset Links').
fn asset_links(android: &AndroidApp) -> Json {
    let fingerprints = android.fingerprints.iter();
    json!([{
        "relation": [
            "delegate_permission/common.handle_all_urls",
            "delegate_permission/common.get_login_creds",
        ],
        "target": {
            "namespace": "android_app",
            "package_name": android.package.as_str(),
            "sha256_cert_fingerprints": fingerprints.map(|one| one.as_str()).collect::<Vec<_>>(),
        },
    }])
}
