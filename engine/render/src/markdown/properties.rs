//! Property tests: statements that hold for every text.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event as Xml};

use super::*;
use crate::pages::links::link_base::LinkBase;
use crate::pages::links::resolver::{DeploymentFacts, Resolver};
use crate::resources::asset::Asset;
use crate::resources::header_fields::CachePolicy;
use crate::theme::language::Language;
use content::formats::check_format;
use content::name::TenantId;
use content::tenant::manifest::Hsts;

/// The elements that rendered Markdown may contain, each with its allowed attributes.
const VOCABULARY: &[(&str, &[&str])] = &[
    ("a", &["aria-label", "class", "href", "title"]),
    ("blockquote", &[]),
    ("br", &[]),
    ("code", &["class"]),
    ("dd", &[]),
    ("del", &[]),
    (
        "div",
        &["aria-label", "class", "data-kind", "role", "tabindex"],
    ),
    ("dl", &[]),
    ("dt", &[]),
    ("em", &[]),
    ("h1", &["class", "id"]),
    ("h2", &["class", "id"]),
    ("h3", &["class", "id"]),
    ("h4", &["class", "id"]),
    ("h5", &["class", "id"]),
    ("h6", &["class", "id"]),
    ("hr", &[]),
    ("img", &["alt", "src", "title"]),
    ("li", &["class", "id"]),
    ("ol", &["start"]),
    ("p", &["class"]),
    ("pre", &["tabindex"]),
    ("section", &["aria-label", "class"]),
    ("span", &["aria-label", "class", "role"]),
    ("strong", &[]),
    ("sup", &["class", "id"]),
    ("table", &[]),
    ("tbody", &[]),
    ("td", &["data-align"]),
    ("th", &["data-align"]),
    ("thead", &[]),
    ("tr", &[]),
    ("ul", &[]),
];

static RESOLVER: LazyLock<Resolver> = LazyLock::new(|| {
    let company = serde_json::json!({
        "name": "Studio", "legal_name": "Studio LLC", "description": "It is.", "email": "post@studio.example",
    });
    Resolver {
        deployment: Arc::new(DeploymentFacts {
            origin: "https://studio.example".parse().unwrap(),
            root: None,
            company: serde_json::from_value(company).unwrap(),
            translated: Default::default(),
            linked_pages: Default::default(),
            image: None,
            year: 2026,
            hsts: Hsts::default(),
            caching: CachePolicy::default(),
            shows_section_examples: false,
            sites: Vec::new(),
        }),
        tenant: TenantId::new("corner").unwrap(),
        place: LinkBase {
            prefix: "/corner".into(),
            domain: "".into(),
        },
        assets: Arc::new(ASSETS.clone()),
        file: "pages/index.md".into(),
        language: "en".into(),
        translations: Arc::default(),
    }
});

static LANGUAGE: LazyLock<Language> = LazyLock::new(|| {
    let yaml = "engine: {heading_link: 'Link to {heading}', table: Table, tasks: {done: Done, open: Open}, alerts: {note: Note, tip: Tip, important: Important, warning: Warning, caution: Caution}, footnotes: {label: Footnotes, back: 'Back to {reference}'}}";
    let (strings, _) = content::theme::strings::read(&content::yaml::parse(yaml, 1).unwrap());
    Language::new("en", strings).unwrap()
});

static ASSETS: LazyLock<BTreeMap<String, Asset>> = LazyLock::new(|| {
    let door = Asset::new("door.png", b"a door".as_slice().into());
    BTreeMap::from([("door.png".to_owned(), door)])
});

/// Renders a text as a page does.
fn rendered(text: &str) -> RenderedText {
    let nothing = BTreeMap::new();
    render(
        text,
        &LinkContext {
            language: &LANGUAGE,
            resolver: &RESOLVER,
            themed: &nothing,
            ids: &Mutex::default(),
        },
    )
}

/// Fragments of Markdown and HTML syntax, complete and incomplete.
const PIECES: &[&str] = &[
    "word",
    " ",
    "  \n",
    "\n",
    "\n\n",
    "    ",
    "\t",
    "# ",
    "## A ",
    "### ",
    "===\n",
    "---\n",
    "***",
    "**",
    "*",
    "_",
    "~~",
    "`",
    "``",
    "```\n",
    "```js onload=x\n",
    "> ",
    "- ",
    "1. ",
    "7) ",
    "[",
    "]",
    "](",
    ")",
    "(",
    "![",
    "[a](/b)",
    "[a](javascript:alert(1))",
    "![b](door.png \"t\")",
    "![b](javascript:x)",
    "[a]: ",
    "[a]",
    "[^1]",
    "[^1]: ",
    "[^A]",
    "[^a]: ",
    "- [x] ",
    "- [ ] ",
    "> [!NOTE]\n",
    "https://a.example/b_c",
    "www.a.example",
    "a@b.example",
    "[^a\"b]",
    "<https://a.example>",
    "<javascript:x>",
    "<a@b.example>",
    "| a | b |\n",
    "|---|:-:|\n",
    "term\n: ",
    ": ",
    "\\",
    "&amp;",
    "&#x6a;avascript:",
    "&lt;",
    "&",
    "<",
    ">",
    "\"",
    "'",
    "<!--",
    "-->",
    "<!-- note -->",
    "<b>",
    "</b>",
    "<br>",
    "<div>",
    "</div>",
    "<script>",
    "</script>",
    "<script src=\"/x.js\">",
    "<img src=x onerror=alert(1)>",
    "<svg onload=x>",
    "<style>",
    "</style>",
    "<a href=\"javascript:x\">",
    "<?php",
    "?>",
    "<!DOCTYPE x>",
    "<![CDATA[",
    "]]>",
    "<textarea>",
    "{#id}",
    "{#a\"onclick=x}",
    "{#x\"><script>}",
    "{.class}",
    "{ onclick=alert(1) }",
    "{style=\"x\"}",
    "{",
    "}",
    "\u{0}",
    "\u{feff}",
    "\u{202e}",
    "\u{e9}",
    "\r\n",
    "--",
    "...",
    "company:email",
    "/terms#a?b",
    "studio:/x",
    "$x$",
    "^",
    "~",
];

/// Generates texts of such fragments.
fn text() -> impl Strategy<Value = String> {
    let piece = select(PIECES).prop_map(str::to_owned);
    let piece = prop_oneof![9 => piece, 1 => "\\PC{0,6}"];
    vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// Reads the name and attributes of a start tag.
fn element(tag: &BytesStart<'_>) -> Result<(String, Vec<(String, String)>), TestCaseError> {
    let name = tag.name().as_ref().to_owned();
    let mut attributes = Vec::new();
    for attribute in tag.attributes() {
        let attribute = attribute.map_err(|error| TestCaseError::fail(error.to_string()))?;
        let key = attribute.key.as_ref().to_owned();
        attributes.push((key, attribute.value.to_string()));
    }
    Ok((name, attributes))
}

/// Whether a page may contain a URL.
fn is_harmless(address: &str) -> bool {
    let known = [
        "/", "#", "https:", "http:", "mailto:", "tel:", "sms:", "geo:",
    ];
    let address = address.to_ascii_lowercase();
    address.is_empty() || known.iter().any(|start| address.starts_with(start))
}

fn check(text: &str) -> Result<(), TestCaseError> {
    let rendered = rendered(text);
    let references = references(text);
    let links = references.iter().filter(|reference| !reference.is_image);
    let mut pictures = references.iter().filter(|reference| reference.is_image);
    // Other links and images are errors, so they are never served.
    let are_links = links
        .clone()
        .all(|link| check_format("link", &link.destination).is_ok());
    let are_pictures = pictures.all(|picture| ASSETS.contains_key(&picture.destination));
    for reference in &references {
        prop_assert!((1..=text.matches('\n').count() + 1).contains(&reference.line));
    }

    let whole = format!("<main>{}</main>", rendered.html);
    let mut reader = Reader::from_str(&whole);
    reader.config_mut().check_end_names = true;
    let mut ids = std::collections::BTreeSet::new();
    loop {
        let event = reader.read_event();
        let event = event.map_err(|error| TestCaseError::fail(format!("{error}: {whole}")))?;
        let (Xml::Start(tag) | Xml::Empty(tag)) = &event else {
            prop_assert!(
                matches!(
                    event,
                    Xml::Text(_) | Xml::GeneralRef(_) | Xml::End(_) | Xml::Eof
                ),
                "{event:?} in {whole}"
            );
            if matches!(event, Xml::Eof) {
                break;
            }
            continue;
        };
        let (name, attributes) = element(tag)?;
        if name == "main" {
            continue;
        }
        let known = VOCABULARY.iter().find(|(known, _)| *known == name);
        let (_, may_have) =
            known.ok_or_else(|| TestCaseError::fail(format!("{name} in {whole}")))?;
        for (key, value) in attributes {
            prop_assert!(may_have.contains(&&*key), "{name} {key} in {whole}");
            match &*key {
                "id" => prop_assert!(ids.insert(value.clone()), "{value} twice in {whole}"),
                "href" => prop_assert!(!are_links || is_harmless(&value), "{value} in {whole}"),
                "src" => prop_assert!(
                    !are_pictures || value.starts_with('/'),
                    "{value} in {whole}"
                ),
                _ => {}
            }
        }
    }

    let references: Vec<&String> = ids.iter().filter(|id| id.starts_with("fn-")).collect();
    for note in references {
        prop_assert!(
            whole.contains(&format!("href=\"#{note}\"")),
            "{note} in {whole}"
        );
    }
    let ids: std::collections::BTreeSet<&str> = rendered
        .headings
        .iter()
        .map(|heading| heading.id.as_str())
        .collect();
    prop_assert_eq!(
        ids.len(),
        rendered.headings.len(),
        "each heading has an id of its own"
    );
    Ok(())
}

#[test]
fn heading_gets_no_attribute_from_its_author() {
    let html = rendered("# A {#a\"b .c onclick=alert(1) style=x}\n").html;
    assert!(
        html.starts_with("<h1 id=\"a&quot;b\" class=\"c\">A"),
        "{html}"
    );
    assert!(html.contains("href=\"#a&quot;b\""), "{html}");
    assert!(
        !html.contains("onclick") && !html.contains("style"),
        "{html}"
    );
}

#[test]
fn html_is_shown_as_text() {
    let html = rendered("a <b>c</b>\n\n<script>\nx\n</script>\n\n<!-- note --> word\n").html;
    let text =
        "<p>a &lt;b&gt;c&lt;/b&gt;</p>\n<p>&lt;script&gt;\nx\n&lt;/script&gt;</p>\n<p>word</p>\n";
    assert_eq!(html, text);
}

#[test]
fn columns_are_aligned_without_a_style_attribute() {
    let html = rendered("| a | b | c |\n|:--|:-:|--:|\n| d | e | f |\n").html;
    let head = "<th>a</th><th data-align=\"center\">b</th><th data-align=\"right\">c</th>";
    let row = "<td>d</td><td data-align=\"center\">e</td><td data-align=\"right\">f</td>";
    assert!(html.contains(head) && html.contains(row), "{html}");
    assert!(!html.contains("style="), "{html}");
}

#[test]
fn task_says_whether_it_is_done() {
    let html = rendered("- [x] Frames\n- [ ] Wheels\n- Bell\n").html;
    assert_eq!(
        html,
        "<ul>\n\
         <li class=\"task\"><span role=\"img\" aria-label=\"Done\">☑</span> Frames</li>\n\
         <li class=\"task\"><span role=\"img\" aria-label=\"Open\">☐</span> Wheels</li>\n\
         <li>Bell</li>\n</ul>\n"
    );
}

#[test]
fn alert_has_a_title() {
    let html = rendered("> [!WARNING]\n> Check your brakes.\n\n> Quote\n").html;
    assert_eq!(
        html,
        "<div class=\"callout\" role=\"note\" data-kind=\"warning\">\n\
         <p class=\"callout-title\">Warning</p>\n<p>Check your brakes.</p>\n</div>\n\
         <blockquote>\n<p>Quote</p>\n</blockquote>\n"
    );
}

#[test]
fn footnotes_are_at_the_end_with_links_back() {
    let html =
        rendered("One[^B] two[^a] three[^b].\n\n[^a]: First.\n[^b]: Second.\n\nLast.\n").html;
    assert_eq!(
        html,
        "<p>One<sup class=\"footnote-reference\" id=\"fnref-b\"><a href=\"#fn-b\">1</a></sup> \
         two<sup class=\"footnote-reference\" id=\"fnref-a\"><a href=\"#fn-a\">2</a></sup> \
         three<sup class=\"footnote-reference\" id=\"fnref-b-2\"><a href=\"#fn-b\">1</a></sup>.</p>\n\
         <p>Last.</p>\n<section class=\"footnotes\" aria-label=\"Footnotes\">\n<ol>\n\
         <li id=\"fn-b\">\n<p>Second. <a class=\"footnote-back\" href=\"#fnref-b\" aria-label=\"Back to 1\">↩\u{fe0e}</a> \
         <a class=\"footnote-back\" href=\"#fnref-b-2\" aria-label=\"Back to 1-2\">↩\u{fe0e}<sup>2</sup></a></p>\n</li>\n\
         <li id=\"fn-a\">\n<p>First. <a class=\"footnote-back\" href=\"#fnref-a\" aria-label=\"Back to 2\">↩\u{fe0e}</a></p>\n</li>\n\
         </ol>\n</section>\n"
    );
}

#[test]
fn footnotes_and_headings_of_two_texts_have_distinct_ids() {
    let ids = Mutex::default();
    let nothing = BTreeMap::new();
    let context = LinkContext {
        language: &LANGUAGE,
        resolver: &RESOLVER,
        themed: &nothing,
        ids: &ids,
    };
    let text = "## A\n\nOne[^1]\n\n[^1]: Note\n";
    let (first, second) = (render(text, &context).html, render(text, &context).html);
    for id in ["a", "fn-1", "fnref-1"] {
        assert!(first.contains(&format!("id=\"{id}\"")), "{first}");
        assert!(second.contains(&format!("id=\"{id}-2\"")), "{second}");
    }
    assert!(second.contains("href=\"#fn-1-2\"") && second.contains("href=\"#fnref-1-2\""));
}

#[test]
fn fragment_of_an_author_precedes_one_made_of_the_text() {
    let headings = rendered("## Fees\n\n## Prices {#fees}\n").headings;
    let ids: Vec<&str> = headings.iter().map(|heading| heading.id.as_str()).collect();
    assert_eq!(ids, ["fees-2", "fees"]);
}

#[test]
fn bare_address_is_a_link_wherever_text_is() {
    let html =
        rendered("## See https://a.example/b--c\n\n_www.a.example_ or post@a.example.\n").html;
    for link in [
        "<a href=\"https://a.example/b--c\">https://a.example/b--c</a>",
        "<em><a href=\"https://www.a.example\">www.a.example</a></em>",
        "<a href=\"mailto:post@a.example\">post@a.example</a>.",
    ] {
        assert!(html.contains(link), "{link} in {html}");
    }
}

#[test]
fn address_in_angle_brackets_is_a_link() {
    assert_eq!(
        rendered("<a@b.example>").html,
        "<p><a href=\"mailto:a@b.example\">a@b.example</a></p>\n"
    );
    assert_eq!(
        references("<a@b.example>")[0].destination,
        "mailto:a@b.example"
    );
}

#[test]
fn image_of_tenant_precedes_image_of_theme() {
    let nothing = BTreeMap::new();
    let source = |assets: &BTreeMap<String, Asset>, themed| {
        let context = LinkContext {
            language: &LANGUAGE,
            resolver: &RESOLVER.clone().with_assets(&Arc::new(assets.clone())),
            themed,
            ids: &Mutex::default(),
        };
        let html = render("![A door](door.png)", &context).html;
        html.split('"').nth(1).unwrap().to_owned()
    };
    let name = &ASSETS["door.png"].hashed_name;
    assert_eq!(source(&ASSETS, &nothing), format!("/corner/assets/{name}"));
    assert_eq!(source(&nothing, &ASSETS), format!("/assets/{name}"));
}

proptest! {
    #[test]
    fn output_is_well_formed_and_contains_nothing_executable(text in text()) {
        check(&text)?;
    }

    #[test]
    fn any_text_is_rendered(text in "(?s).{0,200}") {
        check(&text)?;
    }

    #[test]
    fn events_cover_the_source_in_order(text in text()) {
        let mut last = 0;
        for (event, range) in events::parse(&text).events {
            prop_assert!(text.get(range.clone()).is_some(), "{range:?}: {event:?}");
            if let Event::Text(_) | Event::Code(_) = event {
                prop_assert!(last <= range.start, "{range:?}: {event:?}");
                last = range.end;
            }
        }
    }

    #[test]
    fn html_is_reported_exactly_where_it_is(text in text()) {
        let pieces = html(&text);
        for (piece, start) in &pieces {
            prop_assert!(text.get(*start..).is_some());
            prop_assert!(piece.contains('<') && !piece.starts_with("<!-- note"));
        }
        if !text.contains('<') {
            prop_assert_eq!(pieces, vec![]);
        }
    }

    #[test]
    fn inline_output_is_well_formed(text in text()) {
        let nothing = BTreeMap::new();
        let context = LinkContext { language: &LANGUAGE, resolver: &RESOLVER, themed: &nothing, ids: &Mutex::default() };
        let whole = format!("<main>{}</main>", render_inline(&text, &context));
        let mut reader = Reader::from_str(&whole);
        loop {
            match reader.read_event() {
                Ok(Xml::Eof) => break,
                Ok(_) => {}
                Err(error) => prop_assert!(false, "{error}: {whole}"),
            }
        }
    }
}
