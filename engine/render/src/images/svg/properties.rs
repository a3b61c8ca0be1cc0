//! Tests of sanitised SVGs: examples and generated input.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

fn around(inner: &str) -> String {
    format!(
        "<svg xmlns=\"{SVG}\" xmlns:xlink=\"{XLINK}\" xmlns:i=\"http://www.inkscape.org/\">{inner}</svg>"
    )
}

/// Returns the sanitised content of an SVG, and the number of warnings.
fn inside(inner: &str) -> (String, usize) {
    let cleaned = sanitise_text(&around(inner)).expect("an SVG");
    let start = cleaned.svg.find('>').expect("a tag") + 1;
    let end = cleaned.svg.rfind("</svg>").unwrap_or(start);
    (
        cleaned.svg[start..end.max(start)].to_owned(),
        cleaned.left_out.len(),
    )
}

#[test]
fn allowed_content_is_unchanged() {
    for inner in [
        "<path class=\"fine\" stroke-width=\"1\" d=\"M142 86H178\"/>\n  <g fill=\"url(#a)\"/>",
        "<defs><linearGradient id=\"a\"><stop offset=\"1\" stop-color=\"#fff\"/></linearGradient></defs>",
        "<style>.a &gt; b{fill:url(\"#a\")} @media (min-width:1px){a{stroke:url(#b)}}</style>",
        "<use href=\"#a\"/><image href=\"data:image/png;base64,AAAA\" width=\"1\"/>",
        "<text x=\"1\">It's \"q\" &amp; &lt;b&gt;</text><title>Words</title>",
        "<g transform=\"translate(1 2) rotate(3)\" style=\"fill:var(--ink)\" aria-label=\"x\"/>",
        "<rect><animate attributeName=\"x\" values=\"1;2\" begin=\"0s\" dur=\"1s\"/></rect>",
    ] {
        assert_eq!(inside(inner), (inner.to_owned(), 0));
    }
}

#[test]
fn svg_without_namespace_gets_one() {
    let cleaned =
        sanitise_text("<svg viewBox=\"0 0 1 1\"><path d=\"M0 0\"/></svg>").expect("an SVG");
    let whole = format!("<svg xmlns=\"{SVG}\" viewBox=\"0 0 1 1\"><path d=\"M0 0\"/></svg>");
    assert_eq!(cleaned.svg, whole);
}

#[test]
fn notes_of_editors_are_removed_without_a_warning() {
    let inner = "<!-- made by --><metadata><i:x/></metadata><i:view a=\"b\"/><g data-name=\"Layer\" i:label=\"x\"/><?pi?><use xlink:href=\"#a\"/>";
    assert_eq!(inside(inner), ("<g/><use href=\"#a\"/>".to_owned(), 0));
}

#[test]
fn scripts_and_external_references_are_removed_with_a_warning() {
    for inner in [
        "<script>1</script>",
        "<SCRIPT>1</SCRIPT>",
        "<foreignObject><g/></foreignObject>",
        "<iframe src=\"x\"/>",
        "<animate attributeName=\"href\" to=\"javascript:1\"/>",
        "<set attributeName=\"xlink:href\" to=\"javascript:1\"/>",
        "<set attributeName=\"onclick\" to=\"1\"/>",
        "<set to=\"1\"/>",
        "<set i:attributeName=\"x\" attributeName=\"href\" to=\"1\"/>",
        "<style>@import \"x.css\";</style>",
        "<style>@\\69mport \"x.css\";</style>",
        "<style><![CDATA[a{b:url(x)}]]></style>",
        "<style>@im<!-- -->port 'x';</style>",
        "<style>a{b:u\\72l(//x)}</style>",
        "<style>a{b:image-set('x' 1x)}</style>",
        "<style>a{b:URL( \"x\" )}</style>",
        "<style>@font-face{src:url(data:font/woff2;base64,AA)}</style>",
        "<p xmlns=\"http://www.w3.org/1999/xhtml\">x</p>",
    ] {
        assert_eq!(inside(inner), (String::new(), 1), "{inner}");
    }
    for attribute in [
        "onclick=\"1\"",
        "ONCLICK=\"1\"",
        "onbegin=\"1\"",
        "href=\"javascript:1\"",
        "href=\" #a\"",
        "xlink:href=\"https://a.example/\"",
        "href=\"data:image/svg+xml;base64,AA\"",
        "href=\"data:text/html,x\"",
        "fill=\"url(https://a.example/)\"",
        "style=\"fill:url('//a.example')\"",
        "style=\"fill:u&#x72;l(x)\"",
        "mask=\"u\\72 l(x)\"",
        "filter=\"src('x')\"",
        "srcdoc=\"x\"",
        "action=\"x\"",
    ] {
        let found = inside(&format!("<image {attribute}/>"));
        assert_eq!(found, ("<image/>".to_owned(), 1), "{attribute}");
    }
}

#[test]
fn deep_nesting_and_entity_bombs_do_not_stop_the_program() {
    let deep = format!("{}{}", "<g>".repeat(50_000), "</g>".repeat(50_000));
    // Either outcome is fine, as long as the program goes on.
    let _ = sanitise_text(&around(&deep));
    let bomb = "<!DOCTYPE svg [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;\"><!ENTITY c \"&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;\"><!ENTITY d \"&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;\"><!ENTITY e \"&d;&d;&d;&d;&d;&d;&d;&d;&d;&d;\">]>";
    assert!(sanitise_text(&format!("{bomb}{}", around("<text>&e;&e;&e;&e;&e;</text>"))).is_err());
    assert_eq!(
        inside(&format!("<g style=\"{}\"/>", "(".repeat(10_000))),
        ("<g/>".to_owned(), 1)
    );
}

fn part() -> impl Strategy<Value = String> {
    let parts = [
        "<g>",
        "</g>",
        "<title>",
        "</title>",
        "<style>",
        "</style>",
        "<a href=\"#x\">",
        "</a>",
        "<script>",
        "</script>",
        "<p>",
        "</p>",
        "<!--",
        "-->",
        "<![CDATA[",
        "]]>",
        "&lt;",
        "&#60;script>",
        "&quot;",
        "\"",
        "<image href=\"",
        "<g id=\"&#34;>&lt;script>\"",
        "/>",
        ">",
        "<svg>",
        "</svg>",
        "<x:script xmlns:x=\"http://www.w3.org/1999/xhtml\">",
        "</x:script>",
        "<?x",
        "?>",
        "onload=\"1\"",
        "url(x)",
        "@import",
    ];
    prop_oneof![6 => select(parts.to_vec()).prop_map(str::to_owned), 1 => "\\PC{0,5}"]
}

proptest! {
    #[test]
    fn output_contains_allowed_names_only_and_is_stable(parts in vec(part(), 0..12)) {
        let Ok(once) = sanitise_text(&around(&parts.concat())) else {
            return Ok(());
        };
        let document = Document::parse(&once.svg);
        prop_assert!(document.is_ok(), "{:?}: {}", document, once.svg);
        for node in document.iter().flat_map(Document::descendants).filter(Node::is_element) {
            prop_assert!(ELEMENTS.contains(&node.tag_name().name()), "{}", once.svg);
            let runs = node.attributes().any(|one| one.name().starts_with("on") || one.value().contains("url(x)"));
            prop_assert!(!runs, "{}", once.svg);
        }
        // An HTML parser sees no tag where an XML parser sees text.
        let tags = once.svg.matches('<').count();
        let known = ELEMENTS.iter().map(|name| {
            let starts = [" ", ">", "/>"].map(|end| once.svg.matches(&format!("<{name}{end}")).count());
            starts.iter().sum::<usize>() + once.svg.matches(&format!("</{name}>")).count()
        });
        prop_assert_eq!(tags, known.sum::<usize>(), "{}", once.svg);
        let twice = sanitise_text(&once.svg).map_err(|(message, _)| TestCaseError::fail(message))?;
        prop_assert_eq!(once.svg, twice.svg);
        prop_assert!(twice.left_out.is_empty(), "{:?}", twice.left_out);
    }
}
