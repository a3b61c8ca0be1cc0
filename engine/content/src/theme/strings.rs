//! The UI strings of a theme in one language: texts by key, with typed placeholders and plural forms.
//!
//! ```yaml
//! skip: Skip to content
//! opened: Opened on {day, date}
//! entries: {one: "{count, number} entry", other: "{count, number} entries"}
//! ```
//!
//! **Invariant:** knows no language. The renderer formats numbers, days and lists.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::report::{Code, TextPosition, list};
use crate::schema::Violation;
use crate::yaml::{Node, Value};

/// The plural categories (Unicode CLDR, plural rules).
pub const CATEGORIES: [&str; 6] = ["zero", "one", "two", "few", "many", "other"];

/// The placeholder that selects a plural form.
pub const COUNT: &str = "count";

/// The type of a placeholder's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ArgumentKind {
    /// A text, inserted unchanged.
    Text,
    /// A number, formatted for the language.
    Number,
    /// A day such as `2025-07-21`, formatted for the language.
    Date,
    /// A list of texts, joined with the language's word for *and*.
    List,
}

impl ArgumentKind {
    const ALL: [(&'static str, Self); 4] = [
        ("text", Self::Text),
        ("number", Self::Number),
        ("date", Self::Date),
        ("list", Self::List),
    ];
}

/// A piece of a UI string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessagePiece {
    /// Literal text.
    Words(String),
    /// A placeholder, with the type of its value.
    Placeholder(String, ArgumentKind),
}

/// A text with placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// The text as written.
    pub written: String,
    /// The pieces in order.
    pub pieces: Vec<MessagePiece>,
}

/// The value of a key: a text, or its plural forms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Text {
    /// A text without plural forms.
    One(Pattern),
    /// A text for each plural category of the language. `other` is always present.
    Plural(BTreeMap<&'static str, Pattern>),
}

impl Text {
    /// Returns the placeholders with their types.
    #[must_use]
    pub fn placeholders(&self) -> BTreeMap<&str, ArgumentKind> {
        let patterns: Vec<&Pattern> = match self {
            Self::One(pattern) => vec![pattern],
            Self::Plural(forms) => forms.values().collect(),
        };
        patterns
            .into_iter()
            .flat_map(|pattern| &pattern.pieces)
            .filter_map(|piece| match piece {
                MessagePiece::Placeholder(name, kind) => Some((name.as_str(), *kind)),
                MessagePiece::Words(_) => None,
            })
            .collect()
    }

    /// Returns the text as written. Islands receive it in this form and fill in the placeholders themselves.
    #[must_use]
    pub fn written(&self) -> Json {
        match self {
            Self::One(pattern) => pattern.written.as_str().into(),
            Self::Plural(forms) => {
                let forms = forms.iter();
                Json::Object(
                    forms
                        .map(|(category, form)| {
                            ((*category).to_owned(), form.written.as_str().into())
                        })
                        .collect(),
                )
            }
        }
    }
}

/// All UI strings of a language, by key with dots, for example `entry.more`.
pub type Strings = BTreeMap<String, Text>;

/// Reads UI strings. Returns a violation for each invalid one, and omits it.
#[must_use]
pub fn read(node: &Node) -> (Strings, Vec<Violation>) {
    let (mut strings, mut problems) = (Strings::new(), Vec::new());
    match &node.value {
        Value::Map(_) | Value::Null => collect(node, "", &mut strings, &mut problems),
        _ => problems.push(wrong(
            node.position,
            "UI strings must be a mapping from keys to texts".to_owned(),
            "begin with `skip: Skip to content`",
        )),
    }
    (strings, problems)
}

fn collect(node: &Node, prefix: &str, strings: &mut Strings, problems: &mut Vec<Violation>) {
    let Value::Map(pairs) = &node.value else {
        return;
    };
    for (key, value) in pairs {
        let name = match prefix {
            "" => key.name.clone(),
            prefix => format!("{prefix}.{}", key.name),
        };
        let text = match &value.value {
            Value::Text(text) => pattern(text).map(Text::One),
            Value::Map(forms) if is_plural(forms) => plural(forms),
            Value::Map(_) => {
                collect(value, &name, strings, problems);
                continue;
            }
            _ => Err("the value is not a text; put the value in quotes".to_owned()),
        };
        match text {
            Ok(_) if strings.contains_key(&name) => problems.push(Violation {
                code: Code::DuplicateKey,
                ..wrong(key.position, format!("duplicate key `{name}`"), "remove one of the two")
            }),
            Ok(text) => drop(strings.insert(name, text)),
            Err(problem) => problems.push(wrong(
                value.position,
                format!("`{name}`: {problem}"),
                "write `{name}`, `{count, number}`, `{day, date}` or `{names, list}`, and `{{` for a brace",
            )),
        }
    }
}

fn wrong(position: TextPosition, message: String, hint: &str) -> Violation {
    Violation {
        code: Code::BadValue,
        position,
        message,
        hint: Some(hint.to_owned()),
    }
}

/// Returns whether a mapping holds plural forms and not a group of UI strings: it has the form `other`, or only forms.
fn is_plural(forms: &[(crate::yaml::MapKey, Node)]) -> bool {
    let is_form = |name: &str| CATEGORIES.contains(&name);
    !forms.is_empty()
        && (forms.iter().any(|(key, _)| key.name == "other")
            || forms.iter().all(|(key, _)| is_form(&key.name)))
}

fn plural(forms: &[(crate::yaml::MapKey, Node)]) -> Result<Text, String> {
    if !forms.iter().any(|(key, _)| key.name == "other") {
        return Err(
            "the plural form `other` is missing; every language needs this form".to_owned(),
        );
    }
    let mut read = BTreeMap::new();
    for (key, form) in forms {
        let Some(category) = CATEGORIES.into_iter().find(|known| *known == key.name) else {
            return Err(format!(
                "`{}` is not a valid plural form; valid here: {}",
                key.name,
                list(CATEGORIES)
            ));
        };
        let Value::Text(text) = &form.value else {
            return Err(format!("the plural form `{category}` is not a text"));
        };
        read.insert(category, pattern(text)?);
    }
    Ok(Text::Plural(read))
}

/// Parses a text with placeholders. A doubled brace means a single brace.
fn pattern(text: &str) -> Result<Pattern, String> {
    let mut pieces = Vec::new();
    let mut words = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        words.push_str(&rest[..at]);
        let brace = &rest[at..=at];
        let after = &rest[at + 1..];
        if let Some(after) = after.strip_prefix(brace) {
            words.push_str(brace);
            rest = after;
            continue;
        }
        let Some((inside, after)) = after.split_once('}').filter(|_| brace == "{") else {
            return Err(format!("the brace `{brace}` is unmatched"));
        };
        let (name, kind) = inside.split_once(',').unwrap_or((inside, "text"));
        let (name, kind) = (name.trim(), kind.trim());
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if name.is_empty() || !name.bytes().all(is_name) {
            return Err(format!("`{{{inside}}}` is not a valid placeholder"));
        }
        let Some((_, kind)) = ArgumentKind::ALL
            .into_iter()
            .find(|(known, _)| *known == kind)
        else {
            let known = ArgumentKind::ALL.map(|(known, _)| known);
            return Err(format!(
                "`{kind}` is not a valid type of a placeholder; valid here: {}",
                list(known)
            ));
        };
        if !words.is_empty() {
            pieces.push(MessagePiece::Words(std::mem::take(&mut words)));
        }
        pieces.push(MessagePiece::Placeholder(name.to_owned(), kind));
        rest = after;
    }
    words.push_str(rest);
    if !words.is_empty() {
        pieces.push(MessagePiece::Words(words));
    }
    Ok(Pattern {
        written: text.to_owned(),
        pieces,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn strings(yaml: &str) -> (Strings, Vec<String>) {
        let (strings, problems) = read(&crate::yaml::parse(yaml, 1).expect("YAML"));
        (
            strings,
            problems
                .into_iter()
                .map(|problem| problem.message)
                .collect(),
        )
    }

    #[test]
    fn keys_are_joined_and_placeholders_typed() {
        let (strings, problems) = strings(
            "a: {b: \"{n, number} of {who}, {{x}}\"}\nc: {one: one, other: \"{count, number}\"}\n",
        );
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!(
            strings["a.b"].placeholders(),
            [("n", ArgumentKind::Number), ("who", ArgumentKind::Text)].into()
        );
        let Text::One(pattern) = &strings["a.b"] else {
            panic!("one text");
        };
        assert_eq!(
            pattern.pieces.last(),
            Some(&MessagePiece::Words(", {x}".to_owned()))
        );
        assert!(matches!(&strings["c"], Text::Plural(forms) if forms.len() == 2));
    }

    #[test]
    fn invalid_ui_strings_are_reported() {
        for (yaml, message) in [
            (
                "a: 1",
                "`a`: the value is not a text; put the value in quotes",
            ),
            ("a: \"{n\"", "`a`: the brace `{` is unmatched"),
            ("a: \"n}\"", "`a`: the brace `}` is unmatched"),
            (
                "a: \"{n, colour}\"",
                "`a`: `colour` is not a valid type of a placeholder; valid here: `text`, `number`, `date` and `list`",
            ),
            (
                "a: {one: x}",
                "`a`: the plural form `other` is missing; every language needs this form",
            ),
            (
                "a: {some: x, other: y}",
                "`a`: `some` is not a valid plural form; valid here: `zero`, `one`, `two`, `few`, `many` and `other`",
            ),
            ("- a", "UI strings must be a mapping from keys to texts"),
        ] {
            assert_eq!(strings(yaml).1, [message], "{yaml}");
        }
    }

    proptest! {
        #[test]
        fn parsing_any_text_does_not_panic(text in "[{}a-z, ]{0,20}") {
            let _ = pattern(&text);
        }
    }
}
