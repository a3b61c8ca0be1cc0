//! Explains invalid YAML in terms of the author's text. The parser reports tokens; authors need to know which text is wrong and how to write it.
//!
//! **Invariant:** knows no keys of any file. Of valid YAML, it affects only mappings in braces with a key that has neither colon nor value.

use super::node::{MapKey, Node, Value};
use crate::report::{LineIndex, TextPosition};

/// A problem, its position, and the fix. Lines count from 1 in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct YamlProblem {
    /// The problem.
    pub message: String,
    /// The fix: the text to write instead.
    pub hint: String,
    /// The position.
    pub position: TextPosition,
}

/// A line with a key and a value.
struct YamlEntry<'a> {
    indent: usize,
    key: &'a str,
    value: &'a str,
    /// The column of the value, counted from 1.
    column: usize,
}

/// Parses a line `key: value`, also as the first line of a list item.
fn entry(line: &str) -> Option<YamlEntry<'_>> {
    let mut inner = line.trim_start_matches(' ');
    while let Some(rest) = inner.strip_prefix("- ") {
        inner = rest.trim_start_matches(' ');
    }
    let indent = line.chars().count() - inner.chars().count();
    let (key, rest) = inner.split_once(':')?;
    let is_key = |character: char| character.is_alphanumeric() || "_-.".contains(character);
    if key.is_empty()
        || !key.chars().all(is_key)
        || !rest.is_empty() && !rest.starts_with([' ', '\t'])
    {
        return None;
    }
    let value = rest.trim_start();
    Some(YamlEntry {
        indent,
        key,
        value: value.trim_end(),
        column: line.chars().count() - value.chars().count() + 1,
    })
}

/// Writes a value in YAML quotes.
#[must_use]
pub fn quoted(value: &str) -> String {
    match value.contains(['"', '\\']) {
        true => format!("'{}'", value.replace('\'', "''")),
        false => format!("\"{value}\""),
    }
}

/// Returns whether a character looks like a space, but is a letter to YAML.
const fn is_like_a_space(sign: char) -> bool {
    matches!(
        sign,
        '\u{a0}' | '\u{2000}'..='\u{200b}' | '\u{202f}' | '\u{205f}' | '\u{3000}' | '\u{feff}'
    )
}

/// Finds a character that looks like a space in the indentation of a line or behind its key, where YAML requires a real space.
#[must_use]
pub fn invisible_space(text: &str) -> Option<YamlProblem> {
    text.lines().enumerate().find_map(|(index, line)| {
        let start = line.find(|sign: char| sign != ' ' && sign != '\t')?;
        let behind_key = || {
            let is_key = |sign: char| sign.is_alphanumeric() || "_-. ".contains(sign);
            let colon = line.find(|sign: char| !is_key(sign))?;
            line[colon..].starts_with(':').then_some(colon + 1)
        };
        let at = [Some(start), behind_key()].into_iter().flatten().find(|at| {
            line[*at..].chars().next().is_some_and(is_like_a_space)
        })?;
        let sign = line[at..].chars().next()?;
        let name = match sign {
            '\u{a0}' | '\u{202f}' => "no-break space",
            _ => "space",
        };
        Some(YamlProblem {
            message: format!(
                "a {name} (U+{:04X}) is in a place where YAML needs an ordinary space",
                u32::from(sign)
            ),
            hint: "type the space again; copied text often contains characters that only look like a space"
                .to_owned(),
            position: TextPosition {
                line: index + 1,
                column: line[..at].chars().count() + 1,
                length: 1,
            },
        })
    })
}

/// Explains why the parser failed at `position`, if the cause can be recognised.
pub(super) fn explain(
    text: &str,
    parser_message: &str,
    position: TextPosition,
) -> Option<YamlProblem> {
    let lines: Vec<&str> = text.lines().collect();
    let until = lines.get(..position.line.min(lines.len()))?;
    let line = *until.last()?;
    let cause = |message: String, hint: String, position: TextPosition| {
        Some(YamlProblem {
            message,
            hint,
            position,
        })
    };
    if let Some(found) = invisible_space(text).filter(|found| found.position.line <= position.line)
    {
        return Some(found);
    }
    let found = tab_in_indentation(&lines, parser_message, position.line)
        .or_else(|| comment_in_brackets(until));
    if found.is_some() {
        return found;
    }
    if parser_message.contains("quoted") || parser_message.contains("end of") {
        let found = open_quote(until);
        if found.is_some() {
            return found;
        }
    }
    let Some(YamlEntry {
        indent,
        key,
        value,
        column,
    }) = entry(line)
    else {
        return missing_space(until);
    };
    let in_quotes = format!("put the value in quotes: `{key}: {}`", quoted(value));
    let at_value = TextPosition {
        column,
        length: 1,
        ..position
    };
    let first = value.chars().next();
    match first {
        Some(quote @ ('"' | '\'')) if value[1..].contains(quote) => {
            let message = format!("the value of `{key}` continues after its closing quote");
            let hint = format!(
                "put the complete value in one pair of quotes: `{key}: {}`",
                quoted(value)
            );
            return cause(message, hint, at_value);
        }
        Some(
            sign @ ('@' | '`' | '%' | '&' | '*' | '!' | '[' | ']' | '{' | '}' | ',' | '|' | '>'),
        ) => {
            let message = format!(
                "the value of `{key}` begins with `{sign}`, which has a special meaning in YAML"
            );
            return cause(message, in_quotes, at_value);
        }
        _ => {}
    }
    if value.contains(": ") || value.ends_with(':') {
        let message = format!("the value of `{key}` contains a colon, which ends a key in YAML");
        return cause(message, in_quotes, position);
    }
    if parser_message.contains("non-finite") {
        let message = format!("the number `{value}` is out of range");
        return cause(message, in_quotes, at_value);
    }
    let above = until[..until.len() - 1]
        .iter()
        .rev()
        .find_map(|line| entry_of_text(line));
    if let Some(above) = above.filter(|above| above.indent < indent && !above.value.is_empty()) {
        let message = format!(
            "`{key}` is indented deeper than `{}`, which already has a value",
            above.key
        );
        let hint = format!("begin `{key}` in the same column as `{}`", above.key);
        let position = TextPosition {
            column: indent + 1,
            length: key.chars().count(),
            ..position
        };
        return cause(message, hint, position);
    }
    missing_space(until)
}

/// Finds a tab in the indentation of the line `failed`, counted from 1. If the parser names a tab, the tab may be in a later line: the parser reports the line where the text before the tab begins.
fn tab_in_indentation(lines: &[&str], parser_message: &str, failed: usize) -> Option<YamlProblem> {
    let end = match parser_message.contains("tab") {
        true => lines.len(),
        false => failed.min(lines.len()),
    };
    let suspects = lines.get(failed.checked_sub(1)?..end)?.iter().enumerate();
    let (index, column) = suspects.into_iter().find_map(|(index, line)| {
        let indentation = &line[..line.len() - line.trim_start().len()];
        Some((index, indentation.find('\t')?))
    })?;
    Some(YamlProblem {
        message: "the line is indented with a tab".to_owned(),
        hint: "indent with spaces; YAML does not allow tabs there".to_owned(),
        position: TextPosition {
            line: failed + index,
            column: column + 1,
            length: 1,
        },
    })
}

/// Finds the last line with a `#` that begins a comment within brackets, which the line then does not close.
fn comment_in_brackets(lines: &[&str]) -> Option<YamlProblem> {
    lines.iter().enumerate().rev().find_map(|(index, line)| {
        let (mut depth, mut quote, mut part, mut last) = (0_usize, None, 0, ' ');
        for (at, sign) in line.char_indices() {
            match (quote, sign) {
                (Some(open), _) if open == sign => quote = None,
                (Some(_), _) => {}
                (None, '"' | '\'') if " {[,".contains(last) => quote = Some(sign),
                (None, '{' | '[') => (depth, part) = (depth + 1, at + 1),
                (None, '}' | ']') => depth = depth.saturating_sub(1),
                (None, ',') => part = at + 1,
                (None, '#') if last == ' ' => {
                    let is_closed_later = line[at..].contains(['}', ']']);
                    return (depth > 0 && is_closed_later)
                        .then(|| comment(line, index + 1, part, at));
                }
                (None, _) => {}
            }
            last = sign;
        }
        None
    })
}

/// Describes the comment at the byte `at` of a line. The text that contains the `#` begins at the byte `part`.
fn comment(line: &str, number: usize, part: usize, at: usize) -> YamlProblem {
    let length = line[at..].find([',', '}', ']']);
    let text = line[part..length.map_or(line.len(), |length| at + length)].trim();
    let hint = match entry(text) {
        Some(entry) => format!("`{}: {}`", entry.key, quoted(entry.value)),
        None => format!("`{}`", quoted(text)),
    };
    YamlProblem {
        message: "`#` begins a comment, so the bracket before it is not closed".to_owned(),
        hint: format!("put the text in quotes: {hint}"),
        position: TextPosition {
            line: number,
            column: line[..at].chars().count() + 1,
            length: 1,
        },
    }
}

/// Finds a comma in braces that an author meant as part of a text: `{text: First, then second}` has a key `then second` without a value.
pub(super) fn comma_in_text(node: &Node, text: &LineIndex<'_>) -> Option<YamlProblem> {
    let pairs = match &node.value {
        Value::List(items) => return items.iter().find_map(|item| comma_in_text(item, text)),
        Value::Map(pairs) => pairs,
        _ => return None,
    };
    let is_cut = |(key, value): &(MapKey, Node)| {
        value.value == Value::Null && end_without_colon(key, text).is_some()
    };
    let Some(cut) = pairs.iter().position(is_cut) else {
        return pairs
            .iter()
            .find_map(|(_, value)| comma_in_text(value, text));
    };
    let (key, value) = &pairs[cut.checked_sub(1)?];
    let rest = &pairs[cut].0;
    let last = pairs[cut..].iter().take_while(|pair| is_cut(pair)).last()?;
    let line = text.get(value.position.line);
    let is_in_line = last.0.position.line == value.position.line;
    let start = value.position.column.checked_sub(1)?;
    let length = end_without_colon(&last.0, text)?.checked_sub(start)?;
    let written: String = line.chars().skip(start).take(length).collect();
    let is_plain = is_in_line && !written.starts_with(['"', '\'', '{', '[', '&', '*', '!']);
    is_plain.then(|| YamlProblem {
        message: format!(
            "the comma before `{}` ends the value of `{}`",
            rest.name, key.name
        ),
        hint: format!(
            "put the value in quotes: `{}: {}`",
            key.name,
            quoted(&written)
        ),
        position: rest.position,
    })
}

/// Returns the column behind a key if a comma or a closing brace follows the key in place of a colon.
fn end_without_colon(key: &MapKey, text: &LineIndex<'_>) -> Option<usize> {
    let start = key.position.column.checked_sub(1)?;
    let line: String = text.get(key.position.line).chars().skip(start).collect();
    let behind = line.strip_prefix(key.name.as_str())?.trim_start();
    (!key.name.is_empty() && behind.starts_with([',', '}']))
        .then(|| start + key.name.chars().count())
}

/// Finds the last quote that is not closed on its line. Such a quote swallows the following lines.
fn open_quote(lines: &[&str]) -> Option<YamlProblem> {
    let open = lines.iter().enumerate().rev().find_map(|(index, line)| {
        let entry = entry(line)?;
        let quote = entry.value.chars().next();
        let quote = quote.filter(|quote| "\"'".contains(*quote))?;
        let is_open = !entry.value[1..].contains(quote);
        is_open.then_some((index, quote, entry))
    });
    let (index, quote, entry) = open?;
    Some(YamlProblem {
        message: format!(
            "the quote `{quote}` at the start of `{}` is not closed",
            entry.key
        ),
        hint: format!("write `{}: {}`", entry.key, quoted(entry.value[1..].trim())),
        position: TextPosition {
            line: index + 1,
            column: entry.column,
            length: 1,
        },
    })
}

fn entry_of_text(line: &str) -> Option<YamlEntry<'_>> {
    entry(line).filter(|_| !line.trim_start().starts_with('#'))
}

/// Finds a key without a space behind its colon, which YAML reads as text.
fn missing_space(lines: &[&str]) -> Option<YamlProblem> {
    let found = lines.iter().enumerate().rev().find_map(|(index, line)| {
        let (key, value) = line.split_once(':')?;
        let is_key =
            |character: char| character.is_ascii_alphanumeric() || "_-".contains(character);
        let is_missing = !key.is_empty()
            && key.chars().all(is_key)
            && value.starts_with(|character: char| !character.is_whitespace() && character != '/');
        is_missing.then_some((index, key, value.trim()))
    });
    let (index, key, value) = found?;
    Some(YamlProblem {
        message: format!("a space is missing after `{key}:`"),
        hint: format!("write `{key}: {value}`"),
        position: TextPosition {
            line: index + 1,
            column: key.chars().count() + 1,
            length: 1,
        },
    })
}

#[cfg(test)]
mod tests {
    use crate::yaml::parse;

    #[test]
    fn keys_without_value_are_left_to_the_schema_where_no_text_was_cut() {
        for text in [
            "{a, b}\n",
            "{a: \"b\", c}\n",
            "{a: b, c: }\n",
            "{a: [b, c], d: e}\n",
        ] {
            assert!(parse(text, 1).is_ok(), "{text}");
        }
    }

    #[test]
    fn common_yaml_mistakes_are_explained_at_their_line() {
        for (text, line, message, hint) in [
            (
                "a: b\ntitle: Repairs: quick\n",
                2,
                "contains a colon",
                "title: \"Repairs: quick\"",
            ),
            (
                "title: 5\" disk: new\n",
                1,
                "contains a colon",
                "title: '5\" disk: new'",
            ),
            ("a:\n\tb: c\n", 2, "with a tab", "spaces"),
            ("a:\n  - b: hero\n\tc: d\n", 3, "with a tab", "spaces"),
            (
                "a:\n  - {b: c, link: #prices}\n  - {b: d}\n",
                2,
                "begins a comment",
                "`link: \"#prices\"`",
            ),
            (
                "a: {text: Apps for people, who share, b: c}\n",
                1,
                "the comma before `who share` ends the value of `text`",
                "`text: \"Apps for people, who share\"`",
            ),
            (
                "a:\n  - {price: 1,50}\n",
                2,
                "the comma before `50` ends the value of `price`",
                "`price: \"1,50\"`",
            ),
            ("title:\u{a0}Prices\nb: c\n", 1, "U+00A0", "again"),
            ("a: b\n\u{3000}c: d\ne: f: g\n", 2, "U+3000", "again"),
            (
                "title: \"Repairs\nb: c\n",
                1,
                "is not closed",
                "title: \"Repairs\"",
            ),
            (
                "title: \"Repairs\" and more\n",
                1,
                "closing quote",
                "title: '\"Repairs\" and more'",
            ),
            ("title: @home\n", 1, "begins with `@`", "\"@home\""),
            (
                "title: *bold* text\n",
                1,
                "begins with `*`",
                "\"*bold* text\"",
            ),
            (
                "title: [Draft] text\n",
                1,
                "begins with `[`",
                "\"[Draft] text\"",
            ),
            ("title: % off\n", 1, "begins with `%`", "\"% off\""),
            ("title: 1e1000\n", 1, "out of range", "\"1e1000\""),
            (
                "title: A\n  heading: B\n",
                2,
                "deeper than `title`",
                "same column",
            ),
            (
                "title:Prices\nb: c\n",
                1,
                "space is missing",
                "`title: Prices`",
            ),
        ] {
            let error = parse(text, 10).expect_err(text);
            let shown = format!("{} {:?}", error.message, error.hint);
            assert!(shown.contains(message), "{text:?}: {shown}");
            assert!(
                error
                    .hint
                    .as_ref()
                    .is_some_and(|shown| shown.contains(hint)),
                "{text:?}: {shown}"
            );
            assert_eq!(
                error.position.map(|position| position.line),
                Some(line + 9),
                "{text:?}"
            );
        }
    }
}
