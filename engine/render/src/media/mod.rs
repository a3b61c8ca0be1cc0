//! Renders Markdown images as the element for their file: an image with variants, a video with its poster and captions, an audio player, or a link.
//!
//! An image has its size, so that the page does not shift when it loads, and is loaded lazily. Browsers choose the variant that fits (HTML, section 4.8.4). Until a variant is drawn, its URL redirects to the original, so the page is the same before and after.
//!
//! `![The app](clip.mp4)` is a video (HTML, section 4.8.8). An image of the same stem is its poster, and a `.vtt` file of the same stem has its captions. Its size comes from its header.

pub(crate) mod media_type;
pub(crate) mod video_size;

use std::collections::BTreeMap;
use std::iter::Peekable;

use pulldown_cmark::{Event, Tag, TagEnd};

use crate::images::image_variant::{ImageVariant, VariantFormat};
use crate::markdown::escape::escape;
use crate::media::media_type::MediaKind;
use crate::pages::links::resolver::Resolver;
use crate::pages::links::text_context::LinkContext;
use crate::resources::asset::{ASSETS, Asset};
use content::tenant::assets::named;

/// The extensions of posters, in the order of preference.
const POSTERS: [&str; 5] = ["avif", "webp", "jpg", "jpeg", "png"];

/// The displayed width of an image in a text: the full width of a narrow window, and at most one column.
const DEFAULT_SIZES: &str = "(min-width: 60rem) 60rem, 100vw";
/// The attributes of images that load lazily.
pub(crate) const LAZY_ATTRIBUTES: &str = " loading=\"lazy\" decoding=\"async\"";
/// The attributes of the first image of a page.
const EAGER_ATTRIBUTES: &str = " fetchpriority=\"high\" decoding=\"async\"";
/// The start of an image with variants.
pub(crate) const PICTURE_START: &str = "<picture class=\"sizes\">";
/// The width from which an image may be the largest element of the first view, in pixels.
const MIN_LARGE_WIDTH: u32 = 300;
/// The mark of a decorative image: a class in braces, as in Pandoc.
pub(crate) const DECORATIVE_MARK: &str = "{.decorative}";

/// Replaces the images in a text by the elements for their files.
pub(crate) fn replace_images<'a>(
    events: Vec<Event<'a>>,
    context: &LinkContext<'_>,
) -> Vec<Event<'a>> {
    let mut shown = Vec::with_capacity(events.len());
    let mut events = events.into_iter().peekable();
    while let Some(event) = events.next() {
        let Event::Start(Tag::Image {
            dest_url, title, ..
        }) = event
        else {
            shown.push(event);
            continue;
        };
        let alt_text = alt_text(&mut events);
        let html = element(&dest_url, &alt_text, &title, context);
        shown.push(Event::InlineHtml(html.into()));
        let behind = text(&mut events);
        let behind = behind.strip_prefix(DECORATIVE_MARK).unwrap_or(&behind);
        if !behind.is_empty() {
            shown.push(Event::Text(behind.to_owned().into()));
        }
    }
    shown
}

/// Takes the text that comes next from the events. It may consist of several events.
fn text<'a>(events: &mut Peekable<impl Iterator<Item = Event<'a>>>) -> String {
    let mut text = String::new();
    while let Some(Event::Text(piece)) = events.next_if(|event| matches!(event, Event::Text(_))) {
        text.push_str(&piece);
    }
    text
}

/// Makes the first image of a page load eagerly, if it is near the top and not small.
#[must_use]
pub(crate) fn load_first_eagerly(html: String) -> String {
    let is_first = || {
        let at = html.find(LAZY_ATTRIBUTES)?;
        let before = &html[..at];
        let main = before.find("<main").or_else(|| before.find("<body"))?;
        let main = &before[main..];
        let image = &before[before.rfind("<img ")?..];
        let width = image.split(" width=\"").nth(1)?.split('"').next()?;
        let is_large = width.parse::<u32>().ok()? >= MIN_LARGE_WIDTH;
        (is_large && main.matches("<h2").count() < 2).then_some(())
    };
    match is_first() {
        Some(()) => html.replacen(LAZY_ATTRIBUTES, EAGER_ATTRIBUTES, 1),
        None => html,
    }
}

/// Writes an image with its size and its variants. `more` is added to its attributes.
#[must_use]
pub(crate) fn image(
    asset: &Asset,
    alt_text: &str,
    more: &str,
    sizes: Option<&str>,
    resolver: &Resolver,
) -> String {
    let (src, alt_text) = (resolver.asset(asset), escape(alt_text));
    let Some(raster) = &asset.raster else {
        return format!("<img src=\"{src}\" alt=\"{alt_text}\"{more} />");
    };
    let size = raster.size.map_or_else(String::new, |(width, height)| {
        format!(" width=\"{width}\" height=\"{height}\"")
    });
    let image = format!("<img src=\"{src}\" alt=\"{alt_text}\"{more}{size}{LAZY_ATTRIBUTES} />");
    if raster.sizes.is_empty() {
        return image;
    }
    raster.mark_shown();
    let sizes = escape(sizes.unwrap_or(DEFAULT_SIZES));
    let sources = VariantFormat::ALL.iter().map(|format| {
        let set = ImageVariant::of(asset, *format).map(|size| {
            let path = resolver.own(&format!("{ASSETS}{}", size.file_name()));
            format!("{path} {}w", size.width)
        });
        match set.collect::<Vec<_>>().join(", ") {
            none if none.is_empty() => none,
            set => {
                let media_type = format.media_type();
                format!("<source type=\"{media_type}\" srcset=\"{set}\" sizes=\"{sizes}\" />")
            }
        }
    });
    let sources: String = sources.collect();
    format!("{PICTURE_START}{sources}{image}</picture>")
}

/// Takes the alt text of an image from the events, up to the image's end.
fn alt_text<'a>(events: &mut impl Iterator<Item = Event<'a>>) -> String {
    let (mut alt_text, mut depth) = (String::new(), 0);
    for event in events {
        match event {
            Event::Start(Tag::Image { .. }) => depth += 1,
            Event::End(TagEnd::Image) if depth == 0 => break,
            Event::End(TagEnd::Image) => depth -= 1,
            Event::Text(text) | Event::Code(text) | Event::InlineHtml(text) => {
                alt_text.push_str(&text);
            }
            Event::SoftBreak | Event::HardBreak => alt_text.push(' '),
            _ => {}
        }
    }
    alt_text
}

fn element(written: &str, alt_text: &str, title: &str, context: &LinkContext<'_>) -> String {
    let resolver = context.resolver;
    let own = named(&resolver.assets, written, &resolver.file);
    if let Some((key, asset)) = own {
        return match MediaKind::of(key) {
            MediaKind::Image => image(asset, alt_text, &titled(title), None, resolver),
            MediaKind::Video => {
                let language = context.language.tag();
                video(key, asset, alt_text, title, language, resolver)
            }
            MediaKind::Audio => audio(asset, alt_text, title, resolver),
            MediaKind::Link | MediaKind::Unsupported => {
                link(asset, alt_text, &titled(title), resolver)
            }
        };
    }
    // Every host serves the theme's files at its root.
    let themed = context.themed.get(written);
    let src = themed.map_or_else(
        || written.to_owned(),
        |asset| format!("{ASSETS}{}", asset.hashed_name),
    );
    format!(
        "<img src=\"{}\" alt=\"{}\"{} />",
        escape(&src),
        escape(alt_text),
        titled(title)
    )
}

fn titled(title: &str) -> String {
    match title {
        "" => String::new(),
        title => format!(" title=\"{}\"", escape(title)),
    }
}

/// Returns the first file with the same stem as `key` and one of `extensions`, in their order.
fn beside<'a>(
    key: &str,
    extensions: &[&str],
    assets: &'a BTreeMap<String, Asset>,
) -> Option<&'a Asset> {
    let (stem, _) = key.rsplit_once('.')?;
    let mut keys = extensions.iter().map(|end| format!("{stem}.{end}"));
    keys.find_map(|key| assets.get(&key))
}

fn video(
    key: &str,
    asset: &Asset,
    alt_text: &str,
    title: &str,
    language: &str,
    resolver: &Resolver,
) -> String {
    let src = resolver.asset(asset);
    let mut html = format!("<video src=\"{src}\" controls preload=\"none\" playsinline");
    if let Some((width, height)) = video_size::size(&asset.payload()) {
        html += &format!(" width=\"{width}\" height=\"{height}\"");
    }
    if let Some(poster) = beside(key, &POSTERS, &resolver.assets) {
        html += &format!(" poster=\"{}\"", resolver.asset(poster));
    }
    html += &labelled(alt_text);
    html += &titled(title);
    html.push('>');
    if let Some(captions) = beside(key, &["vtt"], &resolver.assets) {
        html += &format!(
            "<track kind=\"captions\" src=\"{}\" srclang=\"{}\" default>",
            resolver.asset(captions),
            escape(language),
        );
    }
    // The fallback of browsers without video is a link to the file.
    html += &link(asset, alt_text, "", resolver);
    html + "</video>"
}

fn audio(asset: &Asset, alt_text: &str, title: &str, resolver: &Resolver) -> String {
    format!(
        "<audio src=\"{}\" controls preload=\"none\"{}{}>{}</audio>",
        resolver.asset(asset),
        labelled(alt_text),
        titled(title),
        link(asset, alt_text, "", resolver)
    )
}

fn labelled(alt_text: &str) -> String {
    match alt_text {
        "" => String::new(),
        alt_text => format!(" aria-label=\"{}\"", escape(alt_text)),
    }
}

/// Writes a link to a file. Without words the link text is the file name. `more` is added to its attributes.
fn link(asset: &Asset, alt_text: &str, more: &str, resolver: &Resolver) -> String {
    let alt_text = match alt_text {
        "" => asset.name.as_str(),
        alt_text => alt_text,
    };
    let (src, alt_text) = (resolver.asset(asset), escape(alt_text));
    format!("<a href=\"{src}\"{more}>{alt_text}</a>")
}
