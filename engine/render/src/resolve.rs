//! What authors wrote in the shapes of their theme becomes what templates see: links made right, Markdown rendered, drawings inlined.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use tera::{Map, Value};

use super::asset::{ASSETS, Asset};
use super::markdown::{self, LinkContext};
use super::media_type::is_drawing;
use super::template::{Scope, asset_href, asset_of};
use super::view;
use content::tenant::Site;
use content::tenant::values::Date;
use content::theme::shape::Data;

/// What the templates of a page see of a section or of the settings.
pub(super) fn resolve(data: &Data, site: &Site, scope: &Scope) -> Value {
    let resolved = |format: &str, text: &str| one(format, text, site, scope);
    walk(&data.value, &data.formats, &mut String::new(), &resolved)
}

/// The same with another way to resolve a text of a format.
pub(super) fn walk(
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

/// A text of a format. What names nothing that is there is none; the lints have said so.
fn one(format: &str, text: &str, site: &Site, scope: &Scope) -> Value {
    let found = match format {
        "link" | "route" => Some(Value::from(scope.resolver.href(text))),
        "collection" => {
            let entries = view::entries(site, text);
            let entries = entries
                .into_iter()
                .map(|page| Value::from_serializable(&view::entry(page, scope)));
            Some(Value::from(entries.collect::<Vec<_>>()))
        }
        "markdown" => Some(Value::safe_string(
            &markdown::render(text, &LinkContext::of(scope)).html,
        )),
        "inline-markdown" => Some(Value::safe_string(&markdown::render_inline(
            text,
            &LinkContext::of(scope),
        ))),
        "icon" => drawing(&format!("icons/{text}.svg"), scope),
        "drawing" => drawing(text, scope),
        "image" => asset_of(scope, text).and_then(|asset| {
            let size = imagesize::blob_size(&asset.bytes).ok();
            Some(map([
                ("src", Value::from(asset_href(scope, text)?)),
                ("width", size.map(|size| size.width).into()),
                ("height", size.map(|size| size.height).into()),
            ]))
        }),
        "file" => scope.prepared.assets.get(text).map(|asset| {
            let href = scope
                .resolver
                .href(&format!("{ASSETS}{}", asset.hashed_name));
            map([
                ("href", Value::from(href)),
                ("name", Value::from(asset.name.as_str())),
                ("bytes", Value::from(asset.bytes.len())),
            ])
        }),
        "date" => text.parse().ok().map(|day| {
            map([
                ("iso", Value::from(text)),
                (
                    "text",
                    Value::from(scope.prepared.language.date(Date::of(day))),
                ),
            ])
        }),
        _ => Some(Value::from(text)),
    };
    found.unwrap_or_else(Value::none)
}

fn map<const N: usize>(pairs: [(&'static str, Value); N]) -> Value {
    let mut map = Map::default();
    for (name, value) in pairs {
        map.insert(name.into(), value);
    }
    Value::from(map)
}

/// A drawing of the tenant, else of the theme, as HTML.
fn drawing(path: &str, scope: &Scope) -> Option<Value> {
    let html = inline_svg(drawing_of(path, scope)?, None, None)?;
    Some(Value::safe_string(&html))
}

/// A drawing of the tenant, which was made harmless, else of the theme.
pub(super) fn drawing_of<'s>(path: &str, scope: &'s Scope) -> Option<&'s Asset> {
    let own = scope.prepared.assets.get(path);
    own.filter(|_| is_drawing(path))
        .or_else(|| scope.templates.assets.files.get(path))
}

/// A drawing as an element of a page: hidden from assistive technology unless a label names it.
pub(super) fn inline_svg(
    asset: &Asset,
    class: Option<&str>,
    label: Option<&str>,
) -> Option<String> {
    let text = std::str::from_utf8(&asset.bytes).ok()?;
    let start = text.find("<svg")?;
    let mut attributes = match label {
        Some(label) => format!(" role=\"img\" aria-label=\"{}\"", markdown::escape(label)),
        None => " aria-hidden=\"true\" focusable=\"false\"".to_owned(),
    };
    if let Some(class) = class {
        attributes.push_str(&format!(" class=\"{}\"", markdown::escape(class)));
    }
    let inner = text[start + 4..].trim_end();
    Some(format!("<svg{attributes}{inner}"))
}
