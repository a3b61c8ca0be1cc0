//! No file of a tenant runs scripts on an origin that the tenant shares with other tenants.

use std::collections::BTreeMap;

use rowhouse::export::ExportOptions;
use rowhouse_tests::{Answer, TestServer, TestSite};

const SCRIPT: &str = "document.title = 'taken'";

/// Creates a deployment with a third tenant that has these `assets`.
fn create_site(assets: &[(&str, &[u8])]) -> TestSite {
    let mut site = TestSite::fixture("sites");
    site.write("tenants/evil/tenant.yaml", "name: Evil\n");
    site.write("tenants/evil/pages/index.md", "---\ntitle: Evil\n---\n");
    for (path, bytes) in assets {
        site.write(&format!("tenants/evil/assets/{path}"), bytes);
    }
    site.reload();
    assert!(site.report().is_servable(), "{}", site.report_text());
    site
}

/// Returns the response for each file of the third tenant on the shared origin, by its path.
fn get_files(site: &TestSite) -> BTreeMap<String, Answer> {
    let server = TestServer::start(site.folder(), &[]);
    let mount = site.mount("studio.example", "/evil").expect("a mount");
    let paths = mount.pages.get().expect("rendered").resources.paths();
    paths
        .filter(|path| path.starts_with("/assets/"))
        .map(|path| {
            let answer = server.get(&server.domain(), &format!("/evil{path}"));
            assert_eq!(answer.status, 200, "{path}");
            (path.to_string(), answer)
        })
        .collect()
}

#[test]
fn tenant_files_are_not_documents_or_scripts_on_shared_origin() {
    let page = b"<html xmlns=\"http://www.w3.org/1999/xhtml\"><script>document.title='taken'</script></html>";
    let names = [
        "p.html",
        "p.HTM",
        "p.shtml",
        "p.xhtml",
        "p.xht",
        "p.xml",
        "p.xsl",
        "p.xslt",
        "p.rdf",
        "p.mht",
        "p.hta",
        "p.js",
        "p.mjs",
        "p.cjs",
        "p.jsx",
        "p.wasm",
        "p.php",
        "p.swf",
        "p.svgz",
        "p.manifest",
        "speculation.json",
        "p.pdf",
        "p.txt",
        "p.zip",
        "p",
        "p.htm l",
    ];
    let files: Vec<(&str, &[u8])> = names.iter().map(|name| (*name, &page[..])).collect();
    let answers = get_files(&create_site(&files));
    assert_eq!(answers.len(), names.len());
    for (path, answer) in &answers {
        let policy = answer.header("content-security-policy");
        assert!(
            policy.starts_with("default-src 'none';") && policy.contains("sandbox"),
            "{path}: {:?}",
            answer.headers
        );
        assert!(!policy.contains("allow-"), "{path}: {policy}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
        let media_type = answer.header("content-type");
        let disposition = answer.header("content-disposition");
        let as_text = ["text/plain; charset=utf-8", "application/json"].contains(&media_type);
        let as_download = [
            "application/octet-stream",
            "application/pdf",
            "application/zip",
        ];
        assert!(
            as_text || as_download.contains(&media_type),
            "{path}: {media_type}"
        );
        assert_eq!(as_text, !disposition.starts_with("attachment"), "{path}");
    }
}

#[test]
fn displayable_files_have_no_policy_and_are_not_downloads() {
    let files: Vec<(&str, &[u8])> = [
        "a.css", "a.png", "a.JPG", "a.webp", "a.woff2", "a.mp4", "a.mp3",
    ]
    .map(|name| (name, &b"x"[..]))
    .to_vec();
    for (path, answer) in get_files(&create_site(&files)) {
        assert_eq!(answer.header("content-security-policy"), "", "{path}");
        assert_eq!(answer.header("content-disposition"), "", "{path}");
        let family = answer.header("content-type").split('/').next();
        assert!(
            matches!(family, Some("text" | "image" | "font" | "video" | "audio")),
            "{path}: {:?}",
            answer.headers
        );
    }
}

#[test]
fn download_has_name_of_author() {
    let answers = get_files(&create_site(&[
        ("press kit.pdf", b"%PDF-1.7 %%EOF"),
        ("a\"b;c\u{e4}.exe", b"MZ"),
    ]));
    let names: Vec<&str> = answers
        .values()
        .map(|answer| answer.header("content-disposition"))
        .collect();
    assert!(
        names.contains(&"attachment; filename=\"press kit.pdf\""),
        "{names:?}"
    );
    let other = "attachment; filename=\"a-b-c-.exe\"; filename*=UTF-8''a%22b%3Bc%C3%A4.exe";
    assert!(names.contains(&other), "{names:?}");
}

#[test]
fn page_loads_scripts_only_from_engine_path() {
    let site = create_site(&[]);
    let server = TestServer::start(site.folder(), &[]);
    for (host, path) in [
        (server.domain(), "/"),
        (server.domain(), "/evil"),
        (server.domain(), "/nowhere"),
        (format!("evil.{}", server.domain()), "/"),
    ] {
        let answer = server.get(&host, path);
        let policies: Vec<&str> = answer
            .header("content-security-policy")
            .split(", ")
            .collect();
        let [whole, place] = policies.as_slice() else {
            panic!("{host}{path}: {policies:?}");
        };
        // Inline scripts and the rules for prefetching are allowed by their hashes.
        assert!(whole.contains("worker-src 'none';"), "{whole}");
        let inline = place.strip_prefix("script-src *:*/assets/ ");
        let inline = inline.unwrap_or_else(|| panic!("{host}{path}: {place}"));
        let mut hashes = inline.split(' ');
        assert!(hashes.all(|hash| hash.starts_with("'sha256-")), "{inline}");
        assert!(
            whole.contains(&format!("script-src 'self' {inline};")),
            "{whole}"
        );
    }
}

/// Returns the drawing on a page whose settings name this file, and the report.
fn inlined(drawing: &str) -> (String, String) {
    let mut site = create_site(&[("mine.svg", drawing.as_bytes())]);
    site.edit(
        "themes/base/layouts/page.html",
        "<h1>",
        "{% if site.settings.sign %}<i>{{ site.settings.sign }}</i>{% endif %}<h1>",
    );
    site.edit(
        "themes/base/theme.yaml",
        "  properties:\n",
        "  properties:\n    sign: {type: string, format: drawing}\n",
    );
    site.edit(
        "tenants/evil/tenant.yaml",
        "name: Evil\n",
        "name: Evil\nsettings: {sign: mine.svg}\n",
    );
    site.reload();
    let page = site
        .page("studio.example", "/evil", "/")
        .unwrap_or_default();
    let drawn = page
        .split_once("<i>")
        .and_then(|(_, rest)| rest.split_once("</i>"))
        .map_or("", |(drawn, _)| drawn);
    (drawn.to_owned(), site.report_text())
}

#[test]
fn inline_drawing_runs_and_loads_nothing() {
    let hostile = format!(
        "<?xml version=\"1.0\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:x=\"http://www.w3.org/1999/xhtml\" onload=\"{SCRIPT}\">\n\
         <script src=\"/evil/assets/x.js\"/>\n\
         <x:script>{SCRIPT}</x:script>\n\
         <foreignObject><p xmlns=\"http://www.w3.org/1999/xhtml\">x</p></foreignObject>\n\
         <a href=\"javascript:{SCRIPT}\"><text>x</text></a>\n\
         <set attributeName=\"href\" to=\"javascript:{SCRIPT}\"/>\n\
         <use href=\"https://evil.example/x.svg#a\"/>\n\
         <rect style=\"fill: url(//evil.example/x)\"/>\n\
         <style>@import 'https://evil.example/x.css';</style>\n\
         <title><style>&lt;/title&gt;</style></title>\n\
         <circle r=\"1\" onclick=\"{SCRIPT}\"/></svg>\n"
    );
    let (drawn, report) = inlined(&hostile);
    for bad in [
        "script", "evil", "onload", "onclick", "foreign", "style", "href", "set", "taken", "import",
    ] {
        assert!(!drawn.contains(bad), "{bad}: {drawn}");
    }
    assert!(
        drawn.contains("<circle r=\"1\"/>") && drawn.ends_with("</svg>"),
        "{drawn}"
    );
    for line in [
        "mine.svg:2:1",
        "mine.svg:3:1",
        "mine.svg:5:1",
        "mine.svg:8:1",
    ] {
        assert!(report.contains(line), "{line}: {report}");
    }
    assert!(report.contains("warning[unsafe-svg]"), "{report}");
}

#[test]
fn file_other_than_single_drawing_is_refused() {
    for drawing in [
        "<svg xmlns=\"http://www.w3.org/2000/svg\"/><script>1</script>",
        "<svg xmlns=\"http://www.w3.org/2000/svg\"></svg>text",
        "<p><svg xmlns=\"http://www.w3.org/2000/svg\"/></p>",
        "<svg xmlns=\"http://www.w3.org/2000/svg\"><g></svg>",
        "<svg xmlns=\"http://www.w3.org/1999/xhtml\"/>",
        "no drawing",
    ] {
        let mut site = create_site(&[]);
        site.write("tenants/evil/assets/mine.svg", drawing);
        site.reload();
        let report = site.report_text();
        assert!(
            report.contains("error[unsafe-svg]") && report.contains("mine.svg"),
            "{drawing}: {report}"
        );
    }
}

#[test]
fn file_names_are_escaped_everywhere() {
    let names = [
        "50% off.png",
        "a#b.png",
        "what?.png",
        "it's \"q\".png",
        "gr\u{fc}n.png",
        "\u{1f3e0}.png",
        "%41.png",
        "a&b<c>.png",
        "plain~1_2-3.png",
    ];
    let mut site = create_site(&[]);
    let mut pictures = String::new();
    for (index, name) in names.iter().enumerate() {
        site.write(
            &format!("tenants/evil/assets/{name}"),
            format!("picture {index}"),
        );
        let written = name.replace('<', "\\<").replace('>', "\\>");
        pictures.push_str(&format!(
            "![A picture](<{}>)\n",
            written.replace('&', "&amp;")
        ));
    }
    site.write(
        "tenants/evil/pages/index.md",
        format!("---\ntitle: Evil\nimage: \"50% off.png\"\n---\n{pictures}"),
    );
    site.reload();
    assert!(site.report().is_servable(), "{}", site.report_text());
    let server = TestServer::start(site.folder(), &[]);
    for (host, prefix) in [
        (server.domain(), "/evil"),
        (format!("evil.{}", server.domain()), ""),
    ] {
        let page = server
            .get(&host, if prefix.is_empty() { "/" } else { prefix })
            .text();
        let sources: Vec<&str> = page
            .split("<img src=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect();
        assert_eq!(sources.len(), names.len(), "{page}");
        for (index, source) in sources.iter().enumerate() {
            let answer = server.get(&host, source);
            assert_eq!(answer.status, 200, "{}: {source}", names[index]);
            assert_eq!(answer.text(), format!("picture {index}"), "{source}");
        }
        let social = page
            .split_once("og:image\" content=\"")
            .and_then(|(_, rest)| rest.split('"').next())
            .expect("a picture");
        let path = social.split_once(&server.domain()).expect("absolute").1;
        assert_eq!(
            server.get(&server.domain(), path).text(),
            "picture 0",
            "{social}"
        );
    }
}

#[test]
fn text_of_tenant_is_escaped_everywhere() {
    let mut site = create_site(&[]);
    let words = "</title></script><script>alert(1)</script>\\\"'-->]]>";
    site.write(
        "tenants/evil/tenant.yaml",
        format!("name: \"{words}\"\ntagline: \"{words}\"\n"),
    );
    site.write(
        "tenants/evil/pages/index.md",
        format!("---\ntitle: \"{words}\"\ndescription: \"{words}\"\nbreadcrumb: \"{words}\"\ncollection: {{feed: true}}\n---\n"),
    );
    site.write(
        "tenants/evil/pages/one.md",
        format!("---\ntitle: \"{words}\"\ndate: 2026-01-01\ntags: [\"{words}\"]\nexcerpt: \"{words}\"\n---\n"),
    );
    site.reload();
    assert!(site.report().is_servable(), "{}", site.report_text());
    let page = site.page("studio.example", "/evil", "/").expect("a page");
    assert!(!page.contains("<script>alert"), "{page}");
    let feed = site
        .page("studio.example", "/evil", "/feed.xml")
        .expect("a feed");
    assert!(
        !feed.contains("<script") && !feed.contains("<?xml-stylesheet"),
        "{feed}"
    );
    let manifest = site.page("studio.example", "/evil", "/site.webmanifest");
    let manifest: serde_json::Value =
        serde_json::from_str(&manifest.expect("a manifest")).expect("JSON");
    assert_eq!(manifest["start_url"], "/evil");
    site.write(
        "tenants/evil/tenant.yaml",
        format!("name: Evil\nlanguage: \"en-{words}\"\n"),
    );
    site.reload();
    let text = site.report_text();
    assert!(text.contains("is not a valid language tag"), "{text}");
}

#[test]
fn redirect_adds_no_other_rule() {
    let mut site = TestSite::fixture("sites");
    for to in [
        "https://evil.example/x 200! # ",
        "/terms\\n/* /x 200",
        "https://a.example/\\tb",
    ] {
        site.write(
            "tenants/app/tenant.yaml",
            format!("name: App\nredirects: [{{from: /old, to: \"{to}\"}}]\n"),
        );
        site.reload();
        let report = site.report_text();
        assert!(
            report.contains("error[bad-value]") && report.contains("tenant.yaml:2:"),
            "{to}: {report}"
        );
    }
}

#[test]
fn redirect_is_percent_encoded() {
    let mut site = TestSite::fixture("sites");
    site.edit(
        "tenants/app/tenant.yaml",
        "name: App",
        "name: App\nredirects:\n  - {from: /old, to: \"https://EX\u{e4}mple.org/gr\u{fc}n?a=\u{e4}#x\"}\n  - {from: /older, to: \"/terms?q=\u{fc}#scope\"}",
    );
    site.reload();
    assert!(site.report().is_servable(), "{}", site.report_text());
    let exported = site.exported(ExportOptions::default()).expect("files");
    let redirects = &exported["app.studio.example/_redirects"];
    let redirects = String::from_utf8_lossy(redirects);
    let expected = "/old https://xn--exmple-cua.org/gr%C3%BCn?a=%C3%A4#x 301\n/older /terms?q=%C3%BC#scope 301\n";
    assert!(redirects.contains(expected), "{redirects}");
}

#[test]
fn tenant_files_are_exported_under_inert_names() {
    let mut site = TestSite::fixture("sites");
    for name in ["p.html", "p.js", "p.xml", "p.php", "p.svgz"] {
        site.write(
            &format!("tenants/app/assets/{name}"),
            format!("<script>{name}</script>"),
        );
    }
    site.reload();
    let exported = site.exported(ExportOptions::default()).expect("files");
    let names: Vec<&str> = exported
        .keys()
        .filter_map(|file| file.strip_prefix("studio.example/app/assets/"))
        .filter(|name| name.starts_with('p'))
        .collect();
    assert_eq!(names.len(), 5, "{names:?}");
    assert!(names.iter().all(|name| name.ends_with(".bin")), "{names:?}");
}

#[test]
fn shared_drawing_cannot_enlarge_pages_of_other_sites() {
    let mut site = TestSite::fixture("sites");
    site.edit(
        "themes/base/theme.yaml",
        "  properties:\n",
        "  properties:\n    sign: {type: string, format: drawing}\n",
    );
    site.edit(
        "themes/base/layouts/page.html",
        "<h1>",
        "{% for one in company.sites %}<i>{{ one.settings.sign }}</i>{% endfor %}<h1>",
    );
    site.edit(
        "tenants/app/tenant.yaml",
        "settings:\n",
        "settings:\n  sign: sign.svg\n",
    );
    let svg = |paths: usize| {
        let path = "<path d=\"M0 0h1\" id=\"x\"/>".repeat(paths);
        format!("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1 1\">{path}</svg>")
    };
    site.write("tenants/app/assets/sign.svg", svg(10));
    let length = |site: &TestSite| {
        let page = site.page("studio.example", "", "/").expect("a page");
        assert!(!page.contains("<script>alert"), "{page}");
        page.len()
    };
    site.reload();
    assert!(site.report().is_servable(), "{}", site.report_text());
    let small = length(&site);
    site.write("tenants/app/assets/sign.svg", svg(100_000));
    site.reload();
    assert!(length(&site) < small, "{}", length(&site));
    let text = site.report_text();
    assert!(text.contains("other sites show at most"), "{text}");
}
