//! The paths that the engine itself serves. Tenants cannot claim them.
//!
//! The code that serves such a path uses the constant here, so this list is complete.

/// The path of files: shared files on every host, a tenant's own files below its mount.
pub const ASSETS: &str = "/assets/";

/// Contact details for vulnerability reports (RFC 9116), on every host.
pub const SECURITY: &str = "/.well-known/security.txt";

/// The links that open in an app on Apple's platforms, on the tenant's hosts.
pub const APPLE_ASSOCIATION: &str = "/.well-known/apple-app-site-association";

/// The links that open in an app on Android, on the tenant's hosts.
pub const ASSET_LINKS: &str = "/.well-known/assetlinks.json";

/// Rules for crawlers (RFC 9309), on every host.
pub const ROBOTS: &str = "/robots.txt";

/// The sitemap of a host, or the index of its parts.
pub const SITEMAP: &str = "/sitemap.xml";

/// The icon that browsers request by default, on every host.
pub const FAVICON: &str = "/favicon.ico";

/// The icon that phones request by default, on every host.
pub const TOUCH_ICON: &str = "/apple-touch-icon.png";

/// The authorised sellers of advertising in an app (IAB Tech Lab, app-ads.txt), on the tenant's hosts.
pub const APP_ADS: &str = "/app-ads.txt";

/// The web manifest (W3C, Web Application Manifest), below every mount.
pub const WEB_MANIFEST: &str = "/site.webmanifest";

/// The feed of a collection (RFC 4287), below the collection's path.
pub const FEED: &str = "/feed.xml";

/// The search index of a tenant's pages, below every mount, if the manifest enables search.
pub const SEARCH: &str = "/search.json";

/// Returns the path of one part of a sitemap that is too large for a single file. Parts count from 1.
#[must_use]
pub fn sitemap_part(number: usize) -> String {
    format!("/sitemap-{number}.xml")
}

/// Returns whether a path, relative to a host or a mount, is the engine's own. This includes every path with a segment that begins with a dot (RFC 8615: `/.well-known/`).
#[must_use]
pub fn is_reserved(path: &str) -> bool {
    const FILES: [&str; 7] = [
        ROBOTS,
        SITEMAP,
        FAVICON,
        TOUCH_ICON,
        APP_ADS,
        WEB_MANIFEST,
        SEARCH,
    ];
    let part = path
        .strip_prefix("/sitemap-")
        .and_then(|rest| rest.strip_suffix(".xml"));
    FILES.contains(&path)
        || part.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
        || path.ends_with(FEED)
        || path.starts_with(ASSETS)
        || path == ASSETS.trim_end_matches('/')
        || path.split('/').any(|segment| segment.starts_with('.'))
}

/// Returns whether a text file of a tenant may be served at a path of its own hosts.
///
/// Allowed are all paths that a page may have, and names below `/.well-known/` (RFC 8615) that the engine does not serve itself.
#[must_use]
pub fn is_free_for_text(path: &str) -> bool {
    const OWN: [&str; 3] = [SECURITY, APPLE_ASSOCIATION, ASSET_LINKS];
    match path.strip_prefix("/.well-known/") {
        Some(rest) => {
            let is_challenge = rest.split('/').next() == Some("acme-challenge");
            !OWN.contains(&path) && !is_challenge && !is_reserved(&format!("/{rest}"))
        }
        None => !is_reserved(path),
    }
}

/// Returns whether a prefix would hide one of the engine's own paths on the host or on a shorter prefix, for example `/assets` or `/corner/assets`.
#[must_use]
pub fn hides_reserved_path(prefix: &str) -> bool {
    let mut slashes = prefix.match_indices('/');
    slashes.any(|(slash, _)| is_reserved(&prefix[slash..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_the_engine_are_reserved() {
        for own in [
            "/assets",
            "/assets/x/y",
            SECURITY,
            "/blog/.draft",
            ROBOTS,
            SITEMAP,
            &sitemap_part(12),
            "/blog/feed.xml",
        ] {
            assert!(is_reserved(own) && hides_reserved_path(own), "{own}");
        }
        for free in ["/", "/terms", "/my-assets", "/sitemap", "/robots", "/a.b"] {
            assert!(!is_reserved(free) && !hides_reserved_path(free), "{free}");
        }
        for free in ["/google1a2b.html", "/.well-known/atproto-did", "/ads.txt"] {
            assert!(is_free_for_text(free), "{free}");
        }
        for own in [
            SECURITY,
            ASSET_LINKS,
            APPLE_ASSOCIATION,
            "/.well-known/acme-challenge/x",
            "/.well-known/.x",
            "/.other/x",
            ROBOTS,
            APP_ADS,
        ] {
            assert!(!is_free_for_text(own), "{own}");
        }
        for deep in ["/services/assets", "/docs/robots.txt"] {
            assert!(!is_reserved(deep) && hides_reserved_path(deep), "{deep}");
        }
    }
}
