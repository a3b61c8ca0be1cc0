//! The memory of the process and of its parts, as operators see it.

use std::thread;
use std::time::{Duration, Instant};

use rowhouse_tests::{TestServer, TestSite};

const TIMEOUT: Duration = Duration::from_secs(60);

/// Returns the value of a metric with its labels.
fn metric(server: &TestServer, name: &str) -> Option<u64> {
    let text = server.get_admin("/metrics").text();
    let mut lines = text.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.and_then(|value| value.parse().ok())
}

#[test]
fn site_that_uses_most_memory_is_named_in_metrics_and_console() {
    let mut site = TestSite::fixture("sites");
    let page = "---\ntitle: Data\n---\n[Text](../assets/text.txt)\n";
    site.write("tenants/app/pages/data.md", page);
    // Text that gzip and Brotli do not make much smaller.
    let mut seed = 1_u64;
    let letters = (0..4 << 20).map(|_| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        b'!' + u8::try_from((seed >> 33) % 90).unwrap_or_default()
    });
    site.write("tenants/app/assets/text.txt", letters.collect::<Vec<u8>>());
    let server = TestServer::start(site.folder(), &["--memory", "64MiB"]);
    let part = |name: &str| {
        metric(
            &server,
            &format!("rowhouse_memory_part_bytes{{part=\"{name}\"}}"),
        )
    };
    let of_app = || metric(&server, "rowhouse_tenant_memory_bytes{tenant=\"app\"}");
    let begin = Instant::now();
    while of_app().is_none_or(|bytes| bytes < 4 << 20) {
        assert!(begin.elapsed() < TIMEOUT, "{:?}", of_app());
        thread::sleep(Duration::from_millis(50));
    }
    let pages = part("pages").expect("bytes of pages");
    assert!(pages >= of_app().expect("bytes of the site"), "{pages}");
    for name in ["images", "tenant_data", "work"] {
        assert!(part(name).is_some(), "{name}");
    }
    let resident = metric(&server, "rowhouse_memory_resident_bytes").expect("bytes");
    let limit = metric(&server, "rowhouse_memory_limit_bytes").expect("a limit");
    assert!(
        pages < resident && resident < limit,
        "{pages} {resident} {limit}"
    );
    let console = server.get_admin("/").text();
    for words in [
        " in use: ",
        " of pages, ",
        "for the program itself",
        "Pages, images and the data may use 67.1 MB.",
        "The largest site is app with ",
    ] {
        assert!(console.contains(words), "`{words}` in {console}");
    }
    let ready = server.get_admin("/readyz").text();
    assert!(!ready.contains("alarm"), "{ready}");
}
