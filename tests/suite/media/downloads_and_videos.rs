//! Files to download, and videos.

use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_RANGE,
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, RANGE, X_CONTENT_TYPE_OPTIONS,
};
use rowhouse::export::ExportOptions;
use rowhouse_tests::TestSite;

use crate::pages::broken_links::{addresses, answer, broken_of};

const HOST: &str = "corner.studio.example";

fn create_site(manifest: &str, body: &str) -> TestSite {
    let mut site = TestSite::fixture("sites");
    site.add_tenant("corner", &format!("name: Corner\n{manifest}"));
    let page = format!("---\ntitle: Corner\n---\n{body}\n");
    site.write("tenants/corner/pages/index.md", page);
    site
}

/// Returns the only address in a page that contains these words.
fn address(site: &TestSite, words: &str) -> String {
    let html = site.page(HOST, "", "/").expect("a page");
    let mut found = addresses(&html).into_iter();
    found
        .find(|address| address.contains(words))
        .unwrap_or_else(|| panic!("nothing with {words} in {html}"))
}

fn boxed(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
    let size = u32::try_from(8 + content.len()).expect("small");
    [&size.to_be_bytes()[..], kind, content].concat()
}

/// Returns the header of a video with some data.
pub(crate) fn film(width: u32, height: u32) -> Vec<u8> {
    let mut header = vec![0; 84];
    header[40..44].copy_from_slice(&0x1_0000_u32.to_be_bytes());
    header[76..80].copy_from_slice(&(width << 16).to_be_bytes());
    header[80..84].copy_from_slice(&(height << 16).to_be_bytes());
    let movie = boxed(b"moov", &boxed(b"trak", &boxed(b"tkhd", &header)));
    [boxed(b"ftyp", b"isom"), movie, boxed(b"mdat", &[7; 4_000])].concat()
}

#[test]
fn file_is_saved_under_own_name_and_served_in_ranges() {
    let mut site = create_site("", "[Plan](<../assets/Pl\u{e4}ne 2026.pdf>)");
    let bytes = "words of a plan ".repeat(400);
    site.write("tenants/corner/assets/Pl\u{e4}ne 2026.pdf", &bytes);
    site.reload();
    let path = address(&site, ".pdf");
    let whole = answer(
        &site,
        HOST,
        &path,
        &[(http::header::ACCEPT_ENCODING, "br, gzip")],
    );
    assert_eq!(whole.status(), 200);
    assert_eq!(
        whole.headers()[CONTENT_DISPOSITION],
        "attachment; filename=\"Pl-ne 2026.pdf\"; filename*=UTF-8''Pl%C3%A4ne%202026.pdf"
    );
    assert_eq!(whole.headers()[CONTENT_TYPE], "application/pdf");
    assert_eq!(whole.headers()[X_CONTENT_TYPE_OPTIONS], "nosniff");
    assert_eq!(whole.headers()[ACCEPT_RANGES], "bytes");
    assert!(!whole.headers().contains_key(CONTENT_ENCODING));
    let part = answer(&site, HOST, &path, &[(RANGE, "bytes=6-14")]);
    assert_eq!(part.status(), 206);
    assert_eq!(part.body().as_ref(), b"of a plan");
    let range = format!("bytes 6-14/{}", bytes.len());
    assert_eq!(part.headers()[CONTENT_RANGE], range.as_str());
}

#[test]
fn non_image_is_not_shown_as_image() {
    let mut site = create_site("", "![A song](song.mp3)\n\n![Prices](plan.pdf)");
    site.write("tenants/corner/assets/song.mp3", "ID3")
        .write("tenants/corner/assets/plan.pdf", "%PDF-1.4")
        .reload();
    assert!(!site.report_text().contains("error["));
    let html = site.page(HOST, "", "/").expect("a page");
    for part in [
        "controls preload=\"none\" aria-label=\"A song\"><a href=\"/assets/song.",
        "\">A song</a></audio>",
        "\">Prices</a>",
    ] {
        assert!(html.contains(part), "{part} in {html}");
    }
    assert!(!html.contains("<img src=\"/assets/song."), "{html}");
    assert!(!html.contains("<img src=\"/assets/plan."), "{html}");
}

#[test]
fn unsupported_image_type_is_error_with_types_to_convert_to() {
    let mut site = create_site("", "![Door](door.HEIC)\n\n![Pump](clip.mov)");
    site.write("tenants/corner/assets/door.HEIC", "heic")
        .write("tenants/corner/assets/clip.mov", "mov")
        .reload();
    let report = site.report_text();
    for part in [
        "error[picture-type]: browsers do not show `door.HEIC`",
        "convert the file to JPEG, PNG, WebP or AVIF",
        "error[picture-type]: browsers do not show `clip.mov`",
        "convert the file to MP4 (H.264) or WebM",
    ] {
        assert!(report.contains(part), "{part} in {report}");
    }
}

#[test]
fn video_has_size_poster_and_captions() {
    let mut site = create_site(
        "language: en-GB\n",
        "![How it &lt;works>](clip.mp4 \"A title\")\n\n![](other.webm)",
    );
    let share = site.path("tenants/home/assets/share.png");
    let share = std::fs::read(share).expect("a picture");
    site.write("tenants/corner/assets/clip.mp4", film(640, 360))
        .write("tenants/corner/assets/clip.vtt", "WEBVTT\n")
        .write("tenants/corner/assets/clip.png", share)
        .write("tenants/corner/assets/other.webm", "webm")
        .reload();
    assert!(
        !site.report_text().contains("error["),
        "{}",
        site.report_text()
    );
    for (host, prefix) in [(HOST, ""), ("studio.example", "/corner")] {
        let html = site.page(host, prefix, "/").expect("a page");
        let start = html.find("<video ").expect("a video");
        let html = &html[start..];
        let begins = format!("<video src=\"{prefix}/assets/clip.");
        assert!(html.starts_with(&begins), "{html}");
        for part in [
            " controls preload=\"none\" playsinline width=\"640\" height=\"360\"",
            &format!(" poster=\"{prefix}/assets/clip."),
            " aria-label=\"How it &lt;works&gt;\" title=\"A title\"",
            &format!("<track kind=\"captions\" src=\"{prefix}/assets/clip."),
            " srclang=\"en-GB\"",
            "How it &lt;works&gt;</a></video>",
        ] {
            assert!(html.contains(part), "{part} in {html}");
        }
        assert_eq!(html.matches("<video ").count(), 2);
    }
    let (_, broken) = broken_of(&mut site, "corner");
    assert!(broken.is_empty(), "{broken:#?}");
    let page = answer(&site, HOST, "/", &[]);
    let policy = page.headers()[CONTENT_SECURITY_POLICY]
        .to_str()
        .expect("text");
    assert!(policy.contains("media-src 'self'"), "{policy}");
    let path = address(&site, ".mp4");
    let clip = answer(&site, HOST, &path, &[(http::header::ACCEPT_ENCODING, "br")]);
    assert_eq!(clip.headers()[CONTENT_TYPE], "video/mp4");
    assert!(!clip.headers().contains_key(CONTENT_ENCODING));
    assert_eq!(
        answer(&site, HOST, &path, &[(RANGE, "bytes=0-1")]).status(),
        206
    );
}

#[test]
fn download_address_redirects_to_newest_file() {
    let mut site = create_site(
        "aliases: [/apps/corner]\ndownloads: {press-kit: assets/press-kit.zip}\n",
        "[Press](/press-kit) and [press](press.md)",
    );
    site.write("tenants/corner/assets/press-kit.zip", "one")
        .write(
            "tenants/corner/pages/press.md",
            "---\ntitle: Press\n---\n[Kit](/press-kit)\n",
        )
        .reload();
    assert!(
        !site.report_text().contains("error["),
        "{}",
        site.report_text()
    );
    let mut before = String::new();
    for text in ["one", "two"] {
        site.write("tenants/corner/assets/press-kit.zip", text)
            .reload();
        for (host, prefix) in [
            (HOST, ""),
            ("studio.example", "/corner"),
            ("studio.example", "/apps/corner"),
        ] {
            let found = answer(&site, host, &format!("{prefix}/press-kit"), &[]);
            assert_eq!(found.status(), 302);
            assert_eq!(found.headers()[CACHE_CONTROL], "no-store");
            let location = found.headers()[LOCATION].to_str().expect("text").to_owned();
            assert!(location.starts_with(&format!("{prefix}/assets/press-kit.")));
            let file = answer(&site, host, &location, &[]);
            assert_eq!(file.body().as_ref(), text.as_bytes());
            assert_ne!(location, before);
            if prefix == "/apps/corner" {
                before = location;
            }
        }
    }
    let files = site.exported(ExportOptions::default()).expect("files");
    let rules = String::from_utf8_lossy(&files["corner.studio.example/_redirects"]).into_owned();
    assert!(rules.contains("/press-kit /assets/press-kit."), "{rules}");
    assert!(rules.contains(".zip 302\n"), "{rules}");
}

#[test]
fn download_takes_no_path_of_page_or_engine() {
    for (name, says) in [
        (
            "terms",
            "`pages/terms.md` already has the download's path `/terms`",
        ),
        ("old", "a redirect already has the download's path `/old`"),
        ("robots.txt", "`/robots.txt` is reserved for rowhouse"),
        ("press kit", "the download's path `/press kit` is not valid"),
    ] {
        let manifest =
            format!("redirects: [{{from: /old, to: /}}]\ndownloads:\n  \"{name}\": kit.zip\n");
        let mut site = create_site(&manifest, "Words.");
        site.write("tenants/corner/pages/terms.md", "---\ntitle: Terms\n---\n");
        site.write("tenants/corner/assets/kit.zip", "zip").reload();
        let text = site.report_text();
        assert!(text.contains(says), "{name}: {text}");
        assert!(text.contains("tenants/corner/tenant.yaml:4:"), "{text}");
    }
    let mut site = create_site("downloads: {press: kit.zip}\n", "Words.");
    site.reload();
    let text = site.report_text();
    assert!(text.contains("error[missing-asset]"), "{text}");
}

/// A manifest with a text for each type of name.
const TEXTS: &str = "aliases: [/apps/corner]\nfiles:\n  google1a.html: assets/google1a.html\n  BingSiteAuth.xml: assets/bing.xml\n  .well-known/nostr.json: assets/nostr.json\n";
const MARKUP: &str = "<script>alert(1)</script>";

fn with_texts() -> TestSite {
    let mut site = create_site(TEXTS, "Words.");
    site.write("tenants/corner/assets/google1a.html", MARKUP)
        .write("tenants/corner/assets/bing.xml", MARKUP)
        .write("tenants/corner/assets/nostr.json", "{}")
        .reload();
    let report = site.report_text();
    assert!(
        !report.contains("error[") && !report.contains("unused-asset"),
        "{report}"
    );
    site
}

#[test]
fn verification_file_is_served_unchanged_and_never_as_page() {
    let site = with_texts();
    for (path, media_type, text) in [
        ("/google1a.html", "text/plain; charset=utf-8", MARKUP),
        ("/BingSiteAuth.xml", "text/plain; charset=utf-8", MARKUP),
        ("/.well-known/nostr.json", "application/json", "{}"),
    ] {
        let found = answer(&site, HOST, path, &[]);
        assert_eq!(found.status(), 200, "{path}");
        assert_eq!(found.headers()[CONTENT_TYPE], media_type, "{path}");
        assert_eq!(found.headers()[X_CONTENT_TYPE_OPTIONS], "nosniff");
        assert_eq!(found.body().as_ref(), text.as_bytes(), "{path}");
        for (host, path) in [
            ("studio.example", path.to_owned()),
            ("studio.example", format!("/corner{path}")),
            ("studio.example", format!("/apps/corner{path}")),
            ("app.studio.example", path.to_owned()),
        ] {
            let status = answer(&site, host, &path, &[]).status();
            assert_eq!(status, 404, "{host}{path} is shared, or another tenant's");
        }
    }
}

#[test]
fn export_has_verification_files_that_are_not_pages() {
    let site = with_texts();
    let files = site.exported(ExportOptions::default()).expect("files");
    for path in ["google1a.html", "BingSiteAuth.xml"] {
        let file = files[&format!("{HOST}/{path}")].to_vec();
        assert_eq!(file, MARKUP.as_bytes(), "{path}");
    }
    assert!(!files.contains_key("studio.example/corner/google1a.html"));
    let headers = String::from_utf8_lossy(&files[&format!("{HOST}/_headers")]).into_owned();
    let (_, rules) = headers.split_once("/google1a.html\n").expect("rules");
    let rules: Vec<&str> = rules
        .lines()
        .take_while(|line| line.starts_with(' '))
        .collect();
    assert!(
        rules.contains(&"  Content-Type: text/plain; charset=utf-8"),
        "{headers}"
    );
}

#[test]
fn verification_file_takes_no_path_of_other_file_or_engine() {
    for (name, says) in [
        (
            "terms.html",
            "`pages/terms.md` already has the text file's path `/terms.html`",
        ),
        (
            "terms",
            "`pages/terms.md` already has the text file's path `/terms`",
        ),
        ("Terms.html", "`pages/terms.md` already has"),
        (
            "blog",
            "the text file's path `/blog` is above or below another path",
        ),
        (
            "old",
            "`redirects:` already has the text file's path `/old`",
        ),
        (
            "kit",
            "`downloads:` already has the text file's path `/kit`",
        ),
        ("robots.txt", "`/robots.txt` is reserved for rowhouse"),
        (".well-known/security.txt", "is reserved for rowhouse"),
        (".well-known/acme-challenge/x", "is reserved for rowhouse"),
        (".git/config", "is reserved for rowhouse"),
        ("404.html", "an export uses this name for the 404 page"),
        (
            "_headers",
            "static hosts read this file of an export as configuration",
        ),
        ("a b", "the text file's path `/a b` is not valid"),
        (
            "large.txt",
            "the text file at `/large.txt` has more than 64 KiB",
        ),
    ] {
        let manifest = format!(
            "redirects: [{{from: /old, to: /}}]\ndownloads: {{kit: kit.zip}}\nfiles:\n  \"{name}\": x.txt\n"
        );
        let mut site = create_site(&manifest, "Words.");
        for page in ["terms", "blog/first"] {
            site.write(
                &format!("tenants/corner/pages/{page}.md"),
                "---\ntitle: Page\n---\n",
            );
        }
        let length = if name == "large.txt" { 70_000 } else { 10 };
        site.write("tenants/corner/assets/kit.zip", "zip");
        site.write("tenants/corner/assets/x.txt", "x".repeat(length));
        site.reload();
        let text = site.report_text();
        assert!(text.contains(says), "{name}: {text}");
        assert!(text.contains("tenants/corner/tenant.yaml:5:"), "{text}");
    }
}
