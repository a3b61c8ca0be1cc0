//! One table of redirects: the real binary and every export must agree with it.

use crate::TestSite;

/// The hosts and prefixes at which the tenant with the redirects is served.
pub const PLACES: [(&str, &str); 3] = [
    ("corner.studio.example", ""),
    ("studio.example", "/corner"),
    ("studio.example", "/apps/corner"),
];

/// A request below the tenant's prefix, and the expected response.
#[derive(Debug, Clone, Copy)]
pub struct RedirectCase {
    /// Path and query.
    pub request: &'static str,
    /// The status of the server.
    pub status: u16,
    /// The location: a path below the tenant's prefix, or a URL. Empty without a redirect.
    pub location: &'static str,
}

const fn case(request: &'static str, status: u16, location: &'static str) -> RedirectCase {
    RedirectCase {
        request,
        status,
        location,
    }
}

/// The redirects of the tenant.
const MANIFEST: &str = r#"name: Corner
aliases: [/apps/corner]
redirects:
  - {from: /old/*, to: /new/:splat}
  - {from: /old/deep/*, to: "/deep/:splat#top", status: 302}
  - {from: /old/page, to: /terms, status: 301}
  - {from: /old/removed, status: 410}
  - {from: /removed/*, status: 410}
  - {from: /, query: {p: 12}, to: "/terms?own=1"}
  - {from: /, query: {p: 13}, status: 410}
  - {from: /index.php, to: /}
  - {from: /index.php, query: {id: 7}, to: /new/a}
  - {from: /index.php, query: {id: 7, lang: "de at"}, to: /terms}
  - {from: /feed.xml, to: /terms, status: 307}
  - {from: /über-uns/, to: /terms}
  - {from: /%C3%A9t%C3%A9, to: /terms}
  - {from: /товары/*, to: "/new/:splat?from=shop"}
  - {from: /search/*, query: {q: a/b}, to: /new/a}
  - {from: /away/*, to: "https://a.example/x/:splat"}
  - {from: /top/*, to: "/:splat"}
  - {from: /fixed/*, to: /terms}
  - {from: /post, to: "mailto:post@studio.example"}
"#;

/// The requests that a static host and a web server must answer as the server does.
pub const CASES: &[RedirectCase] = &[
    case("/old/a", 308, "/new/a"),
    case("/old/a/b?x=1&y=%20", 308, "/new/a/b?x=1&y=%20"),
    case("/old/caf%C3%A9%20%25", 308, "/new/caf%C3%A9%20%25"),
    case("/old", 308, "/new"),
    case("/older", 404, ""),
    case("/old/kept", 200, ""),
    case("/old/deep/a", 302, "/deep/a#top"),
    case("/old/deep/a?b=1", 302, "/deep/a?b=1#top"),
    case("/old/deep", 302, "/deep#top"),
    case("/old/page", 301, "/terms"),
    case("/old/page?x=1", 301, "/terms?x=1"),
    case("/old/page/more", 308, "/new/page/more"),
    case("/index.php", 308, "/"),
    case("/index.php?id=8", 308, "/?id=8"),
    case("/feed.xml", 307, "/terms"),
    case("/%C3%BCber-uns", 308, "/terms"),
    case("/%C3%A9t%C3%A9?x=1", 308, "/terms?x=1"),
    case(
        "/%D1%82%D0%BE%D0%B2%D0%B0%D1%80%D1%8B/a",
        308,
        "/new/a?from=shop",
    ),
    case("/away/a", 308, "https://a.example/x/a"),
    case("/away/a/b?x=1", 308, "https://a.example/x/a/b?x=1"),
    case("/fixed/a/b", 308, "/terms"),
    case("/post", 308, "mailto:post@studio.example"),
    case("/nothing", 404, ""),
    case("/terms", 200, ""),
    case("/", 200, ""),
    case("/?p=120", 200, ""),
];

/// The requests that a host answers as the server does if its rules know the query and status 410.
pub const QUERY_CASES: &[RedirectCase] = &[
    case("/old/removed", 410, ""),
    case("/old/removed?x=1", 410, ""),
    case("/removed", 410, ""),
    case("/removed/a/b", 410, ""),
    case("/?p=12", 308, "/terms?own=1&p=12"),
    case("/?x=1&p=12", 308, "/terms?own=1&x=1&p=12"),
    case("/?p=13", 410, ""),
    case("/index.php?id=7", 308, "/new/a?id=7"),
    case(
        "/index.php?lang=de%20at&id=7",
        308,
        "/terms?lang=de%20at&id=7",
    ),
    case("/search/x?q=a%2Fb", 308, "/new/a?q=a%2Fb"),
    case("/search?q=a/b", 308, "/new/a?q=a/b"),
    case("/search/x?q=a", 404, ""),
];

/// The requests that only the server and a web server answer alike: slashes, queries of targets, and attacks.
pub const SERVER_CASES: &[RedirectCase] = &[
    case("/old/", 308, "/new"),
    case("/old/a/", 308, "/new/a"),
    case("/old/page/", 301, "/terms"),
    case("/%C3%BCber-uns/", 308, "/terms"),
    case("/index.php?lang=de+at&id=7", 308, "/terms?lang=de+at&id=7"),
    case("/away", 308, "https://a.example/x/"),
    case("/away/a/", 308, "https://a.example/x/a/"),
    case(
        "/%D1%82%D0%BE%D0%B2%D0%B0%D1%80%D1%8B/a?b=1",
        308,
        "/new/a?from=shop&b=1",
    ),
    case("/post?x=1", 308, "mailto:post@studio.example"),
    case("/top/terms", 308, "/terms"),
    case("/top", 308, "/"),
    case("/top//evil.example", 404, ""),
    case("/top/%2Fevil.example", 404, ""),
    case("/top/%2f%2fevil.example", 404, ""),
    case("/top/%5Cevil.example", 308, "/%5Cevil.example"),
    case("/top/@evil.example", 308, "/@evil.example"),
    case("/fixed//evil.example", 404, ""),
];

impl RedirectCase {
    /// Returns the requested path and query below a prefix.
    #[must_use]
    pub fn request_at(&self, prefix: &str) -> String {
        match (prefix, self.request.strip_prefix("/?")) {
            ("", _) => self.request.to_owned(),
            (prefix, Some(query)) => format!("{prefix}?{query}"),
            (prefix, None) if self.request == "/" => prefix.to_owned(),
            (prefix, None) => format!("{prefix}{}", self.request),
        }
    }

    /// Returns the expected location below a prefix.
    #[must_use]
    pub fn location_at(&self, prefix: &str) -> String {
        match (prefix, self.location) {
            (prefix, location) if !location.starts_with('/') || prefix.is_empty() => {
                location.to_owned()
            }
            (prefix, "/") => prefix.to_owned(),
            (prefix, location) => match location.strip_prefix("/?") {
                Some(query) => format!("{prefix}?{query}"),
                None => format!("{prefix}{location}"),
            },
        }
    }
}

/// Returns a site with a tenant that has the redirects, and a root tenant with a wildcard for all paths.
///
/// # Panics
/// If the site has errors.
#[must_use]
pub fn create_site() -> TestSite {
    let mut site = TestSite::fixture("sites");
    let page = |title: &str| format!("---\ntitle: {title}\n---\n[Terms](/terms)\n");
    site.edit(
        "tenants/home/tenant.yaml",
        "name: Street",
        "name: Street\nredirects: [{from: /*, to: /about}]",
    );
    site.write("tenants/corner/tenant.yaml", MANIFEST);
    for name in ["index", "terms", "new/a", "deep/a", "old/kept"] {
        site.write(&format!("tenants/corner/pages/{name}.md"), page(name));
    }
    site.reload();
    let report = site.report_text();
    assert!(!report.contains("error["), "{report}");
    site.render_images();
    site
}
