//! Finds markup in templates that the Content Security Policy of pages blocks: `style` attributes, `<style>`, event handlers and scripts.
//!
//! **Invariant:** reads the template as written. Attributes that an expression creates are not found.

use lol_html::errors::RewritingError;
use lol_html::html_content::{Attribute, Element};
use lol_html::{RewriteStrSettings, element};

use content::report::{Code, Diagnostic, LineIndex};

/// Blocked markup: its byte offset and length in the template, its name, and the way to do without.
struct Blocked {
    offset: usize,
    length: usize,
    message: String,
    hint: &'static str,
}

/// Returns a warning for each blocked attribute and element of a template.
pub(super) fn check(file: &str, template: &str) -> Vec<Diagnostic> {
    let lines = LineIndex::of(template);
    let found = blocked(&without_tags(template));
    let warnings = found.into_iter().map(|blocked| {
        let position = lines.position(blocked.offset, blocked.length);
        Diagnostic::warning(Code::BlockedMarkup, file, blocked.message)
            .at(position, template)
            .hint(blocked.hint)
    });
    warnings.collect()
}

fn blocked(html: &str) -> Vec<Blocked> {
    let mut found = Vec::new();
    let settings =
        RewriteStrSettings::new().append_element_content_handler(element!("*", |element| {
            found.extend(blocked_element(element));
            found.extend(element.attributes().iter().filter_map(blocked_attribute));
            Ok(())
        }));
    // The output is not needed. If the HTML cannot be parsed, the markup found so far is reported.
    let _: Result<String, RewritingError> = lol_html::rewrite_str(html, settings);
    found
}

fn blocked_element(element: &Element<'_, '_>) -> Option<Blocked> {
    let name = element.tag_name();
    let hint = match name.as_str() {
        "style" => "move the rules to a style sheet of the theme",
        "script" if !is_data(element) => {
            "use an island, or HTML that works without a script, such as `<details>`"
        }
        _ => return None,
    };
    Some(Blocked {
        offset: element.source_location().bytes().start,
        length: name.len() + 1,
        message: format!("the Content Security Policy of pages blocks `<{name}>` of a template"),
        hint,
    })
}

/// Returns whether a script element only contains data (WHATWG HTML, data block).
fn is_data(element: &Element<'_, '_>) -> bool {
    let media_type = element.get_attribute("type");
    media_type.is_some_and(|media_type| media_type.contains("json"))
}

fn blocked_attribute(attribute: &Attribute<'_>) -> Option<Blocked> {
    let name = attribute.name();
    let is_handler = name.strip_prefix("on").is_some_and(|event| {
        !event.is_empty() && event.bytes().all(|letter| letter.is_ascii_lowercase())
    });
    let (message, hint) = match name.as_str() {
        "style" => (
            "the Content Security Policy of pages blocks the attribute `style`".to_owned(),
            "give the element a class, and write a rule in a style sheet of the theme",
        ),
        _ if is_handler => (
            format!("the Content Security Policy of pages blocks the event handler `{name}`"),
            "use an island, or HTML that works without a script, such as `<details>`",
        ),
        _ => return None,
    };
    Some(Blocked {
        offset: attribute.name_source_location()?.bytes().start,
        length: name.len(),
        message,
        hint,
    })
}

/// Replaces the tags, expressions and comments of Tera by as many spaces, so that only HTML is left.
fn without_tags(template: &str) -> String {
    let mut html = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(begin) = rest.find('{') {
        let (text, tag) = rest.split_at(begin);
        html.push_str(text);
        let end = tag_length(tag);
        let (tag, after) = tag.split_at(end.unwrap_or(1));
        match end {
            Some(_) => html.extend(std::iter::repeat_n(' ', tag.len())),
            None => html.push_str(tag),
        }
        rest = after;
    }
    html + rest
}

/// Returns the length of the tag of Tera at the beginning of a text, if there is one.
fn tag_length(text: &str) -> Option<usize> {
    let end = match text.get(..2)? {
        "{#" => return Some(text.find("#}").map_or(text.len(), |end| end + 2)),
        "{{" => "}}",
        "{%" => "%}",
        _ => return None,
    };
    let mut quote = None;
    for (offset, letter) in text.char_indices().skip(2) {
        match quote {
            Some(open) if letter == open => quote = None,
            Some(_) => {}
            None if matches!(letter, '"' | '\'' | '`') => quote = Some(letter),
            None if text[offset..].starts_with(end) => return Some(offset + end.len()),
            None => {}
        }
    }
    Some(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(template: &str) -> Vec<(usize, usize, usize)> {
        let found = check("theme/a.html", template);
        let places = found.iter().filter_map(|diagnostic| diagnostic.position);
        let places = places.map(|place| (place.line, place.column, place.length));
        places.collect()
    }

    #[test]
    fn blocked_markup_is_found_at_its_place() {
        for (template, place) in [
            ("<p style=\"color: red\">", (1, 4, 5)),
            ("<p\n  STYLE='{{ \"}}>\" }}'>", (2, 3, 5)),
            ("ü <a {% if x %}onclick=\"go()\"{% endif %}>", (1, 16, 7)),
            ("{# <p style> #}<button\tonmouseover=x>", (1, 24, 11)),
            ("<p>a</p>\n<script>go()</script>", (2, 1, 7)),
            ("<script src=\"/a.js\" defer></script>", (1, 1, 7)),
            ("<style>.a { color: red }</style>", (1, 1, 6)),
            ("<td style=\"width: {{ size }}\">", (1, 5, 5)),
            ("<svg><path style=\"fill: red\"/></svg>", (1, 12, 5)),
        ] {
            assert_eq!(places(template), [place], "{template}");
        }
    }

    #[test]
    fn text_and_tags_are_not_blocked_markup() {
        for template in [
            "{{ island(name=\"A\", style=\"x\") }}",
            "{% <Part style={a} onclick={b}> %}",
            "{{<Row onclick={x} />}}",
            "<p data-style=\"a\" on=\"\" ones-own>style=\"a\"</p>",
            "<script type=\"application/ld+json\">{\"a\": 1}</script>",
            "<!-- <p style=\"a\"> -->",
            "<p title=\"style='a'\">{ onclick=\"a\" }</p>",
        ] {
            assert_eq!(places(template), [], "{template}");
        }
    }
}
