//! Writes a page's `<head>` from typed values, in one fixed order.
//!
//! **Invariant:** the engine writes the complete head. A layout only contains `{{ head }}`.

pub(crate) mod script_tags;
pub(crate) mod speculation_rules;
pub(crate) mod structured_data;
use serde_json::Value as Json;

use crate::markdown::escape;
use crate::media::media_type::media_type;

/// The values of a page's head.
#[derive(Debug, Default)]
pub(crate) struct PageHead {
    /// The complete title: `<page> | <company>`, or `<page> | <site>` without a company.
    pub title: String,
    /// The description, if there is one.
    pub description: Option<String>,
    /// The canonical URL, absolute. Error pages have none.
    pub canonical: Option<String>,
    /// The URL of the page's Markdown form, absolute.
    pub markdown: Option<String>,
    /// The languages and absolute URLs of the page and its translations.
    pub alternates: Vec<(String, String)>,
    /// Whether search engines must not index the page.
    pub noindex: bool,
    /// The Open Graph type: `website` or `article`.
    pub kind: &'static str,
    /// The site's name, for previews of shared links.
    pub site_name: String,
    /// The social image.
    pub image: Option<SocialImage>,
    /// The day and night colours of the browser's toolbar.
    pub theme_colors: Option<(String, String)>,
    /// The URL of the icon.
    pub icon: Option<String>,
    /// The URL of the icon for home screens.
    pub touch_icon: Option<String>,
    /// The URL of the web manifest.
    pub manifest: Option<String>,
    /// The app's id in the App Store, for Safari's banner.
    pub app_store_id: Option<String>,
    /// An Atom feed: title and URL.
    pub feed: Option<(String, String)>,
    /// The graph of structured data (JSON-LD 1.1).
    pub structured_data: Option<Json>,
}

/// The image that previews of shared links show.
#[derive(Debug, Clone)]
pub(crate) struct SocialImage {
    /// Its absolute URL.
    pub url: String,
    /// Its alt text.
    pub alt: String,
    /// Width and height in pixels, if known.
    pub size: Option<(u32, u32)>,
}

/// A placeholder in the head for the style, which is known once the page is rendered.
pub(crate) const STYLE_MARK: &str = "<!--style-->";

/// A placeholder in the head for the scripts, which are known once it is clear which islands the page uses.
pub(crate) const SCRIPTS_MARK: &str = "<!--scripts-->";

impl PageHead {
    /// Writes the content of the head.
    #[must_use]
    pub(crate) fn html(&self) -> String {
        let mut out = Tags::default();
        out.raw("<meta charset=\"utf-8\">");
        out.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
        out.raw(&format!("<title>{}</title>", escape(&self.title)));
        if let Some(description) = &self.description {
            out.meta("name", "description", description);
        }
        if let Some(canonical) = &self.canonical {
            out.link("canonical", canonical, "");
        }
        if let Some(markdown) = &self.markdown {
            out.link("alternate", markdown, " type=\"text/markdown\"");
        }
        for (language, url) in &self.alternates {
            let more = format!(" hreflang=\"{}\"", escape(language));
            out.link("alternate", url, &more);
        }
        out.meta(
            "name",
            "robots",
            if self.noindex {
                "noindex"
            } else {
                "index, follow"
            },
        );
        self.sharing(&mut out);
        out.meta("name", "color-scheme", "light dark");
        if let Some((day, night)) = &self.theme_colors {
            for (scheme, color) in [("light", day), ("dark", night)] {
                out.raw(&format!(
                    "<meta name=\"theme-color\" content=\"{}\" media=\"(prefers-color-scheme: {scheme})\">",
                    escape(color)
                ));
            }
        }
        if let Some(icon) = &self.icon {
            out.link("icon", icon, " type=\"image/svg+xml\"");
        }
        if let Some(icon) = &self.touch_icon {
            out.link("apple-touch-icon", icon, "");
        }
        if let Some(manifest) = &self.manifest {
            out.link("manifest", manifest, "");
        }
        if let Some(id) = &self.app_store_id {
            out.meta("name", "apple-itunes-app", &format!("app-id={id}"));
        }
        if let Some((title, href)) = &self.feed {
            let more = format!(" type=\"application/atom+xml\" title=\"{}\"", escape(title));
            out.link("alternate", href, &more);
        }
        out.0.push_str(STYLE_MARK);
        if let Some(graph) = &self.structured_data {
            out.raw(&format!(
                "<script type=\"application/ld+json\">{}</script>",
                json_for_script(graph)
            ));
        }
        out.0.push_str(SCRIPTS_MARK);
        out.0
    }

    /// Writes the Open Graph and Twitter card tags.
    fn sharing(&self, out: &mut Tags) {
        let short = self.title.split(" | ").next().unwrap_or(&self.title);
        out.meta("property", "og:title", short);
        if let Some(description) = &self.description {
            out.meta("property", "og:description", description);
        }
        out.meta("property", "og:type", self.kind);
        if let Some(image) = &self.image {
            out.meta("property", "og:image", &image.url);
            if let Some((width, height)) = image.size {
                out.meta("property", "og:image:width", &width.to_string());
                out.meta("property", "og:image:height", &height.to_string());
            }
            out.meta("property", "og:image:alt", &image.alt);
        }
        if let Some(canonical) = &self.canonical {
            out.meta("property", "og:url", canonical);
        }
        out.meta("property", "og:site_name", &self.site_name);
        out.meta("name", "twitter:card", "summary_large_image");
        out.meta("name", "twitter:title", short);
        if let Some(description) = &self.description {
            out.meta("name", "twitter:description", description);
        }
        if let Some(image) = &self.image {
            out.meta("name", "twitter:image", &image.url);
            out.meta("name", "twitter:image:alt", &image.alt);
        }
    }
}

/// Returns tags that make browsers fetch fonts before they read the style.
#[must_use]
pub(crate) fn preload(fonts: &[String]) -> String {
    let mut out = Tags::default();
    for font in fonts {
        let more = format!(" as=\"font\" type=\"{}\" crossorigin", media_type(font));
        out.link("preload", font, &more);
    }
    out.0
}

#[derive(Default)]
struct Tags(String);

impl Tags {
    fn raw(&mut self, tag: &str) {
        self.0.push_str(tag);
        self.0.push('\n');
    }

    fn meta(&mut self, key: &str, name: &str, content: &str) {
        self.raw(&format!(
            "<meta {key}=\"{name}\" content=\"{}\">",
            escape(content)
        ));
    }

    fn link(&mut self, relation: &str, href: &str, more: &str) {
        self.raw(&format!(
            "<link rel=\"{relation}\" href=\"{}\"{more}>",
            escape(href)
        ));
    }
}

/// Writes JSON that cannot end its script element (WHATWG HTML, restrictions for contents of script elements).
fn json_for_script(value: &Json) -> String {
    value
        .to_string()
        .replace('<', "\\u003c")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_escapes_every_value() {
        let head = PageHead {
            title: "A & \"B\" <C> | D".to_owned(),
            description: Some("</title><script>".to_owned()),
            kind: "website",
            structured_data: Some(serde_json::json!({"name": "</script><!--\u{2028}"})),
            ..PageHead::default()
        };
        let html = head.html();
        assert!(html.contains("<title>A &amp; &quot;B&quot; &lt;C&gt; | D</title>"));
        assert!(!html.contains("</title><script>"));
        assert!(html.contains("\\u003c/script>\\u003c!--\\u2028"));
    }
}
