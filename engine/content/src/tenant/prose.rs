//! Warns of YAML text that is not read as written: comments, tags and anchors that cut a text, and HTML in plain text.

use std::collections::HashSet;

use crate::report::{Code, Diagnostic, LineIndex, TextPosition};
use crate::schema::{FormattedText, Violation};
use crate::yaml::{MapKey, Node, Value, quoted};

/// Warns of texts that pages show differently from the source.
///
/// `text` is the complete file, `name` its name in reports. Values under the keys `elsewhere` are checked by other code.
pub(super) fn check(
    node: &Node,
    formatted: &[FormattedText],
    (name, text): (&str, &str),
    elsewhere: &[&str],
) -> Vec<Diagnostic> {
    let file = CheckedFile {
        lines: LineIndex::of(text),
        has_aliases: text.contains(": *") || text.contains("- *"),
    };
    let mut found = Vec::new();
    if let Value::Map(pairs) = &node.value {
        for (key, value) in pairs {
            let is_ours = !elsewhere.contains(&key.name.as_str());
            let warn = |code, position, message: String, hint: String| {
                let diagnostic = Diagnostic::warning(code, name, message);
                found.push(diagnostic.at(position, text).hint(hint));
            };
            check_value(key, value, &file, (formatted, is_ours), &mut { warn });
        }
    }
    found
}

/// The file being checked.
struct CheckedFile<'a> {
    lines: LineIndex<'a>,
    /// Whether the file may use aliases. Its anchors are then intended.
    has_aliases: bool,
}

type WarningSink<'a> = dyn FnMut(Code, TextPosition, String, String) + 'a;

fn check_value(
    key: &MapKey,
    value: &Node,
    file: &CheckedFile<'_>,
    (formatted, is_ours): (&[FormattedText], bool),
    warn: &mut WarningSink<'_>,
) {
    match &value.value {
        Value::Map(pairs) => {
            for (key, value) in pairs {
                check_value(key, value, file, (formatted, is_ours), warn);
            }
        }
        Value::List(items) => {
            for item in items {
                if matches!(item.value, Value::Map(_) | Value::List(_)) {
                    check_value(key, item, file, (formatted, is_ours), warn);
                } else if is_ours {
                    warn_of_entity(key, item, formatted, warn);
                }
            }
        }
        Value::Text(_) | Value::Null => {
            warn_of_cut_text(key, file, warn);
            if is_ours {
                warn_of_entity(key, value, formatted, warn);
            }
        }
        Value::Bool(_) | Value::Number(..) => {}
    }
}

/// Warns of text that YAML cuts from the value of a key.
fn warn_of_cut_text(key: &MapKey, file: &CheckedFile<'_>, warn: &mut WarningSink<'_>) {
    let line = file.lines.get(key.position.line);
    let before = key.position.column - 1 + key.name.chars().count();
    let mut signs = line.char_indices().skip(before);
    let Some((at, ':')) = signs.next() else {
        return;
    };
    let rest = &line[at + 1..];
    let value = rest.trim();
    let begin = line.len() - rest.trim_start().len();
    let in_quotes = || {
        let quoted = quoted(value);
        format!("put the value in quotes: `{}: {quoted}`", key.name)
    };
    let position = |at: usize, cut: &str| TextPosition {
        line: key.position.line,
        column: line[..at].chars().count() + 1,
        length: cut.chars().count(),
    };
    if let Some((name, what)) = property(value, file.has_aliases) {
        let message = format!("YAML reads `{name}` as {what}, so visitors do not see it");
        warn(Code::CutText, position(begin, name), message, in_quotes());
    }
    if value.starts_with(['"', '\'', '|', '>', '&', '*', '!', '[', '{']) {
        return;
    }
    // A `#` behind a space begins a comment, also in `We are #1`. Intended comments have a space behind the `#`.
    let begins = rest.match_indices(" #").find(|(at, _)| {
        let behind = rest[at + 2..].chars().next();
        behind.is_some_and(|sign| !sign.is_whitespace() && sign != '#')
    });
    let Some((hash, _)) = begins else {
        return;
    };
    let cut = rest[hash + 1..]
        .split_whitespace()
        .next()
        .unwrap_or_default();
    let position = position(at + 1 + hash + 1, cut);
    let message =
        format!("YAML reads `{cut}` as the start of a comment, so visitors do not see it");
    let hint = format!("{}; in a comment, write a space after `#`", in_quotes());
    warn(Code::CutText, position, message, hint);
}

/// Returns the tag or anchor at the start of a value, if it is unlikely to be intended (YAML 1.2.2, section 6.9).
fn property(value: &str, has_aliases: bool) -> Option<(&str, &'static str)> {
    let name = value.split_whitespace().next()?;
    match name.as_bytes() {
        // `!!str` and similar tags belong to YAML itself.
        [b'!', b'!', ..] => None,
        [b'!', ..] => Some((name, "a tag")),
        [b'&', ..] if !has_aliases => Some((name, "an anchor")),
        _ => None,
    }
}

fn warn_of_entity(
    key: &MapKey,
    value: &Node,
    formatted: &[FormattedText],
    warn: &mut WarningSink<'_>,
) {
    let has_format = |position| formatted.iter().any(|text| text.position == position);
    if let Some(found) = violation(&key.name, value, &has_format) {
        warn(
            found.code,
            found.position,
            found.message,
            found.hint.unwrap_or_default(),
        );
    }
}

/// Returns the plain texts below a node that contain an HTML character reference. Visitors would see `&amp;` as these five letters.
///
/// Skips texts that have a format, such as Markdown: their format has its own rules.
pub(super) fn entities(node: &Node, formatted: &[FormattedText]) -> Vec<Violation> {
    let positions: HashSet<TextPosition> = formatted.iter().map(|text| text.position).collect();
    let has_format = |position| positions.contains(&position);
    let mut found = Vec::new();
    let mut open = vec![("", node)];
    while let Some((name, node)) = open.pop() {
        match &node.value {
            Value::Map(pairs) => {
                open.extend(pairs.iter().map(|(key, value)| (key.name.as_str(), value)));
            }
            Value::List(items) => open.extend(items.iter().map(|item| (name, item))),
            _ => found.extend(violation(name, node, &has_format)),
        }
    }
    found
}

/// Returns a violation if a text has a character reference and no format.
fn violation(
    name: &str,
    value: &Node,
    has_format: &dyn Fn(TextPosition) -> bool,
) -> Option<Violation> {
    let Value::Text(text) = &value.value else {
        return None;
    };
    let entity = entity(text).filter(|_| !has_format(value.position))?;
    let hint =
        "write the character itself, such as `&`, `\u{2019}` or `\u{fc}`; this text is not HTML";
    Some(Violation {
        code: Code::HtmlEntity,
        position: value.position,
        message: format!("`{name}` contains `{entity}`, which visitors see letter by letter"),
        hint: Some(hint.to_owned()),
    })
}

/// The length in bytes up to which a character reference is recognised. The longest is `&CounterClockwiseContourIntegral;`.
const MAX_ENTITY_BYTES: usize = 34;

/// Returns the first HTML character reference in a text.
pub(super) fn entity(text: &str) -> Option<&str> {
    text.match_indices('&').find_map(|(at, _)| {
        let rest = &text[at..];
        // Bounded, because a text may be a megabyte of `&`.
        let signs = rest.bytes().take(MAX_ENTITY_BYTES);
        let end = signs.enumerate().find(|(_, sign)| *sign == b';')?.0;
        if end < 3 {
            return None;
        }
        let inner = &rest[1..end];
        let is_reference = match inner.strip_prefix('#') {
            Some(number) => match number.strip_prefix(['x', 'X']) {
                Some(number) => number.bytes().all(|byte| byte.is_ascii_hexdigit()),
                None => number.bytes().all(|byte| byte.is_ascii_digit()),
            },
            None => inner.bytes().all(|byte| byte.is_ascii_alphanumeric()),
        };
        is_reference.then(|| &rest[..=end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::parse;

    fn found(text: &str) -> Vec<(Code, usize, Option<String>)> {
        let node = parse(text, 1).expect("YAML");
        let found = check(&node, &[], ("a", text), &["sections"]);
        found
            .into_iter()
            .map(|warning| {
                (
                    warning.code,
                    warning.position.expect("a position").line,
                    warning.hint,
                )
            })
            .collect()
    }

    #[test]
    fn html_entity_is_reported_but_not_an_ampersand() {
        let found = found(
            "title: Tom &amp; Jerry\nheading: A & B; C\ntags: [x, 'a&#8217;s']\nback:\n  label: '&nbsp;'\nsections: [{text: '&amp;'}]\n",
        );
        let lines: Vec<_> = found.iter().map(|(code, line, _)| (*code, *line)).collect();
        let code = Code::HtmlEntity;
        assert_eq!(lines, [(code, 1), (code, 3), (code, 5)]);
    }

    #[test]
    fn comment_that_cuts_a_text_is_reported_but_not_an_intended_one() {
        let found = found(
            "title: We are #1 in town\nexcerpt: #1\ncolour: \"#fff\"\nheading: Home # fill in\nsections:\n  - text: Issue #5\n    link: /a#b\n",
        );
        let lines: Vec<_> = found.iter().map(|(code, line, _)| (*code, *line)).collect();
        let code = Code::CutText;
        assert_eq!(lines, [(code, 1), (code, 2), (code, 6)]);
        let hint = found[0].2.as_deref().unwrap_or_default();
        assert!(hint.contains("title: \"We are #1 in town\""), "{hint}");
    }

    #[test]
    fn tag_and_anchor_that_cut_a_text_are_reported_but_not_intended_ones() {
        let code = Code::CutText;
        let text = "title: !wow great\nexcerpt: &co\nheading: '!'\nbadge: !!str 5\nlabel: A & B!\n";
        let lines: Vec<_> = found(text)
            .iter()
            .map(|(code, line, _)| (*code, *line))
            .collect();
        assert_eq!(lines, [(code, 1), (code, 2)]);
        let hint = found(text)[0].2.clone().unwrap_or_default();
        assert!(hint.contains("title: \"!wow great\""), "{hint}");
        assert_eq!(found("title: &same Bread\nheading: *same\n"), []);
    }
}
