//! Compares two releases of a tenant, or the files of two versions, and describes the changes for operators.
//!
//! Pages are compared at one address, since a tenant has the same pages at all its addresses.
//! The comparison of HTML begins with the content that readers see: a line for each sentence, with links and images. Tags, scripts, styles and files for machines such as `sitemap.xml` are metadata. Bodies that are not text are compared by size.
//!
//! **Invariant:** without I/O and without knowledge of tenants. The same releases give the same changes.

mod content;
pub mod files;
mod lines;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use imara_diff::{Algorithm, Diff, InternedInput};

use self::content::HtmlContent;
use self::lines::{html_lines, text_lines};
use release::payload::Payload;
use release::snapshot::{Body, ContentEncoding, Resource};
use release::store::{AddressPages, Release};
use server::admin::control::{ChangeKind, PageChange};

/// The limit on lines in the difference of a page. Further lines are counted.
const MAX_LINES: usize = 200;
/// The limit on the length of a line, in characters. The rest is cut off.
const MAX_LINE_CHARACTERS: usize = 400;
/// The limit on the differences of all pages together, in bytes. Beyond the limit, pages are listed without a difference.
const MAX_DIFF_BYTES: usize = 2 * 1024 * 1024;
/// The limit on a text that is compared line by line, in bytes. For larger texts, the sizes are shown.
const MAX_COMPARED_BYTES: usize = 512 * 1024;
/// The number of unchanged lines before and after a change.
const CONTEXT_LINES: usize = 1;

/// Returns the changes from one release to another, sorted by path, those that readers see first. Error pages are compared only if both releases have them.
#[must_use]
pub fn compare(from: &Release, to: &Release) -> Vec<PageChange> {
    let (from, to) = common_place(&from.addresses, &to.addresses);
    let paths: BTreeSet<&str> = [from, to]
        .into_iter()
        .flatten()
        .flat_map(|placed| placed.pages.resources.paths())
        .collect();
    let mut changes = ReleaseDiff::default();
    for path in paths {
        let resource = |placed: Option<&'_ AddressPages>| {
            placed.and_then(|placed| placed.pages.resources.get(path).cloned())
        };
        match (resource(from), resource(to)) {
            (None, None) => {}
            (None, Some(_)) => {
                changes.add(path.to_owned(), ChangeKind::Added, Difference::default())
            }
            (Some(_), None) => {
                changes.add(path.to_owned(), ChangeKind::Removed, Difference::default())
            }
            (Some(old), Some(new)) => changes.compare(path.to_owned(), &old, &new),
        }
    }
    changes.compare_redirects(from, to);
    if let (Some(from), Some(to)) = (from, to) {
        let (from, to) = (&from.pages, &to.pages);
        for (status, from, to) in [
            (404, &from.not_found, &to.not_found),
            (405, &from.method_not_allowed, &to.method_not_allowed),
        ] {
            for (part, old) in from {
                let same_part = to.iter().find(|(other, _)| other == part);
                let name = match &**part {
                    "" => format!("{status} page"),
                    part => format!("{status} page of {part}"),
                };
                if let Some((_, new)) = same_part {
                    changes.compare(name, old, new);
                }
            }
        }
    }
    let order = |change: &PageChange| (change.is_metadata(), change.path.clone());
    changes.list.sort_by_cached_key(order);
    changes.list
}

/// Returns the pages at the first address that both releases have, or else at the first address of each.
fn common_place<'p>(
    from: &'p [AddressPages],
    to: &'p [AddressPages],
) -> (Option<&'p AddressPages>, Option<&'p AddressPages>) {
    for old in from {
        let is_same = |new: &&AddressPages| (&new.host, &new.prefix) == (&old.host, &old.prefix);
        if let Some(new) = to.iter().find(is_same) {
            return (Some(old), Some(new));
        }
    }
    (from.first(), to.first())
}

/// The changes found so far.
#[derive(Debug, Default)]
struct ReleaseDiff {
    list: Vec<PageChange>,
    /// The size of the texts in `list`, in bytes.
    text: usize,
}

impl ReleaseDiff {
    fn add(&mut self, path: String, change: ChangeKind, difference: Difference) {
        let Difference { text, metadata } = difference;
        self.text += text.len() + metadata.len();
        self.list.push(PageChange {
            path,
            change,
            text,
            metadata,
        });
    }

    /// Compares the redirects of the author, by the requests that they apply to.
    fn compare_redirects(&mut self, from: Option<&AddressPages>, to: Option<&AddressPages>) {
        let actions = |placed: Option<&AddressPages>| -> BTreeMap<String, String> {
            let rules = placed
                .into_iter()
                .flat_map(|placed| placed.pages.redirects.rules());
            rules
                .map(|rule| (rule.pattern(), rule.action.to_string()))
                .collect()
        };
        let (from, to) = (actions(from), actions(to));
        for pattern in from.keys().chain(to.keys()).collect::<BTreeSet<_>>() {
            let (change, difference) = match (from.get(pattern), to.get(pattern)) {
                (Some(old), Some(new)) if old == new => continue,
                (Some(old), Some(new)) => {
                    let text = format!("-{old}\n+{new}\n");
                    (ChangeKind::Changed, Difference::shown(text))
                }
                (None, _) => (ChangeKind::Added, Difference::default()),
                (_, None) => (ChangeKind::Removed, Difference::default()),
            };
            self.add(pattern.clone(), change, difference);
        }
    }

    fn compare(&mut self, path: String, old: &Resource, new: &Resource) {
        let (old, new) = (ComparedResource::of(old), ComparedResource::of(new));
        if old.is_same(&new) {
            return;
        }
        let difference = if self.text < MAX_DIFF_BYTES {
            Difference::between(&old, &new)
        } else {
            Difference::too_many()
        };
        self.add(path, ChangeKind::Changed, difference);
    }
}

/// The parts of a response that are compared.
#[derive(Debug)]
enum ComparedResource<'r> {
    Redirect(&'r [u8]),
    Body {
        status: u16,
        media_type: &'r str,
        bytes: &'r Payload,
    },
}

impl<'r> ComparedResource<'r> {
    fn of(resource: &'r Resource) -> Self {
        match resource {
            Resource::Redirect(location) => Self::Redirect(location.as_bytes()),
            Resource::Body(body) => Self::Body {
                status: body.status.as_u16(),
                media_type: media_type(body),
                bytes: identity(body),
            },
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Redirect(one), Self::Redirect(other)) => one == other,
            (
                Self::Body { status, bytes, .. },
                Self::Body {
                    status: other_status,
                    bytes: other_bytes,
                    ..
                },
            ) => status == other_status && bytes == other_bytes,
            _ => false,
        }
    }

    /// Returns a short description, such as `text/html, 8 bytes`.
    fn summary(&self) -> String {
        match self {
            Self::Redirect(location) => {
                format!("redirect to {}", String::from_utf8_lossy(location))
            }
            Self::Body {
                status,
                media_type,
                bytes,
            } => {
                let status = match status {
                    200 => String::new(),
                    status => format!("status {status}, "),
                };
                let (length, plural) = (bytes.len(), if bytes.len() == 1 { "" } else { "s" });
                format!("{status}{media_type}, {length} byte{plural}")
            }
        }
    }

    /// Returns a text, or `None` if the body is not text or exceeds [`MAX_COMPARED_BYTES`].
    fn text(&self) -> Option<&'r str> {
        let Self::Body {
            media_type, bytes, ..
        } = self
        else {
            return None;
        };
        let bytes = bytes.in_memory()?;
        if bytes.len() > MAX_COMPARED_BYTES || !is_text(media_type) {
            return None;
        }
        std::str::from_utf8(bytes).ok()
    }

    fn is_html(&self) -> bool {
        matches!(self, Self::Body { media_type, .. } if *media_type == "text/html")
    }
}

/// Returns the media type of a body, without parameters.
fn media_type(body: &Body) -> &str {
    let (given, _, _) = body.fields.parts();
    let value = given
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let media_type = value.and_then(|value| value.split(';').next());
    media_type.map_or("application/octet-stream", str::trim)
}

/// Returns the bytes of a body without content encoding.
fn identity(body: &Body) -> &Payload {
    static NONE: Payload = Payload::Memory(Bytes::new());
    body.variants
        .iter()
        .find(|variant| variant.encoding == ContentEncoding::Identity)
        .map_or(&NONE, |variant| &variant.bytes)
}

fn is_text(media_type: &str) -> bool {
    media_type.starts_with("text/")
        || media_type.ends_with("json")
        || media_type.ends_with("xml")
        || media_type.ends_with("javascript")
}

/// The differences of two resources in readable form.
#[derive(Debug, Default)]
struct Difference {
    /// The part that readers see.
    text: String,
    metadata: String,
}

impl Difference {
    const fn shown(text: String) -> Self {
        let metadata = String::new();
        Self { text, metadata }
    }

    fn too_many() -> Self {
        Self::shown("(not shown: too many changes)\n".to_owned())
    }

    const fn metadata(metadata: String) -> Self {
        let text = String::new();
        Self { text, metadata }
    }

    /// Returns the changed lines of two texts with their context, or else a short description of both resources.
    fn between(old: &ComparedResource<'_>, new: &ComparedResource<'_>) -> Self {
        let summaries = || format!("-{}\n+{}\n", old.summary(), new.summary());
        let (Some(before), Some(after)) = (old.text(), new.text()) else {
            return Self::shown(summaries());
        };
        if !(old.is_html() && new.is_html()) {
            let lines = changed_lines(&text_lines(before), &text_lines(after));
            // Without a changed line, only white space differs.
            return Self::metadata(if lines.is_empty() { summaries() } else { lines });
        }
        let (one, other) = (HtmlContent::of(before), HtmlContent::of(after));
        let lines = |one: &[String], other: &[String]| changed_lines(&slices(one), &slices(other));
        let difference = Self {
            text: lines(&one.shown, &other.shown),
            metadata: lines(&one.metadata, &other.metadata),
        };
        if !difference.text.is_empty() || !difference.metadata.is_empty() {
            return difference;
        }
        // Only tags without attributes, or white space.
        let lines = changed_lines(&html_lines(before), &html_lines(after));
        Self::metadata(if lines.is_empty() { summaries() } else { lines })
    }
}

fn slices(lines: &[String]) -> Vec<&str> {
    lines.iter().map(String::as_str).collect()
}

fn changed_lines(old: &[&str], new: &[&str]) -> String {
    let mut input = InternedInput::default();
    input.update_before(old.iter().copied());
    input.update_after(new.iter().copied());
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_no_heuristic(&input);
    let mut shown = DiffText::default();
    // The index of the first old line behind the last hunk.
    let mut next = 0;
    for hunk in diff.hunks() {
        let range = |range: Range<u32>| range.start as usize..range.end as usize;
        let (removed, added) = (range(hunk.before), range(hunk.after));
        let context = removed.start.saturating_sub(CONTEXT_LINES).max(next);
        if next > 0 && next < context {
            shown.gap();
        }
        shown.lines(' ', &old[context..removed.start]);
        shown.lines('-', &old[removed.clone()]);
        shown.lines('+', &new[added]);
        next = old.len().min(removed.end + CONTEXT_LINES);
        shown.lines(' ', &old[removed.end..next]);
    }
    shown.text()
}

/// The text of a difference, with at most [`MAX_LINES`] lines.
#[derive(Default)]
struct DiffText {
    text: String,
    count: usize,
}

impl DiffText {
    fn lines(&mut self, sign: char, lines: &[&str]) {
        for line in lines {
            self.count += 1;
            if self.count <= MAX_LINES {
                self.text.push(sign);
                push_line(&mut self.text, line);
            }
        }
    }

    /// Adds a mark for omitted lines, which are the same in both texts.
    fn gap(&mut self) {
        if self.count < MAX_LINES {
            self.text.push_str("...\n");
        }
    }

    fn text(mut self) -> String {
        if self.count > MAX_LINES {
            let more = self.count - MAX_LINES;
            self.text.push_str(&format!("and {more} more lines\n"));
        }
        self.text
    }
}

/// Adds a line, cut off after [`MAX_LINE_CHARACTERS`] characters.
fn push_line(text: &mut String, line: &str) {
    match line.char_indices().nth(MAX_LINE_CHARACTERS) {
        None => text.push_str(line),
        Some((end, _)) => {
            text.push_str(&line[..end]);
            let more = line[end..].chars().count();
            text.push_str(&format!("... ({more} more characters)"));
        }
    }
    text.push('\n');
}
