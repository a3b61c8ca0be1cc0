//! The manual passes its own check, and is served and written correctly.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use rowhouse_tests::{
    Answer, TestServer, Visitor, address_in, binary, fixture, reserved_address, run, stderr, stdout,
};
use serde_json::Value as Json;
use tempfile::TempDir;

use crate::manual::guides::blocks_of;
use crate::manual::reference::pages;

#[test]
fn manual_passes_its_own_check() {
    let folder = tempfile::tempdir().expect("a folder");
    let written = run(folder.path(), &["manual", "--write", "tenants/manual"]);
    assert!(written.status.success(), "{}", stderr(&written));
    let check = run(folder.path(), &["check"]);
    let findings = stdout(&check);
    let findings: Vec<&str> = findings.split_terminator("\n\n").collect();
    assert!(
        matches!(&findings[..], [only] if only.starts_with("warning[missing-company]")),
        "the manual has no findings, but a folder of its own has no company: {findings:?}"
    );
    assert!(
        stderr(&check).contains("1 tenant: 0 errors, 1 warning"),
        "{}",
        stderr(&check)
    );
    let again = run(folder.path(), &["manual", "--write", "tenants/manual"]);
    assert_eq!(
        again.status.code(),
        Some(2),
        "existing files are not changed"
    );
}

#[test]
fn every_yaml_or_json_block_of_manual_parses() {
    let mut blocks = 0;
    for (path, text) in pages() {
        let all = blocks_of(&text).into_iter();
        for (_, yaml) in all.filter(|(language, _)| language == "yaml") {
            let read = serde_saphyr::from_str::<Json>(&yaml);
            // The tutorial adds lines to a file.
            assert!(read.is_ok(), "{path}: {read:?}\n{yaml}");
            blocks += 1;
        }
    }
    assert!(blocks > 50, "{blocks}");
}

/// The served manual, and the folder in which it was started.
struct ServedManual {
    program: EndOnDrop,
    address: SocketAddr,
    folder: TempDir,
    /// The output until the server was ready.
    said: Vec<String>,
}

impl ServedManual {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("scratch")).expect("a folder");
        let child = Command::new(binary())
            .args(["manual", "--listen", &reserved_address().to_string()])
            .current_dir(folder.path())
            .env("TMPDIR", folder.path().join("scratch"))
            .env("ROWHOUSE_STATE", folder.path().join("state"))
            .env("ROWHOUSE_ORIGIN", "https://other.example")
            .stderr(Stdio::piped())
            .spawn()
            .expect("rowhouse");
        let mut program = EndOnDrop(child);
        let log = program.0.stderr.take().expect("a log");
        let mut said = Vec::new();
        let mut address = None;
        for line in BufReader::new(log).lines() {
            let line = line.expect("a line");
            address = address.or(line
                .contains("\"serving\"")
                .then(|| address_in(&line, "listen").expect("an address")));
            let is_last = line.contains("\"live\"") && line.contains("\"manual\"");
            said.push(line);
            if is_last {
                break;
            }
        }
        Self {
            program,
            address: address.expect("it serves"),
            folder,
            said,
        }
    }

    fn get(&self, path: &str) -> Answer {
        let host = format!("localhost:{}", self.address.port());
        let answer = Visitor::new(self.address).get(&host, path, &[]);
        answer.expect("an answer")
    }

    fn left(&self) -> usize {
        let scratch = self.folder.path().join("scratch");
        fs::read_dir(scratch).expect("a folder").count()
    }
}

#[test]
fn manual_ignores_variables_of_other_server() {
    let mut served = ServedManual::start();
    let tutorial = served.get("/tutorial");
    assert_eq!(tutorial.status, 200);
    let text = tutorial.text();
    assert!(
        text.contains("<span class=\"code-name\">"),
        "code is highlighted"
    );
    assert!(!text.contains(" style="), "by classes alone");
    let index = served.get("/search.json");
    assert!(index.body.len() <= 64_000, "{}", index.body.len());
    assert!(index.text().contains("max-connections"), "flags are found");
    assert!(
        !served.folder.path().join("state").exists(),
        "the state of another server is not touched"
    );
    assert_eq!(served.left(), 1, "the folder that it is served from");
    let child = &mut served.program.0;
    let id = child.id().to_string();
    let told = Command::new("kill").args(["-s", "TERM", &id]).status();
    assert!(told.expect("kill").success());
    assert!(child.wait().expect("an end").success());
    assert_eq!(served.left(), 0, "no file is left");
}

/// Words of tasks as an operator or an author types them, with the page that the search of the manual finds.
const TASKS: [(&str, &str); 25] = [
    ("alert", "/guides/at-night"),
    ("astro", "/guides/migrate"),
    ("backup", "/guides/backup"),
    ("certificate", "/guides/certificates"),
    ("comparison", "/explanation/comparison"),
    ("faq", "/guides/troubleshooting"),
    ("glossary", "/reference/glossary"),
    ("hugo", "/guides/migrate"),
    ("install", "/guides/install"),
    ("jekyll", "/guides/migrate"),
    ("limits", "/reference/limits"),
    ("logs", "/guides/logs"),
    ("macos", "/guides/install"),
    ("memory", "/guides/memory"),
    ("missing", "/guides/missing-page"),
    ("move", "/guides/move"),
    ("pricing", "/guides/troubleshooting"),
    ("renew", "/guides/certificates"),
    ("restore", "/guides/backup"),
    ("rollback", "/guides/releases"),
    ("rotate", "/guides/certificates"),
    ("sizing", "/reference/sizing"),
    ("translation", "/guides/language"),
    ("upgrade", "/guides/upgrade"),
    ("visits", "/guides/visits"),
];

#[test]
fn search_of_manual_finds_each_page_by_words_of_task() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = ["manual", "--export", "out"];
    let output = run(folder.path(), &arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    let index = folder.path().join("out/localhost/search.json");
    let index = fs::read(index).expect("the index");
    assert!(index.len() <= 64_000, "{}", index.len());
    let index: Json = serde_json::from_slice(&index).expect("JSON");
    for (word, page) in TASKS {
        let found: Vec<&str> = (index["parts"].as_array().expect("parts").iter())
            .filter_map(|part| {
                let number = usize::try_from(part[0].as_u64()?).ok()?;
                let (href, title) = (&index["pages"][number][0], &index["pages"][number][1]);
                let is_first = part[2] == "";
                let texts = [&part[2], &part[3], title];
                let texts = &texts[..2 + usize::from(is_first)];
                let is_found = texts.iter().any(|text| {
                    let text = text.as_str().unwrap_or_default().to_lowercase();
                    text.split(' ').any(|one| one.starts_with(word))
                });
                is_found.then_some(href.as_str()?)
            })
            .collect();
        assert!(found.contains(&page), "{word}: {found:?}");
    }
}

/// Returns the section types of an embedded theme.
fn kinds(theme: &str) -> Vec<String> {
    let theme = content::theme::load(theme, &content::theme::embedded()).0;
    let theme = theme.expect("a theme");
    theme
        .section_types
        .keys()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn every_section_type_is_shown_and_only_manual_can_frame_it() {
    let served = ServedManual::start();
    let warned: Vec<_> = (served.said.iter())
        .filter(|line| line.contains("\"WARN\"") || line.contains("\"ERROR\""))
        .collect();
    assert!(warned.is_empty(), "{warned:?}");
    for theme in ["plain", "base"] {
        let page = served.get(&format!("/reference/sections-{theme}"));
        let policy = page.header("content-security-policy");
        assert!(policy.contains("; frame-src 'self'; "), "{policy}");
        let text = page.text();
        let frames = text.split("<iframe src=\"").skip(1);
        let frames: Vec<&str> = frames.filter_map(|rest| rest.split('"').next()).collect();
        let wanted = kinds(theme).into_iter();
        let wanted: Vec<String> = wanted
            .map(|kind| format!("/{theme}/_gallery/{kind}"))
            .collect();
        assert!(wanted.len() > 9, "{wanted:?}");
        assert_eq!(frames, wanted, "one picture for each kind, in their order");
        for (kind, path) in kinds(theme).iter().zip(wanted) {
            let link = format!("<a href=\"{path}\">See <code>{kind}</code> by itself</a>");
            assert!(text.contains(&link), "{link}");
            let shown = served.get(&path);
            assert_eq!(shown.status, 200, "{path}");
            assert!(!shown.text().contains("cannot be shown"), "{path}");
            let policy = shown.header("content-security-policy");
            assert!(policy.contains("; frame-ancestors 'self'"), "{policy}");
            assert_eq!(shown.header("x-robots-tag"), "noindex", "{path}");
        }
    }
}

#[test]
fn only_manual_shows_section_types_and_can_be_framed() {
    let server = TestServer::start(&fixture("sites"), &[]);
    let page = server.get(&server.domain(), "/");
    let policy = page.header("content-security-policy");
    assert!(policy.contains("; frame-ancestors 'none'"), "{policy}");
    assert!(!policy.contains("frame-src"), "{policy}");
    assert_eq!(page.header("x-frame-options"), "DENY");
    assert_eq!(server.get(&server.domain(), "/_gallery/call").status, 404);
}

#[test]
fn only_site_with_search_has_search_index() {
    let server = TestServer::start(&fixture("sites"), &[]);
    assert_eq!(server.get(&server.domain(), "/search.json").status, 404);
}

#[test]
fn manual_is_exported_as_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = [
        "manual",
        "--export",
        "out",
        "--origin",
        "https://manual.example",
    ];
    let output = run(folder.path(), &arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    let file = |path: &str| {
        let path = folder.path().join("out/manual.example").join(path);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let commands = file("reference/commands.html");
    assert!(commands.contains("--max-connections"));
    // A value without a description has no brackets.
    assert!(commands.contains("<code>fish</code>, <code>powershell</code>"));
    let tables = ["Table", "Table 2", "Table 3"].map(|name| format!("aria-label=\"{name}\""));
    for table in tables {
        assert_eq!(commands.matches(&table).count(), 1, "{table}");
    }
    let headers = file("_headers");
    for theme in ["plain", "base"] {
        let page = file(&format!("reference/sections-{theme}.html"));
        for kind in kinds(theme) {
            let path = format!("/{theme}/_gallery/{kind}");
            assert!(page.contains(&format!("<iframe src=\"{path}\"")), "{path}");
            assert!(
                file(&format!("{}.html", &path[1..])).contains("<main>\n<section"),
                "{path}"
            );
            assert!(headers.contains(&format!("\n{path}\n")), "{path}");
        }
    }
    assert!(headers.contains("frame-ancestors 'self'"));
    assert!(!headers.contains("frame-ancestors 'none'"));
    assert!(!stderr(&output).contains("note: "), "{}", stderr(&output));
}

/// A program that ends with the test.
struct EndOnDrop(Child);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        // The program may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
