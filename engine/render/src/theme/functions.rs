//! The functions that templates can call.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::PoisonError;

use serde_json::Value as Json;
use tera::{Kwargs, Map, State, Tera, TeraResult, Value};

use super::render::{PageScope, asset_href, with_scope};
use super::ui_strings::UiStrings;
use crate::images::svg;
use crate::images::svg::text_fit::{TextBox, TextMeasure, fit};
use crate::island::{self, Hydration, IslandCall};
use crate::markdown;
use crate::markdown::escape::escape;
use crate::media;
use crate::media::media_type::is_svg;
use crate::pages::values::data_walk::inline_svg;
use crate::resources::asset::Asset;
use crate::theme::language::Argument;
use content::report::hint_for;

/// Registers the functions and filters.
pub(super) fn register(tera: &mut Tera) {
    tera.register_function("url", url);
    tera.register_function("asset", asset);
    tera.register_function("picture", picture);
    tera.register_function("svg", drawing);
    tera.register_function("apart", apart);
    tera.register_function("island", island_function);
    tera.register_function("fit", fit_function);
    tera.register_function("t", t);
    tera.register_function("words", words);
    tera.register_function("pages", pages);
    tera.register_filter("markdown", |text: &str, _: Kwargs, _: &State<'_>| {
        with_scope(|scope| {
            Ok(Value::safe_string(
                &markdown::render(text, &scope.link_context()).html,
            ))
        })
    });
    tera.register_filter("inline_markdown", |text: &str, _: Kwargs, _: &State<'_>| {
        with_scope(|scope| {
            Ok(Value::safe_string(&markdown::render_inline(
                text,
                &scope.link_context(),
            )))
        })
    });
}

/// `t(key="entry.opened", day=page.date)`: a UI string in the page's language.
fn t(arguments: Kwargs, _: &State<'_>) -> TeraResult<Value> {
    let key = arguments.must_get::<&str>("key")?;
    let mut given = BTreeMap::new();
    for (name, value) in arguments.iter() {
        let name = name.to_string();
        if name != "key" {
            let argument = argument(value).ok_or_else(|| {
                let kind = value.name();
                tera::Error::message(format!(
                    "`{key}`: `{name}` cannot be a value of type {kind}"
                ))
            })?;
            given.insert(name, argument);
        }
    }
    with_scope(|scope| {
        let text = scope.language().text(key, &given);
        let text = text.map_err(tera::Error::message)?;
        scope.ui_strings.add(&text);
        Ok(Value::from(text))
    })
}

fn argument(value: &Value) -> Option<Argument> {
    if let Some(text) = value.as_str() {
        return Some(Argument::Text(text.to_owned()));
    }
    if let Some(items) = value.as_array() {
        let items = items.iter().map(|item| Some(item.as_str()?.to_owned()));
        return items.collect::<Option<_>>().map(Argument::List);
    }
    value.as_i64().map(Argument::Number)
}

/// `words(of="islands.header")`: all UI strings below a key with their placeholders, for an island.
fn words(arguments: Kwargs, _: &State<'_>) -> TeraResult<Value> {
    let of = arguments.must_get::<&str>("of")?;
    with_scope(|scope| {
        let words = scope.language().below(of);
        add_all(&mut scope.ui_strings, &words);
        Value::try_from_serializable(&words)
    })
}

fn add_all(ui_strings: &mut UiStrings, words: &Json) {
    match words {
        Json::String(text) => ui_strings.add(text),
        Json::Object(words) => words.values().for_each(|word| add_all(ui_strings, word)),
        _ => {}
    }
}

/// `url(to="/terms")`: a link, resolved for the page.
fn url(arguments: Kwargs, _: &State<'_>) -> TeraResult<Value> {
    let to = arguments.must_get::<&str>("to")?;
    with_scope(|scope| Ok(Value::from(scope.resolver.href(to))))
}

/// `asset(path="icons/x.svg")`: the URL of the tenant's file, else of the theme's.
fn asset(arguments: Kwargs, _: &State<'_>) -> TeraResult<Value> {
    let path = arguments.must_get::<&str>("path")?;
    with_scope(|scope| match asset_href(scope, path) {
        Some(href) => Ok(Value::from(href)),
        None => Err(missing(scope, path)),
    })
}

fn missing(scope: &PageScope, path: &str) -> tera::Error {
    let known = scope
        .prepared
        .assets
        .keys()
        .chain(scope.templates.assets.files.keys())
        .map(String::as_str);
    tera::Error::message(format!(
        "`{path}` does not exist in the tenant's `assets` or in the theme: {}",
        content::report::nearest(path, known).map_or_else(
            || "add the file".to_owned(),
            |name| format!("did you mean `{name}`?")
        )
    ))
}

/// `svg(path="icons/check.svg", class="mark")`: an inline SVG, hidden from assistive technology unless `label` names it.
///
/// The tenant's file takes precedence over the theme's. Tenants' SVGs are sanitised ([`svg`](crate::images::svg)).
fn drawing(arguments: Kwargs, _: &State<'_>) -> TeraResult<Value> {
    let path = arguments.must_get::<&str>("path")?;
    let class = arguments.get::<&str>("class")?;
    let label = arguments.get::<&str>("label")?;
    with_scope(|scope| {
        let drawing = drawing_of(path, scope).ok_or_else(|| missing(scope, path))?;
        let html = inline_svg(&drawing, class, label)
            .ok_or_else(|| tera::Error::message(format!("`{path}` has no `<svg>` element")))?;
        Ok(Value::safe_string(&html))
    })
}

/// `apart(drawing=site.settings.house)`: an inline SVG whose content moves to a file that is loaded after the first view. A page has one such file.
fn apart(arguments: Kwargs, _: &State<'_>) -> TeraResult<Value> {
    let drawing = arguments.must_get::<&str>("drawing")?;
    with_scope(|scope| Ok(Value::safe_string(&scope.sprite.extract(drawing))))
}

/// `picture(image=section.image, alt="...", class="...", sizes="50vw")`: an element for a value of the format `image`, with its variants.
fn picture(arguments: Kwargs, _: &State<'_>) -> TeraResult<Value> {
    let image = arguments.must_get::<&Value>("image")?;
    let alt = arguments.get::<&str>("alt")?.unwrap_or_default();
    let sizes = arguments.get::<&str>("sizes")?;
    let class = arguments.get::<&str>("class")?;
    let class = class.map_or_else(String::new, |class| format!(" class=\"{}\"", escape(class)));
    let part = |name: &'static str| image.as_map()?.get(&tera::value::Key::from(name));
    let text = |name: &'static str| part(name).and_then(Value::as_str);
    let Some(src) = text("src") else {
        let message = "`picture(image=...)` needs a value of the format `image`";
        return Err(tera::Error::message(message));
    };
    with_scope(|scope| {
        let own = text("key").and_then(|key| scope.prepared.assets.get(key));
        let html = match own.filter(|asset| asset.raster.is_some()) {
            Some(asset) => media::image(asset, alt, &class, sizes, &scope.resolver),
            None => {
                let side = |name: &'static str| part(name).and_then(Value::as_i64);
                let sides = ["width", "height"].map(|name| {
                    side(name).map_or_else(String::new, |side| format!(" {name}=\"{side}\""))
                });
                let (src, alt) = (escape(src), escape(alt));
                format!(
                    "<img src=\"{src}\" alt=\"{alt}\"{class}{}{} />",
                    sides.concat(),
                    media::LAZY_ATTRIBUTES
                )
            }
        };
        Ok(Value::safe_string(&html))
    })
}

/// Returns an SVG of the tenant, sanitised and with its own ids, else of the theme.
pub(crate) fn drawing_of<'s>(path: &str, scope: &'s PageScope) -> Option<Cow<'s, Asset>> {
    let own = scope.own_asset(path).filter(|(key, _)| is_svg(key));
    let Some((key, asset)) = own else {
        return scope.templates.assets.files.get(path).map(Cow::Borrowed);
    };
    let stem = asset.name.split('.').next().unwrap_or_default();
    let isolated = std::str::from_utf8(&asset.bytes)
        .ok()
        .and_then(|svg| svg::isolate(svg, &format!("{stem}-"), svg::SvgContext::Own).ok());
    Some(match isolated.filter(|svg| svg.as_bytes() != asset.bytes) {
        Some(svg) => Cow::Owned(Asset::of_tenant(key, svg.into())),
        None => Cow::Borrowed(asset),
    })
}

/// `island(name="Header", props=..., client="load")`: a rendered island.
fn island_function(arguments: Kwargs, _: &State<'_>) -> TeraResult<Value> {
    let name = arguments.must_get::<&str>("name")?;
    let props = match arguments.get::<&Value>("props")? {
        Some(value) => {
            serde_json::to_value(value).map_err(|error| tera::Error::message(error.to_string()))?
        }
        None => serde_json::json!({}),
    };
    let client = match (
        arguments.get::<&str>("client")?.unwrap_or("visible"),
        arguments.get::<&str>("media")?,
    ) {
        ("load", _) => Hydration::Load,
        ("idle", _) => Hydration::Idle,
        ("visible", _) => Hydration::Visible,
        ("media", Some(query)) => Hydration::Media(query.to_owned()),
        ("media", None) => {
            return Err(tera::Error::message(
                "`client=\"media\"` needs a media query, such as `media=\"(min-width: 40rem)\"`",
            ));
        }
        ("interaction", _) => Hydration::Interaction,
        ("none", _) => Hydration::None,
        (other, _) => {
            let hint = hint_for(other, Hydration::NAMES);
            return Err(tera::Error::message(format!(
                "`{other}` is not a valid `client`: {hint}"
            )));
        }
    };
    with_scope(|scope| {
        let before = scope.used.iter().filter(|(used, _)| used == name).count();
        let prefix = match before {
            0 => format!("{}-", name.to_lowercase()),
            count => format!("{}{}-", name.to_lowercase(), count + 1),
        };
        let call = IslandCall {
            name,
            props: &props,
            client: client.clone(),
            prefix: &prefix,
        };
        let html = island::render(&scope.islands, &call, &scope.cache).map_err(|error| {
            scope.failed = Some(error.code());
            tera::Error::message(error.to_string())
        })?;
        scope.used.push((name.to_owned(), client));
        Ok(Value::safe_string(&html))
    })
}

/// `pages()`: the tenant's indexable pages in the language of the page, sorted by path. Each has `label`, `href`, `path`, `layout`, and `depth`, which is 0 for the landing page.
fn pages(_: Kwargs, _: &State<'_>) -> TeraResult<Value> {
    with_scope(|scope| {
        let place = scope.resolver.own("/");
        let listed = &scope.prepared.listed;
        let mut listed = listed.lock().unwrap_or_else(PoisonError::into_inner);
        let language = scope.language;
        let all = listed.entry((language, place)).or_insert_with(|| {
            let pages = scope.prepared.pages.iter();
            let pages = pages.filter(|page| page.language == language).map(|page| {
                let path = page.path.as_str();
                let mut map = Map::default();
                map.insert("label".into(), page.label.as_str().into());
                map.insert("href".into(), scope.resolver.href(path).into());
                map.insert("path".into(), path.into());
                map.insert("layout".into(), page.layout.as_str().into());
                map.insert("depth".into(), page.depth.into());
                Value::from(map)
            });
            Value::from(pages.collect::<Vec<_>>())
        });
        Ok(all.clone())
    })
}

/// `fit(text=..., width=..., ...)`: a text broken into lines that fit a box ([`fit`]).
fn fit_function(arguments: Kwargs, _: &State<'_>) -> TeraResult<Value> {
    let text = arguments.must_get::<&str>("text")?;
    let family = arguments.must_get::<&str>("family")?;
    let weight = arguments.get::<u16>("weight")?.unwrap_or(400);
    let largest = arguments.must_get::<f32>("largest")?;
    let room = TextBox {
        width: arguments.must_get("width")?,
        height: arguments.must_get("height")?,
        largest,
        smallest: arguments.get("smallest")?.unwrap_or(largest / 2.0),
        line: arguments.get("line")?.unwrap_or(1.1),
    };
    room.check().map_err(tera::Error::message)?;
    with_scope(|scope| {
        let fitted = fit(
            text,
            room,
            &TextMeasure {
                fonts: &scope.templates.fonts,
                family,
                weight,
            },
        );
        match fitted {
            Some(fitted) => Value::try_from_serializable(&fitted),
            None => Err(tera::Error::message(format!(
                "the theme has no font family `{family}`"
            ))),
        }
    })
}
