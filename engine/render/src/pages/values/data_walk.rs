//! Converts authors' values to template values, and resolves texts that have a format.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use tera::{Map, Value};

use crate::markdown::escape::escape;
use crate::resources::asset::Asset;

/// Converts a value, and resolves every text in it that has a format. `pointer` is the JSON Pointer of `value`.
pub(crate) fn walk(
    value: &Json,
    formats: &BTreeMap<String, String>,
    pointer: &mut String,
    resolved: &impl Fn(&str, &str) -> Value,
) -> Value {
    match value {
        Json::String(text) => match formats.get(pointer.as_str()) {
            Some(format) => resolved(format, text),
            None => Value::from(text.as_str()),
        },
        Json::Array(items) => {
            let items = items.iter().enumerate().map(|(index, item)| {
                below(pointer, &index.to_string(), |pointer| {
                    walk(item, formats, pointer, resolved)
                })
            });
            Value::from(items.collect::<Vec<_>>())
        }
        Json::Object(pairs) => {
            let mut map = Map::default();
            for (name, value) in pairs {
                let value = below(pointer, name, |pointer| {
                    walk(value, formats, pointer, resolved)
                });
                map.insert(name.clone().into(), value);
            }
            Value::from(map)
        }
        plain => Value::from_serializable(plain),
    }
}

/// Runs `work` with `name` appended to a JSON Pointer (RFC 6901).
fn below<T>(pointer: &mut String, name: &str, work: impl FnOnce(&mut String) -> T) -> T {
    let length = pointer.len();
    pointer.push('/');
    pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
    let made = work(pointer);
    pointer.truncate(length);
    made
}

/// Returns an SVG as an inline element. It is hidden from assistive technology unless it has a label.
pub(crate) fn inline_svg(
    asset: &Asset,
    class: Option<&str>,
    label: Option<&str>,
) -> Option<String> {
    let text = std::str::from_utf8(&asset.bytes).ok()?;
    let start = text.find("<svg")?;
    let mut attributes = match label {
        Some(label) => format!(" role=\"img\" aria-label=\"{}\"", escape(label)),
        None => " aria-hidden=\"true\"".to_owned(),
    };
    if let Some(class) = class {
        attributes.push_str(&format!(" class=\"{}\"", escape(class)));
    }
    let (own, inner) = text[start + 4..].trim_end().split_once('>')?;
    // HTML parsers know the namespace of `svg` elements.
    let own = own.replace(" xmlns=\"http://www.w3.org/2000/svg\"", "");
    Some(format!("<svg{attributes}{own}>{inner}"))
}
