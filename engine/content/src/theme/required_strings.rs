//! Checks that a theme has all UI strings that its templates, the program and its other languages use.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::strings::{ArgumentKind, Strings, Text, read};
use crate::report::{Code, Diagnostic, Report, TextPosition, hint_for, list};

/// The UI strings that the program uses, with their placeholders.
pub const PROGRAM_STRINGS: &[(&str, &[(&str, ArgumentKind)])] = &[
    ("engine.alerts.caution", &[]),
    ("engine.alerts.important", &[]),
    ("engine.alerts.note", &[]),
    ("engine.alerts.tip", &[]),
    ("engine.alerts.warning", &[]),
    ("engine.draft", &[("title", ArgumentKind::Text)]),
    ("engine.error.back", &[]),
    ("engine.error.text", &[]),
    ("engine.error.title", &[]),
    (
        "engine.footnotes.back",
        &[("reference", ArgumentKind::Text)],
    ),
    ("engine.footnotes.label", &[]),
    ("engine.heading_link", &[("heading", ArgumentKind::Text)]),
    ("engine.home", &[]),
    ("engine.not_found.back", &[]),
    ("engine.not_found.text", &[]),
    ("engine.not_found.title", &[]),
    ("engine.status.404", &[]),
    ("engine.status.405", &[]),
    ("engine.table", &[]),
    ("engine.tasks.done", &[]),
    ("engine.tasks.open", &[]),
    ("engine.unknown_host", &[]),
];

/// Reads the UI strings of a built-in theme by language.
#[must_use]
pub(super) fn built_in(files: &BTreeMap<String, Bytes>) -> BTreeMap<String, Strings> {
    let languages = files.iter().filter_map(|(path, bytes)| {
        let language = path.strip_prefix("strings/")?.strip_suffix(".yaml")?;
        let text = std::str::from_utf8(bytes).ok()?;
        let node = crate::yaml::parse(text, 1).ok()?;
        Some((language.to_owned(), read(&node).0))
    });
    languages.collect()
}

/// Adds the UI strings that the program uses and a theme lacks, with a warning. A theme made for an earlier version thus stays usable.
pub(super) fn complete(
    label: &str,
    languages: &mut BTreeMap<String, Strings>,
    built_in: &BTreeMap<String, Strings>,
    report: &mut Report,
) {
    for (language, strings) in languages {
        let primary = language.split('-').next().unwrap_or_default();
        let words = built_in.get(primary).or_else(|| built_in.get("en"));
        let missing = PROGRAM_STRINGS.iter().map(|(key, _)| *key);
        for key in missing.filter(|key| key.starts_with("engine.")) {
            let Some(text) = words.and_then(|words| words.get(key)) else {
                continue;
            };
            if strings.contains_key(key) {
                continue;
            }
            let words = match text {
                Text::One(pattern) => pattern.written.as_str(),
                Text::Plural(_) => "the text of the program",
            };
            let file = format!("{label}/strings/{language}.yaml");
            let message = format!("the UI string `{key}` is missing, so visitors read `{words}`");
            let diagnostic = Diagnostic::warning(Code::MissingWord, file, message);
            report.push(diagnostic.hint(format!("add `{key}` to this file")));
            strings.insert(key.to_owned(), text.clone());
        }
    }
}

/// The template calls that name a UI string (`false`) or a group of UI strings (`true`).
const TEMPLATE_CALLS: [(&str, bool); 2] = [("t(key=\"", false), ("words(of=\"", true)];

/// Reports every missing UI string.
pub(super) fn check(
    label: &str,
    files: &BTreeMap<String, Bytes>,
    languages: &[(&str, &Strings)],
    report: &mut Report,
) {
    if languages.is_empty() {
        let file = format!("{}/strings", label);
        let diagnostic = Diagnostic::error(Code::MissingWord, file, "the theme has no UI strings");
        report
            .push(diagnostic.hint("add `strings/en.yaml`, or name a `parent` that has UI strings"));
        return;
    }
    let mut wanted: BTreeMap<&str, BTreeMap<&str, ArgumentKind>> = PROGRAM_STRINGS
        .iter()
        .map(|(key, placeholders)| (*key, placeholders.iter().copied().collect()))
        .collect();
    for (_, strings) in languages {
        for (key, text) in *strings {
            wanted.entry(key).or_insert_with(|| text.placeholders());
        }
    }
    for (language, strings) in languages {
        let file = format!("{}/strings/{language}.yaml", label);
        for (key, placeholders) in &wanted {
            let (message, hint) = match strings.get(*key) {
                None => (
                    format!("the UI string `{key}` is missing"),
                    match placeholders.len() {
                        0 => format!("add `{key}` to this file"),
                        _ => format!("add `{key}` to this file, with {}", braces(placeholders)),
                    },
                ),
                Some(text) if text.placeholders() != *placeholders => (
                    format!("the placeholders of `{key}` are not valid"),
                    match placeholders.len() {
                        0 => "remove all placeholders".to_owned(),
                        _ => format!("use exactly {}", braces(placeholders)),
                    },
                ),
                Some(_) => continue,
            };
            let diagnostic = Diagnostic::error(Code::MissingWord, file.as_str(), message);
            report.push(diagnostic.hint(hint));
        }
    }
    for (path, bytes) in files {
        if let Ok(text) = std::str::from_utf8(bytes)
            && (path.ends_with(".html") || path.ends_with(".svg"))
        {
            check_template(label, path, text, &wanted, languages, report);
        }
    }
}

fn braces(placeholders: &BTreeMap<&str, ArgumentKind>) -> String {
    let names: Vec<String> = placeholders
        .keys()
        .map(|name| format!("{{{name}}}"))
        .collect();
    list(names.iter().map(String::as_str))
}

/// Reports missing UI strings that a template names with a literal key.
fn check_template(
    label: &str,
    path: &str,
    text: &str,
    wanted: &BTreeMap<&str, BTreeMap<&str, ArgumentKind>>,
    languages: &[(&str, &Strings)],
    report: &mut Report,
) {
    for (call, is_group) in TEMPLATE_CALLS {
        for (at, _) in text.match_indices(call) {
            let before = text[..at].chars().next_back();
            if before.is_some_and(|before| before.is_alphanumeric() || before == '_') {
                continue;
            }
            let Some((key, _)) = text[at + call.len()..].split_once('"') else {
                continue;
            };
            let group = format!("{key}.");
            let known = match is_group {
                true => wanted.keys().any(|word| word.starts_with(&group)),
                false => wanted.contains_key(key),
            };
            if known {
                continue;
            }
            let what = if is_group {
                "no UI strings below"
            } else {
                "no UI string"
            };
            let files = languages
                .iter()
                .map(|(language, _)| format!("{}/strings/{language}.yaml", label));
            let files: Vec<String> = files.collect();
            let near = hint_for(key, wanted.keys().copied());
            let hint = match near.starts_with("did you mean") {
                true => format!(
                    "{near} Otherwise, add `{key}` to {}",
                    list(files.iter().map(String::as_str))
                ),
                false => format!("add `{key}` to {}", list(files.iter().map(String::as_str))),
            };
            let file = format!("{}/{path}", label);
            let message = format!("the theme has {what} `{key}`");
            let diagnostic = Diagnostic::error(Code::MissingWord, file, message);
            report.push(
                diagnostic
                    .at(position(text, at + call.len(), key), text)
                    .hint(hint),
            );
        }
    }
}

/// Returns the position of a word that begins at byte `at`.
fn position(text: &str, at: usize, word: &str) -> TextPosition {
    let before = &text[..at];
    let line_begin = before.rfind('\n').map_or(0, |end| end + 1);
    TextPosition {
        line: before.matches('\n').count() + 1,
        column: before[line_begin..].chars().count() + 1,
        length: word.chars().count().max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Severity;

    #[test]
    fn theme_without_a_ui_string_uses_that_of_the_program() {
        let node = crate::yaml::parse("engine: {table: جدول}", 1).expect("YAML");
        let mut languages = BTreeMap::from([
            ("fa".to_owned(), read(&node).0),
            ("de-AT".to_owned(), Strings::new()),
        ]);
        let mut report = Report::default();
        let words = built_in(&crate::theme::embedded()["base"].files);
        complete("themes/persian", &mut languages, &words, &mut report);
        let written = |language: &str, key: &str| languages[language][key].written();
        assert_eq!(written("fa", "engine.table"), "جدول");
        assert_eq!(written("fa", "engine.alerts.note"), "Note");
        assert_eq!(written("de-AT", "engine.alerts.note"), "Hinweis");
        assert!(report.is_servable());
        assert_eq!(
            report.count(Severity::Warning),
            2 * PROGRAM_STRINGS.len() - 1
        );
    }
}
