//! Parses YAML into a tree in which every key and value has its position.
//!
//! Serde's usual path stops at the first error, but authors need all errors. A file is therefore first read into a [`Node`], including duplicate keys. [`crate::schema`] then finds everything that is wrong.
//! No other module knows the YAML library.
//!
//! **Invariant:** knows no keys and no types of any file.

mod block;
mod node;
mod problem;

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{DuplicateKeyPolicy, Error, Location, Spanned};

pub use self::block::position_in_block;
pub use self::node::{MapKey, Node, Value};
use self::problem::YamlProblem;
pub use self::problem::{invisible_space, quoted};
use crate::report::{Code, Diagnostic, LineIndex, TextPosition};

/// The reason why a text is not valid YAML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct YamlError {
    /// `bad-yaml`, or `too-large` if a limit is exceeded.
    pub code: Code,
    /// The reason, in terms an author understands if the cause is known, else in the parser's.
    pub message: String,
    /// The correct way to write the text.
    pub hint: Option<String>,
    /// The position, if the parser reports one.
    pub position: Option<TextPosition>,
}

impl YamlError {
    /// Returns the error as a diagnostic of a file with this text.
    pub(crate) fn diagnostic(self, file: impl Into<String>, text: &str) -> Diagnostic {
        let mut diagnostic = Diagnostic::error(self.code, file, self.message);
        diagnostic.hint = self.hint;
        match self.position {
            Some(position) => diagnostic.at(position, text),
            None => diagnostic,
        }
    }
}

/// The largest nesting depth of values. Parsing recurses to this depth. Pages of the six sites need at most eight.
const MAX_NESTING: usize = 24;

/// The largest number of values and keys in one file. Each takes up to a kilobyte while the file is checked. The largest file of the six sites has some 700.
pub const MAX_FILE_NODES: usize = 100_000;

/// Parses a document. `first_line` is the number, from 1, of the line of the file at which `text` begins.
///
/// # Errors
/// If the text is not a valid YAML document.
pub fn parse(text: &str, first_line: usize) -> Result<Node, YamlError> {
    let options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        strict_booleans: true,
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_depth: MAX_NESTING,
            max_nodes: MAX_FILE_NODES,
        },
    };
    let mut node = serde_saphyr::from_str_with_options::<Spanned<Value>>(&lines(text), options)
        .map(node)
        .map_err(|error| failure(text, &error, first_line))?;
    let index = LineIndex::of(text);
    if let Some(cause) = problem::comma_in_text(&node, &index) {
        return Err(explained(cause, first_line));
    }
    complete(&mut node, &index, first_line - 1);
    Ok(node)
}

fn failure(text: &str, error: &Error, first_line: usize) -> YamlError {
    let code = match is_too_much(error.without_snippet()) {
        true => Code::TooLarge,
        false => Code::BadYaml,
    };
    let (message, position) = (
        message(error.without_snippet()),
        error.location().map(position),
    );
    let cause = position
        .filter(|_| code == Code::BadYaml)
        .and_then(|position| problem::explain(text, &message, position));
    match cause {
        Some(cause) => explained(cause, first_line),
        None => YamlError {
            code,
            message,
            hint: None,
            position: position.map(|position| in_file(position, first_line)),
        },
    }
}

fn explained(cause: YamlProblem, first_line: usize) -> YamlError {
    YamlError {
        code: Code::BadYaml,
        message: cause.message,
        hint: Some(cause.hint),
        position: Some(in_file(cause.position, first_line)),
    }
}

/// Converts a position in the text to a position in the file.
const fn in_file(position: TextPosition, first_line: usize) -> TextPosition {
    TextPosition {
        line: position.line + first_line - 1,
        ..position
    }
}

/// Replaces carriage returns that do not precede a line feed by spaces. The length of the text stays the same.
///
/// The parser would count them as line ends (YAML 1.2.2, section 5.4), and report lines that the file does not have.
fn lines(text: &str) -> Cow<'_, str> {
    let ends_no_line = |at: usize, sign: char| sign == '\r' && !text[at + 1..].starts_with('\n');
    if !text.char_indices().any(|(at, sign)| ends_no_line(at, sign)) {
        return Cow::Borrowed(text);
    }
    let signs = text.char_indices();
    let signs = signs.map(|(at, sign)| if ends_no_line(at, sign) { ' ' } else { sign });
    Cow::Owned(signs.collect())
}

/// Returns whether a limit was exceeded. The scanner reads ahead and has its own limit for brackets.
fn is_too_much(error: &Error) -> bool {
    matches!(error, Error::Budget { .. }) || is_too_deep(error)
}

fn is_too_deep(error: &Error) -> bool {
    matches!(breach(error), Some(BudgetBreach::Depth { .. }))
        || error.to_string().starts_with("recursion limit exceeded")
}

fn has_too_many_nodes(error: &Error) -> bool {
    matches!(breach(error), Some(BudgetBreach::Nodes { .. }))
}

fn breach(error: &Error) -> Option<&BudgetBreach> {
    match error {
        Error::Budget { breach, .. } => Some(breach),
        _ => None,
    }
}

fn message(error: &Error) -> String {
    let first = first_sentence(&error.to_string());
    if is_too_deep(error) {
        format!("values are nested more than {MAX_NESTING} levels deep")
    } else if has_too_many_nodes(error) {
        format!("the file has more than {MAX_FILE_NODES} keys and values")
    } else if is_too_much(error) {
        format!("the file exceeds a limit: {first}")
    } else {
        first
    }
}

/// Returns the parser's message without its position, which the report has already.
fn first_sentence(message: &str) -> String {
    let line = message.lines().next().unwrap_or(message);
    let line = line.strip_prefix("error: ").unwrap_or(line);
    line.split_once(" at line ")
        .map_or(line, |(before, _)| before)
        .trim_end_matches('.')
        .to_owned()
}

fn node(spanned: Spanned<Value>) -> Node {
    let mut position = position(spanned.referenced);
    if let Value::Text(text) = &spanned.value {
        position.length = position
            .length
            .max(text.lines().next().map_or(1, |line| line.chars().count()));
    }
    Node {
        value: spanned.value,
        position,
    }
}

fn position(location: Location) -> TextPosition {
    let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX).max(1);
    TextPosition {
        line: number(location.line()),
        column: number(location.column()),
        length: 1,
    }
}

/// Adds data that the parser does not provide: the original text of numbers, and the lines above `text` in the file.
fn complete(node: &mut Node, text: &LineIndex<'_>, above: usize) {
    match &mut node.value {
        Value::List(items) => items
            .iter_mut()
            .for_each(|item| complete(item, text, above)),
        Value::Map(pairs) => {
            for (key, value) in pairs {
                key.position.line += above;
                complete(value, text, above);
            }
        }
        Value::Number(number, written) => {
            let line = text.get(node.position.line);
            let token: String = line
                .chars()
                .skip(node.position.column - 1)
                .take_while(|sign| !sign.is_whitespace() && !",]}".contains(*sign))
                .collect();
            let is_number =
                token.starts_with(|sign: char| sign.is_ascii_digit() || "+-.".contains(sign));
            if is_number {
                node.position.length = token.chars().count();
                *written = (token != number.to_string()).then(|| Box::new(token));
            }
        }
        Value::Null | Value::Bool(_) | Value::Text(_) => {}
    }
    node.position.line += above;
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any YAML value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into(), None))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into(), None))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(serde_json::Number::from_f64(value).map_or_else(
            || Value::Text(value.to_string()),
            |number| Value::Number(number, None),
        ))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = sequence.next_element::<Spanned<Value>>()? {
            items.push(node(item));
        }
        Ok(Value::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            let key = MapKey {
                position: TextPosition {
                    length: key.value.chars().count().max(1),
                    ..position(key.referenced)
                },
                name: key.value,
            };
            pairs.push((key, node(map.next_value::<Spanned<Value>>()?)));
        }
        Ok(Value::Map(pairs))
    }
}

impl Node {
    /// Returns the number of values and keys, including this node.
    #[must_use]
    pub fn count(&self) -> usize {
        1 + match &self.value {
            Value::List(items) => items.iter().map(Self::count).sum(),
            Value::Map(pairs) => pairs.iter().map(|(_, value)| 1 + value.count()).sum(),
            Value::Null | Value::Bool(_) | Value::Number(..) | Value::Text(_) => 0,
        }
    }

    /// Returns the value without positions. Of duplicate keys, the last one wins.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(value) => (*value).into(),
            Value::Number(number, _) => number.clone().into(),
            Value::Text(text) => text.as_str().into(),
            Value::List(items) => items.iter().map(Self::to_json).collect(),
            Value::Map(pairs) => pairs
                .iter()
                .map(|(key, value)| (key.name.clone(), value.to_json()))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        }
    }

    /// Creates a tree from a value that comes from no file. Every position is line 1, column 1.
    #[must_use]
    pub fn from_json(value: &serde_json::Value) -> Self {
        use serde_json::Value as Json;
        const NOWHERE: TextPosition = TextPosition {
            line: 1,
            column: 1,
            length: 1,
        };
        let value = match value {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) => Value::Number(number.clone(), None),
            Json::String(text) => Value::Text(text.clone()),
            Json::Array(items) => Value::List(items.iter().map(Self::from_json).collect()),
            Json::Object(pairs) => Value::Map(
                pairs
                    .iter()
                    .map(|(name, value)| {
                        let key = MapKey {
                            name: name.clone(),
                            position: NOWHERE,
                        };
                        (key, Self::from_json(value))
                    })
                    .collect(),
            ),
        };
        Self {
            value,
            position: NOWHERE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(node: &Node) -> &[(MapKey, Node)] {
        match &node.value {
            Value::Map(pairs) => pairs,
            other => panic!("no mapping: {other:?}"),
        }
    }

    #[test]
    fn lone_carriage_return_does_not_end_a_line() {
        let position = |text: &str| {
            let node = parse(text, 1).unwrap();
            (node.position.line, node.position.column)
        };
        assert_eq!(position("\rword"), (1, 2));
        assert_eq!(position("# first\r\nsecond"), (2, 1));
        assert_eq!(lines("a\rb\r\nc\r"), "a b\r\nc ");
        assert!(matches!(lines("a\r\nb\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn positions_count_from_the_first_line_of_the_file() {
        let node = parse("title: Ok\nitems:\n  - a\n  - b: 1\n", 2).expect("valid");
        let (key, value) = &pairs(&node)[0];
        assert_eq!(
            (key.position.line, key.position.column, key.position.length),
            (2, 1, 5)
        );
        assert_eq!((value.position.line, value.position.column), (2, 8));
        let Value::List(items) = &pairs(&node)[1].1.value else {
            panic!("no list")
        };
        assert_eq!((items[0].position.line, items[0].position.column), (4, 5));
    }

    #[test]
    fn duplicate_keys_are_kept() {
        let node = parse("a: 1\na: 2\n", 1).expect("valid");
        assert_eq!(pairs(&node).len(), 2);
        assert_eq!(pairs(&node)[1].0.position.line, 2);
    }

    #[test]
    fn date_and_zip_code_keep_their_types() {
        let node = parse("date: 2025-07-21\nzip: 60608\nyes: yes\n", 1).expect("valid");
        assert_eq!(pairs(&node)[0].1.value, Value::Text("2025-07-21".into()));
        assert_eq!(pairs(&node)[1].1.value, Value::Number(60608.into(), None));
        assert_eq!(pairs(&node)[2].1.value, Value::Text("yes".into()));
    }

    #[test]
    fn number_keeps_its_original_text() {
        let node = parse("a: 1.10\nb: [01234, 0x1F, 7]\nc: &x 2.0\n", 1).expect("valid");
        let written = |node: &Node| match &node.value {
            Value::Number(_, written) => written.as_deref().cloned(),
            other => panic!("no number: {other:?}"),
        };
        assert_eq!(written(&pairs(&node)[0].1).as_deref(), Some("1.10"));
        let Value::List(items) = &pairs(&node)[1].1.value else {
            panic!("no list")
        };
        let items: Vec<_> = items.iter().map(written).collect();
        assert_eq!(
            items,
            [Some("01234".to_owned()), Some("0x1F".to_owned()), None]
        );
    }

    #[test]
    fn syntax_error_has_a_position_in_the_file() {
        let error = parse("a: [1, 2\nb: 3\n", 10).expect_err("invalid");
        assert!(
            error.position.is_some_and(|position| position.line >= 10),
            "{error:?}"
        );
    }

    #[test]
    fn file_with_too_many_values_is_refused_before_they_are_built() {
        let items = |count: usize| format!("list:\n{}", "- a\n".repeat(count));
        let node = parse(&items(1_000), 1).expect("valid");
        assert_eq!(node.count(), 1 + 1 + 1 + 1_000);
        let error = parse(&items(MAX_FILE_NODES), 1).expect_err("too many");
        assert_eq!(error.code, Code::TooLarge);
        assert_eq!(
            error.message,
            "the file has more than 100000 keys and values"
        );
    }

    #[test]
    fn alias_bomb_is_refused() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let before = format!("*a{}, ", level - 1).repeat(10);
            text.push_str(&format!("a{level}: &a{level} [{before}]\n"));
        }
        assert!(parse(&text, 1).is_err());
    }
}
