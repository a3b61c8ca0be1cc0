//! The values of a manifest by language: `name: {en: Corner, de: Ecke}`.
//!
//! A mapping from languages of the tenant to values means the value in the language of the page. The manifest is checked once for each language, with a plain value in the place of each such mapping.
//!
//! **Invariant:** knows which keys of the manifest visitors read, and no type of their values.

use serde_json::{Value as Json, json};

use super::manifest::{MAX_LANGUAGES, Manifest};
use crate::formats::schema_of;
use crate::report::Code;
use crate::schema::Violation;
use crate::yaml::{MapKey, Node, Value};

/// The keys of the manifest whose values, and all values within, may be mappings by language.
pub const LOCAL_KEYS: [&str; 6] = ["name", "tagline", "description", "image", "app", "company"];

/// The keys whose values the theme defines, with the same mappings.
pub const LOCAL_THEME_KEYS: [&str; 2] = ["settings", "strings"];

/// Decides whether a mapping is by language.
type MappingTest<'a> = dyn Fn(&[(MapKey, Node)]) -> bool + 'a;

/// Returns the `languages` of a manifest that is not checked yet.
pub(super) fn languages_of(manifest: &Node) -> Vec<String> {
    let Some(Value::List(items)) = value_of(manifest, "languages") else {
        return Vec::new();
    };
    let tags = items.iter().filter_map(|item| match &item.value {
        Value::Text(tag) => Some(tag.clone()),
        _ => None,
    });
    tags.take(MAX_LANGUAGES).collect()
}

fn value_of<'n>(node: &'n Node, name: &str) -> Option<&'n Value> {
    let Value::Map(pairs) = &node.value else {
        return None;
    };
    let found = pairs.iter().find(|(key, _)| key.name == name);
    found.map(|(_, node)| &node.value)
}

/// Returns the manifest in its default language.
pub(super) fn in_default_language(manifest: &Node, languages: &[String]) -> Node {
    in_language(manifest, languages, 0, |_| true)
}

/// Returns the keys of the manifest that visitors read, in another language.
pub(super) fn translation(manifest: &Node, languages: &[String], language: usize) -> Node {
    in_language(manifest, languages, language, |name| {
        LOCAL_KEYS.contains(&name)
    })
}

fn in_language(
    manifest: &Node,
    languages: &[String],
    language: usize,
    has_key: impl Fn(&str) -> bool,
) -> Node {
    let Value::Map(pairs) = &manifest.value else {
        return manifest.clone();
    };
    let pairs = pairs.iter().filter(|(key, _)| has_key(&key.name));
    let pairs = pairs.map(|(key, value)| {
        let value = match LOCAL_KEYS.contains(&key.name.as_str()) {
            true => local(value, languages, language, &is_by_any_language),
            false => value.clone(),
        };
        (key.clone(), value)
    });
    Node {
        value: Value::Map(pairs.collect()),
        position: manifest.position,
    }
}

/// Returns a value that the theme defines in one language.
pub(super) fn themed_value(node: &Node, languages: &[String], language: usize) -> Node {
    match languages.len() {
        0 | 1 => node.clone(),
        _ => local(node, languages, language, &|pairs| {
            is_by_language(pairs, languages)
        }),
    }
}

/// Returns a value in one language, or in the default language if a text has no value in it.
fn local(node: &Node, languages: &[String], language: usize, is_map: &MappingTest<'_>) -> Node {
    let inner = |node: &Node| local(node, languages, language, is_map);
    let value = match &node.value {
        Value::Map(pairs) if is_map(pairs) => {
            let tags = [languages.get(language), languages.first()];
            let value = |tag: &String| pairs.iter().find(|(key, _)| key.name == *tag);
            let found = tags.into_iter().flatten().find_map(value);
            return match found.or_else(|| pairs.first()) {
                Some((_, value)) => inner(value),
                None => node.clone(),
            };
        }
        Value::Map(pairs) => {
            let pairs = pairs.iter().map(|(key, value)| (key.clone(), inner(value)));
            Value::Map(pairs.collect())
        }
        Value::List(items) => Value::List(items.iter().map(inner).collect()),
        value => value.clone(),
    };
    Node {
        value,
        position: node.position,
    }
}

/// Whether a mapping is by language, among values without keys that look like language tags.
fn is_by_any_language(pairs: &[(MapKey, Node)]) -> bool {
    !pairs.is_empty() && pairs.iter().all(|(key, _)| is_tag(&key.name))
}

/// Whether a mapping is by language, among values with any keys: one of its keys is a language of the tenant.
fn is_by_language(pairs: &[(MapKey, Node)], languages: &[String]) -> bool {
    is_by_any_language(pairs) && pairs.iter().any(|(key, _)| languages.contains(&key.name))
}

/// Whether a key looks like a language tag: two or three letters, then nothing or subtags (BCP 47).
fn is_tag(name: &str) -> bool {
    let primary = name.split('-').next().unwrap_or_default();
    matches!(primary.len(), 2 | 3) && primary.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// Finds the mappings with an unknown language, or without the default language. Nothing is known if `languages` is not a list, which is reported by itself.
pub(super) fn problems(manifest: &Node, languages: &[String]) -> Vec<Violation> {
    let mut problems = Vec::new();
    let Value::Map(pairs) = &manifest.value else {
        return problems;
    };
    let written = value_of(manifest, "languages");
    if written.is_some_and(|value| !matches!(value, Value::List(_))) {
        return problems;
    }
    for (key, value) in pairs {
        let name = key.name.as_str();
        if LOCAL_KEYS.contains(&name) {
            find_problems(value, name, languages, &is_by_any_language, &mut problems);
        } else if LOCAL_THEME_KEYS.contains(&name) && languages.len() > 1 {
            let is_map = |pairs: &[(MapKey, Node)]| is_by_language(pairs, languages);
            find_problems(value, name, languages, &is_map, &mut problems);
        }
    }
    problems
}

fn find_problems(
    node: &Node,
    name: &str,
    languages: &[String],
    is_map: &MappingTest<'_>,
    problems: &mut Vec<Violation>,
) {
    match &node.value {
        Value::Map(pairs) if is_map(pairs) => {
            for (key, value) in pairs {
                if !languages.contains(&key.name) {
                    problems.push(unknown_language(key, languages));
                }
                find_problems(value, name, languages, is_map, problems);
            }
            if let Some(default) = languages.first()
                && !pairs.iter().any(|(key, _)| key.name == *default)
            {
                problems.push(Violation {
                    code: Code::MissingKey,
                    position: node.position,
                    message: format!("`{name}` has no value in `{default}`, the default language"),
                    hint: Some(format!("add `{default}: ...`")),
                });
            }
        }
        Value::Map(pairs) => {
            for (key, value) in pairs {
                find_problems(value, &key.name, languages, is_map, problems);
            }
        }
        Value::List(items) => {
            for item in items {
                find_problems(item, name, languages, is_map, problems);
            }
        }
        _ => {}
    }
}

fn unknown_language(key: &MapKey, languages: &[String]) -> Violation {
    let tag = &key.name;
    let (message, hint) = match languages {
        [] => (
            format!("`{tag}` is a language, but the site has no `languages`"),
            format!("list the languages instead of `language`: `languages: [{tag}, ...]`"),
        ),
        languages => (
            format!("`{tag}` is not one of the site's `languages`"),
            format!(
                "write `languages: [{}, {tag}]`, or remove the value",
                languages.join(", ")
            ),
        ),
    };
    Violation {
        code: Code::UnknownKey,
        position: key.position,
        message,
        hint: Some(hint),
    }
}

/// The formats of the texts that may be by language, beside texts without a format.
const TEXT_FORMATS: [&str; 3] = ["asset", "inline-markdown", "markdown"];

/// Returns the schema of a manifest as authors write it: the texts that visitors read may be by language.
#[must_use]
pub fn manifest_schema() -> Json {
    let mut schema = schema_of::<Manifest>();
    for key in LOCAL_KEYS {
        allow_languages(&mut schema["properties"][key]);
    }
    for definition in ["App", "Company", "Column", "CompanySite", "NamedLink"] {
        allow_languages(&mut schema["$defs"][definition]);
    }
    schema
}

/// Allows texts by language in a schema: for each text, and for each list of texts or objects.
pub fn allow_languages(schema: &mut Json) {
    let properties = schema.get_mut("properties");
    if let Some(properties) = properties.and_then(Json::as_object_mut) {
        properties.values_mut().for_each(allow_languages);
        return;
    }
    if !is_text(schema) && !is_list_of_texts(schema) {
        return;
    }
    let Json::Object(keys) = schema else {
        return;
    };
    let outer = ["description", "default"].map(|name| (name, keys.shift_remove(name)));
    let plain = Json::Object(std::mem::take(keys));
    let by_language = json!({
        "type": "object",
        "minProperties": 1,
        "propertyNames": {"pattern": "^[a-z]{2,3}(-|$)"},
        "additionalProperties": plain,
    });
    keys.insert("anyOf".to_owned(), json!([plain, by_language]));
    for (name, value) in outer {
        keys.extend(value.map(|value| (name.to_owned(), value)));
    }
}

fn is_text(schema: &Json) -> bool {
    let is_string = match &schema["type"] {
        Json::Array(types) => types.contains(&Json::from("string")),
        other => other == "string",
    };
    let format = schema["format"].as_str();
    is_string
        && format.is_none_or(|format| TEXT_FORMATS.contains(&format))
        && ["enum", "const", "pattern"]
            .iter()
            .all(|key| schema[key].is_null())
}

fn is_list_of_texts(schema: &Json) -> bool {
    let items = &schema["items"];
    schema["type"] == "array" && (is_text(items) || items["$ref"].is_string())
}
