//! What a picture of Markdown becomes in a page: an image, or a video with what lies beside its file.
//!
//! `![The app](clip.mp4)` is a video (HTML, section 4.8.8). A picture of the same stem is its poster, a `.vtt` of the same stem holds its captions, and its own header says how large it is, so that nothing moves when it comes.

use std::collections::BTreeMap;

use pulldown_cmark::{Event, Tag, TagEnd};

use super::asset::Asset;
use super::escape::escape;
use super::film;
use super::link::Resolver;
use super::link_context::LinkContext;
use super::media_type::tenant_type;
use content::tenant::assets::named;

/// What a poster may be, in the order in which it is looked for.
const POSTERS: [&str; 5] = ["avif", "webp", "jpg", "jpeg", "png"];

/// A text with every picture as the element that shows it.
pub(super) fn shown<'a>(events: Vec<Event<'a>>, context: &LinkContext<'_>) -> Vec<Event<'a>> {
    let mut shown = Vec::with_capacity(events.len());
    let mut events = events.into_iter();
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
    }
    shown
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
    if let Some((key, asset)) = own
        && is_video(key)
    {
        let language = context.language.tag();
        return video(key, asset, words, title, language, resolver);
    }
    let src = match own {
        Some((_, asset)) => resolver.asset(asset),
        // Every host serves the theme's files at its root.
        None => match context.themed.get(written) {
            Some(asset) => asset.link().0,
            None => written.to_owned(),
        },
    };
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

fn is_video(key: &str) -> bool {
    tenant_type(key).0.starts_with("video/")
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
    if let Some((width, height)) = film::size(&asset.bytes) {
        html += &format!(" width=\"{width}\" height=\"{height}\"");
    }
    if let Some(poster) = beside(key, &POSTERS, &resolver.assets) {
        html += &format!(" poster=\"{}\"", resolver.asset(poster));
    }
    if !words.is_empty() {
        html += &format!(" aria-label=\"{}\"", escape(words));
    }
    html += &titled(title);
    html.push('>');
    if let Some(captions) = beside(key, &["vtt"], &resolver.assets) {
        html += &format!(
            "<track kind=\"captions\" src=\"{}\" srclang=\"{}\" default>",
            resolver.asset(captions),
            escape(language),
        );
    }
    // For who has no video: the file itself.
    html += &format!(
        "<a href=\"{src}\">{}</a></video>",
        escape(match words {
            "" => &asset.name,
            words => words,
        })
    );
    html
}
