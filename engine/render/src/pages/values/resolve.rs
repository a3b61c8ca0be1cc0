//! Resolves authors' values for templates: links, Markdown, SVGs and images.

use tera::{Map, Value};

use crate::images::svg;
use crate::markdown;
use crate::markdown::escape::escape;
use crate::media::media_type::is_svg;
use crate::pages::hierarchy::entries;
use crate::pages::values::data_walk::{inline_svg, walk};
use crate::pages::values::view::EntryView;
use crate::resources::asset::Asset;
use crate::theme::{PageScope, asset_href, asset_of, drawing_of};
use content::formats::values::Date;
use content::name::nfc;
use content::tenant::{Page, Site};
use content::theme::data_schema::CheckedData;

/// Returns a section or the settings as a template value.
pub(crate) fn resolve(data: &CheckedData, site: &Site, scope: &PageScope) -> Value {
    let resolved = |format: &str, text: &str| one(format, text, site, scope);
    walk(&data.value, &data.formats, &mut String::new(), &resolved)
}

/// Resolves a text of a format. The value is `none` if the text names something that does not exist; a lint has reported it.
fn one(format: &str, text: &str, site: &Site, scope: &PageScope) -> Value {
    let found = match format {
        "link" | "route" => Some(Value::from(scope.resolver.href(text))),
        "collection" => {
            let entries = entries(site, scope.resolver.translated(text));
            let entries = entries
                .into_iter()
                .map(|page| Value::from_serializable(&entry(page, scope)));
            Some(Value::from(entries.collect::<Vec<_>>()))
        }
        "markdown" => Some(Value::safe_string(
            &markdown::render(text, &scope.link_context()).html,
        )),
        "inline-markdown" => Some(Value::safe_string(&markdown::render_inline(
            text,
            &scope.link_context(),
        ))),
        "icon" => drawing(&format!("icons/{text}.svg"), scope),
        "drawing" => drawing(text, scope),
        "image" => image(text, scope),
        "logo" => logo(text, scope),
        "file" => scope.own_asset(text).map(|(_, asset)| {
            let href = scope.resolver.asset(asset);
            map([
                ("href", Value::from(href)),
                ("name", Value::from(asset.name.as_str())),
                ("bytes", Value::from(asset.payload().len())),
            ])
        }),
        "fragment" => Some(Value::from(nfc(text).into_owned())),
        "date" => text.parse().ok().map(|day| {
            map([
                ("iso", Value::from(text)),
                ("text", Value::from(scope.language().date(Date::of(day)))),
            ])
        }),
        _ => Some(Value::from(text)),
    };
    found.unwrap_or_else(Value::none)
}

/// Returns an image as a value: URL, size, and the tenant's `key`, which `picture()` needs.
fn image(text: &str, scope: &PageScope) -> Option<Value> {
    let key = scope.own_asset(text).map(|(key, _)| key.to_owned());
    let size = size_of(asset_of(scope, text)?);
    Some(map([
        ("src", Value::from(asset_href(scope, text)?)),
        ("width", size.map(|(width, _)| width).into()),
        ("height", size.map(|(_, height)| height).into()),
        ("key", key.into()),
    ]))
}

/// Returns a logo as a value: an inline SVG with its size, and the `src` of an image file, which the SVG then shows.
fn logo(text: &str, scope: &PageScope) -> Option<Value> {
    let asset = asset_of(scope, text)?;
    let size = size_of(asset);
    let (svg, src) = match is_svg(&asset.name) {
        true => {
            let svg = inline_svg(drawing_of(text, scope)?.as_ref(), None, None)?;
            let svg = match size {
                Some(size) => svg::size::with_size(&svg, size),
                None => svg,
            };
            (svg, None)
        }
        false => {
            let src = asset_href(scope, text)?;
            let (width, height) = size?;
            let href = escape(&src);
            let svg = format!(
                "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" aria-hidden=\"true\">\
                 <image href=\"{href}\" width=\"{width}\" height=\"{height}\"/></svg>"
            );
            (svg, Some(src))
        }
    };
    Some(map([
        ("svg", Value::safe_string(&svg)),
        ("width", size.map(|(width, _)| width).into()),
        ("height", size.map(|(_, height)| height).into()),
        ("src", src.into()),
    ]))
}

/// Returns the proportions of the settings that are logos, as declarations of custom properties: `--logo-ratio:120/32`.
pub(crate) fn logo_ratios(settings: &CheckedData, scope: &PageScope) -> Vec<String> {
    let logos = settings.formats.iter();
    let logos = logos.filter(|(_, format)| format.as_str() == "logo");
    logos
        .filter_map(|(pointer, _)| {
            let path = settings.value.pointer(pointer)?.as_str()?;
            let (width, height) = size_of(asset_of(scope, path)?)?;
            let name = pointer.trim_start_matches('/').replace(['/', '_'], "-");
            Some(format!("--{name}-ratio:{width}/{height}"))
        })
        .collect()
}

/// Returns width and height of an image or SVG in pixels.
pub(crate) fn size_of(asset: &Asset) -> Option<(u32, u32)> {
    match &asset.raster {
        Some(raster) => raster.size,
        None if is_svg(&asset.name) => svg::size::size(&asset.bytes),
        None => {
            let size = imagesize::blob_size(&asset.bytes).ok()?;
            Some((size.width.try_into().ok()?, size.height.try_into().ok()?))
        }
    }
}

fn map<const N: usize>(pairs: [(&'static str, Value); N]) -> Value {
    let mut map = Map::default();
    for (name, value) in pairs {
        map.insert(name.into(), value);
    }
    Value::from(map)
}

/// Returns an SVG of the tenant, else of the theme, as HTML.
fn drawing(path: &str, scope: &PageScope) -> Option<Value> {
    let asset = drawing_of(path, scope)?;
    let html = inline_svg(&asset, None, None)?;
    Some(Value::safe_string(&html))
}

/// Returns a page as an entry of a list.
#[must_use]
pub(crate) fn entry<'a>(page: &'a Page, scope: &PageScope) -> EntryView<'a> {
    EntryView {
        title: page.front.heading.as_deref().unwrap_or(&page.front.title),
        href: scope.resolver.href(&page.path),
        excerpt: page.front.excerpt.as_deref(),
        date: page.front.date.map(|date| date.day().to_string()),
        date_text: page.front.date.map(|date| scope.language().date(date)),
        tags: &page.front.tags,
    }
}
