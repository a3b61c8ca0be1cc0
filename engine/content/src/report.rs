//! Errors, warnings and notes about a folder as data, each with its position, reason and hint.
//!
//! An author's mistake is not a failure of the program. A reader of content returns the usable part and a [`Report`].
//! `check` prints the report as text or JSON, and the admin listener counts its entries.
//!
//! **Invariant:** knows no tenant, page or theme; only positions in files.

pub mod guard;
mod lines;
mod one_line;

use std::collections::BTreeMap;
use std::fmt;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use serde::de::Error as _;
use serde::{Deserialize, Serialize};

pub use self::lines::LineIndex;
use self::one_line::{escape_control_characters, shorten};

/// The severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The tenant cannot be served in this state.
    Error,
    /// The tenant is served, but the author should look at the problem.
    Warning,
    /// A known and accepted state, mentioned for information.
    Note,
}

macro_rules! codes {
    ($($name:ident => $code:literal, $explanation:literal;)*) => {
        /// A stable identifier of a kind of diagnostic, for scripts and searches.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $(#[doc = $explanation] $name,)*
        }

        impl Code {
            /// All codes, in the order of the documentation.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Returns the code as written in reports.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }

            /// Returns what the code means and how to fix the problem.
            #[must_use]
            pub const fn explanation(self) -> &'static str {
                match self { $(Self::$name => $explanation,)* }
            }
        }
    };
}

codes! {
    AltIsFileName => "alt-is-file-name", "The words of a picture are the name of its file, which says nothing to those who do not see it (WCAG 2.2, technique F30).";
    AddressRefused => "address-refused", "A manifest claims an address that it may not have: `deployment.yaml` does not list it, or it is the deployment's own, or nothing could answer there. The tenant keeps its other places.";
    AddressTaken => "address-taken", "Somebody else has an address: a host, a path prefix, or the path of a page of the root tenant. Who has one keeps it. At a fresh start the root tenant's pages win, then folder names, then `hosts` and `aliases`, ties by name. The loser keeps its other places.";
    BadFolderName => "bad-folder-name", "A folder's name is the tenant's host label: a-z, 0-9 and inner hyphens. Other folders are passed over; one with a name that rowhouse itself answers by (`assets`, `company`, `www`) is an error.";
    BadFrontMatter => "bad-front-matter", "A page begins with a line `---`, YAML, and another line `---`.";
    BadPath => "bad-path", "A page's path comes from its file's name, so that name may hold only letters, digits, `-`, `.`, `_` and `~`, make none of the engine's own paths, and none that has no file of its own in an export: `404`, `index`, or a name that ends in `.html`.";
    BadSchema => "bad-schema", "A theme's schema is no JSON Schema (draft 2020-12), names a format that there is not, or its example does not fit it.";
    BadStyle => "bad-style", "A stylesheet has a bracket without its partner or a string without its end, so that a browser would read what follows it otherwise than it was meant (CSS Syntax Level 3).";
    BadValue => "bad-value", "A value has the right type but cannot be what it should be: a date that does not exist, a URL without a scheme, a colour that is none.";
    BadYaml => "bad-yaml", "The file is not YAML: most often a value needs quotes, or a space is a tab or another sign that only looks like one. Where rowhouse cannot tell, the parser's own words say why.";
    BrokenFragment => "broken-fragment", "A link names a place in a page that has no element with that id.";
    BrokenLink => "broken-link", "A link leads to no page of its tenant. Where that is known and wanted, `known_missing` in the manifest says so.";
    BrokenPicture => "broken-picture", "A picture cannot be read as one, or ends before it should: visitors see a part of it, or a sign that something is missing. It is served as it is.";
    BrokenNeighbourLink => "broken-neighbour-link", "A link leads to a page that another tenant does not have now. Neighbours come and go, so this is a warning.";
    Certificate => "certificate", "Visitors of a host get no valid certificate, or the one that they get cannot be renewed. Only `rowhouse check --live` says so: it asks the running server, whose reason stands before the authority's words.";
    CutText => "cut-text", "A `#` behind a space begins a comment in YAML, also in the middle of a text: visitors see only what stands before it. In quotes it is a part of the text.";
    Draft => "draft", "How many pages of a tenant are drafts. Only `rowhouse serve --dev` shows them, marked as such; without it they do not exist.";
    DescriptionLength => "description-length", "A description that search results and shared links show as it is has 50 to 160 characters.";
    DuplicateDescription => "duplicate-description", "Two pages describe themselves in the same words, so that a list of results does not tell them apart.";
    DuplicateKey => "duplicate-key", "YAML wants each key once. The second one would silently win or lose.";
    DuplicateId => "duplicate-id", "A fragment that an author wrote is on the page already: another section or heading has it, or the theme. Links lead to the first.";
    DuplicateTitle => "duplicate-title", "Two pages have the same title, so that tabs, bookmarks and results do not tell them apart.";
    EmptyFile => "empty-file", "A manifest or page without a single byte is more likely a copy cut short than a wish.";
    FillIn => "fill-in", "A line that `rowhouse new` wrote for the owner to replace. It is marked with the comment `# fill in` in YAML and `<!-- fill in -->` in Markdown, which visitors never see: write your own words and take the comment away.";
    FolderTwice => "folder-twice", "A link leads to a folder that is there already, or that holds the link itself. Each folder is read once, and the real one rather than the link, so that no circle of links is walked for ever.";
    ForeignSymlink => "foreign-symlink", "A link inside a tenant's folder may not lead out of it: a tenant is only its folder.";
    HiddenLink => "hidden-link", "A link leads to a page of its tenant that is not served now, because it is a draft or scheduled for another time. Visitors who follow it find nothing until the page is there.";
    HeadingOrder => "heading-order", "A page has one heading of the first level, and no level below it is skipped: people who do not see the page move by headings (WCAG 2.2, technique H42 and success criterion 1.3.1).";
    HtmlEntity => "html-entity", "A text of the manifest or of front matter holds a character reference of HTML, such as `&amp;`. Such texts are not HTML, so that visitors, search results and tabs show it letter by letter.";
    IslandFailed => "island-failed", "A component threw, or ran out of time or memory, while it was rendered on the server.";
    IslandProps => "island-props", "The properties given to an island do not fit the schema that its component declares.";
    KnownMissing => "known-missing", "A link that leads nowhere, listed with its reason under `known_missing`.";
    LowContrast => "low-contrast", "Two colours of a tenant that stand on each other have less than 4.5:1 (WCAG 2.2, success criterion 1.4.3).";
    MarkupAsText => "markup-as-text", "Markup in a text that rowhouse does not read, so that visitors read it as it is written, or that has no effect: shortcodes of other generators, names of emoji, formulas, a link whose address holds a space, a code fence that nothing ends, settings behind the language of code.";
    MissingAlt => "missing-alt", "A picture needs words for those who do not see it (WCAG 2.2, success criterion 1.1.1).";
    MissingAsset => "missing-asset", "A picture, icon or drawing that neither the tenant's `assets` nor its theme has.";
    MissingDate => "missing-date", "An entry of a collection with a feed needs a `date`: feed readers order entries by it. Until it has one, the feed leaves it out.";
    MissingDescription => "missing-description", "A page that is to be found needs a description of its own; without one it shows the tenant's, and all such pages look alike.";
    MissingKey => "missing-key", "A key that has no default is not there.";
    MissingLetters => "missing-letters", "No font of the theme has a character of the text of a social image. A picture with gaps in its text would say something else, so it is drawn without any text.";
    MissingManifest => "missing-manifest", "A tenant's folder needs a `tenant.yaml` with a `name`.";
    MissingWord => "missing-word", "A theme has no word in one of its languages that its templates, the program itself or its other languages name. Where the program names it, visitors read the word of the theme `base`, and this is a warning.";
    NoPages => "no-pages", "A tenant needs at least one page under `pages`.";
    NotUtf8 => "not-utf8", "Text files are UTF-8, and so are the names of files and folders.";
    OrphanPage => "orphan-page", "No other page leads to this one, neither of its tenant nor of another, so that nobody finds it who does not know it.";
    OversizedPicture => "oversized-picture", "A picture that is sent as it is, since it moves or is of a type that is not made smaller, is wider than pages ever show it, or has more than 1 MiB. JPEG, PNG and WebP come in the sizes that fit.";
    PageWeight => "page-weight", "The first view of a page, HTML and CSS, should come to at most 30 KB compressed, and the scripts of its islands to at most 80 KB.";
    PictureType => "picture-type", "A picture is of another type than the end of its name says. It is served by its name, and browsers that are told not to guess may not show it. Or a page shows a file as a picture that browsers do not show, such as HEIC, TIFF or a MOV film: convert it, or link to it.";
    PathTwice => "path-twice", "Two pages, or a page and an alias, want the same path; or two names differ only in upper and lower case or in their Unicode form, and are one file on many disks.";
    Pinned => "pinned", "An older release of the tenant is served, since somebody rolled back to it. What the folder says is not seen until `rowhouse resume` follows it again.";
    ProgramFailed => "program-failed", "The program itself failed while it read, checked or compiled a tenant or a theme. That is never the author's fault; the last good state is served, and the neighbours notice nothing.";
    RawHtml => "raw-html", "A text in Markdown holds HTML. Only comments may stand there: nobody could say where its links lead, whether its tags are closed, and what its scripts do to the neighbours. Markdown has its own marks for prose, and sections are there for the rest.";
    RedirectChain => "redirect-chain", "A redirect leads to another redirect, or back to itself. Visitors should be sent once.";
    SafeFilter => "safe-filter", "A template uses the filter `safe`, which puts text into the page as HTML. The author of that text can put anything into the page. UI strings stay text behind the filter.";
    StoreReadiness => "store-readiness", "Something that the reviewers of the app stores look for on an app's site is not there.";
    TemplateFailed => "template-failed", "A template of the theme could not be rendered for a page.";
    TitleLength => "title-length", "A title of more than 60 characters is cut off in results and tabs.";
    TooLarge => "too-large", "A file, a folder, a list, a drawing or what a template makes of them is over a limit that keeps one tenant from hurting the others.";
    TwoRoots => "two-roots", "Only one tenant can own the domain's root.";
    UndefinedReference => "undefined-reference", "A link or a footnote in a text names a definition that is not there, or a footnote is defined twice or never used.";
    UnlikelyDate => "unlikely-date", "A date that is possible and hardly meant: `expire` is not after `publish`, so that nobody ever sees the page; `updated` is before `date`; or a day is decades ahead.";
    UnreadFile => "unread-file", "A file of a tenant that nothing reads: it is neither the manifest nor in `pages` or `assets`, a program left it there as a copy, or its name is that of another generator. Visitors do not find it.";
    UnknownKey => "unknown-key", "A key that nothing reads, most often a typing error.";
    UnknownLanguage => "unknown-language", "The theme has no words in the tenant's language.";
    UnknownLayout => "unknown-layout", "The theme has no layout of that name.";
    UnknownTenant => "unknown-tenant", "A link names a tenant that is not there.";
    UnknownTheme => "unknown-theme", "No theme of that name, or its files cannot be used.";
    UnusedAsset => "unused-asset", "Nothing of the tenant shows, links or offers the file: it was forgotten, or its name is written in another way where it is meant. It is served all the same.";
    UnsafeSvg => "unsafe-svg", "A drawing of a tenant (SVG) holds something that could run, load or lead elsewhere, and is served without it; or it is no well-formed drawing, and cannot be served. Nothing of a tenant runs on an address that it shares with others.";
    Unreadable => "unreadable", "The operating system would not give the file.";
    WrongType => "wrong-type", "A value is not of the type that its key wants, for example a list where a text is expected.";
}

impl fmt::Display for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let mut codes = Self::ALL.iter().copied();
        let code = codes.find(|code| code.as_str() == name);
        code.ok_or_else(|| D::Error::custom(format!("there is no code `{name}`")))
    }
}

/// A position in a text file. Lines and columns count from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    /// The line number.
    pub line: usize,
    /// The column number.
    pub column: usize,
    /// The number of underlined characters, at least 1.
    pub length: usize,
}

/// One error, warning or note about a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Diagnostic {
    /// The file as a user would type it, for example `tenants/corner/tenant.yaml`.
    pub file: String,
    /// The position in the file, if it is known.
    #[serde(flatten)]
    pub place: Option<Place>,
    /// The severity.
    pub severity: Severity,
    /// The kind of problem.
    pub code: Code,
    /// The problem: lower case, no full stop.
    pub message: String,
    /// How to fix the problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The line of the file at `place`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl Diagnostic {
    /// Creates an error about a file.
    #[must_use]
    pub fn error(code: Code, file: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            place: None,
            severity: Severity::Error,
            code,
            message: shorten(escape_control_characters(message.into())),
            hint: None,
            text: None,
        }
    }

    /// Creates a warning about a file.
    #[must_use]
    pub fn warning(code: Code, file: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(code, file, message)
        }
    }

    /// Adds the position and the line at that position. `text` is the complete file. Omits a line longer than [`MAX_SHOWN_LINE_BYTES`].
    #[must_use]
    pub fn at(mut self, place: Place, text: &str) -> Self {
        self.text = text
            .lines()
            .nth(place.line.saturating_sub(1))
            .filter(|line| line.len() <= MAX_SHOWN_LINE_BYTES)
            .map(ToOwned::to_owned);
        self.place = Some(place);
        self
    }

    /// Adds how to fix the problem.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(shorten(hint.into()));
        self
    }

    /// Renders the diagnostic like a compiler message, with or without colour.
    #[must_use]
    pub fn render(&self, renderer: &Renderer) -> String {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
            Severity::Note => Level::NOTE,
        };
        if let (Code::FillIn, Some(place), Some(text)) = (self.code, &self.place, &self.text) {
            let Place {
                line,
                column,
                length,
            } = *place;
            let title = one_line::title(&self.file, line, text, column, length);
            let title = level.primary_title(title).id(self.code.as_str());
            return renderer.render(&[Group::with_title(title)]).to_string();
        }
        let title = level
            .primary_title(self.message.as_str())
            .id(self.code.as_str());
        let mut group = match (&self.place, &self.text) {
            (Some(place), Some(text)) => {
                let (shown, span) = excerpt(text, *place);
                let group = Group::with_title(title);
                let is_cut = shown.len() < text.len();
                let snippet = Snippet::source(shown)
                    .line_start(place.line)
                    .annotation(AnnotationKind::Primary.span(span));
                if is_cut {
                    // The snippet alone would count columns from the cut.
                    let origin = Origin::path(self.file.as_str())
                        .line(place.line)
                        .char_column(place.column);
                    group.element(origin).element(snippet)
                } else {
                    group.element(snippet.path(self.file.as_str()))
                }
            }
            (Some(place), None) => {
                let origin = Origin::path(self.file.as_str()).line(place.line);
                Group::with_title(title).element(origin.char_column(place.column))
            }
            _ => Group::with_title(title).element(Origin::path(self.file.as_str())),
        };
        if let Some(hint) = &self.hint {
            group = group.element(Level::HELP.with_name("hint").message(hint.as_str()));
        }
        renderer.render(&[group]).to_string()
    }
}

/// The length in bytes up to which a line is shown. Programs write longer lines, authors do not.
const MAX_SHOWN_LINE_BYTES: usize = 16 << 10;

/// Returns the part of a line around `place` that fits a terminal, and the byte range to underline.
fn excerpt(line: &str, place: Place) -> (String, std::ops::Range<usize>) {
    const MAX_WIDTH: usize = 100;
    const CONTEXT_BEFORE: usize = 30;
    let start = place.column.saturating_sub(1);
    let characters = line.chars().count();
    let cut = if characters > MAX_WIDTH {
        start.saturating_sub(CONTEXT_BEFORE)
    } else {
        0
    };
    let shown: String = line.chars().skip(cut).take(MAX_WIDTH).collect();
    let offset = |characters: usize| {
        shown
            .char_indices()
            .nth(characters)
            .map_or(shown.len(), |(byte, _)| byte)
    };
    let (from, to) = (start - cut, start - cut + place.length.max(1));
    let span = offset(from)..offset(to);
    (shown, span)
}

/// The number of diagnostics of one code listed per file. They are usually enough to correct the rest.
const MAX_DIAGNOSTICS_PER_CODE: usize = 50;
/// The number of diagnostics of one severity listed per tenant or theme.
const MAX_DIAGNOSTICS_PER_SEVERITY: usize = 1_000;

/// All diagnostics about one or more folders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    list: Vec<Diagnostic>,
    /// Counts of diagnostics given to [`Report::add`], by file and code.
    counts: BTreeMap<(String, Severity, Code), DiagnosticCount>,
    /// The number of diagnostics that [`Report::add`] has listed, by severity.
    added: BTreeMap<Severity, usize>,
}

/// Counts of diagnostics of one code in one file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct DiagnosticCount {
    listed: usize,
    more: usize,
}

impl Report {
    /// Adds a diagnostic, regardless of limits.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.list.push(diagnostic);
    }

    /// Adds a diagnostic, subject to limits.
    ///
    /// Beyond fifty of its code in `file`, or a thousand of its severity in all, the diagnostic is only counted. `make`, which may be costly, is then not called.
    pub fn add(
        &mut self,
        severity: Severity,
        code: Code,
        file: &str,
        make: impl FnOnce() -> Diagnostic,
    ) {
        let counts = self.counts.entry((file.to_owned(), severity, code));
        let (counts, added) = (counts.or_default(), self.added.entry(severity).or_default());
        if *added >= MAX_DIAGNOSTICS_PER_SEVERITY || counts.listed >= MAX_DIAGNOSTICS_PER_CODE {
            counts.more += 1;
            return;
        }
        counts.listed += 1;
        *added += 1;
        self.list.push(make());
    }

    /// Adds all diagnostics of another report.
    pub fn extend(&mut self, other: impl IntoIterator<Item = Diagnostic>) {
        self.list.extend(other);
    }

    /// Returns whether the report has no errors, so that the folder can be served.
    #[must_use]
    pub fn is_servable(&self) -> bool {
        self.count(Severity::Error) == 0
    }

    /// Returns the number of diagnostics of one severity, including those not listed.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        let counts = self.counts.iter();
        let more = counts
            .filter(|((_, of, _), _)| *of == severity)
            .map(|(_, counts)| counts.more);
        let list = self.list.iter();
        let list = list.filter(|diagnostic| diagnostic.severity == severity);
        list.count() + more.sum::<usize>()
    }

    /// Sorts the diagnostics by file, line and column, and removes duplicates. Adds a line with the number of diagnostics not listed.
    #[must_use]
    pub fn sorted(mut self) -> Self {
        let mut left_out: BTreeMap<Severity, (Diagnostic, usize)> = BTreeMap::new();
        for ((file, severity, code), DiagnosticCount { listed, more }) in
            std::mem::take(&mut self.counts)
        {
            let all = listed + more;
            let message = format!("{all} of this kind are in this file, and not all are listed");
            let diagnostic = Diagnostic {
                severity,
                ..Diagnostic::error(code, file, message)
            };
            match (listed, more) {
                (_, 0) => {}
                // A single line covers all files without a listed diagnostic.
                (0, more) => left_out.entry(severity).or_insert((diagnostic, 0)).1 += more,
                _ => self.list.push(diagnostic),
            }
        }
        for (first, more) in left_out.into_values() {
            let message = format!("{more} more, here and in what follows, are not listed");
            self.list.push(Diagnostic { message, ..first });
        }
        self.list.sort();
        self.list.dedup();
        self
    }

    /// Iterates over the listed diagnostics.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }
}

impl IntoIterator for Report {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.sorted().list.into_iter()
    }
}

/// Returns the candidate that `typed` most likely stands for, by edit distance.
#[must_use]
pub fn nearest<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const MAX_COMPARED_BYTES: usize = 200;
    let length = typed.chars().count();
    if length > MAX_COMPARED_BYTES {
        return None;
    }
    let allowed = |candidate: &str| candidate.chars().count().max(3) / 3 + 1;
    candidates
        .into_iter()
        // The edit distance is at least the difference in length.
        .filter(|candidate| candidate.chars().count().abs_diff(length) <= allowed(candidate))
        .map(|candidate| (strsim::damerau_levenshtein(typed, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= allowed(candidate))
        .min()
        .map(|(_, candidate)| candidate)
}

/// Formats names as a list in prose, each in backticks: `a`, `b` and `c`.
#[must_use]
pub fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match names.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

/// The largest number of names in a hint. More names would not help.
const MAX_LISTED_NAMES: usize = 20;

/// Returns the hint for an invalid name: the nearest valid name, or else the valid names.
#[must_use]
pub fn hint_for<'a>(typed: &str, valid: impl IntoIterator<Item = &'a str> + Clone) -> String {
    if let Some(name) = nearest(typed, valid.clone()) {
        return format!("did you mean `{name}`?");
    }
    let names: Vec<&str> = valid.into_iter().collect();
    match names.len() {
        0 => "there is none here".to_owned(),
        count if count > MAX_LISTED_NAMES => format!(
            "valid here: {}, and {} more",
            list(names[..MAX_LISTED_NAMES].iter().copied()),
            count - MAX_LISTED_NAMES
        ),
        _ => format!("valid here: {}", list(names)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_with_line_ends_is_quoted_in_one_line() {
        let diagnostic = Diagnostic::error(Code::BadValue, "a", "`x\n\u{1b}[2Jy` is no date");
        assert_eq!(diagnostic.message, "`x\\n\\u{1b}[2Jy` is no date");
    }

    #[test]
    fn hint_names_the_nearest_or_all_valid_names() {
        assert_eq!(hint_for("hme", ["home", "about"]), "did you mean `home`?");
        assert_eq!(
            hint_for("xyz", ["home", "about"]),
            "valid here: `home` and `about`"
        );
        assert_eq!(hint_for("xyz", []), "there is none here");
    }

    #[test]
    fn hint_lists_at_most_twenty_names() {
        let names: Vec<String> = (0..1000)
            .map(|number| format!("chapter-{number}"))
            .collect();
        let hint = hint_for("xyz", names.iter().map(String::as_str));
        assert!(hint.ends_with("and `chapter-19`, and 980 more"), "{hint}");
    }
}
