//! Tests with pairs of releases that differ in one property.

use std::sync::Arc;
use std::time::SystemTime;

use http::{HeaderMap, HeaderValue, StatusCode};
use release::snapshot::fields::Fields;
use release::snapshot::redirects::{RedirectAction, RedirectRule, RedirectTable, RedirectTarget};
use release::snapshot::{MountPages, Variant};
use release::store::ReleaseInfo;

use super::*;

const HTML: &str = "text/html; charset=utf-8";

fn body(status: u16, media_type: &'static str, bytes: &[u8]) -> Arc<Resource> {
    let mut given = HeaderMap::new();
    given.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    let variant = |encoding, bytes| Variant {
        encoding,
        bytes,
        etag: HeaderValue::from_static("\"x\""),
    };
    Arc::new(Resource::Body(Body {
        status: StatusCode::from_u16(status).unwrap(),
        fields: Arc::new(Fields::new(given, true, false)),
        cache_tag: None,
        variants: [
            // Compressed bytes may differ between equal releases.
            variant(ContentEncoding::Gzip, Payload::from("compressed")),
            variant(ContentEncoding::Identity, bytes.to_vec().into()),
        ]
        .into(),
    }))
}

fn html(text: &str) -> Arc<Resource> {
    body(200, HTML, text.as_bytes())
}

fn redirect(target: &'static str) -> Arc<Resource> {
    Arc::new(Resource::Redirect(HeaderValue::from_static(target)))
}

fn place(host: &str, resources: &[(&str, Arc<Resource>)]) -> AddressPages {
    let of_path =
        |(path, resource): &(&str, Arc<Resource>)| (Box::from(*path), Arc::clone(resource));
    AddressPages {
        host: host.to_owned(),
        prefix: String::new(),
        pages: MountPages {
            resources: resources.iter().map(of_path).collect(),
            redirects: Arc::default(),
            not_found: vec![("".into(), body(404, HTML, b"<p>Nothing here.</p>"))],
            method_not_allowed: vec![("".into(), body(405, HTML, b"<p>Not so.</p>"))],
        },
    }
}

fn release(addresses: Vec<AddressPages>) -> Release {
    Release {
        entry: ReleaseInfo {
            number: 1,
            at: SystemTime::UNIX_EPOCH,
            cause: Vec::new(),
            pages: 0,
            key: [0; 32],
        },
        addresses,
    }
}

/// Returns the changes between two releases that have one address each.
fn changes(from: &[(&str, Arc<Resource>)], to: &[(&str, Arc<Resource>)]) -> Vec<PageChange> {
    let of = |resources| release(vec![place("corner.example", resources)]);
    compare(&of(from), &of(to))
}

/// Returns the difference that readers see, and that of metadata.
fn changed(from: Arc<Resource>, to: Arc<Resource>) -> (String, String) {
    let mut all = changes(&[("/x", from)], &[("/x", to)]);
    assert_eq!(all.len(), 1, "{all:?}");
    let change = all.remove(0);
    assert_eq!((&*change.path, change.change), ("/x", ChangeKind::Changed));
    assert_eq!(change.is_metadata(), change.text.is_empty());
    (change.text, change.metadata)
}

fn shown(from: Arc<Resource>, to: Arc<Resource>) -> String {
    let (text, metadata) = changed(from, to);
    assert_eq!(metadata, "");
    text
}

fn unseen(from: Arc<Resource>, to: Arc<Resource>) -> String {
    let (text, metadata) = changed(from, to);
    assert_eq!(text, "");
    metadata
}

#[test]
fn added_and_removed_paths_are_listed() {
    let old = [("/", html("<p>a")), ("/old", html("<p>b"))];
    let new = [
        ("/zoo", html("<p>c")),
        ("/", html("<p>a")),
        ("/new", html("<p>b")),
    ];
    let expected = [
        ("/new", ChangeKind::Added),
        ("/old", ChangeKind::Removed),
        ("/zoo", ChangeKind::Added),
    ];
    let found = changes(&old, &new);
    let paths: Vec<_> = found
        .iter()
        .map(|page| (&*page.path, page.change))
        .collect();
    assert_eq!(paths, expected);
    let is_bare = |page: &PageChange| page.text.is_empty() && page.metadata.is_empty();
    assert!(found.iter().all(is_bare) && !found.iter().any(PageChange::is_metadata));
    assert_eq!(changes(&new, &new), []);
}

#[test]
fn changed_sentence_has_one_line_of_context() {
    let page = |title: &str, sentence: &str| {
        html(&format!(
            "<!doctype html><html><head><title>{title}</title><meta name=description content='a > b'></head><body><h1>Terms</h1><p>You may <a href=\"/x\">read</a> this. {sentence} The end.</p><ul><li>One<li>Two</ul></body></html>"
        ))
    };
    assert_eq!(
        shown(
            page("Terms", "It is <em>free</em>!"),
            page("Terms", "It costs <em>much</em>!")
        ),
        " You may read [link: /x] this.\n-It is free!\n+It costs much!\n The end.\n"
    );
    assert_eq!(
        shown(page("Terms", "Same."), page("Rules", "Same.")),
        "-title: Terms\n+title: Rules\n # Terms\n"
    );
}

#[test]
fn links_and_images_are_shown_with_their_text() {
    let page = |href: &str, file: &str| {
        html(&format!(
            "<p>Read <a class=x href=\"{href}\">this</a>.</p><img src={file} alt=House>"
        ))
    };
    assert_eq!(
        shown(page("/a", "/1.png"), page("/b", "/1.png")),
        "-Read this [link: /a].\n+Read this [link: /b].\n [image: /1.png \"House\"]\n"
    );
    assert_eq!(
        shown(page("/a", "/1.png"), page("/a", "/2.png")),
        " Read this [link: /a].\n-[image: /1.png \"House\"]\n+[image: /2.png \"House\"]\n"
    );
}

#[test]
fn attributes_styles_and_markup_are_metadata() {
    let page = |colour: &str| {
        html(&format!(
            "<style>a{{margin:0}}p{{color:{colour};font:x}}</style><p>Text</p>"
        ))
    };
    let text = unseen(page("red"), page("blue"));
    assert_eq!(text, " p{\n-color:red;\n+color:blue;\n font:x}\n");
    let text = unseen(html("<p class=a>Text"), html("<p class=b>Text"));
    assert_eq!(text, "-<p class=a>\n+<p class=b>\n");
    // Tags without attributes are in neither part.
    let text = unseen(html("<p>Text</p>"), html("<div>Text</div>"));
    assert_eq!(text, "-<p>Text</p>\n+<div>Text</div>\n");
    let text = unseen(html("<p>Text"), html("<p>Text\n"));
    assert_eq!(text, "-text/html, 7 bytes\n+text/html, 8 bytes\n");
    let (text, metadata) = changed(html("<p class=a>One"), html("<p class=b>Two"));
    assert_eq!(text, "-One\n+Two\n");
    assert_eq!(metadata, "-<p class=a>\n+<p class=b>\n");
}

#[test]
fn changes_that_readers_see_come_first() {
    let map = |text: &str| body(200, "application/xml", text.as_bytes());
    let old = [
        ("/a.xml", map("<a>")),
        ("/b", html("<p>One")),
        ("/c", html("<p>")),
    ];
    let new = [("/a.xml", map("<b>")), ("/b", html("<p>Two"))];
    let found = changes(&old, &new);
    let paths: Vec<_> = found.iter().map(|page| &*page.path).collect();
    assert_eq!(paths, ["/b", "/c", "/a.xml"]);
}

#[test]
fn text_files_are_compared_by_line_and_other_files_by_size() {
    let text = |content: &str| body(200, "text/plain; charset=utf-8", content.as_bytes());
    assert_eq!(
        unseen(text("a\nb\nc\nd"), text("a\nb\nc\ne")),
        " c\n-d\n+e\n"
    );
    let picture = |bytes| body(200, "image/png", bytes);
    assert_eq!(
        shown(picture(b"\x89PNG"), picture(b"\x89PNG1")),
        "-image/png, 4 bytes\n+image/png, 5 bytes\n"
    );
    // The bytes are not text, although the type is.
    let broken = body(200, "text/plain", b"\xff");
    assert_eq!(
        shown(text("a"), broken),
        "-text/plain, 1 byte\n+text/plain, 1 byte\n"
    );
}

#[test]
fn redirects_of_the_author_are_compared_by_request() {
    let rule = |path: &str, target: &str| RedirectRule {
        path: path.into(),
        is_wildcard: true,
        conditions: Box::default(),
        action: RedirectAction::Redirect {
            status: StatusCode::FOUND,
            target: RedirectTarget::new(target, true).expect("a target"),
        },
    };
    let with = |rules| {
        let mut place = place("corner.example", &[]);
        place.pages.redirects = Arc::new(RedirectTable::new(rules));
        release(vec![place])
    };
    let old = with(vec![rule("/a", "/b/:splat"), rule("/gone", "/")]);
    let new = with(vec![rule("/a", "/c/:splat"), rule("/new", "/")]);
    let changes = compare(&old, &new);
    let changes: Vec<_> = changes
        .iter()
        .map(|change| (change.path.as_str(), change.change, change.text.as_str()))
        .collect();
    assert_eq!(
        changes,
        [
            (
                "/a/*",
                ChangeKind::Changed,
                "-redirect 302 to /b/:splat\n+redirect 302 to /c/:splat\n"
            ),
            ("/gone/*", ChangeKind::Removed, ""),
            ("/new/*", ChangeKind::Added, ""),
        ]
    );
}

#[test]
fn redirects_are_compared_by_target() {
    assert_eq!(
        shown(redirect("/a"), redirect("/b")),
        "-redirect to /a\n+redirect to /b\n"
    );
    assert_eq!(
        shown(redirect("/a"), html("<p>Here.")),
        "-redirect to /a\n+text/html, 8 bytes\n"
    );
    assert_eq!(
        changes(&[("/", redirect("/a"))], &[("/", redirect("/a"))]),
        []
    );
}

#[test]
fn changed_error_pages_are_listed() {
    let old = release(vec![place("corner.example", &[])]);
    let mut pages = place("corner.example", &[]);
    let blog = |words: &str| ("/blog".into(), body(404, HTML, words.as_bytes()));
    pages.pages.not_found.insert(0, blog("<p>No post."));
    let with_blog = release(vec![pages.clone()]);
    assert_eq!(compare(&old, &with_blog), []);
    pages.pages.not_found[0] = blog("<p>Which post?");
    pages.pages.not_found[1].1 = body(404, HTML, b"<p>Gone.</p>");
    pages.pages.method_not_allowed[0].1 = body(405, HTML, b"<p>No.</p>");
    let names: Vec<_> = compare(&with_blog, &release(vec![pages]))
        .into_iter()
        .map(|page| page.path)
        .collect();
    assert_eq!(names, ["404 page", "404 page of /blog", "405 page"]);
}

#[test]
fn common_address_of_both_releases_is_compared() {
    let (one, other) = (html("<p>1"), html("<p>2"));
    let at = |host: &str, page: &Arc<Resource>| place(host, &[("/", Arc::clone(page))]);
    let old = release(vec![at("gone.example", &other), at("same.example", &one)]);
    let new = release(vec![at("come.example", &other), at("same.example", &one)]);
    assert_eq!(compare(&old, &new), []);
    let moved = release(vec![at("come.example", &other)]);
    assert_eq!(
        compare(&release(vec![at("gone.example", &one)]), &moved).len(),
        1
    );
    assert_eq!(
        compare(&release(Vec::new()), &moved)[0].change,
        ChangeKind::Added
    );
}

#[test]
fn long_differences_and_long_lines_are_cut() {
    let many = |word: &str| {
        let lines: Vec<String> = (0..150).map(|number| format!("{word} {number}")).collect();
        body(200, "text/plain", lines.join("\n").as_bytes())
    };
    let text = unseen(many("old"), many("new"));
    assert_eq!(text.lines().count(), MAX_LINES + 1);
    assert!(text.ends_with("\nand 100 more lines\n"), "{text}");

    let long = |last: &str| html(&format!("<p>{}{last}</p>", "é".repeat(MAX_LINE_CHARACTERS)));
    let text = shown(long("a"), long("b"));
    let line = text.lines().next().unwrap();
    assert!(line.ends_with("é... (1 more characters)"), "{line}");
}
