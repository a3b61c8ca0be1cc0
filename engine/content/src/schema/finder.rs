//! Turns the library's validation errors into messages for authors, with positions and hints.

use std::collections::{BTreeMap, HashMap};

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::paths::Location;
use serde_json::Value as Json;

use super::reference::referred;
use crate::report::{Code, TextPosition, hint_for, list};
use crate::yaml::{Node, Value};

/// The number of violations of one code that are listed. Further violations are counted.
const MAX_VIOLATIONS: usize = 50;

/// One mismatch between a value and its schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The kind of problem.
    pub code: Code,
    /// The position in the file.
    pub position: TextPosition,
    /// The message: lower case, no full stop.
    pub message: String,
    /// How to fix the problem.
    pub hint: Option<String>,
}

/// A check of a text against a format. The error is a message and a hint.
pub type FormatCheck = fn(format: &str, text: &str) -> Result<(), (String, Option<String>)>;

/// Converts validation errors into violations.
pub(super) struct ViolationFinder<'a> {
    pub(super) schema: &'a Json,
    pub(super) formats: FormatCheck,
    pub(super) node: &'a Node,
    /// The name of the entire value in messages.
    pub(super) what: &'a str,
    pub(super) problems: Vec<Violation>,
    pub(super) counts: BTreeMap<Code, usize>,
}

impl<'a> ViolationFinder<'a> {
    /// Counts a violation. Returns whether it should be listed.
    fn is_listed(&mut self, code: Code) -> bool {
        let count = self.counts.entry(code).or_default();
        *count += 1;
        *count <= MAX_VIOLATIONS
    }

    fn push(&mut self, problem: Violation) {
        if self.is_listed(problem.code) {
            self.problems.push(problem);
        }
    }

    pub(super) fn count_the_rest(&mut self) {
        let counts = self
            .counts
            .iter()
            .filter(|(_, count)| **count > MAX_VIOLATIONS);
        self.problems.extend(counts.map(|(code, count)| Violation {
            code: *code,
            position: self.node.position,
            message: format!("{count} problems of this kind in total; not all are listed"),
            hint: None,
        }));
    }

    pub(super) fn duplicate_keys(&mut self, node: &Node) {
        match &node.value {
            Value::Map(pairs) => {
                let mut known = HashMap::new();
                for (key, value) in pairs {
                    if let Some(first) = known.insert(key.name.as_str(), key.position) {
                        self.push(Violation {
                            code: Code::DuplicateKey,
                            position: key.position,
                            message: format!("duplicate key `{}`", key.name),
                            hint: Some(format!("remove the key here or in line {}", first.line)),
                        });
                    }
                    self.duplicate_keys(value);
                }
            }
            Value::List(items) => items.iter().for_each(|item| self.duplicate_keys(item)),
            _ => {}
        }
    }

    /// Converts one validation error. `variant` is set if one of several alternative shapes applies: the location of the value, and its name in messages.
    pub(super) fn add_error(
        &mut self,
        error: &ValidationError<'_>,
        variant: Option<(&Location, &str)>,
    ) {
        let before = self.problems.len();
        self.convert(error, variant);
        let about = description(self.schema_of_error(error));
        for problem in &mut self.problems[before..] {
            problem.hint = problem.hint.take().or_else(|| about.map(ToOwned::to_owned));
        }
    }

    /// Returns the schema that contains the keyword which failed.
    fn schema_of_error(&self, error: &ValidationError<'_>) -> Option<&'a Json> {
        let (parent, _) = error.schema_path().as_str().rsplit_once('/')?;
        self.schema.pointer(parent)
    }

    fn convert(&mut self, error: &ValidationError<'_>, variant: Option<(&Location, &str)>) {
        let location = error.instance_path();
        let root = self.node;
        let Some(node) = node_at(root, location) else {
            return;
        };
        let what = match variant {
            Some((at, what)) if at == location => what.to_owned(),
            _ => name_of(root, location, self.what),
        };
        match error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected } => {
                for name in unexpected {
                    self.unknown_key(node, name, error, &what);
                }
            }
            ValidationErrorKind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                let about = self.sibling(error, "properties");
                let about = about.and_then(|properties| description(properties.get(name)));
                self.push(Violation {
                    code: Code::MissingKey,
                    position: node.position,
                    message: format!("{what} needs the key `{name}`"),
                    hint: about.map(|text| format!("add `{name}`: {text}")),
                });
            }
            ValidationErrorKind::Type { kind } => {
                let types: Vec<String> = match kind {
                    TypeKind::Single(name) => vec![name.to_string()],
                    TypeKind::Multiple(several) => {
                        several.iter().map(|name| name.to_string()).collect()
                    }
                };
                let types: Vec<&str> = types.iter().map(String::as_str).collect();
                let before = self.problems.len();
                self.wrong_type(node, &types, &what);
                self.prefer_format_hint(node, error, before);
            }
            ValidationErrorKind::Enum { options } => {
                let options = options.as_array().map_or(&[][..], Vec::as_slice);
                self.choice(node, &options.iter().collect::<Vec<_>>(), &what);
            }
            ValidationErrorKind::Constant { expected_value } => {
                self.choice(node, &[expected_value], &what);
            }
            ValidationErrorKind::OneOfNotValid { context }
            | ValidationErrorKind::AnyOf { context } => {
                self.report_no_alternative(node, error, context, &what);
            }
            ValidationErrorKind::Format { format } => {
                let Value::Text(text) = &node.value else {
                    return;
                };
                let formats = self.formats;
                if let Err((message, hint)) = formats(format, text) {
                    self.push(Violation {
                        code: Code::BadValue,
                        position: node.position,
                        message: format!("{what}: {message}"),
                        hint,
                    });
                }
            }
            // The schema's description explains which values exclude each other.
            ValidationErrorKind::Not { .. } => self.push(Violation {
                code: Code::BadValue,
                position: node.position,
                message: format!("{what} is not valid"),
                hint: None,
            }),
            ValidationErrorKind::MinLength { limit: 1 } => self.push(Violation {
                code: Code::BadValue,
                position: node.position,
                message: format!("{what} is empty"),
                hint: Some("write a text, or remove the key".to_owned()),
            }),
            ValidationErrorKind::MaxItems { limit } => {
                let items = match &node.value {
                    Value::List(items) => items.as_slice(),
                    _ => &[],
                };
                let first = usize::try_from(*limit)
                    .ok()
                    .and_then(|most| items.get(most));
                self.push(Violation {
                    code: Code::TooLarge,
                    position: first.map_or(node.position, |first| first.position),
                    message: format!("{what} has {} items; the limit is {limit}", items.len()),
                    hint: Some("remove this item and all items after it".to_owned()),
                });
            }
            _ => self.push(Violation {
                code: Code::BadValue,
                position: node.position,
                message: format!("{what}: {}", error.masked_with("the value")),
                hint: None,
            }),
        }
    }

    /// Replaces the hint to add quotes by the hint of the format: a number in quotes would still not be a date. A text in place of a list of texts gets brackets. Colours and links may begin with `#`, which begins a comment without quotes.
    fn prefer_format_hint(&mut self, node: &Node, error: &ValidationError<'_>, since: usize) {
        if node.value == Value::Null
            && let Some(Json::String(format)) = self.sibling(error, "format")
            && ["colour", "link"].contains(&format.as_str())
        {
            for problem in &mut self.problems[since..] {
                let hint = "write a value; put a value that begins with `#` in quotes";
                problem.hint = Some(hint.to_owned());
            }
        }
        if let Value::Text(text) = &node.value
            && let Some(items) = self.sibling(error, "items")
            && types_of(referred(self.schema, items)) == ["string"]
        {
            for problem in &mut self.problems[since..] {
                problem.hint = Some(format!("write a list: `[{text}]`"));
            }
        }
        if let Value::Number(number, written) = &node.value
            && let Some(Json::String(format)) = self.sibling(error, "format")
            && let Err((_, hint)) = (self.formats)(format, &as_written(number, written.as_deref()))
        {
            for problem in &mut self.problems[since..] {
                problem.hint.clone_from(&hint);
            }
        }
    }

    /// Returns another keyword of the schema that failed.
    fn sibling(&self, error: &ValidationError<'_>, keyword: &str) -> Option<&'a Json> {
        self.schema_of_error(error)?.get(keyword)
    }

    fn unknown_key(&mut self, node: &Node, name: &str, error: &ValidationError<'_>, what: &str) {
        // Finding the nearest name is slow, so skip violations that are not listed.
        if !self.is_listed(Code::UnknownKey) {
            return;
        }
        let Value::Map(pairs) = &node.value else {
            return;
        };
        let properties = self.sibling(error, "properties").and_then(Json::as_object);
        let hint = properties.map(|properties| {
            let names = properties.keys().map(String::as_str);
            hint_for(name, names)
        });
        if let Some((key, _)) = pairs.iter().find(|(key, _)| key.name == name) {
            self.problems.push(Violation {
                code: Code::UnknownKey,
                position: key.position,
                message: format!("unknown key `{name}` in {what}"),
                hint,
            });
        }
    }

    /// Reports that a value fits none of several alternatives. `context` has the errors of each. The value's tag or type decides which alternative was intended.
    fn report_no_alternative(
        &mut self,
        node: &Node,
        error: &ValidationError<'_>,
        context: &[Vec<ValidationError<'static>>],
        what: &str,
    ) {
        let (schema, location) = (self.schema, error.instance_path());
        let choices = schema.pointer(error.schema_path().as_str());
        let choices = choices
            .and_then(Json::as_array)
            .map_or(&[][..], Vec::as_slice);
        let constants: Vec<&Json> = choices
            .iter()
            .flat_map(|choice| match (choice.get("const"), choice.get("enum")) {
                (Some(constant), _) => vec![constant],
                (_, Some(Json::Array(several))) => several.iter().collect(),
                _ => Vec::new(),
            })
            .collect();
        if !constants.is_empty() {
            return self.choice(node, &constants, what);
        }
        if let Some((tag, names)) = tagged(choices) {
            let Value::Map(pairs) = &node.value else {
                return self.wrong_type(node, &["object"], what);
            };
            let value = pairs.iter().find(|(key, _)| key.name == tag);
            return match value.map(|(_, value)| (value, &value.value)) {
                None => self.push(Violation {
                    code: Code::MissingKey,
                    position: node.position,
                    message: format!("{what} needs the key `{tag}`"),
                    hint: Some(format!("valid here: {}", list(names.iter().copied()))),
                }),
                Some((value, Value::Text(text))) => {
                    match names.iter().position(|name| name == text) {
                        Some(index) => {
                            let what = format!("{what} with `{tag}: {text}`");
                            for error in context.get(index).into_iter().flatten() {
                                self.add_error(error, Some((location, &what)));
                            }
                        }
                        None => {
                            let names = names.iter().copied();
                            self.unknown_choice(value, text, names, &format!("`{tag}`"));
                        }
                    }
                }
                Some((value, _)) => self.wrong_type(value, &["string"], &format!("`{tag}`")),
            };
        }
        let is_of_another_type = |error: &ValidationError<'_>| {
            matches!(error.kind(), ValidationErrorKind::Type { .. })
                && error.instance_path() == location
        };
        match context
            .iter()
            .find(|errors| !errors.iter().any(is_of_another_type))
        {
            Some(errors) => errors.iter().for_each(|error| self.add_error(error, None)),
            None => {
                let types: Vec<&str> = choices
                    .iter()
                    .flat_map(|choice| types_of(referred(schema, choice)))
                    .collect();
                self.wrong_type(node, &types, what);
            }
        }
    }

    fn choice(&mut self, node: &Node, choices: &[&Json], what: &str) {
        let value = node.to_json();
        if choices.contains(&&value) {
            return;
        }
        let choices = choices.iter().filter_map(|choice| match choice {
            Json::String(text) => Some(text.clone()),
            Json::Number(number) => Some(number.to_string()),
            _ => None,
        });
        let choices: Vec<String> = choices.collect();
        let names = choices.iter().map(String::as_str);
        match (&node.value, value) {
            (Value::Text(text), _) => self.unknown_choice(node, text, names, what),
            (_, Json::Number(number)) if choices.iter().all(|name| name.parse::<f64>().is_ok()) => {
                self.unknown_choice(node, &number.to_string(), names, what);
            }
            _ => self.wrong_type(node, &["string"], what),
        }
    }

    fn unknown_choice<'n>(
        &mut self,
        node: &Node,
        text: &str,
        names: impl Iterator<Item = &'n str> + Clone,
        what: &str,
    ) {
        let near = crate::report::nearest(text, names.clone());
        self.push(Violation {
            code: Code::BadValue,
            position: node.position,
            message: format!("`{text}` is not a valid value for {what}"),
            // A number that looks like another number is not a misspelling.
            hint: Some(match near.filter(|_| text.parse::<f64>().is_err()) {
                Some(name) => format!("did you mean `{name}`? Valid here: {}", list(names)),
                None => format!("valid here: {}", list(names)),
            }),
        });
    }

    fn wrong_type(&mut self, node: &Node, types: &[&str], what: &str) {
        let mut wanted: Vec<&str> = types
            .iter()
            .filter(|name| **name != "null")
            .map(|name| type_name(name))
            .collect();
        wanted.dedup();
        let hint = match &node.value {
            Value::Number(number, written) if types.contains(&"string") => Some(format!(
                "put the value in quotes: \"{}\"",
                as_written(number, written.as_deref())
            )),
            Value::Bool(value) if types.contains(&"string") => {
                Some(format!("put the value in quotes: \"{value}\""))
            }
            Value::Map(_) if types.contains(&"string") => {
                Some("put a text that contains `: ` in quotes".to_owned())
            }
            _ => None,
        };
        self.push(Violation {
            code: Code::WrongType,
            position: node.position,
            message: format!(
                "{what} should be {}, but is {}",
                wanted.join(" or "),
                describe_value(node)
            ),
            hint,
        });
    }
}

/// Returns a number as its author wrote it.
fn as_written(number: &serde_json::Number, written: Option<&String>) -> String {
    written.map_or_else(|| number.to_string(), ToOwned::to_owned)
}

fn type_name(name: &str) -> &str {
    match name {
        "string" => "a text",
        "boolean" => "`true` or `false`",
        "number" => "a number",
        "integer" => "a whole number",
        "array" => "a list",
        "object" => "a mapping",
        other => other,
    }
}

fn describe_value(node: &Node) -> String {
    match &node.value {
        Value::Null => "empty".to_owned(),
        Value::Bool(value) => format!("`{value}`"),
        Value::Number(number, written) => {
            format!("the number `{}`", as_written(number, written.as_deref()))
        }
        Value::Text(_) => "a text".to_owned(),
        Value::List(_) => "a list".to_owned(),
        Value::Map(_) => "a mapping".to_owned(),
    }
}

fn description(schema: Option<&Json>) -> Option<&str> {
    schema?.get("description")?.as_str()?.lines().next()
}

/// Returns the key that distinguishes the alternatives, and its value in each.
fn tagged(choices: &[Json]) -> Option<(&str, Vec<&str>)> {
    let constant = |property: &Json| property.get("const").is_some();
    let (tag, _) = choices
        .first()?
        .get("properties")?
        .as_object()?
        .iter()
        .find(|(_, property)| constant(property))?;
    let names = choices
        .iter()
        .map(|choice| choice.get("properties")?.get(tag)?.get("const")?.as_str())
        .collect::<Option<Vec<_>>>()?;
    Some((tag, names))
}

/// Returns the steps to a location: key names or item indices. The value at each step decides which, because a key may look like a number.
fn steps(location: &Location) -> impl Iterator<Item = String> {
    let steps = location.as_str().split('/').skip(1);
    steps.map(|step| step.replace("~1", "/").replace("~0", "~"))
}

/// Returns the node at a location. Of duplicate keys, uses the last, as JSON does.
pub(super) fn node_at<'n>(node: &'n Node, location: &Location) -> Option<&'n Node> {
    steps(location).try_fold(node, |node, step| inner(node, &step))
}

fn inner<'n>(node: &'n Node, step: &str) -> Option<&'n Node> {
    match &node.value {
        Value::Map(pairs) => {
            let named = pairs.iter().rfind(|(key, _)| key.name == step);
            named.map(|(_, value)| value)
        }
        Value::List(items) => items.get(step.parse::<usize>().ok()?),
        _ => None,
    }
}

/// Returns the name of a value in messages: its key in backticks, or `root` for the entire value.
fn name_of(node: &Node, location: &Location, root: &str) -> String {
    let from = (Some(node), root.to_owned());
    let (_, what) = steps(location).fold(from, |(node, what), step| {
        let what = match node.map(|node| &node.value) {
            Some(Value::List(_)) => format!("an item of {what}"),
            _ => format!("`{step}`"),
        };
        (node.and_then(|node| inner(node, &step)), what)
    });
    what
}

fn types_of(schema: &Json) -> Vec<&str> {
    match schema.get("type") {
        Some(Json::String(name)) => vec![name],
        Some(Json::Array(names)) => names.iter().filter_map(Json::as_str).collect(),
        _ if schema.get("properties").is_some() => vec!["object"],
        _ => Vec::new(),
    }
}
