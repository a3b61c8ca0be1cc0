//! The web manifest (W3C, Web Application Manifest): the name, icons and colours of a site on a phone's home screen.

use serde_json::json;

use crate::images::icon::Icons;
use crate::resources::asset::ASSETS;
use crate::theme::{PageScope, asset_href};
use content::tenant::Site;

/// The media type of a web manifest (W3C, Web Application Manifest, section 5.1).
pub(super) const MEDIA_TYPE: &str = "application/manifest+json";

/// Writes the manifest of a tenant for the address and the language that `scope` is for.
pub(super) fn text(
    site: &Site,
    scope: &PageScope,
    icons: Option<&Icons>,
    colour: Option<&str>,
) -> String {
    let home = scope.resolver.href("/");
    let drawn = icons.into_iter().flat_map(|icons| {
        let vector = asset_href(scope, &icons.path)
            .map(|href| json!({"src": href, "sizes": "any", "type": "image/svg+xml"}));
        let sizes = icons.manifest.iter().map(|icon| {
            let (width, height) = icon.size();
            json!({
                "src": scope.resolver.own(&format!("{ASSETS}{}", icon.file_name("icon"))),
                "sizes": format!("{width}x{height}"),
                "type": "image/png",
            })
        });
        vector.into_iter().chain(sizes)
    });
    let manifest = site.manifest_in(scope.language);
    let mut text = json!({
        "name": manifest.name,
        "lang": site.manifest.languages()[scope.language].as_str(),
        "id": home,
        "start_url": home,
        "scope": scope.resolver.own("/"),
        "display": "browser",
        "icons": drawn.collect::<Vec<_>>(),
    });
    if scope.language().is_right_to_left() {
        text["dir"] = "rtl".into();
    }
    if let Some(description) = &manifest.description {
        text["description"] = description.as_str().into();
    }
    if let Some(colour) = colour {
        for key in ["theme_color", "background_color"] {
            text[key] = colour.into();
        }
    }
    text.to_string()
}
