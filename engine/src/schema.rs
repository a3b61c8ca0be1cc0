//! Holds a tree of values against a JSON Schema and says everything that does not fit.
//!
//! The schemas come from the Rust types (`schemars`) and from the islands' own declarations, so that one source makes the types, the mistakes and the editors' help.
//! Only the parts of JSON Schema (draft 2020-12) that these two write are understood: `type`, `properties`, `required`, `additionalProperties`, `items`, `enum`, `const`, `oneOf`, `anyOf`, `$ref` and `format`.
//!
//! **Invariant:** knows no file format and no meaning of any key; formats are checked by whoever calls.

use serde_json::Value as Json;

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

/// Everything that is wrong, and every formatted text, in the order of the file.
#[must_use]
pub fn check(node: &Node, schema: &Json, formats: FormatCheck) -> (Vec<Problem>, Vec<Formatted>) {
    let mut checker = Checker {
        root: schema,
        formats,
        problems: Vec::new(),
        formatted: Vec::new(),
    };
    checker.check(node, schema, "the file");
    (checker.problems, checker.formatted)
}

struct Checker<'a> {
    root: &'a Json,
    formats: FormatCheck,
    problems: Vec<Problem>,
    formatted: Vec<Formatted>,
}

impl<'a> Checker<'a> {
    /// `what` names the value in messages: a key in backticks, or the file.
    fn check(&mut self, node: &Node, schema: &'a Json, what: &str) {
        let schema = self.resolve(schema);
        if let Some(choices) = schema.get("oneOf").and_then(Json::as_array) {
            return self.one_of(node, choices, what);
        }
        if let Some(choices) = schema.get("anyOf").and_then(Json::as_array) {
            return self.any_of(node, choices, what);
        }
        if let Some(choices) = schema.get("enum").and_then(Json::as_array) {
            return self.choice(node, &choices.iter().collect::<Vec<_>>(), what);
        }
        if let Some(constant) = schema.get("const") {
            return self.choice(node, &[constant], what);
        }
        let types = types_of(schema);
        if !types.is_empty() && !types.iter().any(|name| has_type(node, name)) {
            return self.wrong_type(node, &types, what);
        }
        match &node.value {
            Value::Text(text) => self.text(node, text, schema, what),
            Value::List(items) => {
                if let Some(item_schema) = schema.get("items") {
                    for item in items {
                        self.check(item, item_schema, &format!("an item of {what}"));
                    }
                }
            }
            Value::Map(_) => self.map(node, schema, what),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn resolve(&self, mut schema: &'a Json) -> &'a Json {
        while let Some(reference) = schema.get("$ref").and_then(Json::as_str) {
            let target = reference
                .strip_prefix('#')
                .and_then(|pointer| self.root.pointer(pointer));
            match target {
                Some(target) => schema = target,
                None => break,
            }
        }
        schema
    }

    fn map(&mut self, node: &Node, schema: &'a Json, what: &str) {
        let Value::Map(pairs) = &node.value else {
            return;
        };
        let properties = schema.get("properties").and_then(Json::as_object);
        let property_of = |name: &str| properties.and_then(|properties| properties.get(name));
        for (index, (key, value)) in pairs.iter().enumerate() {
            if let Some((first, _)) = pairs[..index]
                .iter()
                .find(|(other, _)| other.name == key.name)
            {
                self.problems.push(Problem {
                    code: Code::DuplicateKey,
                    place: key.place,
                    message: format!("the key `{}` is here twice", key.name),
                    hint: Some(format!("remove it here or in line {}", first.place.line)),
                });
                continue;
            }
            let inner = format!("`{}`", key.name);
            match (property_of(&key.name), schema.get("additionalProperties")) {
                (Some(property), _) => self.check(value, property, &inner),
                (None, Some(Json::Bool(false))) => self.problems.push(Problem {
                    code: Code::UnknownKey,
                    place: key.place,
                    message: format!("unknown key `{}` in {what}", key.name),
                    hint: properties.map(|properties| {
                        hint_for(&key.name, properties.keys().map(String::as_str))
                    }),
                }),
                (None, Some(others @ Json::Object(_))) => self.check(value, others, &inner),
                (None, _) => {}
            }
        }
        let required = schema.get("required").and_then(Json::as_array);
        for name in required.into_iter().flatten().filter_map(Json::as_str) {
            if !pairs.iter().any(|(key, _)| key.name == name) {
                self.problems.push(Problem {
                    code: Code::MissingKey,
                    place: node.place,
                    message: format!("{what} needs the key `{name}`"),
                    hint: description(property_of(name)).map(|text| format!("`{name}`: {text}")),
                });
            }
        }
    }

    fn text(&mut self, node: &Node, text: &str, schema: &Json, what: &str) {
        let Some(format) = schema.get("format").and_then(Json::as_str) else {
            return;
        };
        match (self.formats)(format, text) {
            Ok(()) => self.formatted.push(Formatted {
                format: format.to_owned(),
                text: text.to_owned(),
                place: node.place,
            }),
            Err((message, hint)) => self.problems.push(Problem {
                code: Code::BadValue,
                place: node.place,
                message: format!("{what}: {message}"),
                hint,
            }),
        }
    }

    /// Alternatives as schemars writes them for `Option` and for untagged enums: the first whose type fits is the one meant.
    fn any_of(&mut self, node: &Node, choices: &'a [Json], what: &str) {
        let fitting = choices.iter().find(|choice| {
            let types = types_of(self.resolve(choice));
            types.is_empty() || types.iter().any(|name| has_type(node, name))
        });
        match fitting {
            Some(choice) => self.check(node, choice, what),
            None => {
                let types: Vec<&str> = choices
                    .iter()
                    .flat_map(|choice| types_of(self.resolve(choice)))
                    .collect();
                self.wrong_type(node, &types, what);
            }
        }
    }

    /// Enums: of plain words, or of mappings that a tag tells apart.
    fn one_of(&mut self, node: &Node, choices: &'a [Json], what: &str) {
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
        let Some((tag, variants)) = tagged(choices) else {
            return self.any_of(node, choices, what);
        };
        let Value::Map(pairs) = &node.value else {
            return self.wrong_type(node, &["object"], what);
        };
        let names = || variants.iter().map(|(name, _)| *name);
        match pairs.iter().find(|(key, _)| key.name == tag) {
            None => self.problems.push(Problem {
                code: Code::MissingKey,
                place: node.place,
                message: format!("{what} needs the key `{tag}`"),
                hint: Some(format!("valid here: {}", list(names()))),
            }),
            Some((_, value)) => match &value.value {
                Value::Text(text) => match variants.iter().find(|(name, _)| name == text) {
                    Some((name, schema)) => {
                        self.map(node, schema, &format!("a section of kind `{name}`"))
                    }
                    None => self.unknown_choice(value, text, names(), &format!("`{tag}`")),
                },
                _ => self.wrong_type(value, &["string"], &format!("`{tag}`")),
            },
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
        self.problems.push(Problem {
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
        self.problems.push(Problem {
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

fn has_type(node: &Node, name: &str) -> bool {
    match &node.value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::Number(number) => {
            name == "number" || (name == "integer" && (number.is_i64() || number.is_u64()))
        }
        Value::Text(_) => name == "string",
        Value::List(_) => name == "array",
        Value::Map(_) => name == "object",
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

/// The key that tells the variants apart, and each variant by that key's value.
fn tagged(choices: &[Json]) -> Option<(&str, Vec<(&str, &Json)>)> {
    let constant = |property: &Json| property.get("const").is_some();
    let (tag, _) = choices
        .first()?
        .get("properties")?
        .as_object()?
        .iter()
        .find(|(_, property)| constant(property))?;
    let variants = choices
        .iter()
        .map(|choice| {
            Some((
                choice.get("properties")?.get(tag)?.get("const")?.as_str()?,
                choice,
            ))
        })
        .collect::<Option<Vec<_>>>()?;
    Some((tag, variants))
}
