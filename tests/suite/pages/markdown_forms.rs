//! Every page is also Markdown, at every address of its tenant, made when it is first requested.

use std::fs;
use std::path::Path;

use rowhouse_tests::{Answer, TestServer};
use tempfile::TempDir;

/// A folder with two tenants: `home` at the root of the domain, and `corner` at a host, a prefix and an alias.
fn sites() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    for (file, text) in [
        (
            "deployment.yaml",
            "root: home\ntenants:\n  corner: {aliases: [/apps/corner]}\n",
        ),
        (
            "home/tenant.yaml",
            "name: Home\nfiles:\n  notes.md: assets/notes.md\nredirects:\n  - {from: /old.md, to: /about}\n  - {from: /away/*, to: /about}\n",
        ),
        ("home/assets/notes.md", "The author's own notes.\n"),
        (
            "home/pages/index.md",
            "---\ntitle: Home\n---\nWelcome. [About](about.md), [notes](notes.md), [old](old.md), [hidden](hidden.md)\n",
        ),
        (
            "home/pages/about.md",
            "---\ntitle: About\n---\nAbout the home.\n",
        ),
        (
            "home/pages/notes.md",
            "---\ntitle: Notes\n---\nThe page of notes.\n",
        ),
        ("home/pages/old.md", "---\ntitle: Old\n---\nAn old page.\n"),
        (
            "home/pages/hidden.md",
            "---\ntitle: Hidden\nnoindex: true\n---\nNot in an index.\n",
        ),
        (
            "home/pages/draft.md",
            "---\ntitle: Draft\ndraft: true\n---\nNot ready.\n",
        ),
        (
            "home/pages/later.md",
            "---\ntitle: Later\npublish: 2999-01-01T00:00:00Z\n---\nNot yet.\n",
        ),
        (
            "corner/tenant.yaml",
            "name: Corner\naliases: [/apps/corner]\n",
        ),
        (
            "corner/assets/hall.svg",
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 9 9\"><path d=\"M0 0h9v9z\"/></svg>\n",
        ),
        (
            "corner/pages/index.md",
            "---\ntitle: Corner\n---\nThe [terms](terms.md).\n",
        ),
        (
            "corner/pages/terms.md",
            "---\ntitle: Terms\naliases: [/agreement]\n---\n## Fees\n\n[Back](index.md), [below](#fees), [home](home:/about).\n\n![A hall](../assets/hall.svg)\n\n| Item | Price |\n|---|--:|\n| One | 1 |\n\n```sh\nls | wc\n```\n",
        ),
    ] {
        write(folder.path(), file, text);
    }
    folder
}

fn write(folder: &Path, file: &str, text: &str) {
    let path = folder.join("tenants").join(file);
    fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
    fs::write(path, text).expect("a file");
}

/// Returns the `href` of the link to the Markdown form in a page's head.
fn alternate(page: &Answer) -> Option<String> {
    let text = page.text();
    let end = text.find("\" type=\"text/markdown\">")?;
    let start = text[..end].rfind('"')? + 1;
    Some(text[start..end].to_owned())
}

fn path(url: &str, server: &TestServer) -> String {
    let origin = format!("http://{}", server.domain());
    url.strip_prefix(&origin).expect("the origin").to_owned()
}

#[test]
fn page_is_markdown_at_every_address() {
    let folder = sites();
    let server = TestServer::start(folder.path(), &[]);
    let domain = server.domain();
    let mut bodies = Vec::new();
    for (host, prefix) in [
        (domain.clone(), "/corner"),
        (domain.clone(), "/apps/corner"),
        (format!("corner.{domain}"), ""),
    ] {
        for page in ["/terms", "/agreement"] {
            let answer = server.get(&host, &format!("{prefix}{page}.md"));
            assert_eq!(answer.status, 200, "{host}{prefix}{page}: {}", server.log());
            for (field, value) in [
                ("content-type", "text/markdown; charset=utf-8"),
                ("x-robots-tag", "noindex"),
                (
                    "link",
                    &*format!("<http://{domain}/corner/terms>; rel=\"canonical\""),
                ),
                ("vary", "accept-encoding"),
                ("cache-control", "public, max-age=0, must-revalidate"),
                ("x-content-type-options", "nosniff"),
                ("cache-tag", "corner,corner/terms"),
                ("content-security-policy", ""),
            ] {
                assert_eq!(answer.header(field), value, "{field}");
            }
            bodies.push(answer.text());
        }
        let html = server.get(&host, &format!("{prefix}/terms"));
        let url = alternate(&html).expect("the link to the Markdown form");
        assert_eq!(path(&url, &server), "/corner/terms.md");
        let home = server.get(&host, &format!("{prefix}/index.md"));
        assert!(home.text().contains("terms"), "{}", home.text());
    }
    let origin = format!("http://{domain}");
    let text = &bodies[0];
    for part in [
        "# Terms\n",
        "## Fees\n",
        &format!(
            "[Back]({origin}/corner), [below]({origin}/corner/terms#fees), [home]({origin}/about)."
        ),
        &format!("![A hall]({origin}/corner/assets/hall."),
        "| Item | Price |\n| --- | ---: |\n| One | 1 |\n",
        "```sh\nls | wc\n```\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(bodies.iter().all(|body| body == text), "{bodies:#?}");
}

#[test]
fn markdown_answers_conditions_and_encodings_as_pages_do() {
    let folder = sites();
    let about = "About the home. ".repeat(100);
    write(
        folder.path(),
        "home/pages/about.md",
        &format!("---\ntitle: About\n---\n{about}\n"),
    );
    let server = TestServer::start(folder.path(), &[]);
    let ask = |method: &str, fields: &[(&str, &str)]| {
        server.request(method, &server.domain(), "/about.md", fields)
    };
    let head = ask("HEAD", &[]);
    let full = ask("GET", &[]);
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.header("content-length"), full.body.len().to_string());
    let etag = full.header("etag").to_owned();
    let same = ask("GET", &[("if-none-match", &etag)]);
    assert_eq!((same.status, same.body.len()), (304, 0));
    assert_eq!(ask("GET", &[("if-match", "\"other\"")]).status, 412);
    // As for pages, a range is not supported.
    let part = ask("GET", &[("range", "bytes=0-9")]);
    assert_eq!((part.status, part.body == full.body), (200, true));
    for coding in ["br", "gzip"] {
        let coded = ask("GET", &[("accept-encoding", coding)]);
        assert_eq!(coded.header("content-encoding"), coding);
        assert!(coded.body.len() < full.body.len());
        assert_ne!(coded.header("etag"), etag);
    }
    assert_eq!(ask("POST", &[]).status, 405);
    // The type of a page is not negotiated.
    let page = server.request(
        "GET",
        &server.domain(),
        "/about",
        &[("accept", "text/markdown")],
    );
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(page.header("vary"), "accept-encoding");
    let slash = server.get(&server.domain(), "/about.md/");
    assert_eq!((slash.status, slash.header("location")), (308, "/about.md"));
}

#[test]
fn own_files_and_redirects_take_precedence_over_markdown() {
    let folder = sites();
    let server = TestServer::start(folder.path(), &[]);
    let get = |path: &str| server.get(&server.domain(), path);
    assert_eq!(get("/notes.md").text(), "The author's own notes.\n");
    assert_eq!(get("/notes.md").header("link"), "");
    assert_eq!(alternate(&get("/notes")), None);
    let old = get("/old.md");
    assert_eq!((old.status, old.header("location")), (308, "/about"));
    assert_eq!(alternate(&get("/old")), None);
    // A wildcard does not hide the form of a page below it.
    write(
        folder.path(),
        "home/pages/away/near.md",
        "---\ntitle: Near\n---\nNear.\n",
    );
    let begin = std::time::Instant::now();
    while get("/away/near.md").status != 200 {
        assert!(begin.elapsed().as_secs() < 30, "{}", server.log());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(get("/away/far.md").status, 308);
}

#[test]
fn pages_that_are_not_public_have_no_markdown() {
    let folder = sites();
    let server = TestServer::start(folder.path(), &[]);
    let get = |path: &str| server.get(&server.domain(), path);
    for missing in [
        "/draft.md",
        "/later.md",
        "/missing.md",
        "/404.md",
        "/.md",
        "/index.md.md",
        "/corner.md",
        "/robots.txt.md",
    ] {
        let answer = get(missing);
        assert_eq!(answer.status, 404, "{missing}");
        assert_eq!(alternate(&answer), None, "{missing}");
    }
    // A page without an index has a form, and no link to it.
    assert!(get("/hidden.md").text().contains("Not in an index."));
    assert_eq!(alternate(&get("/hidden")), None);
    let url = alternate(&get("/")).expect("the link to the Markdown form");
    assert_eq!(path(&url, &server), "/index.md");
}

#[test]
fn saved_page_has_new_markdown() {
    let folder = sites();
    let server = TestServer::start(folder.path(), &[]);
    let get = || server.get(&server.domain(), "/about.md");
    let before = get();
    assert!(before.text().contains("About the home."));
    write(
        folder.path(),
        "home/pages/about.md",
        "---\ntitle: About\n---\nChanged.\n",
    );
    let begin = std::time::Instant::now();
    while !get().text().contains("Changed.") {
        assert!(begin.elapsed().as_secs() < 30, "{}", server.log());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_ne!(get().header("etag"), before.header("etag"));
}

#[test]
fn many_requests_for_one_form_are_answered() {
    let folder = sites();
    let server = TestServer::start(folder.path(), &[]);
    let bodies: Vec<String> = std::thread::scope(|scope| {
        let requests: Vec<_> = (0..16)
            .map(|_| scope.spawn(|| server.get(&server.domain(), "/about.md").text()))
            .collect();
        requests
            .into_iter()
            .map(|request| request.join().expect("an answer"))
            .collect()
    });
    assert!(
        bodies
            .iter()
            .all(|body| body == "# About\n\nAbout the home.\n"),
        "{bodies:?}"
    );
}
