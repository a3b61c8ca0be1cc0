//! Keeps UI strings text: no template can turn one into markup.
//!
//! Markup comes from a template's own text, from `{% set %}` blocks, and from values that the engine created as HTML.
//! Tera's filter `safe` would accept any value as markup. Its replacement escapes the UI strings in its input, and a lint warns of each use.
//! The replacement of `split` preserves whether its input is HTML, so that templates can split a text without `safe`.
//!
//! **Invariant:** knows no theme and no key.

use content::report::{Code, Diagnostic, LineIndex};
use tera::{Kwargs, State, StringInput, Tera, TeraResult, Value};

use super::render::with_scope;

/// The name of Tera's filter that marks text as markup.
const SAFE: &str = "safe";

/// Replaces the filters of Tera that change whether a value is text or HTML.
pub(super) fn register(tera: &mut Tera) {
    tera.register_filter(SAFE, |text: StringInput<'_>, _: Kwargs, _: &State<'_>| {
        with_scope(|scope| {
            let markup = scope.ui_strings.escaped(text.as_str());
            Ok(Value::safe_string(&markup))
        })
    });
    tera.register_filter(
        "split",
        |text: StringInput<'_>, arguments: Kwargs, _: &State<'_>| -> TeraResult<Value> {
            let pattern = arguments.must_get::<&str>("pat")?;
            let pieces = text.as_str().split(pattern);
            let pieces = pieces.map(|piece| text.inherit_safety(piece.to_owned()));
            Ok(Value::from(pieces.collect::<Vec<_>>()))
        },
    );
}

/// Returns a warning for each use of the filter `safe` in a template.
pub(super) fn check<'a>(file: &'a str, template: &'a str) -> impl Iterator<Item = Diagnostic> + 'a {
    let lines = LineIndex::of(template);
    uses_of_safe(template).into_iter().map(move |offset| {
        let place = lines.position(offset, SAFE.len());
        Diagnostic::warning(Code::SafeFilter, file, "the filter `safe` puts text into the page as HTML")
            .at(place, template)
            .hint("write the markup in the template or in a `{% set %}` block, and print the text in it with `{{ }}`")
    })
}

/// Returns the byte offsets of the filter `safe` in tags and expressions. Strings and comments are skipped.
fn uses_of_safe(template: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(begin) = template[at..].find(['{']).map(|offset| at + offset) {
        let rest = &template[begin..];
        at = begin + 1;
        if rest.starts_with("{#") {
            at = rest.find("#}").map_or(template.len(), |end| begin + end);
        } else if rest.starts_with("{{") || rest.starts_with("{%") {
            at = begin + 2;
            at += in_tag(&template[at..], at, &mut found);
        }
    }
    found
}

/// Adds the offsets of the filter in one tag, whose text begins at `start`. Returns the length of the tag.
fn in_tag(text: &str, start: usize, found: &mut Vec<usize>) -> usize {
    let mut quote = None;
    let mut is_filter_next = false;
    let mut word = 0;
    let mut letters = text.char_indices().peekable();
    while let Some((offset, letter)) = letters.next() {
        if let Some(open) = quote {
            match letter {
                '\\' => drop(letters.next()),
                letter if letter == open => quote = None,
                _ => {}
            }
            word = offset + letter.len_utf8();
            continue;
        }
        if letter.is_alphanumeric() || letter == '_' {
            let goes_on = |next: &(usize, char)| next.1.is_alphanumeric() || next.1 == '_';
            if letters.peek().is_none_or(|next| !goes_on(next)) {
                let end = offset + letter.len_utf8();
                let name = &text[word..end];
                if is_filter_next && name == SAFE {
                    found.push(start + word);
                }
                is_filter_next = name == "filter";
                word = end;
            }
            continue;
        }
        word = offset + letter.len_utf8();
        match letter {
            '"' | '\'' | '`' => quote = Some(letter),
            '|' => is_filter_next = true,
            '}' | '%' if text[offset..].starts_with("}}") || text[offset..].starts_with("%}") => {
                return offset;
            }
            letter if letter.is_whitespace() => {}
            _ => is_filter_next = false,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(template: &str) -> Vec<(usize, usize)> {
        let found = check("theme/a.html", template);
        let places = found.filter_map(|diagnostic| diagnostic.position);
        places.map(|place| (place.line, place.column)).collect()
    }

    #[test]
    fn safe_filter_is_found_in_every_spelling() {
        for (template, place) in [
            ("{{ t(key=\"a\") | safe }}", (1, 17)),
            ("\n{%- set a = (\"<b>\" ~ t(key=\"a\")) | safe -%}", (2, 36)),
            ("{{ title|safe|upper }}", (1, 10)),
            ("{{ title |\n  safe }}", (2, 3)),
            ("{% filter safe %}{{ title }}{% endfilter %}", (1, 11)),
            ("{{ \"}}\" ~ 'it\\'s' ~ title | safe() }}", (1, 29)),
            ("{{<Row text={title | safe} />}}", (1, 22)),
            ("ü { {# safe #} {{ title | safe }}", (1, 27)),
        ] {
            assert_eq!(places(template), [place], "{template}");
        }
    }

    #[test]
    fn other_names_and_strings_are_not_the_safe_filter() {
        for template in [
            "{{ \"a | safe\" }}",
            "{# {{ a | safe }} #}",
            "{{ safe }}",
            "{{ a | safe_title }}",
            "a | safe",
            "{{ a | default(value=safe) }}",
        ] {
            assert_eq!(places(template), [], "{template}");
        }
    }

    #[test]
    fn split_text_stays_text_and_split_html_stays_html() {
        let mut tera = Tera::default();
        tera.autoescape_on([".html"]);
        register(&mut tera);
        let template = "{% for piece in value | split(pat=\",\") %}{{ piece }};{% endfor %}";
        tera.add_raw_template("a.html", template)
            .expect("a template");
        for (value, shown) in [
            (Value::from("<b>,a"), "&lt;b&gt;;a;"),
            (Value::safe_string("<b>,a"), "<b>;a;"),
        ] {
            let mut context = tera::Context::new();
            context.insert_value("value", value);
            assert_eq!(tera.render("a.html", &context).expect("a page"), shown);
        }
    }
}
