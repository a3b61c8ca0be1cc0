//! What a picture becomes in a page: an image in several sizes, a video with what lies beside its file, a player of sound, or a link to a file that is none of these.
//!
//! An image says how large it is, so that nothing moves when it comes, and waits until somebody is near it. A browser takes the size that fits (HTML, section 4.8.4). Until a size is made, its address leads to the original: the page is the same before and after.
//! `![The app](clip.mp4)` is a video (HTML, section 4.8.8). A picture of the same stem is its poster, a `.vtt` of the same stem holds its captions, and its own header says how large it is, so that nothing moves when it comes.

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

/// What a poster may be, in the order in which it is looked for.
const POSTERS: [&str; 5] = ["avif", "webp", "jpg", "jpeg", "png"];

/// How wide a picture in a text is shown: over all of a narrow window, and no wider than a column.
const SIZES: &str = "(min-width: 60rem) 60rem, 100vw";
/// That a picture waits until somebody is near it, and what the first of a page says in its place.
pub(crate) const LAZY: &str = " loading=\"lazy\" decoding=\"async\"";
const EAGER: &str = " fetchpriority=\"high\" decoding=\"async\"";
/// What begins an image that comes in sizes.
pub(crate) const IN_SIZES: &str = "<picture class=\"sizes\">";
/// The width from which a picture may be the largest thing of a first view, in pixels.
const LARGE: u32 = 300;
/// What says that a picture only decorates: a class in braces, as Pandoc and others have it.
pub(crate) const DECORATIVE: &str = "{.decorative}";

/// A text with every picture as the element that shows it.
pub(crate) fn shown<'a>(events: Vec<Event<'a>>, context: &LinkContext<'_>) -> Vec<Event<'a>> {
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
        let words = words(&mut events);
        let html = element(&dest_url, &words, &title, context);
        shown.push(Event::InlineHtml(html.into()));
        let behind = text(&mut events);
        let behind = behind.strip_prefix(DECORATIVE).unwrap_or(&behind);
        if !behind.is_empty() {
            shown.push(Event::Text(behind.to_owned().into()));
        }
    }
    shown
}

/// The text that comes next, which may be in several pieces.
fn text<'a>(events: &mut Peekable<impl Iterator<Item = Event<'a>>>) -> String {
    let mut text = String::new();
    while let Some(Event::Text(piece)) = events.next_if(|event| matches!(event, Event::Text(_))) {
        text.push_str(&piece);
    }
    text
}

/// A page whose first picture comes at once, if it stands where a page begins and is not small.
#[must_use]
pub(crate) fn first_at_once(html: String) -> String {
    let is_first = || {
        let at = html.find(LAZY)?;
        let before = &html[..at];
        let main = before.find("<main").or_else(|| before.find("<body"))?;
        let main = &before[main..];
        let image = &before[before.rfind("<img ")?..];
        let width = image.split(" width=\"").nth(1)?.split('"').next()?;
        let is_large = width.parse::<u32>().ok()? >= LARGE;
        (is_large && main.matches("<h2").count() < 2).then_some(())
    };
    match is_first() {
        Some(()) => html.replacen(LAZY, EAGER, 1),
        None => html,
    }
}

/// An image: with its size, and with the sizes that it is made in where it has some. `more` are attributes.
#[must_use]
pub(crate) fn image(
    asset: &Asset,
    words: &str,
    more: &str,
    sizes: Option<&str>,
    resolver: &Resolver,
) -> String {
    let (src, words) = (resolver.asset(asset), escape(words));
    let Some(raster) = &asset.raster else {
        return format!("<img src=\"{src}\" alt=\"{words}\"{more} />");
    };
    let size = raster.size.map_or_else(String::new, |(width, height)| {
        format!(" width=\"{width}\" height=\"{height}\"")
    });
    let image = format!("<img src=\"{src}\" alt=\"{words}\"{more}{size}{LAZY} />");
    if raster.sizes.is_empty() {
        return image;
    }
    raster.show();
    let sizes = escape(sizes.unwrap_or(SIZES));
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
    format!("{IN_SIZES}{sources}{image}</picture>")
}

/// The words between the brackets of a picture, up to its end.
fn words<'a>(events: &mut impl Iterator<Item = Event<'a>>) -> String {
    let (mut words, mut depth) = (String::new(), 0);
    for event in events {
        match event {
            Event::Start(Tag::Image { .. }) => depth += 1,
            Event::End(TagEnd::Image) if depth == 0 => break,
            Event::End(TagEnd::Image) => depth -= 1,
            Event::Text(text) | Event::Code(text) | Event::InlineHtml(text) => {
                words.push_str(&text);
            }
            Event::SoftBreak | Event::HardBreak => words.push(' '),
            _ => {}
        }
    }
    words
}

fn element(written: &str, words: &str, title: &str, context: &LinkContext<'_>) -> String {
    let resolver = context.resolver;
    let own = named(&resolver.assets, written, &resolver.file);
    if let Some((key, asset)) = own {
        return match MediaKind::of(key) {
            MediaKind::Image => image(asset, words, &titled(title), None, resolver),
            MediaKind::Video => {
                let language = context.language.tag();
                video(key, asset, words, title, language, resolver)
            }
            MediaKind::Audio => audio(asset, words, title, resolver),
            MediaKind::Link | MediaKind::Unsupported => {
                link(asset, words, &titled(title), resolver)
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
        escape(words),
        titled(title)
    )
}

fn titled(title: &str) -> String {
    match title {
        "" => String::new(),
        title => format!(" title=\"{}\"", escape(title)),
    }
}

/// The keys of files beside a file whose names differ from its by their extensions, in the order of these.
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
    words: &str,
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
    html += &labelled(words);
    html += &titled(title);
    html.push('>');
    if let Some(captions) = beside(key, &["vtt"], &resolver.assets) {
        html += &format!(
            "<track kind=\"captions\" src=\"{}\" srclang=\"{}\" default>",
            resolver.asset(captions),
            escape(language),
        );
    }
    // Browsers without video offer the file itself.
    html += &link(asset, words, "", resolver);
    html + "</video>"
}

fn audio(asset: &Asset, words: &str, title: &str, resolver: &Resolver) -> String {
    format!(
        "<audio src=\"{}\" controls preload=\"none\"{}{}>{}</audio>",
        resolver.asset(asset),
        labelled(words),
        titled(title),
        link(asset, words, "", resolver)
    )
}

fn labelled(words: &str) -> String {
    match words {
        "" => String::new(),
        words => format!(" aria-label=\"{}\"", escape(words)),
    }
}

/// A link to a file, by its name where there are no words. `more` are attributes.
fn link(asset: &Asset, words: &str, more: &str, resolver: &Resolver) -> String {
    let words = match words {
        "" => asset.name.as_str(),
        words => words,
    };
    let (src, words) = (resolver.asset(asset), escape(words));
    format!("<a href=\"{src}\"{more}>{words}</a>")
}
