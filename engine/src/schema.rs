//! Holds a tree of values against a JSON Schema (draft 2020-12) and says everything that does not fit.
//!
//! The schemas come from the Rust types (`schemars`) and from the islands' own declarations, so that one source makes the types, the errors and the editors' help.
//! The library `jsonschema` decides, by every keyword that the draft has; this module gives what it finds a place in the author's file, an author's words and a hint.
//!
//! **Invariant:** knows no file format and no meaning of any key; formats are checked by whoever calls.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{ValidationError, Validator};
use serde_json::Value as Json;
use thiserror::Error;

use crate::report::{Code, Place, hint_for, list};
use crate::yaml::{Node, Value};

/// One thing that does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Which kind.
    pub code: Code,
    /// Where.
    pub place: Place,
    /// What: lower case, no full stop.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

/// A text that has a `format`, for later checks that need more than the text: links, assets, Markdown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Formatted {
    /// The schema's `format`.
    pub format: String,
    /// The text.
    pub text: String,
    /// Where it stands.
    pub place: Place,
}

/// Says why a text is not of a format: the message and a hint.
pub type FormatCheck = fn(format: &str, text: &str) -> Result<(), (String, Option<String>)>;

/// So many problems of one kind are listed; the rest are counted.
const MOST: usize = 50;
/// So many errors are looked at: a file with more is not read by anybody to its end.
const ERRORS: usize = 5_000;

/// Why a schema is none.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the schema itself is wrong: {0}")]
pub struct SchemaError(String);

/// A schema, ready to be held against values.
#[derive(Debug)]
pub struct Schema {
    root: Json,
    formats: FormatCheck,
    validator: Validator,
}

impl Schema {
    /// Prepares a schema. `formats` says what its formats want.
    ///
    /// # Errors
    /// When it is no JSON Schema.
    pub fn new(root: Json, formats: FormatCheck) -> Result<Self, SchemaError> {
        let mut names = BTreeSet::new();
        format_names(&root, &mut names);
        let mut options = jsonschema::options().should_validate_formats(true);
        for name in names {
            let own = name.clone();
            options = options.with_format(name, move |text| formats(&own, text).is_ok());
        }
        let validator = options.build(&root);
        Ok(Self {
            validator: validator.map_err(|error| SchemaError(error.to_string()))?,
            root,
            formats,
        })
    }

    /// Everything that is wrong; where nothing is, every formatted text, in the order of the file.
    #[must_use]
    pub fn check(&self, node: &Node) -> (Vec<Problem>, Vec<Formatted>) {
        let mut finder = Finder {
            schema: self,
            node,
            problems: Vec::new(),
            counts: BTreeMap::new(),
        };
        finder.duplicate_keys(node);
        let value = node.to_json();
        for error in self.validator.iter_errors(&value).take(ERRORS) {
            finder.error(&error, None);
        }
        finder.tell_of_more();
        let mut problems = finder.problems;
        // In the order of the file. A key that is unknown is often the one that is missing, with a typing error.
        problems.sort_by_key(|problem| (problem.place, problem.code != Code::UnknownKey));
        let formatted = match problems.as_slice() {
            [] => self.formatted(node, &value),
            _ => Vec::new(),
        };
        (problems, formatted)
    }

    fn formatted(&self, node: &Node, value: &Json) -> Vec<Formatted> {
        let evaluation = self.validator.evaluate(value);
        let formats = evaluation.iter_annotations().filter_map(|annotation| {
            let format = annotation.annotations.value().as_str()?;
            let node = node_at(node, annotation.instance_location)?;
            match &node.value {
                Value::Text(text) if annotation.schema_location.ends_with("/format") => {
                    Some(Formatted {
                        format: format.to_owned(),
                        text: text.clone(),
                        place: node.place,
                    })
                }
                _ => None,
            }
        });
        let mut formatted: Vec<Formatted> = formats.collect();
        formatted.sort_by_key(|text| text.place);
        formatted.dedup();
        formatted
    }

    fn resolve<'s>(&'s self, mut schema: &'s Json) -> &'s Json {
        while let Some(reference) = schema.get("$ref").and_then(Json::as_str) {
            let pointer = reference.strip_prefix('#');
            match pointer.and_then(|pointer| self.root.pointer(pointer)) {
                Some(target) => schema = target,
                None => break,
            }
        }
        schema
    }
}

/// Every `format` that a schema names.
fn format_names(schema: &Json, names: &mut BTreeSet<String>) {
    match schema {
        Json::Object(keys) => {
            if let Some(Json::String(name)) = keys.get("format") {
                names.insert(name.clone());
            }
            keys.values().for_each(|inner| format_names(inner, names));
        }
        Json::Array(items) => items.iter().for_each(|inner| format_names(inner, names)),
        _ => {}
    }
}

/// The value at a place of the tree. Of a key that is there twice, the last: it is the one that JSON keeps.
fn node_at<'n>(node: &'n Node, location: &Location) -> Option<&'n Node> {
    location
        .segments()
        .try_fold(node, |node, segment| match (&node.value, segment) {
            (Value::Map(pairs), LocationSegment::Property(name)) => pairs
                .iter()
                .rfind(|(key, _)| key.name == name)
                .map(|(_, value)| value),
            (Value::List(items), LocationSegment::Index(index)) => items.get(index),
            _ => None,
        })
}

/// How messages name the value at a place: a key in backticks, or the file.
fn name_of(location: &Location) -> String {
    location
        .segments()
        .fold("the file".to_owned(), |what, segment| match segment {
            LocationSegment::Property(name) => format!("`{name}`"),
            LocationSegment::Index(_) => format!("an item of {what}"),
        })
}

/// Turns the library's errors into problems.
struct Finder<'a> {
    schema: &'a Schema,
    node: &'a Node,
    problems: Vec<Problem>,
    counts: BTreeMap<Code, usize>,
}

impl<'a> Finder<'a> {
    /// Counts one more of a kind, and says whether it is listed.
    fn is_listed(&mut self, code: Code) -> bool {
        let count = self.counts.entry(code).or_default();
        *count += 1;
        *count <= MOST
    }

    fn push(&mut self, problem: Problem) {
        if self.is_listed(problem.code) {
            self.problems.push(problem);
        }
    }

    fn tell_of_more(&mut self) {
        let counts = self.counts.iter().filter(|(_, count)| **count > MOST);
        self.problems.extend(counts.map(|(code, count)| Problem {
            code: *code,
            place: self.node.place,
            message: format!("{count} or more of this kind are in this file; {MOST} are listed"),
            hint: None,
        }));
    }

    fn duplicate_keys(&mut self, node: &Node) {
        match &node.value {
            Value::Map(pairs) => {
                let mut known = HashMap::new();
                for (key, value) in pairs {
                    if let Some(first) = known.insert(key.name.as_str(), key.place) {
                        self.push(Problem {
                            code: Code::DuplicateKey,
                            place: key.place,
                            message: format!("the key `{}` is here twice", key.name),
                            hint: Some(format!("remove it here or in line {}", first.line)),
                        });
                    }
                    self.duplicate_keys(value);
                }
            }
            Value::List(items) => items.iter().for_each(|item| self.duplicate_keys(item)),
            _ => {}
        }
    }

    /// `variant` names the value, when one of several shapes of it is meant: at this place, by these words.
    fn error(&mut self, error: &ValidationError<'_>, variant: Option<(&Location, &str)>) {
        let location = error.instance_path();
        let whole = self.node;
        let Some(node) = node_at(whole, location) else {
            return;
        };
        let what = match variant {
            Some((at, what)) if at == location => what.to_owned(),
            _ => name_of(location),
        };
        match error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected } => {
                for name in unexpected {
                    self.unknown_key(node, name, error, &what);
                }
            }
            ValidationErrorKind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                let about = self.beside(error, "properties");
                let about = about.and_then(|properties| description(properties.get(name)));
                self.push(Problem {
                    code: Code::MissingKey,
                    place: node.place,
                    message: format!("{what} needs the key `{name}`"),
                    hint: about.map(|text| format!("`{name}`: {text}")),
                });
            }
            ValidationErrorKind::Type { kind } => {
                let types: Vec<String> = match kind {
                    TypeKind::Single(one) => vec![one.to_string()],
                    TypeKind::Multiple(several) => {
                        several.iter().map(|one| one.to_string()).collect()
                    }
                };
                let types: Vec<&str> = types.iter().map(String::as_str).collect();
                self.wrong_type(node, &types, &what);
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
                self.none_of(node, error, context, &what);
            }
            ValidationErrorKind::Format { format } => {
                let Value::Text(text) = &node.value else {
                    return;
                };
                let formats = self.schema.formats;
                if let Err((message, hint)) = formats(format, text) {
                    self.push(Problem {
                        code: Code::BadValue,
                        place: node.place,
                        message: format!("{what}: {message}"),
                        hint,
                    });
                }
            }
            ValidationErrorKind::MinLength { limit: 1 } => self.push(Problem {
                code: Code::BadValue,
                place: node.place,
                message: format!("{what} is an empty text"),
                hint: Some("write something, or leave the key out".to_owned()),
            }),
            ValidationErrorKind::MaxItems { limit } => {
                let items = match &node.value {
                    Value::List(items) => items.as_slice(),
                    _ => &[],
                };
                let first = usize::try_from(*limit)
                    .ok()
                    .and_then(|most| items.get(most));
                self.push(Problem {
                    code: Code::TooLarge,
                    place: first.map_or(node.place, |first| first.place),
                    message: format!(
                        "{what} has {} items, more than the {limit} that there may be",
                        items.len()
                    ),
                    hint: Some("take out this one and those after it".to_owned()),
                });
            }
            _ => self.push(Problem {
                code: Code::BadValue,
                place: node.place,
                message: format!("{what}: {}", error.masked_with("the value")),
                hint: None,
            }),
        }
    }

    /// Another keyword of the schema that an error comes from.
    fn beside(&self, error: &ValidationError<'_>, keyword: &str) -> Option<&'a Json> {
        let (parent, _) = error.schema_path().as_str().rsplit_once('/')?;
        self.schema.root.pointer(parent)?.get(keyword)
    }

    fn unknown_key(&mut self, node: &Node, name: &str, error: &ValidationError<'_>, what: &str) {
        // The nearest of many names takes a while to find.
        if !self.is_listed(Code::UnknownKey) {
            return;
        }
        let Value::Map(pairs) = &node.value else {
            return;
        };
        let properties = self.beside(error, "properties").and_then(Json::as_object);
        let hint = properties.map(|properties| {
            let names = properties.keys().map(String::as_str);
            hint_for(name, names)
        });
        if let Some((key, _)) = pairs.iter().find(|(key, _)| key.name == name) {
            self.problems.push(Problem {
                code: Code::UnknownKey,
                place: key.place,
                message: format!("unknown key `{name}` in {what}"),
                hint,
            });
        }
    }

    /// Nothing of several fits: `context` says for each why. What was meant is told by its tag or by its type.
    fn none_of(
        &mut self,
        node: &Node,
        error: &ValidationError<'_>,
        context: &[Vec<ValidationError<'static>>],
        what: &str,
    ) {
        let (schema, location) = (self.schema, error.instance_path());
        let choices = schema.root.pointer(error.schema_path().as_str());
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
                None => self.push(Problem {
                    code: Code::MissingKey,
                    place: node.place,
                    message: format!("{what} needs the key `{tag}`"),
                    hint: Some(format!("valid here: {}", list(names.iter().copied()))),
                }),
                Some((value, Value::Text(text))) => {
                    match names.iter().position(|name| name == text) {
                        Some(index) => {
                            let what = format!("a section of kind `{text}`");
                            for error in context.get(index).into_iter().flatten() {
                                self.error(error, Some((location, &what)));
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
            Some(errors) => errors.iter().for_each(|error| self.error(error, None)),
            None => {
                let types: Vec<&str> = choices
                    .iter()
                    .flat_map(|choice| types_of(schema.resolve(choice)))
                    .collect();
                self.wrong_type(node, &types, what);
            }
        }
    }

    fn choice(&mut self, node: &Node, choices: &[&Json], what: &str) {
        let names = choices.iter().filter_map(|choice| choice.as_str());
        match &node.value {
            Value::Text(text) if !choices.iter().any(|choice| choice.as_str() == Some(text)) => {
                self.unknown_choice(node, text, names, what);
            }
            Value::Text(_) => {}
            _ if choices.contains(&&node.to_json()) => {}
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
        self.push(Problem {
            code: Code::BadValue,
            place: node.place,
            message: format!("{what} cannot be `{text}`"),
            hint: Some(match crate::report::nearest(text, names.clone()) {
                Some(name) => format!("did you mean `{name}`? Valid here: {}", list(names)),
                None => format!("valid here: {}", list(names)),
            }),
        });
    }

    fn wrong_type(&mut self, node: &Node, types: &[&str], what: &str) {
        let mut wanted: Vec<&str> = types
            .iter()
            .filter(|name| **name != "null")
            .map(|name| described(name))
            .collect();
        wanted.dedup();
        let hint = match &node.value {
            Value::Number(number) if types.contains(&"string") => {
                Some(format!("put it in quotes: \"{number}\""))
            }
            Value::Bool(value) if types.contains(&"string") => {
                Some(format!("put it in quotes: \"{value}\""))
            }
            Value::Map(_) if types.contains(&"string") => {
                Some("a text that holds `: ` needs quotes".to_owned())
            }
            _ => None,
        };
        self.push(Problem {
            code: Code::WrongType,
            place: node.place,
            message: format!(
                "{what} should be {}, but is {}",
                wanted.join(" or "),
                kind_of(node)
            ),
            hint,
        });
    }
}

fn types_of(schema: &Json) -> Vec<&str> {
    match schema.get("type") {
        Some(Json::String(name)) => vec![name],
        Some(Json::Array(names)) => names.iter().filter_map(Json::as_str).collect(),
        _ if schema.get("properties").is_some() => vec!["object"],
        _ => Vec::new(),
    }
}

fn described(name: &str) -> &str {
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

fn kind_of(node: &Node) -> String {
    match &node.value {
        Value::Null => "empty".to_owned(),
        Value::Bool(value) => format!("`{value}`"),
        Value::Number(number) => format!("the number `{number}`"),
        Value::Text(_) => "a text".to_owned(),
        Value::List(_) => "a list".to_owned(),
        Value::Map(_) => "a mapping".to_owned(),
    }
}

fn description(schema: Option<&Json>) -> Option<&str> {
    schema?.get("description")?.as_str()?.lines().next()
}

/// The key that tells the variants apart, and each variant's value of that key.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn messages(schema: Json, value: Json) -> Vec<String> {
        let schema = Schema::new(schema, |_, _| Ok(())).expect("a schema");
        let (problems, _) = schema.check(&Node::from_json(&value));
        problems
            .into_iter()
            .map(|problem| problem.message)
            .collect()
    }

    #[test]
    fn every_keyword_of_the_draft_counts() {
        for (keyword, bad) in [
            (json!({"minLength": 1}), json!("")),
            (json!({"maxLength": 2}), json!("abc")),
            (json!({"pattern": "^a"}), json!("b")),
            (json!({"minimum": 1}), json!(0)),
            (json!({"exclusiveMaximum": 1}), json!(1)),
            (json!({"multipleOf": 2}), json!(3)),
            (json!({"minItems": 1}), json!([])),
            (json!({"maxItems": 1}), json!([1, 2])),
            (json!({"uniqueItems": true}), json!([1, 1])),
            (json!({"contains": {"const": 1}}), json!([2])),
            (json!({"prefixItems": [{"type": "string"}]}), json!([1])),
            (json!({"minProperties": 1}), json!({})),
            (json!({"propertyNames": {"maxLength": 1}}), json!({"ab": 1})),
            (json!({"dependentRequired": {"a": ["b"]}}), json!({"a": 1})),
            (json!({"not": {"type": "string"}}), json!("")),
            (json!({"if": {"type": "string"}, "then": false}), json!("")),
        ] {
            let schema = json!({"properties": {"key": keyword}});
            let messages = messages(schema, json!({"key": bad}));
            assert!(!messages.is_empty(), "{keyword} lets {bad} pass");
            assert!(
                messages.iter().all(|message| message.contains('`')),
                "{messages:?}"
            );
        }
    }

    #[test]
    fn what_is_no_schema_is_refused() {
        assert!(Schema::new(json!({"type": "sting"}), |_, _| Ok(())).is_err());
    }
}
