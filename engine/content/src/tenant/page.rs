//! A page: typed front matter and a Markdown body.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::manifest::NamedLink;
use super::values::{Asset, Date, Moment, RoutePath};
use crate::schema::Formatted;

/// The front matter of a page. Only `title` is needed.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FrontMatter {
    /// The page's name: the document title is `<title> | <company>`.
    pub title: String,
    /// The heading on the page, by default the title.
    #[serde(default)]
    pub heading: Option<String>,
    /// What search results and shared links say, 50 to 160 characters.
    #[serde(default)]
    pub description: Option<String>,
    /// The theme's layout.
    #[serde(default)]
    pub layout: Option<String>,
    /// More paths of this tenant that answer with this document, at most 16.
    #[serde(default)]
    #[schemars(length(max = 16))]
    pub aliases: Vec<RoutePath>,
    /// The page's name in breadcrumbs, by default the title.
    #[serde(default)]
    pub breadcrumb: Option<String>,
    /// The link back to where visitors came from.
    #[serde(default)]
    pub back: Option<NamedLink>,
    /// The day of an entry.
    #[serde(default)]
    pub date: Option<Date>,
    /// The day of the last change: legal texts show it, sitemaps and structured data say it of every page.
    #[serde(default)]
    pub updated: Option<Date>,
    /// Whether that day is the one from which the text holds.
    #[serde(default)]
    pub effective: bool,
    /// The moment from which the page is served; before it there is none.
    #[serde(default)]
    pub publish: Option<Moment>,
    /// The moment from which it is no longer served.
    #[serde(default)]
    pub expire: Option<Moment>,
    /// That the page is not ready: only `serve --dev` shows it, and nobody else finds it.
    #[serde(default)]
    pub draft: bool,
    /// What lists show of an entry.
    #[serde(default)]
    pub excerpt: Option<String>,
    /// What an entry is about.
    #[serde(default)]
    pub tags: Vec<String>,
    /// The social image.
    #[serde(default)]
    pub image: Option<Asset>,
    /// Whether search engines should leave the page out.
    #[serde(default)]
    pub noindex: bool,
    /// What the page is, for structured data.
    #[serde(default)]
    pub schema: Option<PageSchema>,
    /// That the pages beside this one are its entries.
    #[serde(default)]
    pub collection: Option<Collection>,
    /// The parts of the page, above the body: each has a `kind`, and the theme says what belongs to it.
    #[serde(default)]
    pub sections: Vec<Map<String, Json>>,
}

/// The type of thing that a page is about (<https://schema.org>).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PageSchema {
    /// A `Service` that the company offers.
    Service,
    /// An `AboutPage`.
    About,
    /// A `ContactPage`.
    Contact,
    /// A `CollectionPage`.
    Collection,
    /// A `BlogPosting`.
    Article,
    /// A `CreativeWork`: a case study or a project.
    Project,
    /// A `SoftwareApplication`, from the manifest's `app`.
    App,
}

/// What the entries beside a page have in common.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Collection {
    /// The layout of the entries.
    #[serde(default)]
    pub layout: Option<String>,
    /// Whether there is an Atom feed of them.
    #[serde(default)]
    pub feed: bool,
    /// What an entry is, for structured data.
    #[serde(default)]
    pub schema: Option<PageSchema>,
    /// What is said where no entry is.
    #[serde(default)]
    pub not_found: Option<NotFound>,
}

/// The words for an entry that does not exist.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NotFound {
    /// The heading.
    pub title: String,
    /// The line below.
    #[serde(default)]
    pub text: Option<String>,
    /// The way back.
    pub back: NamedLink,
}

/// A page of a tenant, checked.
#[derive(Debug, Clone)]
pub struct Page {
    /// The path within the tenant: `/`, `/blog/first`.
    pub path: String,
    /// The file within the folder: `pages/blog/first.md`.
    pub file: String,
    /// What stands above the body.
    pub front: FrontMatter,
    /// Every link, asset and path of the front matter outside its sections, with its place.
    pub formatted: Vec<Formatted>,
    /// The body in Markdown.
    pub body: String,
    /// The line of the file that the body begins at.
    pub body_line: usize,
}

impl Page {
    /// The path of the page above this one: `/blog` for `/blog/first`, `/` for `/blog`, none for `/`.
    #[must_use]
    pub fn parent(&self) -> Option<&str> {
        match self.path.rsplit_once('/') {
            Some((_, "")) | None => None,
            Some(("", _)) => Some("/"),
            Some((parent, _)) => Some(parent),
        }
    }

    /// Whether the page is shown at a moment; `drafts` when drafts are shown, too.
    #[must_use]
    pub fn is_shown(&self, now: Timestamp, drafts: bool) -> bool {
        if self.front.draft && !drafts {
            return false;
        }
        let begun = self
            .front
            .publish
            .is_none_or(|publish| publish.instant() <= now);
        let ended = self
            .front
            .expire
            .is_some_and(|expire| expire.instant() <= now);
        begun && !ended
    }

    /// Every path that answers with this page: its own, then the aliases.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.path.as_str()).chain(self.front.aliases.iter().map(RoutePath::as_str))
    }
}

/// The path of a page's file: `pages/blog/index.md` is `/blog`.
#[must_use]
pub fn path_of(file: &str) -> Option<String> {
    let inner = file.strip_prefix("pages/")?.strip_suffix(".md")?;
    let inner = match inner.strip_suffix("index") {
        Some(folder) if folder.is_empty() || folder.ends_with('/') => folder.trim_end_matches('/'),
        _ => inner,
    };
    Some(format!("/{inner}"))
}

/// A page's file, cut into front matter and body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts<'a> {
    /// The YAML, which begins at line 2 of the file.
    pub front: &'a str,
    /// The Markdown.
    pub body: &'a str,
    /// The line that the Markdown begins at.
    pub body_line: usize,
}

/// Cuts at the two lines `---`. `None` when there are not two.
#[must_use]
pub fn split(text: &str) -> Option<Parts<'_>> {
    let mut lines = text.split_inclusive('\n');
    let first = lines.next()?;
    if first.trim_end() != "---" {
        return None;
    }
    let start = first.len();
    let mut end = start;
    for (index, line) in lines.enumerate() {
        if line.trim_end() == "---" {
            return Some(Parts {
                front: &text[start..end],
                body: &text[end + line.len()..],
                body_line: index + 3,
            });
        }
        end += line.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_files_name_is_its_path() {
        for (file, path) in [
            ("pages/index.md", Some("/")),
            ("pages/terms.md", Some("/terms")),
            ("pages/blog/index.md", Some("/blog")),
            ("pages/blog/first.md", Some("/blog/first")),
            ("pages/my-index.md", Some("/my-index")),
            ("assets/x.md", None),
            ("pages/x.txt", None),
        ] {
            assert_eq!(path_of(file).as_deref(), path, "{file}");
        }
    }

    #[test]
    fn the_body_knows_its_line() {
        let parts = split("---\ntitle: A\n---\nBody\n").expect("two rulers");
        assert_eq!(parts.front, "title: A\n");
        assert_eq!((parts.body, parts.body_line), ("Body\n", 4));
        assert_eq!(
            split("---\r\na: 1\r\n---\r\nB").map(|parts| parts.body),
            Some("B")
        );
        assert_eq!(split("---\ntitle: A\n"), None);
        assert_eq!(split("title: A\n---\n"), None);
        assert_eq!(
            split("---\n---").map(|parts| (parts.front, parts.body)),
            Some(("", ""))
        );
    }
}
