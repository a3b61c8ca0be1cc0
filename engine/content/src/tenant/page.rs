//! A page: typed front matter and a Markdown body.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::manifest::NamedLink;
use crate::formats::values::{Asset, Date, Moment, RoutePath};
use crate::report::TextPosition;
use crate::schema::FormattedText;

/// The front matter of a page. Only `title` is required.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FrontMatter {
    /// The page's name: the document title is `<title> | <company>`.
    pub title: String,
    /// The heading on the page, by default the title.
    #[serde(default)]
    pub heading: Option<String>,
    /// The text for search results and shared links, 50 to 160 characters.
    #[serde(default)]
    pub description: Option<String>,
    /// The layout of the theme, by name.
    #[serde(default)]
    pub layout: Option<String>,
    /// Other paths of this tenant that serve the same page, at most 16.
    #[serde(default)]
    #[schemars(length(max = 16))]
    pub aliases: Vec<RoutePath>,
    /// The page's name in breadcrumbs, by default the title.
    #[serde(default)]
    pub breadcrumb: Option<String>,
    /// The link back to the previous page.
    #[serde(default)]
    pub back: Option<NamedLink>,
    /// The day of publication of a collection entry.
    #[serde(default)]
    pub date: Option<Date>,
    /// The day of the last change. Legal pages show it; sitemaps and structured data include it for every page.
    #[serde(default)]
    pub updated: Option<Date>,
    /// Whether `updated` is the day on which the text takes effect.
    #[serde(default)]
    pub effective: bool,
    /// The time from which the page is served. Before it, the page does not exist.
    #[serde(default)]
    pub publish: Option<Moment>,
    /// The time from which the page is no longer served.
    #[serde(default)]
    pub expire: Option<Moment>,
    /// Whether the page is a draft. Only `rowhouse serve --dev` serves drafts, as it does pages before `publish` and after `expire`.
    #[serde(default)]
    pub draft: bool,
    /// The text of a collection entry in lists.
    #[serde(default)]
    pub excerpt: Option<String>,
    /// The topics of a collection entry.
    #[serde(default)]
    pub tags: Vec<String>,
    /// The social image of the page.
    #[serde(default)]
    pub image: Option<Asset>,
    /// Whether search engines should omit the page.
    #[serde(default)]
    pub noindex: bool,
    /// The type of the page in structured data.
    #[serde(default)]
    pub schema: Option<PageSchema>,
    /// The collection whose entries are the pages directly below this page.
    #[serde(default)]
    pub collection: Option<Collection>,
    /// The sections of the page, above the body. Each has a `kind`; the theme defines its other keys.
    #[serde(default)]
    pub sections: Vec<Map<String, Json>>,
}

impl FrontMatter {
    /// Returns the day of the last change, as used in the sitemap, feeds and structured data.
    #[must_use]
    pub fn last_change(&self) -> Option<Date> {
        self.updated.max(self.date)
    }
}

/// The number of years ahead from which a date is most likely a typing error.
const MAX_YEARS_AHEAD: i16 = 20;

/// Returns dates that are unlikely to be intended: the key, the problem, and the fix.
pub(super) fn unlikely_dates(
    front: &FrontMatter,
    now: Timestamp,
) -> Vec<(&'static str, String, &'static str)> {
    let mut found = Vec::new();
    if let (Some(publish), Some(expire)) = (front.publish, front.expire)
        && expire <= publish
    {
        let message = format!(
            "`expire` ({}) is not after `publish` ({})",
            expire.instant(),
            publish.instant()
        );
        found.push((
            "expire",
            message,
            "write an `expire` that is later than `publish`",
        ));
    }
    if let (Some(date), Some(updated)) = (front.date, front.updated)
        && updated < date
    {
        let message = format!(
            "`updated` ({}) is before `date` ({})",
            updated.day(),
            date.day()
        );
        let hint = "write the day of the last change, or remove `updated`";
        found.push(("updated", message, hint));
    }
    let year = |day: Option<Date>| day.map(|day| day.day().year());
    let publish = front.publish.map(|moment| {
        let moment = moment.instant().to_zoned(jiff::tz::TimeZone::UTC);
        moment.year()
    });
    let last = now.to_zoned(jiff::tz::TimeZone::UTC).year() + MAX_YEARS_AHEAD;
    for (key, year) in [
        ("date", year(front.date)),
        ("updated", year(front.updated)),
        ("publish", publish),
    ] {
        if let Some(year) = year.filter(|year| *year > last) {
            let message =
                format!("`{key}` is in the year {year}, more than {MAX_YEARS_AHEAD} years ahead");
            found.push((key, message, "correct the year"));
        }
    }
    found
}

/// The schema.org type of a page (<https://schema.org>).
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

/// The settings of a collection.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Collection {
    /// The layout of the entries.
    #[serde(default)]
    pub layout: Option<String>,
    /// Whether the entries have an Atom feed.
    #[serde(default)]
    pub feed: bool,
    /// The type of the entries in structured data.
    #[serde(default)]
    pub schema: Option<PageSchema>,
    /// The 404 page for entries that do not exist.
    #[serde(default)]
    pub not_found: Option<NotFound>,
}

/// The texts of the 404 page for an entry that does not exist.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NotFound {
    /// The heading of the page.
    pub title: String,
    /// The text below the heading.
    #[serde(default)]
    pub text: Option<String>,
    /// The link back to the collection.
    pub back: NamedLink,
}

/// The reason why visitors do not see a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HiddenReason {
    /// The page is a draft.
    Draft,
    /// The page appears at this time.
    Scheduled(Timestamp),
    /// The page expired at this time.
    Expired(Timestamp),
}

/// A checked page of a tenant.
#[derive(Debug, Clone)]
pub struct Page {
    /// The path within the tenant, for example `/` or `/blog/first`.
    pub path: String,
    /// The file within the folder, for example `pages/blog/first.md`.
    pub file: String,
    /// The front matter.
    pub front: FrontMatter,
    /// All texts of the front matter that have a format, outside its sections, with their positions.
    pub formatted: Vec<FormattedText>,
    /// The Markdown body.
    pub body: String,
    /// The line of the file at which the body begins.
    pub body_line: usize,
    /// Why visitors do not see the page, where only authors see it.
    pub hidden: Option<HiddenReason>,
}

impl Page {
    /// Returns the path of the parent page: `/blog` for `/blog/first`, `/` for `/blog`, `None` for `/`.
    #[must_use]
    pub fn parent(&self) -> Option<&str> {
        match self.path.rsplit_once('/') {
            Some((_, "")) | None => None,
            Some(("", _)) => Some("/"),
            Some((parent, _)) => Some(parent),
        }
    }

    /// Returns why visitors do not see the page at time `now`, or `None` if they see it.
    #[must_use]
    pub fn hidden_at(&self, now: Timestamp) -> Option<HiddenReason> {
        let instant = |moment: Option<Moment>| moment.map(Moment::instant);
        if self.front.draft {
            return Some(HiddenReason::Draft);
        }
        if let Some(expire) = instant(self.front.expire).filter(|expire| *expire <= now) {
            return Some(HiddenReason::Expired(expire));
        }
        let publish = instant(self.front.publish).filter(|publish| *publish > now);
        publish.map(HiddenReason::Scheduled)
    }

    /// Returns whether the page is served at time `now`. `includes_hidden`: whether authors see pages that visitors do not see.
    #[must_use]
    pub fn is_shown(&self, now: Timestamp, includes_hidden: bool) -> bool {
        includes_hidden || self.hidden_at(now).is_none()
    }

    /// Returns all paths of this page: its own, then the aliases.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.path.as_str()).chain(self.front.aliases.iter().map(RoutePath::as_str))
    }
}

/// A page file split into front matter and body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageParts<'a> {
    /// The YAML, which begins at line 2 of the file.
    pub front: &'a str,
    /// The Markdown.
    pub body: &'a str,
    /// The line at which the Markdown begins.
    pub body_line: usize,
}

/// Splits a file at its two `---` lines. Returns `None` if it does not have both.
#[must_use]
pub fn split(text: &str) -> Option<PageParts<'_>> {
    let mut lines = text.split_inclusive('\n');
    let first = lines.next()?;
    if first.trim_end() != "---" {
        return None;
    }
    let start = first.len();
    let mut end = start;
    for (index, line) in lines.enumerate() {
        if line.trim_end() == "---" {
            return Some(PageParts {
                front: &text[start..end],
                body: &text[end + line.len()..],
                body_line: index + 3,
            });
        }
        end += line.len();
    }
    None
}

/// The position of the first characters of a file.
pub(crate) const FILE_START: TextPosition = TextPosition {
    line: 1,
    column: 1,
    length: 3,
};

/// Explains why a file has no front matter between two `---` lines: the problem, the fix, and the position.
pub(super) fn why_not_split(text: &str) -> (&'static str, &'static str, TextPosition) {
    let first = text.lines().next().unwrap_or_default();
    let below = text.get(first.len() + 1..).unwrap_or_default();
    match first.trim_end() {
        "---" => {
            let last = TextPosition {
                line: text.lines().count().max(1),
                ..FILE_START
            };
            (
                "the front matter is not closed: its second line `---` is missing",
                "add a line `---`, with three hyphens and nothing else, below the last key",
                end_of_front_matter(below).unwrap_or(last),
            )
        }
        "+++" => (
            "the front matter is TOML, between two lines `+++`",
            "write YAML between two lines `---`: `title: My page`",
            FILE_START,
        ),
        _ => (
            "the page does not begin with front matter between two lines `---`",
            "begin the page with three lines: `---`, `title: ...`, `---`",
            FILE_START,
        ),
    }
}

/// Finds where front matter, which begins in line 2, seems to end: at an unindented line that is not a key, a comment or a list item.
pub(super) fn end_of_front_matter(front: &str) -> Option<TextPosition> {
    let is_key = |character: char| character.is_alphanumeric() || "_-.\"'".contains(character);
    let is_yaml = |line: &str| {
        let (key, rest) = line.split_once(':').unwrap_or(("", ""));
        let is_entry = !key.is_empty() && key.chars().all(is_key);
        is_entry
            && (rest.is_empty() || rest.starts_with([' ', '\t', '\u{a0}']) || !rest.contains(' '))
    };
    let mut after_gap = false;
    for (index, line) in front.lines().enumerate() {
        if line.trim().is_empty() {
            after_gap = true;
            continue;
        }
        let is_ruler = line.len() > 3 && line.trim_end().bytes().all(|byte| byte == b'-')
            || matches!(
                line.trim_end(),
                "\u{2014}" | "\u{2013}" | "***" | "___" | "..."
            );
        let is_heading = after_gap && line.starts_with('#');
        let is_text = after_gap && !line.starts_with([' ', '\t', '#', '-']) && !is_yaml(line);
        if is_ruler || is_heading || is_text {
            return Some(TextPosition {
                line: index + 2,
                column: 1,
                length: line.chars().count(),
            });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unclosed_front_matter_is_reported_at_its_likely_end() {
        let line = |text: &str| why_not_split(text).2.line;
        assert_eq!(line("---\ntitle: A\n\n# Heading\n"), 4);
        assert_eq!(line("---\ntitle: A\n\nText of it.\n"), 4);
        assert_eq!(line("---\ntitle: A\n----\nText\n"), 3);
        assert_eq!(line("---\ntitle: A\n\u{2014}\nText\n"), 3);
        assert_eq!(line("---\ntitle: A\ntext: |\n  a\n\n  b\nx: y\n"), 7);
        assert_eq!(line("# Heading\n"), 1);
        assert!(why_not_split("+++\ntitle = 'A'\n+++\n").0.contains("TOML"));
    }

    #[test]
    fn unlikely_dates_are_reported() {
        let keys = |yaml: &str| {
            let node = crate::yaml::parse(&format!("title: A\n{yaml}"), 1).expect("YAML");
            let front: FrontMatter = serde_json::from_value(node.to_json()).expect("front matter");
            let now = "2026-06-01T00:00:00Z".parse().expect("a date-time");
            let found = unlikely_dates(&front, now).into_iter();
            found.map(|(key, ..)| key).collect::<Vec<_>>()
        };
        assert_eq!(
            keys("publish: 2026-01-02T00:00:00Z\nexpire: 2026-01-01T00:00:00Z\n"),
            ["expire"]
        );
        assert_eq!(keys("date: 2026-01-02\nupdated: 2026-01-01\n"), ["updated"]);
        assert_eq!(keys("date: 2062-01-02\n"), ["date"]);
        assert_eq!(keys("publish: 2206-01-02T00:00:00Z\n"), ["publish"]);
        let usual = "date: 2026-01-02\nupdated: 2026-01-02\nexpire: 2099-01-01T00:00:00Z\n";
        assert!(keys(usual).is_empty());
    }

    #[test]
    fn body_has_its_line_number() {
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
