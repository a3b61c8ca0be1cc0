//! Resources that are made only for requested tenants: images, and the best encodings of pages.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use rowhouse_tests::{Answer, TestServer, TestSite, fixture};

const TIMEOUT: Duration = Duration::from_secs(60);

fn page(server: &TestServer, codings: &str) -> Answer {
    let codings = [("accept-encoding", codings)];
    server.request("GET", &server.domain(), "/", &codings)
}

/// RFC 9110, section 8.8.3: a different body has a different ETag.
#[test]
fn best_encoding_follows_with_own_etag() {
    let server = TestServer::start(&fixture("sites"), &[]);
    let (quick, other) = (page(&server, "gzip, br"), page(&server, "gzip"));
    for (answer, coding) in [(&quick, "br"), (&other, "gzip")] {
        assert_eq!(answer.header("content-encoding"), coding);
    }
    let begin = Instant::now();
    let mut best = page(&server, "gzip, br");
    while best.header("etag") == quick.header("etag") {
        assert!(begin.elapsed() < TIMEOUT, "{}", server.log());
        thread::sleep(Duration::from_millis(20));
        best = page(&server, "gzip, br");
    }
    assert_eq!(best.header("content-encoding"), "br");
    assert!(best.body.len() < quick.body.len());
    assert_eq!(best.header("vary"), quick.header("vary"));
    // A client that does not accept the new encoding gets the old one.
    let again = page(&server, "gzip");
    assert_eq!(again.header("etag"), other.header("etag"));
}

#[test]
fn request_for_image_waits_until_it_is_rendered() {
    let server = TestServer::start(&fixture("sites"), &[]);
    let domain = server.domain();
    let page = server.get(&domain, "/").text();
    let image = page
        .split("property=\"og:image\" content=\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next())
        .expect("a social image");
    let path = image.split_once(&domain).expect("its own host").1;
    for path in [path, "/favicon.ico"] {
        let answer = server.get(&domain, path);
        assert_eq!(answer.status, 200, "{path}: {}", server.log());
        assert!(
            answer.header("content-type").starts_with("image/"),
            "{path}"
        );
    }
    let none = server.get(&domain, "/assets/social.0000000000000000.png");
    assert_eq!(none.status, 404, "not rendered");
}

/// The address of an icon names its tenant: a browser with a cached page may request only the icon.
#[test]
fn icon_is_rendered_if_only_icon_is_requested() {
    let mut site = TestSite::fixture("sites");
    let icon = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 8 8\"><path d=\"M1 1h6v6H1z\"/></svg>";
    site.write("tenants/app/assets/icon.svg", icon);
    let icons = |server: &TestServer| {
        let domain = server.domain();
        let page = server.get(&domain, "/app").text();
        let manifest = server.get(&domain, "/app/site.webmanifest").text();
        let texts = page.split('"').chain(manifest.split('"'));
        let icons = texts.filter(|text| text.ends_with(".png") && text.starts_with('/'));
        icons.map(ToOwned::to_owned).collect::<BTreeSet<_>>()
    };
    let named = icons(&TestServer::start(site.folder(), &[]));
    assert!(named.len() >= 3, "{named:?}");
    for path in named {
        let server = TestServer::start(site.folder(), &[]);
        let answer = server.get(&server.domain(), &path);
        assert_eq!(answer.status, 200, "{path}: {}", server.log());
    }
}

#[test]
fn metrics_show_content_of_store() {
    let server = TestServer::start(&fixture("sites"), &["--memory", "100000000"]);
    let begin = Instant::now();
    let number = |name: &str| {
        let metrics = server.get_admin("/metrics").text();
        let mut lines = metrics.lines();
        let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|number| number.parse::<u64>().ok())
    };
    while number("rowhouse_store_tenants").is_none_or(|tenants| tenants < 2) {
        assert!(begin.elapsed() < TIMEOUT, "{}", server.log());
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(
        number("rowhouse_store_memory_limit_bytes"),
        Some(100_000_000)
    );
    assert!(number("rowhouse_store_memory_bytes").is_some_and(|bytes| bytes > 10_000));
    assert_eq!(number("rowhouse_store_evictions_total"), Some(0));
    let rendered = number("rowhouse_render_duration_seconds_count");
    assert!(rendered.is_some_and(|rendered| rendered >= 2));
    assert_eq!(
        number("rowhouse_store_disk_blobs"),
        Some(0),
        "there is no state"
    );
}
