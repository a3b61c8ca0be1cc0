//! How the app stores' systems learn that a tenant's host and an app belong together.
//!
//! All of it answers on the tenant's own hosts only: an association is with a whole host, and the domain is the root tenant's.

use serde_json::{Value as Json, json};

use crate::resources::asset::ASSETS;
use content::name::reserved::{APP_ADS, APPLE_ASSOCIATION, ASSET_LINKS};
use content::tenant::Site;
use content::tenant::app::{AndroidApp, AppleApp};

/// The files that a tenant's app asks for: path, media type, text.
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

/// Apple, 'Supporting associated domains': which links open the app, and that its passwords are the site's.
///
/// Unless the manifest names the links, everything does that is no page of the site: visitors read pages in the browser.
fn apple_association(apple: &AppleApp, site: &Site) -> Json {
    let id = format!("{}.{}", apple.team.as_str(), apple.bundle.as_str());
    let links: Vec<Json> = if apple.links.is_empty() {
        let pages = site.pages.values().flat_map(content::tenant::Page::paths);
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

/// Google, 'Digital Asset Links': the app may open the host's links and fill in its passwords.
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
