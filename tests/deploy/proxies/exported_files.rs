//! `rowhouse export --for nginx` and `--for caddy` with both servers: every address of every page has the response of rowhouse.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use bytes::Bytes;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Version};
use image::{DynamicImage, ImageFormat, RgbImage};
use rowhouse::export::folder::ExportWriter;
use rowhouse::export::{ExportOptions, WebServer, export};
use rowhouse_tests::redirect_cases::{self, CASES, QUERY_CASES, SERVER_CASES};
use rowhouse_tests::{Answer, TestSite, Visitor, reserved_address};
use server::response::respond::{RequestHead, respond};
use tempfile::TempDir;

use crate::support::{Program, is_there, wait_for};

const PLACES: [(&str, &str); 3] = [
    ("corner.studio.example", ""),
    ("studio.example", "/corner"),
    ("studio.example", "/apps/corner"),
];
const PAGE: &str = "---
title: Corner
---
![Half](<../assets/50% off.png>) ![Number](../assets/a%23b.png) ![Caf\u{e9}](<../assets/sp\u{e4}ti & caf\u{e9}.jpg>)

[Terms](terms.md) [Fees](terms.md#fees) [Plan](<../assets/plan $1.pdf>) [Kit](/press-kit)

![How it works](../assets/clip.mp4)
";
/// Header fields that a web server adds itself or does not need.
const ITS_OWN: [&str; 7] = [
    "accept-ranges",
    "cache-tag",
    "content-length",
    "etag",
    "vary",
    "x-request-id",
    "date",
];

fn picture(format: ImageFormat) -> Vec<u8> {
    let pixels = RgbImage::from_fn(400, 300, |x, y| {
        image::Rgb([(x * y % 251) as u8, (x % 256) as u8, (y % 256) as u8])
    });
    let mut bytes = std::io::Cursor::new(Vec::new());
    DynamicImage::from(pixels)
        .write_to(&mut bytes, format)
        .expect("a picture");
    bytes.into_inner()
}

fn create_site() -> TestSite {
    let mut site = TestSite::fixture("sites");
    let strings = site.path("themes/base/strings/en.yaml");
    let strings = std::fs::read_to_string(strings).expect("the UI strings");
    let german = strings.replace("Page not found", "Seite nicht gefunden");
    site.write("themes/base/strings/de.yaml", german).write(
        "tenants/corner/tenant.yaml",
        "name: Corner\naliases: [/apps/corner]\ndownloads: {press-kit: assets/kit.zip}\nredirects: [{from: /old, to: /terms}, {from: /part, to: \"/terms#fees\"}, {from: /own, to: \"/terms?own=1#fees\"}, {from: /away, to: \"https://a.example/x?own=1\"}]\n",
    )
    .write("tenants/corner/pages/index.md", PAGE)
    .write(
        "tenants/corner/pages/terms.md",
        "---\ntitle: Terms\n---\n## Fees\n\n[Back](index.md)\n",
    )
    .write("tenants/corner/assets/50% off.png", picture(ImageFormat::Png))
    .write("tenants/corner/assets/a#b.png", picture(ImageFormat::Png))
    .write(
        "tenants/corner/assets/sp\u{e4}ti & caf\u{e9}.jpg",
        picture(ImageFormat::Jpeg),
    )
    .write("tenants/corner/assets/plan $1.pdf", "%PDF-1.7 a plan")
    .write("tenants/corner/assets/kit.zip", "a kit")
    .write("tenants/corner/assets/clip.mp4", "\0\0\0\x08ftyp and a film")
    .write("tenants/ecke/tenant.yaml", "name: Ecke\nlanguages: [en, de]\n")
    .write("tenants/ecke/pages/index.md", "---\ntitle: Home\n---\n")
    .write("tenants/ecke/pages/index.de.md", "---\ntitle: Start\n---\n")
    .reload();
    let said = site.report_text();
    assert!(!said.contains("error["), "{said}");
    site.render_images();
    site
}

/// Returns the response of rowhouse.
fn served(site: &TestSite, host: &str, path: &str) -> Response<Bytes> {
    let mut headers = HeaderMap::new();
    headers.insert(HOST, HeaderValue::from_str(host).expect("a host"));
    let uri = path.parse().expect("an address");
    let request = RequestHead::new(&Method::GET, &uri, Version::HTTP_11, &headers, false);
    let response = respond(&site.snapshot, &request).response.into_response();
    response.map(|body| body.in_memory().cloned().expect("a body in memory"))
}

/// Returns the attribute values of a page that are addresses of its own host.
fn addresses(html: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for attribute in [" href=\"", " src=\"", " poster=\"", " srcset=\""] {
        let values = html.split(attribute).skip(1);
        let values = values.filter_map(|rest| rest.split('"').next());
        for value in values.flat_map(|value| value.split(", ")) {
            let address = value.split([' ', '#']).next().unwrap_or_default();
            if address.starts_with('/') {
                found.insert(address.replace("&amp;", "&"));
            }
        }
    }
    found
}

/// Returns every address of the tenant's pages at a mount, with some that no page links.
fn all(site: &TestSite, host: &str, prefix: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for page in ["/", "/terms"] {
        all.extend(addresses(&site.page(host, prefix, page).expect("a page")));
    }
    assert!(all.len() > 10, "{all:?}");
    for more in [
        "/terms/",
        "/terms/?a=b",
        "/old",
        "/old?a=b&c=%20d",
        "/part",
        "/part?a=b",
        "/own",
        "/own?a=b",
        "/away",
        "/away?a=b",
        "/press-kit",
        "/nobody",
        "/nobody/at/all",
    ] {
        all.insert(format!("{prefix}{more}"));
    }
    // An export also has files that are not public.
    for more in ["/_headers", "/_redirects", "/index.html.br", "/terms.html"] {
        all.insert(more.to_owned());
    }
    all
}

fn fields(answer: &Response<Bytes>) -> BTreeMap<String, String> {
    let fields = answer.headers().iter();
    fields
        .filter(|(name, _)| !ITS_OWN.contains(&name.as_str()))
        .map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (name.to_string(), value)
        })
        .collect()
}

fn compare_responses(own: &Response<Bytes>, other: &Answer, at: &str) {
    assert_eq!(other.status, own.status().as_u16(), "{at}");
    if own.status().is_redirection() {
        let location = own.headers()["location"].to_str().expect("text");
        // Rowhouse may write `Location` relative to the requested path.
        assert!(other.header("location").ends_with(location), "{at}");
        return;
    }
    assert!(other.body == own.body().as_ref(), "{at}");
    for (name, value) in fields(own) {
        assert_eq!(other.header(&name), value, "{at}: {name}");
    }
}

/// Exports the site of the table of redirects for a web server, which `run` starts, and compares its responses with the table.
fn compare_redirects(server: WebServer, run: impl FnOnce(&Path, SocketAddr) -> Program) {
    let site = redirect_cases::create_site();
    let public = TempDir::new().expect("a folder");
    let (mut program, mut visitor) = start(&site, server, public.path(), run);
    for (host, prefix) in redirect_cases::PLACES {
        let [all, query, server] = [CASES, QUERY_CASES, SERVER_CASES];
        for case in all.iter().chain(query).chain(server) {
            let path = case.request_at(prefix);
            let answer = visitor.get(host, &path, &[]);
            let answer =
                answer.unwrap_or_else(|error| panic!("{path}: {error}\n{}", program.log()));
            let location = answer.header("location").to_owned();
            let expected = (case.status, case.location_at(prefix));
            assert_eq!((answer.status, location), expected, "{host}{path}");
            let own = served(&site, host, &path);
            if own.status().is_client_error() {
                assert!(answer.body == own.body().as_ref(), "{host}{path}");
            }
        }
    }
    for (path, status) in [("/nothing", 308), ("/corner/nothing", 404), ("/about", 200)] {
        let answer = visitor.get("studio.example", path, &[]).expect("an answer");
        assert_eq!(answer.status, status, "{path}");
    }
    program.must_run();
}

/// Exports a site for a web server, which `run` starts.
fn start(
    site: &TestSite,
    server: WebServer,
    public: &Path,
    run: impl FnOnce(&Path, SocketAddr) -> Program,
) -> (Program, Visitor) {
    let options = ExportOptions {
        compressed: true,
        server: Some(server),
        ..ExportOptions::default()
    };
    let mut writer = ExportWriter::begin(public).expect("a folder");
    export(site.registry(), &site.snapshot, options, &mut writer).expect("files");
    writer.finish().expect("written files");
    let address = reserved_address();
    let mut program = run(public, address);
    let mut visitor = Visitor::new(address);
    wait_for("the web server", || {
        program.must_run();
        visitor.get("studio.example", "/", &[]).ok()
    });
    (program, visitor)
}

/// Exports the site for a web server, which `run` starts, and compares all responses.
fn compare_server(server: WebServer, run: impl FnOnce(&Path, SocketAddr) -> Program) {
    let site = create_site();
    let public = TempDir::new().expect("a folder");
    let (program, mut visitor) = start(&site, server, public.path(), run);
    let mut types = BTreeSet::new();
    let mut saved = 0;
    for (host, prefix) in PLACES {
        for path in all(&site, host, prefix) {
            let own = served(&site, host, &path);
            let other = visitor.get(host, &path, &[]);
            let other = other.unwrap_or_else(|error| panic!("{path}: {error}\n{}", program.log()));
            compare_responses(&own, &other, &format!("{host}{path}"));
            if own.status() == StatusCode::OK {
                let media_type = own.headers()[CONTENT_TYPE].to_str().expect("text");
                types.insert(media_type.to_owned());
                saved += usize::from(own.headers().contains_key(CONTENT_DISPOSITION));
            }
        }
    }
    for media_type in [
        "application/pdf",
        "image/jpeg",
        "image/png",
        "image/webp",
        "video/mp4",
    ] {
        assert!(types.contains(media_type), "{types:?}");
    }
    assert!(saved >= PLACES.len(), "no file that is saved");

    for (host, prefix) in [("ecke.studio.example", ""), ("studio.example", "/ecke")] {
        for (path, title) in [
            ("/nothing", "Page not found"),
            ("/de/nothing", "Seite nicht gefunden"),
        ] {
            let path = format!("{prefix}{path}");
            let answer = visitor.get(host, &path, &[]).expect("an answer");
            compare_responses(&served(&site, host, &path), &answer, &path);
            assert_eq!(answer.status, 404, "{host}{path}");
            assert!(
                answer.text().contains(title),
                "{host}{path}: {}",
                answer.text()
            );
        }
    }

    // The other host redirects. Compressed files and ranges work as in any web server.
    let moved = visitor
        .get("www.studio.example", "/corner?a=b", &[])
        .expect("an answer");
    let location = moved.header("location");
    assert_eq!(
        (moved.status, location),
        (308, "https://studio.example/corner?a=b")
    );
    // The body has no known length.
    let asked = ["accept-encoding: gzip", "connection: close"];
    let page = visitor
        .get("studio.example", "/corner", &asked)
        .expect("an answer");
    assert_eq!(page.header("content-encoding"), "gzip");
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    let html = site.page("studio.example", "/corner", "/").expect("a page");
    let film = addresses(&html)
        .into_iter()
        .find(|path| path.ends_with(".mp4"));
    let film = film.expect("a film");
    let part = visitor
        .get("studio.example", &film, &["range: bytes=4-7"])
        .expect("an answer");
    assert_eq!((part.status, part.body.as_slice()), (206, &b"ftyp"[..]));
}

/// Returns the folders of hosts and the configurations beside them.
fn hosts(public: &Path, extension: &str) -> Vec<(String, String, String)> {
    let mut hosts = Vec::new();
    for entry in fs::read_dir(public).expect("a folder") {
        let file = entry.expect("an entry").file_name();
        let file = file.into_string().expect("UTF-8");
        if let Some(host) = file.strip_suffix(extension) {
            let at = |name: &str| public.join(name).display().to_string();
            hosts.push((host.to_owned(), at(host), at(&file)));
        }
    }
    assert!(hosts.len() > 3, "{hosts:?}");
    hosts
}

/// Starts nginx with the exported files in `public`. Its own files are in `own`.
fn run_nginx(own: &Path, public: &Path, address: SocketAddr) -> Program {
    // One process, so that the test can end all of it.
    let mut text = format!(
        "daemon off; master_process off; pid {0}/pid; error_log stderr;\nevents {{}}\nhttp {{ access_log off;\n",
        own.display()
    );
    for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
        text += &format!("{kind}_temp_path {}/{kind};\n", own.display());
    }
    for (host, root, included) in hosts(public, ".nginx.conf") {
        text += &format!(
            "server {{ listen {address}; server_name {host}; root {root}; include {included}; }}\n"
        );
    }
    let file = own.join("nginx.conf");
    fs::write(&file, text + "}\n").expect("a file");
    Program::start(
        Command::new("nginx")
            .args(["-e", "stderr", "-c"])
            .arg(&file),
    )
}

/// Starts Caddy with the exported files in `public`. Its own files are in `own`.
fn run_caddy(own: &Path, public: &Path, address: SocketAddr) -> Program {
    let mut text = "{\n\tadmin off\n\tauto_https off\n}\n".to_owned();
    for (host, root, imported) in hosts(public, ".caddy") {
        text += &format!(
            "http://{host}:{} {{\n\tbind 127.0.0.1\n\troot * {root}\n\timport {imported}\n}}\n",
            address.port()
        );
    }
    let file = own.join("Caddyfile");
    fs::write(&file, text).expect("a file");
    Program::start(
        Command::new("caddy")
            .args(["run", "--adapter", "caddyfile", "--config"])
            .arg(&file)
            .env("HOME", own)
            .env("XDG_DATA_HOME", own.join("data"))
            .env("XDG_CONFIG_HOME", own.join("config")),
    )
}

#[test]
fn nginx_serves_export_like_rowhouse() {
    if !is_there("nginx") {
        return;
    }
    let own = TempDir::new().expect("a folder");
    let run = |public: &Path, address| run_nginx(own.path(), public, address);
    compare_server(WebServer::Nginx, run);
}

#[test]
fn caddy_serves_export_like_rowhouse() {
    if !is_there("caddy") {
        return;
    }
    let own = TempDir::new().expect("a folder");
    let run = |public: &Path, address| run_caddy(own.path(), public, address);
    compare_server(WebServer::Caddy, run);
}

#[test]
fn nginx_redirects_as_the_table_says() {
    if !is_there("nginx") {
        return;
    }
    let own = TempDir::new().expect("a folder");
    let run = |public: &Path, address| run_nginx(own.path(), public, address);
    compare_redirects(WebServer::Nginx, run);
}

#[test]
fn caddy_redirects_as_the_table_says() {
    if !is_there("caddy") {
        return;
    }
    let own = TempDir::new().expect("a folder");
    let run = |public: &Path, address| run_caddy(own.path(), public, address);
    compare_redirects(WebServer::Caddy, run);
}
