//! Errors, warnings and notes about a folder as data, each with its position, reason and hint.
//!
//! An author's mistake is not a failure of the program. A reader of content returns the usable part and a [`Report`].
//! `check` prints the report as text or JSON, and the admin listener counts its entries.
//!
//! **Invariant:** knows no tenant, page or theme; only positions in files.

pub mod guard;
mod lines;
mod one_line;
mod size_text;

use std::collections::BTreeMap;
use std::fmt;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use serde::de::Error as _;
use serde::{Deserialize, Serialize};

pub use self::lines::LineIndex;
use self::one_line::{escape_control_characters, shorten};
pub use self::size_text::size_text;

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
    AltIsFileName => "alt-is-file-name", "The alt text of an image is the name of its file. The name says nothing to visitors who do not see the image (WCAG 2.2, technique F30).";
    AddressRefused => "address-refused", "A manifest claims an address that the tenant may not have. Either `deployment.yaml` does not allow the address, or the address is reserved for the deployment, or the root tenant has `aliases`. The tenant keeps its other addresses.";
    AddressTaken => "address-taken", "Another tenant owns the address: a host, a path prefix, or the path of a page of the root tenant. An owner keeps its addresses. At a fresh startup, pages of the root tenant come first, then folder names, then `hosts` and `aliases`; ties are decided by name. The other tenant keeps its remaining addresses.";
    BadFolderName => "bad-folder-name", "A folder's name is the tenant's host label: a-z, 0-9 and inner hyphens. Folders with other names are skipped. A name that rowhouse reserves for itself (`assets`, `company`, `www`) is an error, and so is a preview (`<id>@<label>`) whose label does not fit into a host name.";
    BadFrontMatter => "bad-front-matter", "A page must begin with front matter: a line `---`, YAML, and another line `---`.";
    BadPath => "bad-path", "A page's path comes from the name of its file. The name may have only letters, digits, `-`, `.`, `_` and `~`. The path must not be one of rowhouse's own paths. A path that ends in `/404`, `/index` or `.html` is not allowed, because an export uses such paths for other pages.";
    BadSchema => "bad-schema", "A theme's schema is missing, is not valid JSON Schema (draft 2020-12), or names an unknown format. Or the name of a section type is not valid.";
    BadStyle => "bad-style", "A stylesheet has an unmatched bracket or an unclosed string. Browsers would read the rules after that place differently than intended (CSS Syntax Level 3).";
    BadValue => "bad-value", "A value has the right type but is not valid. Examples are a date that does not exist, a URL without a scheme, and a colour that is not `#rrggbb`.";
    BadYaml => "bad-yaml", "The file is not valid YAML. Most often a value needs quotes, or a space is in fact a tab or a character that only looks like a space. If rowhouse does not recognise the cause, the report shows the parser's own message.";
    BlockedMarkup => "blocked-markup", "A template has markup that browsers ignore, because the Content Security Policy of pages blocks it: a `style` attribute, a `<style>` element, an event handler such as `onclick`, or a script. Only the engine adds styles and scripts to pages.";
    BrokenFragment => "broken-fragment", "A link has a fragment, and no element of the page has that id.";
    BrokenLink => "broken-link", "A link points to a page that its tenant does not have. If the page is missing on purpose, list the link under `known_missing` in the manifest.";
    BrokenPicture => "broken-picture", "An image cannot be decoded, or its file ends too early. Visitors see a part of the image, or the browser's sign for a missing image. The file is served unchanged.";
    BrokenNeighbourLink => "broken-neighbour-link", "A link points to a page that another tenant does not have now. Tenants change independently of each other, so a missing page of another tenant is only a warning.";
    Certificate => "certificate", "A host has no valid certificate, or its certificate cannot be renewed. Only `rowhouse check --live` reports certificates: the command asks the running server. The server's reason comes before the message of the certificate authority.";
    CutText => "cut-text", "YAML cuts a text: a `#` after a space begins a comment, also in the middle of a text. A `!` or `&` at the start begins a tag or an anchor. Visitors do not see that part. Put the text in quotes.";
    Draft => "draft", "The number of a tenant's draft pages. Only `rowhouse serve --dev` shows drafts, and marks them; without `--dev`, visitors get the 404 page.";
    DescriptionLength => "description-length", "A description should have 50 to 160 characters. Search results and shared links then show all of the description.";
    DuplicateDescription => "duplicate-description", "Two pages have the same description, so search results do not tell the pages apart.";
    DuplicateKey => "duplicate-key", "A YAML mapping has the same key twice. YAML allows each key once, so one of the two values would be lost.";
    DuplicateId => "duplicate-id", "An author wrote a fragment that the page already has: in another section, in a heading, or in the theme. Links go to the first element with that id.";
    DuplicateTitle => "duplicate-title", "Two pages have the same title, so tabs, bookmarks and search results do not tell the pages apart.";
    EmptyFile => "empty-file", "A manifest or a page is empty. Most likely the file was not copied completely.";
    ExpiredCredential => "expired-credential", "A credential of `deployment.yaml` has expired: no visitor can open a site with it.";
    FillIn => "fill-in", "A line that `rowhouse new` wrote for the owner to replace. The line has the comment `# fill in` in YAML or `<!-- fill in -->` in Markdown, which visitors do not see. Write your own text and remove the comment.";
    FolderTwice => "folder-twice", "A symbolic link points to a folder that was read already, or that contains the link. Rowhouse reads each folder once, at its real path, so circular links cannot cause an endless loop.";
    ForeignSymlink => "foreign-symlink", "A symbolic link in a tenant's folder points out of the folder. A tenant has only the files in its own folder.";
    HiddenLink => "hidden-link", "A link points to a page of its tenant that is not served now, because the page is a draft or scheduled for another time. Until the page is served, visitors who follow the link get the 404 page.";
    HeadingOrder => "heading-order", "A page has one heading of the first level, and skips no level below it. People who do not see the page navigate by its headings (WCAG 2.2, technique H42 and success criterion 1.3.1).";
    HtmlEntity => "html-entity", "A text of the manifest or of front matter contains an HTML character reference, such as `&amp;`. Such texts are not HTML, so visitors, search results and tabs show the reference letter by letter.";
    IncompleteFile => "incomplete-file", "A server found a file whose upload has not ended, or was cut off: an image, video, archive or PDF file without its end, or a file that was still being written at the end of `--settle-max`. The server serves the last valid release. Upload the file again.";
    IslandFailed => "island-failed", "A component threw an error, or exceeded its limit of time or memory, while rowhouse rendered the component.";
    IslandProps => "island-props", "The properties of an island do not fit the schema that its component declares.";
    KnownMissing => "known-missing", "A link has no target, and `known_missing` in the manifest lists the link with a reason.";
    LowContrast => "low-contrast", "The colours of a text and its background have a contrast below 4.5:1 (WCAG 2.2, success criterion 1.4.3).";
    MarkupAsText => "markup-as-text", "A text contains markup that rowhouse does not read. Visitors see such markup as it is written, or the markup has no effect. Examples are shortcodes of other generators, names of emoji, and formulas. A link with a space in its address, an unclosed code fence, and settings after the language of code are reported too.";
    MissingAlt => "missing-alt", "An image needs alt text for visitors who do not see the image (WCAG 2.2, success criterion 1.1.1).";
    MissingAsset => "missing-asset", "An image, icon, SVG or font is missing: neither the tenant's `assets` nor its theme has the file.";
    MissingCompany => "missing-company", "No tenant at the domain's root has a company profile, or a link names a fact that the profile does not have. Pages then leave out what they would say about the company: its name in titles, the address and the copyright line of the footer, contacts, structured data. There is no `security.txt`, which must name a contact (RFC 9116).";
    MissingDate => "missing-date", "An entry of a collection with a feed has no `date`. Feed readers order entries by date, so the feed omits entries without a date.";
    MissingDescription => "missing-description", "A page that search engines may list has no description of its own. Such a page shows the tenant's description, so all such pages look alike.";
    MissingKey => "missing-key", "A required key is missing: the key has no default.";
    MissingLetters => "missing-letters", "No font of the theme has a character of the text of a social image. Rowhouse draws the image without text, because a text with gaps would say something else.";
    MissingManifest => "missing-manifest", "A tenant's folder needs a `tenant.yaml` with a `name`.";
    MissingWord => "missing-word", "A theme lacks a UI string in one of its languages, or the string has the wrong placeholders. The theme's templates, its other languages or rowhouse itself use that string. If rowhouse uses a missing string, visitors read the text of the theme `base`, and the problem is a warning.";
    MissingTranslation => "missing-translation", "A page has no translation in one of the languages of its tenant, or a language has no page, or a translation is in a language that `languages` does not list. Links to a missing translation go to the page in the default language.";
    NoPages => "no-pages", "A tenant needs at least one page under `pages`.";
    NotUtf8 => "not-utf8", "Text files must be UTF-8, and so must the names of files and folders.";
    OldTranslation => "old-translation", "A translation was last changed before its original, by the dates of their front matter. Visitors may read in one language what is no longer true in the other.";
    OrphanPage => "orphan-page", "No other page of any tenant links to this page. Visitors find the page only if they know its address.";
    OversizedPicture => "oversized-picture", "An image is wider than pages ever show it, or larger than 1 MiB, and is sent unchanged. Rowhouse does not resize animated images and some image types. JPEG, PNG and WebP images are sent in suitable sizes.";
    PageWeight => "page-weight", "The HTML and CSS of a page's first view should have at most 30 KB compressed. The scripts of its islands should have at most 80 KB.";
    PictureType => "picture-type", "The extension of an image's file name does not match the type of the image. The extension decides the content type, and browsers may refuse to show an image with the wrong content type. Or a page shows a file that browsers do not support as an image, such as HEIC, TIFF or MOV. Convert such a file, or link to it.";
    PathTwice => "path-twice", "Two pages, aliases, redirects or downloads have the same path. Or two names differ only in upper and lower case or in their Unicode form, and are one file on many disks.";
    Pinned => "pinned", "The tenant serves an older release, because an operator rolled the tenant back. Changes in the folder are not served until `rowhouse resume` ends the rollback.";
    PreloadType => "preload-type", "A file that `preload` of a theme names is not a font, or is a font of another type than its extension says. Browsers fetch such a file and do not use it.";
    ProgramFailed => "program-failed", "Rowhouse itself failed while it read, checked or rendered a tenant or a theme. The failure is not the author's fault. The last valid pages are served, and other tenants are not affected.";
    RawHtml => "raw-html", "A text in Markdown contains HTML. Only HTML comments are allowed, because rowhouse cannot check the links and tags of HTML, and scripts could affect other tenants. Use Markdown for prose, and sections for everything else.";
    RedirectChain => "redirect-chain", "A redirect points to another redirect, or back to itself after some steps. Visitors should be redirected once. A wildcard (`/old/*`) may point to paths of another wildcard, but must end.";
    SafeFilter => "safe-filter", "A template uses the filter `safe`, which inserts a text into the page as HTML. The author of that text can insert any HTML into the page. UI strings stay text even after the filter.";
    Scheduled => "scheduled", "The pages of a tenant that visitors do not get at this time, because of `publish` or `expire`, with these times. `rowhouse serve --dev` shows such pages, and marks them; without `--dev`, visitors get the 404 page.";
    StoreReadiness => "store-readiness", "The site of an app lacks something that the reviewers of the app stores expect. `account: false` and `any_age: true` in `app` state that there is no account and no minimum age. `not_needed` in `app` lists what the app does not need, with the reason.";
    TemplateFailed => "template-failed", "A template of the theme could not be rendered for a page.";
    TitleLength => "title-length", "A title of more than 60 characters is cut off in search results and tabs.";
    TooLarge => "too-large", "A file, a folder, a list, an SVG or the output of a template is over a limit. The limits keep one tenant from affecting other tenants.";
    TwoRoots => "two-roots", "Only one tenant can own the domain's root.";
    UndefinedReference => "undefined-reference", "A link or a footnote in a text names a definition that does not exist, or a footnote is defined twice or never used.";
    UnlikelyDate => "unlikely-date", "A date is valid but unlikely: `expire` is not after `publish`, so the page is never served; `updated` is before `date`; or a date is decades ahead.";
    UnreadFile => "unread-file", "Rowhouse does not read a file of the tenant. The file is outside of `pages` and `assets`, a program left it as a copy, or its name is a convention of another generator. Visitors do not get the file.";
    UnknownCredential => "unknown-credential", "A tenant of `deployment.yaml` needs a credential that `access` does not name. The file is not valid, so no tenant that it may protect is opened.";
    UnknownKey => "unknown-key", "A key is unknown, most often because of a typing error.";
    UnknownLanguage => "unknown-language", "The theme has no UI strings in the tenant's language.";
    UnknownLayout => "unknown-layout", "A page or a collection names a layout that the theme does not have.";
    UnknownProperty => "unknown-property", "A style or template uses a custom property without a fallback, as in `var(--name)`, and neither a style, a role of `theme.yaml` nor a setting defines the property. Browsers then ignore the whole declaration.";
    UnknownTenant => "unknown-tenant", "A link, `deployment.yaml` or the folder of a preview (`<id>@<label>`) names a tenant that does not exist. If the entry in `deployment.yaml` has `access`, the problem is an error, because the entry protects no site. A tenant without an entry whose name is near the unknown name answers 503 until the name is correct.";
    UnknownTheme => "unknown-theme", "The theme does not exist, or its files have errors.";
    UnsuitedLogo => "unsuited-logo", "Visitors cannot read the logo that the settings name: the file is too small, very wide or very tall, or an SVG without proportions. The file is shown all the same.";
    UnusedAsset => "unused-asset", "No page and no key of the tenant shows, links to or offers the file. Either nothing needs the file, or a link spells its name differently. The file is served all the same.";
    UnsafeSvg => "unsafe-svg", "An SVG of a tenant contains something that could run, load or link elsewhere, and is served without that part. Or the file is not well-formed SVG and cannot be served. No code of a tenant runs at an address that the tenant shares with others.";
    Unreadable => "unreadable", "A file or folder cannot be read. The operating system reports an error, or the entry is not a regular file.";
    WrongType => "wrong-type", "A value does not have the type of its key, for example a list instead of a text.";
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
        code.ok_or_else(|| D::Error::custom(format!("unknown code `{name}`")))
    }
}

/// A position in a text file. Lines and columns count from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TextPosition {
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
    pub position: Option<TextPosition>,
    /// The severity.
    pub severity: Severity,
    /// The kind of problem.
    pub code: Code,
    /// The problem: lower case, no full stop.
    pub message: String,
    /// How to fix the problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The line of the file at `position`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl Diagnostic {
    /// Creates an error about a file.
    #[must_use]
    pub fn error(code: Code, file: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            position: None,
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
    pub fn at(mut self, position: TextPosition, text: &str) -> Self {
        self.text = text
            .lines()
            .nth(position.line.saturating_sub(1))
            .filter(|line| line.len() <= MAX_SHOWN_LINE_BYTES)
            .map(ToOwned::to_owned);
        self.position = Some(position);
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
        if let (Code::FillIn, Some(position), Some(text)) = (self.code, &self.position, &self.text)
        {
            let TextPosition {
                line,
                column,
                length,
            } = *position;
            let title = one_line::title(&self.file, line, text, column, length);
            let title = level.primary_title(title).id(self.code.as_str());
            return renderer.render(&[Group::with_title(title)]).to_string();
        }
        let title = level
            .primary_title(self.message.as_str())
            .id(self.code.as_str());
        let mut group = match (&self.position, &self.text) {
            (Some(position), Some(text)) => {
                let (shown, span) = excerpt(text, *position);
                let group = Group::with_title(title);
                let is_cut = shown.len() < text.len();
                let snippet = Snippet::source(shown)
                    .line_start(position.line)
                    .annotation(AnnotationKind::Primary.span(span));
                if is_cut {
                    // The snippet alone would count columns from the cut.
                    let origin = Origin::path(self.file.as_str())
                        .line(position.line)
                        .char_column(position.column);
                    group.element(origin).element(snippet)
                } else {
                    group.element(snippet.path(self.file.as_str()))
                }
            }
            (Some(position), None) => {
                let origin = Origin::path(self.file.as_str()).line(position.line);
                Group::with_title(title).element(origin.char_column(position.column))
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

/// Returns the part of a line around `position` that fits a terminal, and the byte range to underline.
fn excerpt(line: &str, position: TextPosition) -> (String, std::ops::Range<usize>) {
    const MAX_WIDTH: usize = 100;
    const CONTEXT_BEFORE: usize = 30;
    let start = position.column.saturating_sub(1);
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
    let (from, to) = (start - cut, start - cut + position.length.max(1));
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

    /// Removes the diagnostics for which `keep` is false.
    pub fn retain(&mut self, keep: impl FnMut(&Diagnostic) -> bool) {
        self.list.retain(keep);
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
            let message = format!("{all} problems of this kind in total; not all are listed");
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
            let message =
                format!("{more} more problems in this and the following files are not listed");
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

/// Returns the candidate that is nearest to `typed`, by edit distance.
#[must_use]
pub fn nearest<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    near(typed, candidates)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Returns all candidates that are equally near to `typed`, by edit distance.
#[must_use]
pub fn all_nearest<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let near: Vec<(usize, &str)> = near(typed, candidates).collect();
    let least = near.iter().map(|(distance, _)| *distance).min();
    let nearest = near.into_iter();
    let nearest = nearest.filter(|(distance, _)| Some(*distance) == least);
    nearest.map(|(_, candidate)| candidate).collect()
}

/// Returns the candidates that `typed` may be a misspelling of, each with its edit distance.
fn near<'a>(
    typed: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> impl Iterator<Item = (usize, &'a str)> {
    const MAX_COMPARED_BYTES: usize = 200;
    let length = typed.chars().count();
    let is_short = length <= MAX_COMPARED_BYTES;
    let candidates = candidates.into_iter().filter(move |_| is_short);
    candidates.filter_map(move |candidate| {
        let characters = candidate.chars().count();
        let allowed = characters.max(3) / 3 + 1;
        // The edit distance is at least the difference in length.
        let may_fit = characters.abs_diff(length) <= allowed;
        let distance = may_fit.then(|| strsim::damerau_levenshtein(typed, candidate))?;
        (distance <= allowed).then_some((distance, candidate))
    })
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
        0 => "no name is valid here".to_owned(),
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
        let diagnostic =
            Diagnostic::error(Code::BadValue, "a", "`x\n\u{1b}[2Jy` is not a valid date");
        assert_eq!(diagnostic.message, "`x\\n\\u{1b}[2Jy` is not a valid date");
    }

    #[test]
    fn hint_names_the_nearest_or_all_valid_names() {
        assert_eq!(hint_for("hme", ["home", "about"]), "did you mean `home`?");
        assert_eq!(
            hint_for("xyz", ["home", "about"]),
            "valid here: `home` and `about`"
        );
        assert_eq!(hint_for("xyz", []), "no name is valid here");
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
