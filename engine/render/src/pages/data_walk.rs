//! Authors' values as templates take them, by how texts of a format are resolved.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use tera::{Map, Value};

use crate::markdown::escape::escape;
use crate::resources::asset::Asset;

/// A value with every text that has a format resolved.
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

/// Works one step down a JSON Pointer (RFC 6901).
fn below<T>(pointer: &mut String, name: &str, work: impl FnOnce(&mut String) -> T) -> T {
    let length = pointer.len();
    pointer.push('/');
    pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
    let made = work(pointer);
    pointer.truncate(length);
    made
}

/// A drawing as an element of a page: hidden from assistive technology unless a label names it.
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
    // Readers of HTML know the namespace of the element, and browsers that focus each have gone.
    let own = own.replace(" xmlns=\"http://www.w3.org/2000/svg\"", "");
    Some(format!("<svg{attributes}{own}>{inner}"))
}
