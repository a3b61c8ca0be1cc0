//! `serve --dev`: authors get reloads and errors, and visitors get none of it.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use release::snapshot::{HostEntry, Resource, Snapshot};
use render::Islands;
use rowhouse_tests::{TestServer, TestSite, fixture, text_of};
use rowhouse_ui::Bundle;
use tempfile::TempDir;

const TIMEOUT: Duration = Duration::from_secs(20);

fn for_authors(name: &str) -> TestSite {
    let islands = Islands::new(Bundle::embedded().expect("the islands"), true);
    TestSite::with_islands(&fixture(name), Arc::new(islands.with_dev_script(true)))
}

/// Returns every resource of a snapshot, with a name for each.
pub(crate) fn everything(snapshot: &Snapshot) -> Vec<(String, &Resource)> {
    let mut all = Vec::new();
    let mut add = |name: String, resource| all.push((name, resource));
    for (path, file) in snapshot.shared.iter() {
        add(format!("shared {path}"), &**file);
    }
    for (host, entry) in &snapshot.hosts {
        let HostEntry::Site(routes) = entry else {
            continue;
        };
        for (path, file) in &routes.files {
            add(format!("{host} {path}"), file);
        }
        for (path, slot) in &routes.images {
            if let Some(picture) = slot.get() {
                add(format!("{host} {path}"), picture);
            }
        }
        for mount in routes.root.iter().chain(routes.prefixes.values()) {
            let place = format!("{host}{}", mount.prefix);
            let pages = mount.pages.get().expect("rendered");
            for (path, resource) in pages.resources.iter() {
                add(format!("{place} {path}"), resource);
            }
            for (area, page) in &pages.not_found {
                add(format!("{place} special {area}"), page);
            }
            for (area, page) in &pages.method_not_allowed {
                add(format!("{place} special 405 {area}"), page);
            }
        }
    }
    all.sort_by(|(one, _), (other, _)| one.cmp(other));
    all
}

/// Returns a page without the tag that `--dev` adds.
fn without_tag(html: &str) -> String {
    let (Some(mark), true) = (html.find(" data-tenant="), html.contains("data-page=")) else {
        return html.to_owned();
    };
    let start = html[..mark].rfind("<script").expect("a tag");
    let end = mark + html[mark..].find("</script>\n").expect("an end") + "</script>\n".len();
    format!("{}{}", &html[..start], &html[end..])
}

#[test]
fn no_byte_is_for_authors_without_dev_flag() {
    let (visitors, authors) = (TestSite::fixture("sites"), for_authors("sites"));
    let shown = everything(&authors.snapshot);
    let mut for_authors_only = Vec::new();
    let mut pages = 0;
    let theirs = everything(&visitors.snapshot);
    // The gallery and the stylesheet of all its sections have their own test.
    let is_gallery =
        |name: &str| name.contains("/_gallery") || name.starts_with("shared /assets/base.");
    let shown: Vec<_> = shown
        .into_iter()
        .filter(|(name, _)| !is_gallery(name))
        .collect();
    let theirs: Vec<_> = theirs
        .into_iter()
        .filter(|(name, _)| !is_gallery(name))
        .collect();
    for (name, resource) in &shown {
        let Some((_, plain)) = theirs.iter().find(|(other, _)| other == name) else {
            for_authors_only.push(name.as_str());
            continue;
        };
        let (Some(with), Some(without)) = (text_of(resource), text_of(plain)) else {
            continue;
        };
        assert!(
            !without.contains("data-page=") && !without.contains(".rowhouse"),
            "{name}"
        );
        if with.contains("data-page=") {
            pages += 1;
            let with = without_tag(&with);
            assert_eq!(with, without, "{name}");
        } else {
            assert_eq!(with, without, "{name}");
        }
    }
    assert!(pages > 10, "{pages} pages have the script");
    assert_eq!(for_authors_only.len(), 1, "{for_authors_only:?}");
    assert!(
        for_authors_only[0].contains("/assets/dev."),
        "{for_authors_only:?}"
    );
    assert_eq!(theirs.len() + 1, shown.len());
}

#[test]
fn style_change_keeps_page_digest_and_text_change_does_not() {
    let mut site = for_authors("sites");
    let digest = |site: &TestSite| {
        let page = site
            .page("studio.example", "/app", "/terms")
            .expect("a page");
        let (_, rest) = page.split_once("data-page=\"").expect("a digest");
        rest.split('"').next().expect("an end").to_owned()
    };
    let before = digest(&site);
    site.edit("tenants/app/tenant.yaml", "#1f4fa3", "#1f4fa4")
        .reload();
    let page = site
        .page("studio.example", "/app", "/terms")
        .expect("a page");
    assert!(page.contains("#1f4fa4"), "{page}");
    assert_eq!(before, digest(&site), "another colour");
    site.edit("tenants/app/pages/terms.md", "title: ", "title: The ")
        .reload();
    assert_ne!(before, digest(&site), "other words");
}

/// Creates a deployment with one tenant.
fn create_deployment() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let home = folder.path().join("tenants/home");
    fs::create_dir_all(home.join("pages")).expect("a folder");
    fs::write(home.join("tenant.yaml"), "name: Home\nroot: true\n").expect("a file");
    fs::write(home.join("pages/index.md"), "---\ntitle: Home\n---\n").expect("a file");
    folder
}

/// The server-sent events of a server.
struct Listener(BufReader<TcpStream>);

impl Listener {
    fn connect(server: &TestServer) -> Self {
        let mut stream = TcpStream::connect(server.visitors).expect("a connection");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a socket");
        let request = format!(
            "GET /.rowhouse/events HTTP/1.1\r\nhost: {}\r\n\r\n",
            server.domain()
        );
        stream.write_all(request.as_bytes()).expect("a request");
        Self(BufReader::new(stream))
    }

    /// Returns the next event.
    fn next(&mut self) -> serde_json::Value {
        let mut line = String::new();
        loop {
            line.clear();
            let length = self.0.read_line(&mut line).expect("a line");
            assert!(length > 0, "the stream ended");
            if let Some(data) = line.strip_prefix("data: ") {
                return serde_json::from_str(data).expect("JSON");
            }
        }
    }
}

#[test]
fn listeners_get_errors_and_corrections_at_once() {
    let folder = create_deployment();
    let mut server = TestServer::start(folder.path(), &["--dev"]);
    let mut listener = Listener::connect(&server);
    assert_eq!(
        listener.next(),
        serde_json::json!({"everyone": [], "tenants": {}})
    );

    let page = folder.path().join("tenants/home/pages/index.md");
    fs::write(&page, "---\ntitel: Home\n---\n").expect("a file");
    // A page that lost most of its text may be an upload. Listeners get an event first, without errors.
    let errors = loop {
        if let Some(errors) = listener.next()["tenants"]["home"].as_array() {
            break errors.clone();
        }
    };
    let unknown = errors.iter().find(|error| error["code"] == "unknown-key");
    let unknown = unknown.expect("the error");
    assert_eq!(
        (&unknown["line"], &unknown["text"]),
        (&2.into(), &"titel: Home".into())
    );
    assert_eq!(unknown["hint"], "did you mean `title`?");
    let domain = server.domain();
    assert!(
        server.get(&domain, "/").text().contains("<h1>Home</h1>"),
        "the last valid page"
    );

    fs::write(&page, "---\ntitle: Mended\n---\n").expect("a file");
    while listener.next()["tenants"] != serde_json::json!({}) {}
    // If rendering takes long, listeners get another event when the page is served.
    while !server.get(&domain, "/").text().contains("Mended") {
        assert_eq!(listener.next()["tenants"], serde_json::json!({}));
    }

    fs::rename(folder.path().join("tenants"), folder.path().join("away")).expect("a folder");
    server.signal("HUP");
    let state = loop {
        let state = listener.next();
        if state["everyone"] != serde_json::json!([]) {
            break state;
        }
    };
    let message = state["everyone"][0]["message"].as_str().expect("a message");
    assert!(
        message.contains("cannot read the folder `tenants`"),
        "{message}"
    );

    let begin = Instant::now();
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0));
    assert!(
        begin.elapsed() < Duration::from_secs(10),
        "an open stream holds the end up"
    );
}

#[test]
fn error_page_of_invalid_tenant_is_for_authors_only() {
    let folder = create_deployment();
    let fresh = folder.path().join("tenants/fresh");
    fs::create_dir_all(fresh.join("pages")).expect("a folder");
    fs::write(fresh.join("tenant.yaml"), "nme: Fresh\n").expect("a file");
    fs::write(fresh.join("pages/index.md"), "---\ntitle: Fresh\n---\n").expect("a file");

    let server = TestServer::start(folder.path(), &["--dev"]);
    let domain = server.domain();
    for (host, path) in [
        (domain.clone(), "/fresh"),
        (domain.clone(), "/fresh/any/path"),
        (format!("fresh.{domain}"), "/"),
    ] {
        let answer = server.get(&host, path);
        assert_eq!(answer.status, 503, "{host}{path}");
        assert_eq!(answer.header("x-robots-tag"), "noindex");
        let text = answer.text();
        assert!(
            text.contains("unknown key `nme`") && text.contains("data-tenant=\"fresh\""),
            "{text}"
        );
    }
    assert_eq!(
        server.get(&domain, "/").status,
        200,
        "the other tenant keeps its address"
    );
    let begin = Instant::now();
    fs::write(fresh.join("tenant.yaml"), "name: Fresh\n").expect("a file");
    while server.get(&domain, "/fresh").status != 200 {
        assert!(begin.elapsed() < TIMEOUT, "{}", server.log());
        std::thread::sleep(Duration::from_millis(10));
    }

    fs::write(fresh.join("tenant.yaml"), "nme: Fresh\n").expect("a file");
    let server = TestServer::start(folder.path(), &[]);
    assert_eq!(server.get(&server.domain(), "/fresh").status, 404);
    assert_eq!(
        server.get(&server.domain(), "/.rowhouse/events").status,
        404
    );
}

#[test]
fn unknown_host_gets_no_events() {
    let folder = create_deployment();
    let server = TestServer::start(folder.path(), &["--dev"]);
    assert_eq!(
        server.get("stranger.example", "/.rowhouse/events").status,
        421
    );
}

#[test]
fn error_message_of_island_shows_cause_to_authors_only() {
    let cause = "pages accept GET, HEAD and OPTIONS only";
    let folder = create_deployment();
    for (flags, told) in [(&["--dev"][..], true), (&[], false)] {
        let server = TestServer::start(folder.path(), flags);
        let answer = server.request("POST", &server.domain(), "/", &[("content-length", "0")]);
        assert_eq!(answer.status, 405);
        assert_eq!(answer.text().contains(cause), told, "{}", answer.text());
    }
}
