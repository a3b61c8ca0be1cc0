//! Validates a tree of values against a JSON Schema (draft 2020-12) and reports every mismatch.
//!
//! Schemas come from the Rust types (`schemars`), from themes and from the islands' declarations. The same schema thus drives types, errors and the help of editors.
//! The library `jsonschema` validates all keywords of the draft. This module adds the position in the author's file, a readable message and a hint.
//!
//! **Invariant:** knows no file format and does not know what a key means. The caller checks formats.

mod finder;
mod reference;

use std::collections::{BTreeMap, BTreeSet};

use jsonschema::Validator;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use thiserror::Error;

pub use self::finder::{FormatCheck, Violation};
use self::finder::{ViolationFinder, node_at};
pub use self::reference::referred;
use crate::report::{Code, TextPosition};
use crate::yaml::{Node, Value};

/// A text with a `format`. Later checks of links, assets and Markdown need more than the text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormattedText {
    /// The `format` of the schema.
    pub format: String,
    /// The text.
    pub text: String,
    /// The position of the text.
    pub position: TextPosition,
}

/// The number of validation errors examined per file. Authors do not read further.
const MAX_EXAMINED_ERRORS: usize = 5_000;

/// The reason why a schema is not valid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the schema is not valid: {0}")]
pub struct SchemaError(String);

impl SchemaError {
    /// Creates an error. `reason` is lower case, without a full stop.
    #[must_use]
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// A compiled schema.
#[derive(Debug)]
pub struct Schema {
    root: Json,
    formats: FormatCheck,
    validator: Validator,
}

impl Schema {
    /// Compiles a schema. `formats` checks the formats that the schema uses.
    ///
    /// # Errors
    /// If the schema is not valid JSON Schema.
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

    /// Returns the schema as JSON.
    #[must_use]
    pub const fn root(&self) -> &Json {
        &self.root
    }

    /// Validates a node. Returns all violations, or if there are none, all texts with a format in the order of the file.
    #[must_use]
    pub fn check(&self, node: &Node) -> (Vec<Violation>, Vec<FormattedText>) {
        let value = node.to_json();
        let problems = self.problems(node, &value, "the file");
        let formatted = match problems.as_slice() {
            [] => self.formatted(node, &value).0,
            _ => Vec::new(),
        };
        (problems, formatted)
    }

    /// Validates `value`, which was written as `node`. `what` is the name of the value in messages.
    pub(crate) fn problems(&self, node: &Node, value: &Json, what: &str) -> Vec<Violation> {
        let mut finder = ViolationFinder {
            schema: &self.root,
            formats: self.formats,
            node,
            what,
            problems: Vec::new(),
            counts: BTreeMap::new(),
        };
        finder.duplicate_keys(node);
        for error in self.validator.iter_errors(value).take(MAX_EXAMINED_ERRORS) {
            finder.add_error(&error, None);
        }
        finder.count_the_rest();
        let mut problems = finder.problems;
        // In the order of the file. An unknown key comes before a missing one: it is often the same key, misspelt.
        problems.sort_by_key(|problem| (problem.position, problem.code != Code::UnknownKey));
        problems
    }

    /// Returns all texts with a format in the order of the file, and their formats by JSON Pointer (RFC 6901).
    pub(crate) fn formatted(&self, node: &Node, value: &Json) -> (Vec<FormattedText>, Formats) {
        let evaluation = self.validator.evaluate(value);
        let (mut formatted, mut formats) = (Vec::new(), Formats::new());
        for annotation in evaluation.iter_annotations() {
            let Some(format) = annotation.annotations.value().as_str() else {
                continue;
            };
            if !annotation.schema_location.ends_with("/format") {
                continue;
            }
            let location = annotation.instance_location;
            formats.insert(location.as_str().to_owned(), format.to_owned());
            // A default value has no position.
            if let Some(node) = node_at(node, location)
                && let Value::Text(text) = &node.value
            {
                formatted.push(FormattedText {
                    format: format.to_owned(),
                    text: text.clone(),
                    position: node.position,
                });
            }
        }
        formatted.sort_by_key(|text| text.position);
        formatted.dedup();
        (formatted, formats)
    }
}

/// The formats of the texts in a value, by JSON Pointer (RFC 6901).
pub type Formats = BTreeMap<String, String>;

/// Collects all formats that a schema uses.
pub(crate) fn format_names(schema: &Json, names: &mut BTreeSet<String>) {
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
    fn every_keyword_of_the_draft_is_validated() {
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
    fn key_may_be_a_number_empty_or_a_path() {
        let schema =
            json!({"additionalProperties": {"type": "array", "items": {"type": "string"}}});
        for key in ["404", "007", "", "/a", "a~b"] {
            let found = messages(schema.clone(), json!({key: [true]}));
            let expected = format!("an item of `{key}` should be a text, but is `true`");
            assert_eq!(found, [expected]);
        }
    }

    #[test]
    fn invalid_schema_is_refused() {
        assert!(Schema::new(json!({"type": "sting"}), |_, _| Ok(())).is_err());
    }
}
