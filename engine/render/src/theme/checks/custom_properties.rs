//! Finds custom properties that a theme uses without a fallback, and that nothing defines (CSS Custom Properties Level 1).
//!
//! **Invariant:** reads text and no CSS rules, so a definition in any file of the theme counts for every use.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use content::report::{Code, Diagnostic, LineIndex, nearest};
use content::theme::Theme;

/// The property that the engine defines for each site of the company.
const OF_SITES: &str = "tenant";

/// The prefix of the properties that islands define in browsers, with the library Radix.
const OF_ISLANDS: &str = "radix-";

/// Returns a warning for each use of a property that neither a file, a role nor a setting defines.
pub(super) fn check(theme: &Theme) -> Vec<Diagnostic> {
    let texts = theme.files.iter().filter(|(path, _)| is_read(path));
    let texts = texts.filter_map(|(_, bytes)| std::str::from_utf8(bytes).ok());
    let mut known: BTreeSet<String> = texts
        .flat_map(|text| definitions(&without_comments(text)))
        .collect();
    known.extend(named_colours(theme));
    let mut found = Vec::new();
    for (path, text) in theme.own_texts().filter(|(path, _)| is_read(path)) {
        let mut lines = None;
        for (offset, name) in uses(&without_comments(text)) {
            if known.contains(&name) || name.starts_with(OF_ISLANDS) {
                continue;
            }
            let lines = lines.get_or_insert_with(|| LineIndex::of(text));
            let message = format!("nothing defines the custom property `--{name}`");
            let hint = match nearest(&name, known.iter().map(String::as_str)) {
                Some(known) => format!("did you mean `--{known}`?"),
                None => format!(
                    "define `--{name}`, add a role to `theme.yaml`, or write a fallback: `var(--{name}, …)`"
                ),
            };
            let file = theme.name_of(path);
            let position = lines.position(offset, name.chars().count() + 2);
            let warning = Diagnostic::warning(Code::UnknownProperty, file, message);
            found.push(warning.at(position, text).hint(hint));
        }
    }
    found
}

fn is_read(path: &str) -> bool {
    [".css", ".html", ".svg"]
        .iter()
        .any(|end| path.ends_with(end))
}

/// Returns the properties that the engine defines: roles, settings, and the colours of the company's sites.
fn named_colours(theme: &Theme) -> impl Iterator<Item = String> {
    let manifest = &theme.manifest;
    let settings = manifest.settings.get("properties");
    let settings = settings.and_then(Json::as_object).into_iter().flatten();
    let names = settings.map(|(name, _)| name);
    let names = names.chain(manifest.roles.keys());
    let names = names.chain(&manifest.site_colours);
    let names = names.map(|name| name.replace('_', "-"));
    names.chain([OF_SITES.to_owned()])
}

/// Replaces the comments of CSS by as many spaces.
fn without_comments(text: &str) -> String {
    let mut rest = text;
    let mut kept = String::with_capacity(text.len());
    while let Some(begin) = rest.find("/*") {
        let (before, comment) = rest.split_at(begin);
        let length = comment.find("*/").map_or(comment.len(), |end| end + 2);
        kept.push_str(before);
        kept.extend(std::iter::repeat_n(' ', length));
        rest = &comment[length..];
    }
    kept + rest
}

fn is_name(letter: char) -> bool {
    letter.is_alphanumeric() || "-_".contains(letter) || !letter.is_ascii()
}

/// Returns the length of the name at the beginning of a text.
fn name_length(text: &str) -> usize {
    text.find(|letter| !is_name(letter)).unwrap_or(text.len())
}

/// Returns the properties that a text defines: `--name: value` and `@property --name`.
fn definitions(text: &str) -> Vec<String> {
    let found = text.match_indices("--").filter_map(|(offset, _)| {
        let before = &text[..offset];
        if before.ends_with(is_name) {
            return None;
        }
        let name = &text[offset + 2..];
        let (name, after) = name.split_at(name_length(name));
        let is_defined = after.trim_start().starts_with(':')
            || before
                .trim_end()
                .to_ascii_lowercase()
                .ends_with("@property");
        is_defined.then(|| name.to_owned())
    });
    found.collect()
}

/// Returns the properties that a text uses without a fallback, each with the byte offset of its `--`.
fn uses(text: &str) -> Vec<(usize, String)> {
    let found = text.match_indices("var(").filter_map(|(offset, open)| {
        let inner = &text[offset + open.len()..];
        let name = inner.trim_start().strip_prefix("--")?;
        let (name, after) = name.split_at(name_length(name));
        let offset = text.len() - after.len() - name.len() - 2;
        let has_fallback = !after.trim_start().starts_with(')');
        (!has_fallback && !name.is_empty()).then(|| (offset, name.to_owned()))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_without_fallback_are_found() {
        let text = "a { b: var(--x) var( --y-1 ) var(--f, 1) var(--space-{{ n }}) var(--) /* var(--c) */ }";
        let found = uses(&without_comments(text));
        let names: Vec<&str> = found.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["x", "y-1"]);
        for (offset, name) in &found {
            assert!(text[*offset..].starts_with(&format!("--{name}")), "{name}");
        }
    }

    #[test]
    fn definitions_are_found_anywhere_but_in_class_names() {
        let text =
            "@property --a { } :root{--b:1;--c :2} .x--d:hover { color: var(--e) } /* --f: 1 */";
        let found = definitions(&without_comments(text));
        assert_eq!(found, ["a", "b", "c"]);
    }
}
