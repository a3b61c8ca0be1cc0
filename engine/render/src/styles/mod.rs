//! Styles: a theme's style sheets, minified, and the rules that each page uses.
//!
//! - [`minify`] removes comments and white space, and resolves URLs.
//! - [`page_rules`] selects the rules that a page can use.
//! - [`contrast`] computes the contrast of two colours.
//! - [`characters`] finds the characters that a page shows, which decide its fonts.

mod characters;
pub(crate) mod contrast;
mod minify;
mod page_rules;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use self::characters::{Characters, Letters};
use self::minify::minify;
pub(super) use self::page_rules::font_of;
use self::page_rules::{FontFace, RuleFilter, StyleRules, classes};

use crate::compile::site_card::SiteCard;
use crate::resources::asset::{ASSETS, Asset};
use content::report::{Code, Diagnostic, Report};
use content::theme::section_type::SectionType;
use content::theme::{MANIFEST, Role, Theme};

/// The styles of a theme: the styles of every page, and the styles of each section type.
#[derive(Debug, Default)]
pub(super) struct Styles {
    everywhere: StyleRules,
    roles: BTreeMap<String, Role>,
    section_types: BTreeMap<String, StyleRules>,
    site_colours: Vec<String>,
    /// The classes in the selectors of all rules.
    classes: BTreeSet<String>,
    /// The characters that the styles generate.
    characters: Characters,
    /// Written styles by everything that decides them. Most pages of a theme share a few styles.
    written: Mutex<HashMap<String, Arc<str>>>,
}

/// The attribute of elements that are written from right to left.
const RIGHT_TO_LEFT: &str = " dir=\"rtl\"";

/// Limit on the cached styles. The cache is cleared when it is full.
const MAX_CACHED_STYLES: usize = 64;

/// The style of a page.
pub(super) struct PageStyle {
    /// The CSS.
    pub css: String,
    /// The fonts whose complete file the page uses, with the URL of the file.
    pub whole_fonts: BTreeMap<String, String>,
}

/// The properties of a page that decide its style.
pub(super) struct PageContent<'a> {
    /// Its HTML.
    pub html: &'a str,
    /// The file of SVGs that the page shows but does not contain.
    pub sprite: &'a [u8],
    /// Its language.
    pub language: &'a str,
    /// Its hydrated islands, in a deterministic order.
    pub islands: &'a [&'a str],
    /// Whether an island may give an element a class.
    pub may_write: &'a dyn Fn(&str, &str) -> bool,
    /// Whether the page has a section of a type.
    pub has_section_type: &'a dyn Fn(&str) -> bool,
    /// The sites of the company, which the page may show.
    pub sites: &'a [SiteCard],
}

impl Styles {
    /// Reads the style sheets that the theme's manifest names, the colours of its roles, and the style sheets of its section types.
    pub(super) fn new(theme: &Theme, files: &BTreeMap<String, Asset>, report: &mut Report) -> Self {
        let mut everywhere = String::new();
        for style in &theme.manifest.styles {
            match style_of(theme, style, files, report) {
                Some(style) => everywhere.push_str(&style),
                None => report.push(Diagnostic::error(
                    Code::MissingAsset,
                    format!("{}/{MANIFEST}", theme.label),
                    format!("the theme has no stylesheet `{style}`"),
                )),
            }
        }
        let mut own = Characters::of_style(&everywhere);
        let section_types = theme.section_types.keys().filter_map(|kind| {
            let path = SectionType::file(kind, "section.css");
            let style = style_of(theme, &path, files, report)?;
            own.add(Characters::of_style(&style));
            Some((kind.clone(), StyleRules::new(&style)))
        });
        let section_types: BTreeMap<_, _> = section_types.collect();
        let everywhere = StyleRules::new(&everywhere);
        let mut classes = BTreeSet::new();
        let all = section_types.values().chain([&everywhere]);
        all.for_each(|rules| rules.add_classes(&mut classes));
        Self {
            section_types,
            everywhere,
            classes,
            characters: own,
            written: Mutex::default(),
            roles: theme.manifest.roles.clone(),
            site_colours: theme.manifest.site_colours.clone(),
        }
    }

    /// Returns the style of a page.
    ///
    /// The order of rules is fixed: the theme's rules, the rules of section types by name, the roles that these use, and the colours of sites.
    pub(super) fn of_page(&self, page: &PageContent<'_>) -> PageStyle {
        let classes = classes(page.html);
        let faces = self.faces();
        let whole = whole_fonts(page, &faces);
        let mut css = self.of_rules(page, &classes, &faces, &whole).to_string();
        if !self.site_colours.is_empty() {
            let shown =
                |site: &&SiteCard| classes.contains(format!("tenant-{}", site.tenant).as_str());
            css.push_str(&self.colours_of(page.sites.iter().filter(shown)));
        }
        let file = |(font, face): (&str, &FontFace)| (font.to_owned(), face.file.clone());
        PageStyle {
            css,
            whole_fonts: whole.into_iter().map(file).collect(),
        }
    }

    /// Returns all fonts that have a `unicode-range`.
    fn faces(&self) -> Vec<&FontFace> {
        let mut faces = Vec::new();
        let all = self.section_types.values().chain([&self.everywhere]);
        all.for_each(|rules| rules.add_faces(&mut faces));
        faces
    }

    /// Returns the rules and roles that a page with these classes uses.
    fn of_rules(
        &self,
        page: &PageContent<'_>,
        classes: &BTreeSet<&str>,
        faces: &[&FontFace],
        whole: &BTreeMap<&str, &FontFace>,
    ) -> Arc<str> {
        let sprite = std::str::from_utf8(page.sprite).unwrap_or_default();
        let named: BTreeSet<&str> = roles_of(page.html).chain(roles_of(sprite)).collect();
        let known = classes
            .iter()
            .filter(|class| self.classes.contains(**class));
        let section_types = self
            .section_types
            .keys()
            .filter(|kind| (page.has_section_type)(kind));
        let characters = Characters::of(page.html, sprite, page.language);
        let needs_face = |face: &FontFace| match whole.get(face.font()) {
            Some(whole) => std::ptr::eq(*whole, face),
            None => {
                let shown = [&characters, &self.characters];
                !face.is_whole() && shown.iter().any(|these| these.are_in(&face.ranges))
            }
        };
        let digit = |used: bool| if used { "1" } else { "0" };
        let fonts = faces.iter().map(|face| digit(needs_face(face)));
        let has_right_to_left = page.html.contains(RIGHT_TO_LEFT);
        let key = [
            vec![digit(has_right_to_left)],
            fonts.collect(),
            known.copied().collect::<Vec<_>>(),
            section_types.map(String::as_str).collect(),
            page.islands.to_vec(),
            named.iter().copied().collect(),
        ];
        // No name contains a space or a line break.
        let key = key.map(|names| names.join(" ")).join("\n");
        let written = || self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(css) = written().get(&key) {
            return Arc::clone(css);
        }
        let has_class = |class: &str| {
            let mut islands = page.islands.iter();
            classes.contains(class) || islands.any(|island| (page.may_write)(island, class))
        };
        let write = |uses_property: &dyn Fn(&str) -> bool| {
            let mut css = String::new();
            let uses = RuleFilter {
                has_class: &has_class,
                has_right_to_left,
                uses_property,
                needs_face: &needs_face,
            };
            self.everywhere.write(uses, &mut css);
            for (kind, rules) in &self.section_types {
                if (page.has_section_type)(kind) {
                    rules.write(uses, &mut css);
                }
            }
            css
        };
        let mut css = write(&|_| true);
        // A removed property may have been the only use of another one, so the removal is repeated.
        loop {
            let used: BTreeSet<&str> = roles_of(&css).chain(named.iter().copied()).collect();
            let less = write(&|name| used.contains(name));
            if less.len() == css.len() {
                break;
            }
            css = less;
        }
        let roles = self.roles_in(&roles_of(&css).chain(named).collect());
        css.push_str(&roles);
        let css: Arc<str> = css.into();
        let mut written = written();
        if written.len() >= MAX_CACHED_STYLES {
            written.clear();
        }
        written.insert(key, Arc::clone(&css));
        css
    }

    /// Writes the custom properties of these roles on `:root`: `light-dark(day, night)` (CSS Color 5).
    fn roles_in(&self, named: &BTreeSet<&str>) -> String {
        let used = self
            .roles
            .iter()
            .filter(|(name, _)| named.contains(name.replace('_', "-").as_str()));
        let properties: Vec<String> = used
            .map(|(name, role)| property(name, role.day.as_str(), role.night.as_str()))
            .collect();
        format!("@layer roles{{:root{{{}}}}}", properties.join(";"))
    }

    /// Writes the colours of the company's sites, each with its name, on one class per site.
    fn colours_of<'s>(&self, sites: impl Iterator<Item = &'s SiteCard>) -> String {
        let rules: String = sites
            .map(|site| {
                let id = &site.tenant;
                let own = self.site_colours.iter().filter_map(|name| {
                    let (day, night) = site.colours(name)?;
                    Some(property(name, day, night))
                });
                let own: String = own.map(|property| format!(";{property}")).collect();
                format!(".tenant-{id}{{--tenant:tenant-{id}{own}}}")
            })
            .collect();
        match rules.is_empty() {
            true => rules,
            false => format!("@layer roles{{{rules}}}"),
        }
    }
}

/// Returns the fonts that a page needs as a complete file, by name.
///
/// A browser that has one part of a font and waits for another shows one word in two fonts.
fn whole_fonts<'f>(
    page: &PageContent<'_>,
    faces: &[&'f FontFace],
) -> BTreeMap<&'f str, &'f FontFace> {
    let mut found = BTreeMap::new();
    let mut wholes = faces.iter().filter(|face| face.is_whole()).peekable();
    if wholes.peek().is_none() {
        return found;
    }
    let sprite = std::str::from_utf8(page.sprite).unwrap_or_default();
    let letters = Letters::of(page.html, sprite, page.language);
    for whole in wholes {
        let parts = faces.iter().filter(|face| face.font() == whole.font());
        let parts: Vec<&FontFace> = parts.copied().filter(|face| !face.is_whole()).collect();
        if letters.need(whole, &parts) {
            found.insert(whole.font(), *whole);
        }
    }
    found
}

/// Returns the custom properties that a text uses: `accent` for `var(--accent)` and `var(--accent, red)`.
fn roles_of(text: &str) -> impl Iterator<Item = &str> {
    let uses = text.split("var(--").skip(1);
    uses.filter_map(|rest| {
        let end = rest.find(|letter: char| !letter.is_alphanumeric() && !"-_".contains(letter))?;
        rest[end..].starts_with([')', ',']).then_some(&rest[..end])
    })
}

/// Returns a minified style sheet of the theme, or `None` if the file does not exist.
fn style_of(
    theme: &Theme,
    path: &str,
    files: &BTreeMap<String, Asset>,
    report: &mut Report,
) -> Option<String> {
    let label = theme.name_of(path);
    let Ok(text) = std::str::from_utf8(theme.files.get(path)?) else {
        report.push(Diagnostic::error(
            Code::NotUtf8,
            label,
            "the stylesheet is not UTF-8",
        ));
        return Some(String::new());
    };
    match minify(text, |target| hashed_url(target, path, files)) {
        Ok(style) => Some(escape_style_end(&style)),
        Err(error) => {
            report.push(error.diagnostic(label, text));
            Some(String::new())
        }
    }
}

/// Escapes a style so that it cannot end its `<style>` element. Only a string can contain `</style`, and in a string `\/` is a slash.
fn escape_style_end(style: &str) -> String {
    let lower = style.to_ascii_lowercase();
    let mut escaped = String::with_capacity(style.len());
    let mut rest = 0;
    for (end, _) in lower.match_indices("</style") {
        escaped.push_str(&style[rest..=end]);
        escaped.push('\\');
        rest = end + 1;
    }
    escaped.push_str(&style[rest..]);
    escaped
}

/// Writes the custom property of a role.
#[must_use]
pub(super) fn property(name: &str, day: &str, night: &str) -> String {
    format!("--{}:light-dark({day},{night})", name.replace('_', "-"))
}

/// Returns the URL of a theme's file that a style refers to.
fn hashed_url(target: &str, style: &str, files: &BTreeMap<String, Asset>) -> Option<String> {
    if target.starts_with('#') {
        return Some(target.to_owned());
    }
    let folder = style.rsplit_once('/').map_or("", |(folder, _)| folder);
    files
        .get(&join_paths(folder, target))
        .map(|asset| format!("{ASSETS}{}", asset.hashed_name))
}

/// Resolves a path relative to a folder: `../fonts/a.woff2` from `css`.
fn join_paths(folder: &str, target: &str) -> String {
    let mut segments: Vec<&str> = folder
        .split('/')
        .filter(|segment| !segment.is_empty())
        .collect();
    for segment in target.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            name => segments.push(name),
        }
    }
    segments.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn style_cannot_end_its_element() {
        let text = ".a{content:\"</STYLE><p>\"}.b{content:\"</style\"}";
        let escaped = ".a{content:\"<\\/STYLE><p>\"}.b{content:\"<\\/style\"}";
        assert_eq!(escape_style_end(text), escaped);
    }

    /// Returns the faces in the style of a page: `F`, `M` and `W` for the first, second and complete file of the upright font, lower case for the italic font.
    fn faces_of(body: &str, language: &str) -> String {
        let face = |name: &str, more: &str| {
            format!("@font-face{{src:url(\"/assets/{name}.woff2\");{more}}}")
        };
        let css = [
            face("a.1f", "--f:F;unicode-range:U+20,U+41-5A,U+61-7A"),
            face("a.more.2f", "--f:M;unicode-range:U+22,U+A1-FF"),
            face("a.whole.3f", "--f:W;unicode-range:U+20-17F"),
            face("i.4f", "--f:f;font-style:italic;unicode-range:U+20,U+61-7A"),
            face(
                "i.more.5f",
                "--f:m;font-style:italic;unicode-range:U+22,U+41-5A,U+A1-FF",
            ),
            face(
                "i.whole.6f",
                "--f:w;font-style:italic;unicode-range:U+20-17F",
            ),
        ];
        let styles = Styles {
            everywhere: StyleRules::new(&css.concat()),
            ..Styles::default()
        };
        let style = styles.of_page(&PageContent {
            html: &format!("<title>\u{17e}</title><body>{body}"),
            sprite: b"",
            language,
            islands: &[],
            may_write: &|_, _| false,
            has_section_type: &|_| false,
            sites: &[],
        });
        let faces = style.css.split("--f:").skip(1);
        let faces: String = faces.map(|face| &face[..1]).collect();
        let whole: Vec<&str> = style.whole_fonts.keys().map(String::as_str).collect();
        assert_eq!(whole.contains(&"a"), faces.contains('W'), "{body}");
        faces
    }

    #[test]
    fn word_is_never_split_between_files_of_a_font() {
        for (body, language, faces) in [
            ("<p>Plain words", "en", "Ffm"),
            // Punctuation is not part of a word.
            ("<p>Words \"and\" ¿signs?", "en", "FMfm"),
            ("<p>Café", "en", "Wfm"),
            ("<p>u\u{308}ber", "de", "Wfm"),
            ("<p>Łódź", "pl", "Ww"),
            ("<p title=\"Öl\">plain", "de", "Wfm"),
            // A letter that no file contains decides nothing.
            ("<p>Жук and beetle", "en", "Ff"),
            ("<p>Plain <em>words</em>", "en", "Ffm"),
            ("<p>Plain <em class=\"a\"><b>Words</b></em>", "en", "Fw"),
            ("<p>schön <cite>schon</cite>", "de", "Ww"),
            // Visitors may type any text of their language.
            ("<p>plain<input>", "en", "FMfm"),
            ("<p>plain<input>", "de", "Ww"),
        ] {
            let found = faces_of(body, language);
            assert_eq!(found, faces, "{body}");
        }
    }

    #[test]
    fn path_is_relative_to_its_stylesheet() {
        assert_eq!(join_paths("css", "../fonts/a.woff2"), "fonts/a.woff2");
        assert_eq!(join_paths("css/parts", "./b.svg"), "css/parts/b.svg");
    }
}
