//! What templates can call.

use tera::{Kwargs, State, Tera, TeraResult, Value};

use super::render::{Scope, asset_href, with_scope};
use crate::island::{self, Call, Hydration};
use crate::markdown::{self, LinkContext};
use crate::media_type::is_drawing;
use crate::picture::fit::{Measure, Room, fit};
use content::report::hint_for;

/// Makes them known.
pub(super) fn register(tera: &mut Tera) {
    tera.register_function("url", url);
    tera.register_function("asset", asset);
    tera.register_function("svg", svg);
    tera.register_function("island", island_function);
    tera.register_function("fit", fit_function);
    tera.register_filter("markdown", |text: &str, _: Kwargs, _: &State<'_>| {
        with_scope(|scope| {
            Ok(Value::safe_string(
                &markdown::render(text, &link_context(scope)).html,
            ))
        })
    });
    tera.register_filter("inline_markdown", |text: &str, _: Kwargs, _: &State<'_>| {
        with_scope(|scope| {
            Ok(Value::safe_string(&markdown::render_inline(
                text,
                &link_context(scope),
            )))
        })
    });
}

fn link_context(scope: &Scope) -> LinkContext<'_> {
    LinkContext {
        resolver: &scope.resolver,
        assets: &scope.tenant_assets,
        themed: &scope.templates.assets.files,
    }
}

/// `url(to="/terms")`: a link made right for the page's place.
fn url(arguments: Kwargs, _: &State<'_>) -> TeraResult<Value> {
    let to = arguments.must_get::<&str>("to")?;
    with_scope(|scope| Ok(Value::from(scope.resolver.href(to))))
}

/// `asset(path="icons/x.svg")`: the address of the tenant's file, else of the theme's.
fn asset(arguments: Kwargs, _: &State<'_>) -> TeraResult<Value> {
    let path = arguments.must_get::<&str>("path")?;
    with_scope(|scope| match asset_href(scope, path) {
        Some(href) => Ok(Value::from(href)),
        None => Err(missing(scope, path)),
    })
}

fn missing(scope: &Scope, path: &str) -> tera::Error {
    let known = scope
        .tenant_assets
        .keys()
        .chain(scope.templates.assets.files.keys())
        .map(String::as_str);
    tera::Error::message(format!(
        "neither the tenant's assets nor the theme has `{path}`: {}",
        content::report::nearest(path, known).map_or_else(
            || "add the file".to_owned(),
            |name| format!("did you mean `{name}`?")
        )
    ))
}

/// `svg(path="houses/bluedoor.svg", class="mark")`: the drawing itself, hidden from assistive technology unless `label` names it.
///
/// A drawing `houses/<name>.svg` may be the tenant's own `assets/<name>.svg`, and any other the tenant's file of the same path. What of a tenant's drawing could run or load was left out before ([`svg`](crate::svg)).
fn svg(arguments: Kwargs, _: &State<'_>) -> TeraResult<Value> {
    let path = arguments.must_get::<&str>("path")?;
    let class = arguments.get::<&str>("class")?;
    let label = arguments.get::<&str>("label")?;
    with_scope(|scope| {
        let name = path.strip_prefix("houses/").unwrap_or(path);
        let bytes = scope
            .tenant_assets
            .get(name)
            // Only what was made harmless as a drawing.
            .filter(|_| is_drawing(name))
            .or_else(|| scope.templates.assets.files.get(path))
            .map(|asset| &asset.bytes)
            .ok_or_else(|| missing(scope, path))?;
        let text = std::str::from_utf8(bytes)
            .map_err(|_| tera::Error::message(format!("`{path}` is not UTF-8")))?;
        let start = text
            .find("<svg")
            .ok_or_else(|| tera::Error::message(format!("`{path}` holds no <svg>")))?;
        let mut attributes = match label {
            Some(label) => format!(" role=\"img\" aria-label=\"{}\"", markdown::escape(label)),
            None => " aria-hidden=\"true\" focusable=\"false\"".to_owned(),
        };
        if let Some(class) = class {
            attributes.push_str(&format!(" class=\"{}\"", markdown::escape(class)));
        }
        let inner = text[start + 4..].trim_end();
        Ok(Value::safe_string(&format!("<svg{attributes}{inner}")))
    })
}

/// `island(name="Header", props=..., client="load")`.
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
                "client=\"media\" needs media=\"(a query)\"",
            ));
        }
        ("interaction", _) => Hydration::Interaction,
        ("none", _) => Hydration::None,
        (other, _) => {
            let hint = hint_for(other, Hydration::NAMES);
            return Err(tera::Error::message(format!(
                "client=\"{other}\" is unknown: {hint}"
            )));
        }
    };
    with_scope(|scope| {
        let before = scope.used.iter().filter(|(used, _)| used == name).count();
        let prefix = match before {
            0 => format!("{}-", name.to_lowercase()),
            count => format!("{}{}-", name.to_lowercase(), count + 1),
        };
        let call = Call {
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

/// `fit(text=..., width=..., ...)`: a text in lines that fit a box ([`fit`]).
fn fit_function(arguments: Kwargs, _: &State<'_>) -> TeraResult<Value> {
    let text = arguments.must_get::<&str>("text")?;
    let family = arguments.must_get::<&str>("family")?;
    let weight = arguments.get::<u16>("weight")?.unwrap_or(400);
    let largest = arguments.must_get::<f32>("largest")?;
    let room = Room {
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
            &Measure {
                fonts: &scope.templates.fonts,
                family,
                weight,
            },
        );
        match fitted {
            Some(fitted) => Value::try_from_serializable(&fitted),
            None => Err(tera::Error::message(format!(
                "the theme has no font of the family `{family}`"
            ))),
        }
    })
}
