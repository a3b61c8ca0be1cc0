//! Tests of the rules that are left for a page.

use super::*;

/// A page that uses everything.
const ALL: RuleFilter<'_> = RuleFilter {
    has_class: &|_| true,
    has_right_to_left: true,
    uses_property: &|_| true,
    needs_face: &|_| true,
};

fn written(css: &str, page: RuleFilter<'_>) -> String {
    let mut written = String::new();
    StyleRules::new(css).write(page, &mut written);
    written
}

fn used(css: &str, classes: &[&str]) -> String {
    let has_class = &|class: &str| classes.contains(&class);
    written(css, RuleFilter { has_class, ..ALL })
}

#[test]
fn unused_properties_of_the_root_are_left_out() {
    let css = ":root{--a:f(1;2) ;--b:{x;y};color:red;--c:3}@media print{:root{--b:1}}.x{--b:1}";
    let asking = |asked: &[&str]| {
        let uses_property = &|name: &str| asked.contains(&name);
        written(
            css,
            RuleFilter {
                uses_property,
                ..ALL
            },
        )
    };
    assert_eq!(asking(&["a", "b", "c"]), css);
    assert_eq!(
        asking(&["a", "c"]),
        ":root{--a:f(1;2) ;color:red;--c:3}.x{--b:1}"
    );
    assert_eq!(asking(&[]), ":root{color:red}.x{--b:1}");
}

#[test]
fn rule_is_left_out_if_no_selector_can_match() {
    let css = ".a{b:c}.d .e{f:g}.a,.d{h:i}p{j:k}.a:not(.d){l:m}:is(.d,.e){n:o}[x=\".d\"]{q:r}";
    assert_eq!(
        used(css, &["a"]),
        ".a{b:c}.a{h:i}p{j:k}.a:not(.d){l:m}[x=\".d\"]{q:r}"
    );
    assert_eq!(used(css, &["a", "d", "e"]), css);
}

#[test]
fn right_to_left_rules_are_left_out_if_no_element_is_right_to_left() {
    let css = "[dir=\"rtl\"] .a,.b{c:d}html[dir=rtl]{e:f}@media print{:is(.a,.b)[dir='RTL']::before{g:h}}[dir=\"ltr\"]{i:j}:not([dir=\"rtl\"]){k:l}[title=\"dir=rtl\"]{m:n}[dir]{o:p}";
    assert_eq!(written(css, ALL), css);
    let has_right_to_left = false;
    let page = RuleFilter {
        has_right_to_left,
        ..ALL
    };
    assert_eq!(
        written(css, page),
        ".b{c:d}[dir=\"ltr\"]{i:j}:not([dir=\"rtl\"]){k:l}[title=\"dir=rtl\"]{m:n}[dir]{o:p}"
    );
}

#[test]
fn missing_classes_in_a_list_are_left_out() {
    let css = ".s:is(.a,.d,.e) > .l{b:c}:is(.a,.d)::before,.e{f:g}:where(.a,.d) p{h:i}:is(.a,.d .e){j:k}:is(h1,.d){l:m}";
    assert_eq!(
        used(css, &["a", "d", "l", "s"]),
        ".s:is(.a,.d) > .l{b:c}:is(.a,.d)::before{f:g}:where(.a,.d) p{h:i}:is(.a,.d .e){j:k}:is(h1,.d){l:m}"
    );
    assert_eq!(
        used(css, &["a"]),
        ".a::before{f:g}:where(.a) p{h:i}:is(.a,.d .e){j:k}:is(h1,.d){l:m}"
    );
    assert_eq!(used(css, &[]), ":is(.a,.d .e){j:k}:is(h1,.d){l:m}");
    assert_eq!(used(css, &["a", "d", "e", "l", "s"]), css);
}

#[test]
fn empty_groups_are_left_out_but_layers_stay_in_order() {
    let css = "@layer a,b;@media print{.x{b:c}@supports (a:b){.x{d:e}}}@layer b{.x{f:g}}@layer c{.x{f:g}}@layer{.x{f:g}}@layer a{.y{h:i}}";
    assert_eq!(
        used(css, &["y"]),
        "@layer a,b;@layer c{}@layer{}@layer a{.y{h:i}}"
    );
    assert_eq!(used(css, &["x", "y"]), css);
}

#[test]
fn equal_adjacent_groups_are_joined() {
    let css = "@layer a{p{b:c}}@layer a{.x{d:e}}@layer a{.y{f:g}@media print{p{h:i}}@media print{q{j:k}}}.y{l:m}@layer a{q{n:o}}";
    assert_eq!(
        used(css, &[]),
        "@layer a{p{b:c}@media print{p{h:i}q{j:k}}q{n:o}}"
    );
    assert_eq!(
        used(css, &["y"]),
        "@layer a{p{b:c}.y{f:g}@media print{p{h:i}q{j:k}}}.y{l:m}@layer a{q{n:o}}"
    );
}

#[test]
fn font_is_left_out_if_the_page_shows_none_of_its_characters() {
    let letters = "@font-face{font-family:a;unicode-range:U+41-5A,U+3B1;src:url(a)}";
    let more = "@font-face{unicode-range:u+4??}";
    let rest = "@font-face{src:url(b)}@font-face{unicode-range:none}";
    let css = [letters, more, rest].concat();
    let showing = |letter: char| {
        let letter = u32::from(letter);
        let is_in = |range: &UnicodeRange| (range.start..=range.end).contains(&letter);
        let needs_face = &|face: &FontFace| face.ranges.iter().any(is_in);
        written(&css, RuleFilter { needs_face, ..ALL })
    };
    assert_eq!(showing('B'), format!("{letters}{rest}"));
    assert_eq!(showing('\u{3b1}'), format!("{letters}{rest}"));
    assert_eq!(showing('\u{4ff}'), format!("{more}{rest}"));
    assert_eq!(showing('b'), rest);
}

#[test]
fn font_is_identified_by_its_file() {
    let css = "@font-face{src:local(\"x\"),url(\"/assets/a-b.whole.1f.woff2\") format(\"woff2\");unicode-range:U+41;font-style:italic}@layer c{@font-face{unicode-range:U+41;src:url(/assets/a.more.2f.woff2);font-style:normal}}@font-face{unicode-range:U+41;src:local(b)}";
    let rules = StyleRules::new(css);
    let mut faces = Vec::new();
    rules.add_faces(&mut faces);
    let known = faces.iter().map(|face| {
        let kind = (face.is_whole(), face.is_italic);
        (face.font(), face.file.as_str(), kind)
    });
    assert_eq!(
        known.collect::<Vec<_>>(),
        [
            ("a-b", "/assets/a-b.whole.1f.woff2", (true, true)),
            ("a", "/assets/a.more.2f.woff2", (false, false)),
            ("", "", (false, false)),
        ]
    );
}

#[test]
fn other_rules_are_unchanged() {
    let css = "@font-face{src:url(\"a.woff2\")}@keyframes k{from{a:b}to{c:d}}.x{color:red;.y &{e:f}@media print{g:h}}";
    assert_eq!(used(css, &["x"]), css);
    assert_eq!(
        used(css, &[]),
        "@font-face{src:url(\"a.woff2\")}@keyframes k{from{a:b}to{c:d}}"
    );
}

#[test]
fn escaped_names_and_braces_in_strings_are_parsed() {
    let css = ".a\\.b{content:\"}.z{\"}.z{c:d}";
    assert_eq!(used(css, &["a.b"]), ".a\\.b{content:\"}.z{\"}");
}

#[test]
fn classes_are_collected_from_attributes() {
    let found = classes("<p class=\"a b\">x</p><svg class=\"c\n d\"><b class=\"\">");
    assert_eq!(found, BTreeSet::from(["a", "b", "c", "d"]));
}

proptest::proptest! {
    /// A page that has all classes gets the complete style, except for empty groups.
    #[test]
    fn style_of_a_page_is_never_longer_than_the_complete_style(css in "([a-z.:;,{}()\\[\\]+> \"@-]|@media |[0-9]px){0,40}") {
        let Ok(style) = crate::styles::minify::minify(&css, |target| Some(target.to_owned())) else { return Ok(()) };
        let all = written(&style, ALL);
        let empty_groups_are_gone = all.len() <= style.len();
        proptest::prop_assert!(empty_groups_are_gone);
    }
}
