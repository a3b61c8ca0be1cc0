//! An export has every body, redirect and header field that the server sends, and changes no foreign file.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use render::Islands;
use rowhouse::export::folder::{ExportSummary, ExportWriter};
use rowhouse::export::{self, ExportError, ExportOptions, Sink as _, WriteError};
use rowhouse_tests::{Answer, NOW, TestServer, TestSite, binary, workspace};
use rowhouse_ui::Bundle;
use server::admin::status::StatusBoard;
use supervisor::Registry;
use tempfile::TempDir;

/// The timeout of rendering: a debug build needs long for all images.
const TIMEOUT: Duration = Duration::from_secs(120);
const TENANTS: [&str; 6] = [
    "arnold", "bluedoor", "fitgoat", "givefive", "studio", "verses",
];

fn export(folder: &Path, to: &Path, more: &[&str]) -> Output {
    Command::new(binary())
        .arg("export")
        .arg(to)
        .args(more)
        .current_dir(folder)
        .output()
        .expect("rowhouse")
}

fn summary(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns every file below a folder, by its path.
fn files(folder: &Path) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).expect("below").display();
                found.insert(name.to_string(), path);
            }
        }
    }
    found
}

/// Serves the six tenants, and exports them for the same origin.
fn served_and_exported() -> (TestServer, TempDir) {
    let server = TestServer::start(&workspace(), &[]);
    let folder = TempDir::new().expect("a folder");
    let origin = format!("http://{}", server.domain());
    let output = export(
        &workspace(),
        folder.path(),
        &["--origin", &origin, "--compressed"],
    );
    let said = summary(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("0 unchanged, 0 removed"), "{said}");
    assert!(!said.contains("would ignore rules"), "{said}");
    let begin = Instant::now();
    while server.get(&server.domain(), "/favicon.ico").status != 200 {
        assert!(begin.elapsed() < TIMEOUT, "{}", server.log());
        std::thread::sleep(Duration::from_millis(50));
    }
    (server, folder)
}

/// Policies of a folder's rule that may apply to files other than documents.
const POLICIES: [&str; 5] = [
    "content-security-policy",
    "cross-origin-opener-policy",
    "permissions-policy",
    "referrer-policy",
    "x-frame-options",
];

/// Returns the path at which a static host serves a file.
fn path_of(file: &str) -> String {
    let path = file.strip_suffix(".html").unwrap_or(file);
    match path.strip_suffix("index") {
        Some(above) if above.is_empty() || above.ends_with('/') => format!("/{above}"),
        _ => format!("/{path}"),
    }
}

#[test]
fn every_exported_byte_is_the_served_byte() {
    let (server, folder) = served_and_exported();
    let port = server.visitors.port();
    let hosts: Vec<String> = fs::read_dir(folder.path())
        .expect("hosts")
        .map(|entry| {
            entry
                .expect("a host")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .filter(|name| !name.starts_with('.'))
        .collect();
    let mut expected: Vec<String> = TENANTS
        .iter()
        .chain(["www"].iter())
        .map(|label| format!("{label}.localhost"))
        .collect();
    expected.push("localhost".to_owned());
    expected.sort();
    let mut sorted = hosts.clone();
    sorted.sort();
    assert_eq!(sorted, expected);

    let mut bodies = 0;
    let patience = Duration::from_secs(120);
    let mut made_by = Instant::now() + patience;
    for host in &hosts {
        let asked = format!("{host}:{port}");
        let root = folder.path().join(host);
        let rules = Rules::read(&root);
        for (file, path) in files(&root) {
            if file == "_headers" || file == "_redirects" {
                continue;
            }
            let (plain, coding) = match file.rsplit_once('.') {
                Some((plain, "br")) => (plain, "br"),
                Some((plain, "gz")) => (plain, "gzip"),
                _ => (file.as_str(), "identity"),
            };
            let missing = plain.rsplit('/').next() == Some("404.html");
            let asked_path = if missing {
                format!("/{}nobody-has-this", plain.trim_end_matches("404.html"))
            } else {
                path_of(plain)
            };
            let ask = || server.request("GET", &asked, &asked_path, &[("accept-encoding", coding)]);
            let mut answer = ask();
            let bytes = fs::read(path).expect("a file");
            // The server renders images and the best encodings after startup, and the export before it writes.
            let is_late = |answer: &Answer| {
                let is_drawn = answer.status != 404 || !plain.ends_with(".png");
                !is_drawn || (coding == "br" && answer.body != bytes)
            };
            while is_late(&answer) && Instant::now() < made_by {
                thread::sleep(Duration::from_millis(200));
                answer = ask();
                if !is_late(&answer) {
                    // The background work continues, so the deadline moves.
                    made_by = Instant::now() + patience;
                }
            }
            let status = if missing { 404 } else { 200 };
            assert_eq!(answer.status, status, "{asked}{asked_path} for {file}");
            assert!(
                answer.body == bytes,
                "{host}/{file} is not what {asked_path} answers"
            );
            if coding == "identity" && !missing {
                rules.compare_fields(&answer, &asked_path, plain);
            }
            bodies += 1;
        }
        rules.check_redirects(&server, &asked);
        assert!(rules.blocks.len() <= 100, "{host}: {}", rules.blocks.len());
    }
    assert!(bodies > 1_000, "only {bodies} bodies");
    every_route_has_its_file(folder.path(), &format!("http://{}", server.domain()));
}

fn every_route_has_its_file(folder: &Path, origin: &str) {
    let routes = Command::new(binary())
        .args(["routes", "--format", "json", "--origin", origin])
        .current_dir(workspace())
        .output()
        .expect("rowhouse");
    let routes: Vec<serde_json::Value> = serde_json::from_slice(&routes.stdout).expect("JSON");
    assert!(routes.len() > 100, "{}", routes.len());
    for route in routes {
        let text = |key: &str| route[key].as_str().expect("a text").to_owned();
        let file = match text("path").as_str() {
            "/" => "index.html".to_owned(),
            path => format!("{}.html", &path[1..]),
        };
        let path = folder.join(text("host")).join(&file);
        assert!(path.is_file(), "{} is missing", path.display());
        let markdown = folder.join(text("host")).join(&text("markdown")[1..]);
        assert!(markdown.is_file(), "{} is missing", markdown.display());
    }
}

/// The rules of `_headers` and `_redirects`, as a static host reads them.
struct Rules {
    blocks: Vec<(String, BTreeMap<String, String>)>,
    redirects: Vec<Vec<String>>,
}

impl Rules {
    fn read(host: &Path) -> Self {
        let text = |name: &str| fs::read_to_string(host.join(name)).unwrap_or_default();
        let mut blocks: Vec<(String, BTreeMap<String, String>)> = Vec::new();
        for line in text("_headers").lines() {
            match line.strip_prefix("  ") {
                None => blocks.push((line.to_owned(), BTreeMap::new())),
                Some(field) => {
                    let (name, value) = field.split_once(": ").expect("a field");
                    let (_, fields) = blocks.last_mut().expect("a path above");
                    fields.insert(name.to_ascii_lowercase(), value.to_owned());
                }
            }
        }
        let words = |line: &str| line.split(' ').map(ToOwned::to_owned).collect();
        Self {
            blocks,
            redirects: text("_redirects").lines().map(words).collect(),
        }
    }

    fn matches(pattern: &str, path: &str) -> bool {
        match (pattern.strip_suffix('*'), pattern.strip_suffix(":page")) {
            _ if pattern == "/*.md" => path.ends_with(".md"),
            (Some(above), _) => path.starts_with(above),
            (_, Some(above)) => path
                .strip_prefix(above)
                .is_some_and(|rest| !rest.is_empty() && !rest.contains('/')),
            _ => pattern == path,
        }
    }

    /// Checks that all matching rules together give the server's fields, each once.
    fn compare_fields(&self, answer: &Answer, path: &str, file: &str) {
        let mut fields = BTreeMap::new();
        for (_, block) in self
            .blocks
            .iter()
            .filter(|(pattern, _)| Self::matches(pattern, path))
        {
            for (name, value) in block {
                let before = fields.insert(name.clone(), value.clone());
                assert_eq!(before, None, "{path}: two rules for `{name}`");
            }
        }
        assert!(!fields.contains_key("x-request-id"), "{path}");
        let mut served = answer.headers.clone();
        if file.ends_with(".md") {
            // A rule for the canonical URL of each form would exceed the limits of static hosts.
            served.remove("link");
        }
        for by_the_host in [
            "accept-ranges",
            "cache-tag",
            "connection",
            "content-length",
            "date",
            "etag",
            "vary",
            "x-request-id",
        ] {
            served.remove(by_the_host);
        }
        if !fields.contains_key("content-type") {
            let media_type = served.remove("content-type").expect("a type");
            let extension = file.rsplit('.').next().expect("an extension");
            let known = [
                "css",
                "html",
                "js",
                "json",
                "png",
                "svg",
                "txt",
                "webmanifest",
                "woff2",
                "xml",
            ];
            assert!(
                known.contains(&extension),
                "{file} is {media_type}, and no rule says so"
            );
        }
        if !served.contains_key("x-frame-options") {
            // Files other than pages ignore the policies of their folder's rule.
            fields
                .retain(|name, _| served.contains_key(name) || !POLICIES.contains(&name.as_str()));
        }
        assert_eq!(fields, served, "{path}");
    }

    /// Checks that every redirect has the target that the server sends.
    fn check_redirects(&self, server: &TestServer, host: &str) {
        for rule in &self.redirects {
            let [from, to, status] = rule.as_slice() else {
                panic!("{rule:?}");
            };
            assert_eq!(status, "301", "{rule:?}");
            let (from, to) = (
                from.replace('*', "some/where"),
                to.replace(":splat", "some/where"),
            );
            let answer = server.get(host, &from);
            assert_eq!(
                (answer.status, answer.header("location")),
                (308, to.as_str()),
                "{host}{from}"
            );
        }
    }
}

fn modified(folder: &Path) -> BTreeMap<String, SystemTime> {
    let time = |path: PathBuf| {
        fs::metadata(path)
            .expect("a file")
            .modified()
            .expect("a time")
    };
    files(folder)
        .into_iter()
        .map(|(name, path)| (name, time(path)))
        .collect()
}

/// Exports the last snapshot of a copied fixture, without a process.
fn write(
    site: &mut TestSite,
    to: &Path,
    options: ExportOptions,
) -> Result<ExportSummary, ExportError> {
    site.reload();
    let mut writer = ExportWriter::begin(to)?;
    export::export(site.registry(), &site.snapshot, options, &mut writer)?;
    Ok(writer.finish()?)
}

fn written(site: &mut TestSite, to: &Path) -> ExportSummary {
    write(site, to, ExportOptions::default()).expect("written files")
}

#[test]
fn only_changed_files_are_written_and_only_own_files_removed() {
    let mut site = TestSite::fixture("sites");
    site.write("tenants/app/pages/extra.md", "---\ntitle: Extra\n---\n");
    let to = site.path("public");
    let first = written(&mut site, &to);
    assert_eq!((first.unchanged, first.removed), (0, 0));
    let before = modified(&to);
    let second = written(&mut site, &to);
    assert_eq!((second.written, second.unchanged), (0, first.written));
    assert_eq!(before, modified(&to), "a second export touched a file");

    fs::write(to.join("studio.example/stranger.txt"), "mine").expect("a file");
    site.remove("tenants/app/pages/extra.md");
    site.edit("tenants/app/pages/terms.md", "title: ", "title: New ");
    let third = written(&mut site, &to);
    assert_eq!(
        third.removed, 6,
        "one page and its Markdown at three addresses"
    );
    let after = modified(&to);
    assert!(!after.contains_key("studio.example/app/extra.html"));
    assert!(after.contains_key("studio.example/stranger.txt"));
    let terms = "studio.example/app/terms.html";
    assert_ne!(before[terms], after[terms]);
    let missing = "studio.example/404.html";
    assert_eq!(before[missing], after[missing]);
    assert!(!to.join(".rowhouse-export.new").exists(), "a file is left");
}

#[test]
fn page_can_become_folder_and_folder_page() {
    let site = TestSite::fixture("sites");
    let to = site.path("public");
    let write = |file: &str| {
        let mut writer = ExportWriter::begin(&to).expect("a folder");
        let file = format!("app.studio.example/{file}");
        writer
            .put(file, &Bytes::from_static(b"<p>").into())
            .expect("a file");
        writer.finish().expect("written files");
    };
    for _ in 0..2 {
        write("b.html/c.html");
        assert!(to.join("app.studio.example/b.html/c.html").is_file());
        write("b.html");
        assert!(to.join("app.studio.example/b.html").is_file());
    }
}

#[test]
fn foreign_folder_or_file_is_refused() {
    let mut site = TestSite::fixture("sites");
    let to = site.path("public");
    fs::create_dir_all(&to).expect("a folder");
    fs::write(to.join("precious.txt"), "mine").expect("a file");
    let refused = write(&mut site, &to, ExportOptions::default());
    assert!(
        matches!(refused, Err(ExportError::Write(WriteError::NotAnExport(_)))),
        "{refused:?}"
    );
    assert_eq!(files(&to).len(), 1);

    let to = site.path("other");
    written(&mut site, &to);
    let (about, app) = (
        to.join("studio.example/about.html"),
        to.join("studio.example/app"),
    );
    fs::remove_file(&about).expect("a removed file");
    std::os::unix::fs::symlink(site.path("tenants"), &about).expect("a link");
    let before = modified(&app);
    site.edit("tenants/app/pages/terms.md", "title: ", "title: New ");
    let refused = write(&mut site, &to, ExportOptions::default());
    assert!(
        matches!(&refused, Err(ExportError::Write(WriteError::ForeignFile(path))) if *path == about),
        "{refused:?}"
    );
    assert_eq!(before, modified(&app), "something was written");
}

#[test]
fn export_is_same_with_little_memory() {
    let site = TestSite::fixture("sites");
    let bundle = Bundle::embedded().expect("the islands");
    let islands = Arc::new(Islands::new(bundle, true));
    let places = site.registry().config().clone();
    let mut small = Registry::new(places, islands)
        .without_compression()
        .serving()
        .with_memory(1);
    let now = NOW.parse().expect("a moment");
    small.reload(now).expect("the folders");
    let snapshot = small.finish(&StatusBoard::default(), now);
    let snapshot = snapshot.expect("a snapshot");
    assert!(snapshot.is_partial, "there is no room for all");
    let options = ExportOptions {
        compressed: true,
        ..ExportOptions::default()
    };
    let mut files = BTreeMap::new();
    export::export(&small, &snapshot, options, &mut files).expect("files");
    let whole = site.exported(options).expect("files");
    assert!(files.keys().eq(whole.keys()));
    for (file, bytes) in &whole {
        assert!(files[file] == *bytes, "{file}");
    }
}

#[test]
fn page_without_file_is_error_of_its_tenant_only() {
    for name in ["404", "index/index", "terms.html", "Terms"] {
        let mut site = TestSite::fixture("sites");
        let page = format!("tenants/app/pages/{name}.md");
        site.write(&page, "---\ntitle: Lost\n---\n");
        let (folder, to) = (site.path(""), site.path("public"));
        let output = export(&folder, &to, &[]);
        assert_eq!(output.status.code(), Some(1), "{name}");
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(told.contains("an export"), "{name}: {told}");
        assert!(!to.join("localhost").exists(), "{name}");
        if name == "404" {
            let output = export(&folder, &to, &["--despite-errors"]);
            assert_eq!(output.status.code(), Some(0), "{}", summary(&output));
            assert!(to.join("localhost/about.html").is_file());
            assert!(!to.join("localhost/app.html").is_file());
        }
    }
}

#[test]
fn alias_equal_to_file_of_page_is_exported_once() {
    let mut site = TestSite::fixture("sites");
    let page = "---\ntitle: Prices\naliases: [/prices.html]\n---\n";
    site.write("tenants/app/pages/prices.md", page).reload();
    let files = site.exported(ExportOptions::default()).expect("files");
    assert!(files.contains_key("studio.example/app/prices.html"));
}

#[test]
fn error_prevents_export_without_despite_errors() {
    let mut site = TestSite::fixture("sites");
    let (folder, to) = (site.path(""), site.path("public"));
    written(&mut site, &to);
    let before = modified(&to);
    site.write("tenants/app/pages/terms.md", "---\ntitel: Terms\n---\n");
    let output = export(&folder, &to, &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("unknown key `titel`"));
    assert!(
        summary(&output).contains("--despite-errors"),
        "{}",
        summary(&output)
    );
    assert_eq!(before, modified(&to));

    let output = export(&folder, &to, &["--despite-errors"]);
    assert_eq!(output.status.code(), Some(0), "the operator asked for it");
    let after = modified(&to);
    assert!(!after.contains_key("localhost/app.html"));
    assert!(after.contains_key("localhost/about.html"));
}

#[test]
fn not_found_pages_are_in_their_folders() {
    let mut site = TestSite::fixture("sites");
    let to = site.path("public");
    let options = ExportOptions {
        not_found_rules: true,
        ..ExportOptions::default()
    };
    write(&mut site, &to, options).expect("written files");
    for file in [
        "404.html",
        "app/404.html",
        "apps/app/404.html",
        "notes/404.html",
    ] {
        assert!(to.join("studio.example").join(file).is_file(), "{file}");
    }
    let redirects = fs::read_to_string(to.join("studio.example/_redirects")).expect("redirects");
    assert!(
        redirects.contains("/notes/* /notes/404.html 404\n"),
        "{redirects}"
    );
}
