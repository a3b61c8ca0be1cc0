//! The schemas by which a theme defines the content that authors write: the data of a section type, or a tenant's settings.
//!
//! A theme's schema is JSON Schema (draft 2020-12). The `format` of a text decides how it is checked, and what its template receives.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json, json};

use crate::formats::check_value;
use crate::report::{Code, hint_for};
use crate::schema::{
    Formats, FormattedText, Schema, SchemaError, Violation, format_names, referred,
};
use crate::yaml::{Node, Value};

/// The keyword of a list that has as many items as another list. Its value is the JSON Pointer of the other list (RFC 6901).
const SAME_LENGTH: &str = "same_length_as";

/// The format of an id that an author gives to a part of a page.
pub const FRAGMENT: &str = "fragment";

/// The formats whose texts are resolved before a template receives them.
pub const RESOLVED: &[&str] = &[
    "collection",
    "date",
    "drawing",
    "file",
    FRAGMENT,
    "icon",
    "image",
    "inline-markdown",
    "link",
    "logo",
    "markdown",
    "route",
];

/// The formats whose texts are checked and passed on unchanged.
const PLAIN: &[&str] = &["colour", "date-time", "email", "hostname", "web-url"];

/// An author's data, checked against its schema and completed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CheckedData {
    /// The data with every key of the schema: as written, else its default, else null.
    pub value: Json,
    /// The formats of the texts in the data.
    pub formats: Formats,
}

/// A schema of a theme, compiled.
#[derive(Debug)]
pub struct DataSchema {
    schema: Schema,
}

impl DataSchema {
    /// Compiles a schema. `shared` has the parts that all section types share; `kind` is the value of the key `kind`.
    ///
    /// # Errors
    /// If the schema is not valid JSON Schema, or names an unknown format.
    pub fn new(own: &Json, shared: Option<&Json>, kind: Option<&str>) -> Result<Self, SchemaError> {
        let root = complete_schema(own, shared, kind);
        let mut names = BTreeSet::new();
        format_names(&root, &mut names);
        let mut known = RESOLVED.iter().chain(PLAIN).copied();
        if let Some(name) = names
            .iter()
            .find(|name| !known.clone().any(|known| known == name.as_str()))
        {
            return Err(SchemaError::new(format!(
                "unknown format `{name}`: {}",
                hint_for(name, known.by_ref().collect::<Vec<_>>())
            )));
        }
        Ok(Self {
            schema: Schema::new(root, check_value)?,
        })
    }

    /// Returns the complete schema, including shared parts and the engine's additions.
    #[must_use]
    pub const fn json(&self) -> &Json {
        self.schema.root()
    }

    /// Checks a value against the schema and adds defaults. `what` is its name in messages. Also returns the texts with a format, with their positions.
    ///
    /// # Errors
    /// All violations.
    pub fn check(
        &self,
        node: &Node,
        what: &str,
    ) -> Result<(CheckedData, Vec<FormattedText>), Vec<Violation>> {
        let root = self.schema.root();
        let mut value = node.to_json();
        complete(root, root, &mut value, MissingValue::Default, 0);
        let problems = self.schema.problems(node, &value, what);
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut lengths = LengthCheck {
            root,
            value: &value,
            problems: Vec::new(),
        };
        lengths.check(root, node, 0);
        if !lengths.problems.is_empty() {
            return Err(lengths.problems);
        }
        let (formatted, formats) = self.schema.formatted(node, &value);
        complete(root, root, &mut value, MissingValue::Null, 0);
        Ok((CheckedData { value, formats }, formatted))
    }
}

/// Returns the complete schema: `own` merged with the shared parts and the engine's additions.
fn complete_schema(own: &Json, shared: Option<&Json>, kind: Option<&str>) -> Json {
    let mut root = Map::new();
    root.insert("type".to_owned(), "object".into());
    root.insert("additionalProperties".to_owned(), false.into());
    let mut definitions = Map::new();
    definitions.insert(
        "colours".to_owned(),
        json!({
            "type": "object",
            "description": "A colour by day and one by night.",
            "properties": {
                "day": {"type": "string", "format": "colour", "description": "The colour by day."},
                "night": {"type": "string", "format": "colour", "description": "The colour by night."},
            },
            "required": ["day", "night"],
            "additionalProperties": false,
        }),
    );
    let mut properties = Map::new();
    if let Some(kind) = kind {
        properties.insert(
            "kind".to_owned(),
            json!({"const": kind, "default": kind, "description": "The section type."}),
        );
    }
    let mut required = Vec::new();
    for part in shared.into_iter().chain([own]) {
        let Json::Object(part) = part else {
            continue;
        };
        for (key, value) in part {
            match (key.as_str(), value) {
                ("$defs", Json::Object(more)) => definitions.extend(more.clone()),
                ("properties", Json::Object(more)) => properties.extend(more.clone()),
                ("required", Json::Array(more)) => required.extend(more.iter().cloned()),
                _ => drop(root.insert(key.clone(), value.clone())),
            }
        }
    }
    root.insert("properties".to_owned(), properties.into());
    root.insert("required".to_owned(), required.into());
    root.insert("$defs".to_owned(), definitions.into());
    root.into()
}

/// Finds the lists that do not have as many items as the list which their schema names.
struct LengthCheck<'a> {
    root: &'a Json,
    /// The entire value.
    value: &'a Json,
    problems: Vec<Violation>,
}

impl LengthCheck<'_> {
    fn check(&mut self, schema: &Json, node: &Node, depth: usize) {
        if depth == MAX_DEPTH {
            return;
        }
        let schema = referred(self.root, schema);
        match &node.value {
            Value::Map(pairs) => {
                for (key, inner) in pairs {
                    let Some(property) = schema["properties"].get(&key.name) else {
                        continue;
                    };
                    let property = referred(self.root, property);
                    self.check(property, inner, depth + 1);
                    if let Some(message) = self.mismatch(property, &key.name, inner) {
                        self.problems.push(Violation {
                            code: Code::BadValue,
                            position: inner.position,
                            message,
                            hint: property["description"].as_str().map(ToOwned::to_owned),
                        });
                    }
                }
            }
            Value::List(items) => {
                for item in items {
                    self.check(&schema["items"], item, depth + 1);
                }
            }
            _ => {}
        }
    }

    /// Returns a message if the list `name` is shorter or longer than the list that its schema names.
    fn mismatch(&self, schema: &Json, name: &str, node: &Node) -> Option<String> {
        let other = schema.get(SAME_LENGTH)?.as_str()?;
        let expected = self.value.pointer(other)?.as_array()?.len();
        let Value::List(items) = &node.value else {
            return None;
        };
        let other = other.rsplit('/').next().unwrap_or(other);
        let number = |count: usize| match count {
            1 => "1 item".to_owned(),
            count => format!("{count} items"),
        };
        let (own, wanted) = (number(items.len()), number(expected));
        (items.len() != expected).then(|| format!("`{name}` has {own}, but `{other}` has {wanted}"))
    }
}

/// The value that replaces a key which an author left out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MissingValue {
    /// The schema's default, if there is one.
    Default,
    /// Null.
    Null,
}

/// Limit on the depth of a value below its schema. A default may contain a key with the same default again.
const MAX_DEPTH: usize = 32;

/// Adds a value for every missing key, and sorts all keys in the order of the schema.
fn complete(root: &Json, schema: &Json, value: &mut Json, missing: MissingValue, depth: usize) {
    if depth == MAX_DEPTH {
        return;
    }
    let schema = referred(root, schema);
    match value {
        Json::Object(pairs) => {
            let Some(Json::Object(properties)) = schema.get("properties") else {
                return;
            };
            let mut ordered = Map::new();
            for (name, property) in properties {
                let written = pairs.shift_remove(name);
                let default = || {
                    referred(root, property)
                        .get("default")
                        .or(property.get("default"))
                        .cloned()
                };
                let written = match (written, missing) {
                    (None, MissingValue::Default) => default(),
                    (None, MissingValue::Null) => Some(Json::Null),
                    (written, _) => written,
                };
                if let Some(mut written) = written {
                    complete(root, property, &mut written, missing, depth + 1);
                    ordered.insert(name.clone(), written);
                }
            }
            ordered.extend(std::mem::take(pairs));
            *pairs = ordered;
        }
        Json::Array(items) => {
            if let Some(each) = schema.get("items") {
                for item in items {
                    complete(root, each, item, missing, depth + 1);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(own: Json) -> DataSchema {
        let shared = json!({"properties": {"title": {"type": "string"}}, "$defs": {"action": {
            "type": "object",
            "properties": {"label": {"type": "string"}, "style": {"enum": ["loud", "quiet"], "default": "quiet"}},
            "required": ["label"],
            "additionalProperties": false,
        }}});
        DataSchema::new(&own, Some(&shared), Some("call")).expect("a schema")
    }

    #[test]
    fn missing_key_is_its_default_or_null() {
        let shape = shape(json!({"properties": {
            "actions": {"type": "array", "items": {"$ref": "#/$defs/action"}, "default": []},
            "link": {"type": "string", "format": "link", "default": "/"},
        }}));
        let written = json!({"actions": [{"label": "Go"}], "kind": "call"});
        let (data, _) = shape
            .check(&Node::from_json(&written), "it")
            .expect("it fits");
        assert_eq!(
            data.value.to_string(),
            r#"{"kind":"call","title":null,"actions":[{"label":"Go","style":"quiet"}],"link":"/"}"#
        );
        assert_eq!(
            data.formats,
            [("/link".to_owned(), "link".to_owned())].into()
        );
    }

    #[test]
    fn recursive_schemas_terminate() {
        let written = Node::from_json(&json!({}));
        for own in [
            json!({"properties": {"inner": {"$ref": "#", "default": {}}}}),
            json!({"properties": {"inner": {"$ref": "#/$defs/again"}},
                   "$defs": {"again": {"type": "object", "properties": {"inner": {"$ref": "#/$defs/again", "default": {}}}}}}),
        ] {
            let shape = DataSchema::new(&own, None, None).expect("a schema");
            assert!(shape.check(&written, "it").is_ok(), "{own}");
        }
        let circle = json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}});
        let end = referred(&circle, &circle["$defs"]["a"]);
        assert!(end.get("properties").is_none());
    }

    #[test]
    fn unknown_key_is_an_error_that_names_the_nearest() {
        let shape = shape(json!({}));
        let problems = shape
            .check(
                &Node::from_json(&json!({"kind": "call", "titel": "x"})),
                "the section",
            )
            .expect_err("a typing error");
        assert_eq!(problems[0].message, "unknown key `titel` in the section");
        assert!(
            problems[0]
                .hint
                .as_ref()
                .is_some_and(|hint| hint.contains("`title`"))
        );
    }

    #[test]
    fn list_has_as_many_items_as_the_list_that_its_schema_names() {
        let texts = json!({"type": "array", "items": {"type": "string"}});
        let shape = shape(json!({"properties": {
            "columns": texts,
            "rows": {"type": "array", "items": {"type": "object", "properties": {"values": {
                "type": "array",
                "same_length_as": "/columns",
                "description": "A value for each column.",
            }}}},
        }}));
        let text =
            "columns: [a, b]\nrows:\n  - values: [1, 2]\n  - values: [1]\n  - values: [1, 2, 3]\n";
        let node = crate::yaml::parse(text, 1).expect("YAML");
        let problems = shape.check(&node, "it").expect_err("two wrong rows");
        let found = problems.iter().map(|problem| {
            let (line, hint) = (problem.position.line, problem.hint.as_deref());
            (line, problem.message.as_str(), hint.unwrap_or_default())
        });
        let hint = "A value for each column.";
        assert_eq!(
            found.collect::<Vec<_>>(),
            [
                (4, "`values` has 1 item, but `columns` has 2 items", hint),
                (5, "`values` has 3 items, but `columns` has 2 items", hint),
            ]
        );
    }

    #[test]
    fn colour_or_link_that_became_a_comment_is_explained() {
        let shape = shape(json!({"properties": {
            "day": {"type": "string", "format": "colour", "description": "The colour by day."},
            "to": {"type": "string", "format": "link", "description": "The target."},
        }}));
        let node = crate::yaml::parse("day: #6b3a8f\nto: #prices\n", 1).expect("YAML");
        let problems = shape.check(&node, "it").expect_err("two empty values");
        assert_eq!(problems.len(), 2);
        for problem in problems {
            let hint = problem.hint.unwrap_or_default();
            assert!(hint.contains("begins with `#` in quotes"), "{hint}");
        }
    }

    #[test]
    fn hint_for_a_number_names_all_numbers_and_no_nearest() {
        let shape = shape(json!({"properties": {"status": {"enum": [301, 308, 410]}}}));
        let node = crate::yaml::parse("status: 404\n", 1).expect("YAML");
        let problems = shape.check(&node, "it").expect_err("an unknown status");
        let hint = problems[0].hint.as_deref();
        assert_eq!(hint, Some("valid here: `301`, `308` and `410`"));
    }

    #[test]
    fn unknown_format_is_refused() {
        let own = json!({"properties": {"to": {"type": "string", "format": "lnik"}}});
        let error = DataSchema::new(&own, None, None).expect_err("no such format");
        assert!(error.to_string().contains("did you mean `link`"), "{error}");
    }
}
