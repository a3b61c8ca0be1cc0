//! Social images, which previews of shared links show: the theme's `social.svg` with the page's title, in day colours.
//!
//! If the fonts lack a character of the texts, the image is drawn without text, and a warning is reported. A title with gaps would be misleading.
//!
//! The template sees the same values as a page's layout. Colours such as `var(--ink)` are replaced by the tenant's colours, because the renderer does not support custom properties.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use resvg::usvg::roxmltree::Document;
use unicode_segmentation::UnicodeSegmentation as _;

use super::{ImageSpec, RasterFormat, missing_glyphs};
use crate::compile::parallel::map_parallel;
use crate::lints::at_key::warning_at_key;
use crate::pages::values::site_view;
use crate::pages::values::view::{PageView, TemplateView};
use crate::theme::{PageScope, SOCIAL};
use content::name::nfc;
use content::report::{Code, Diagnostic, Report, Severity};
use content::tenant::{MANIFEST, Page, Site};

/// The size that social networks recommend, in pixels.
const SOCIAL_IMAGE_FORMAT: RasterFormat = RasterFormat::Png(1200, 630);

/// The social images of a tenant's pages.
#[derive(Default)]
pub(crate) struct PreparedSocialImages {
    /// The image specs by page path, for pages that name no image themselves.
    pub(crate) specs: BTreeMap<String, Arc<ImageSpec>>,
    /// Templates that failed, each with the file of the page.
    pub(crate) failures: Vec<(Diagnostic, String)>,
    /// Warnings about missing characters.
    pub(crate) warnings: Report,
}

/// The SVG of a social image, and the characters for which its texts were left out.
struct SocialSvg {
    svg: String,
    missing: BTreeSet<char>,
}

/// Prepares the social images of a tenant. There are none if the theme has no template or the tenant names its own image.
pub(crate) fn prepare(
    site: &Site,
    scopes: &[PageScope],
    ground: Option<&str>,
) -> PreparedSocialImages {
    let mut social = PreparedSocialImages::default();
    let scope = &scopes[0];
    let templates = &scope.templates;
    if !templates.theme.files.contains_key(SOCIAL) {
        return social;
    }
    let language = |page: &Page| site.manifest.language_of(&page.path);
    let pages = site.pages.values().filter(|page| {
        let is_named = site.manifest_in(language(page)).image.is_some();
        page.front.image.is_none() && !is_named
    });
    let made = map_parallel(pages, |page| {
        (page, render_svg(site, page, &scopes[language(page)]))
    });
    let mut beside_titles = BTreeSet::new();
    for (page, shown) in made {
        match shown {
            Ok(SocialSvg { svg, mut missing }) => {
                let spec = ImageSpec::new(svg, SOCIAL_IMAGE_FORMAT, ground, &templates.fonts)
                    .of_file(site.name_of(&page.file));
                social.specs.insert(page.path.clone(), Arc::new(spec));
                if let Some(letters) = remove_letters(heading(page), &mut missing) {
                    let file = site.name_of(&page.file);
                    let warn = || page_warning(site, page, scope, &letters);
                    let warnings = &mut social.warnings;
                    warnings.add(Severity::Warning, Code::MissingLetters, &file, warn);
                }
                beside_titles.append(&mut missing);
            }
            Err(diagnostic) => social.failures.push((diagnostic, page.file.clone())),
        }
    }
    let beside_titles = site_warning(site, scopes, beside_titles);
    social.warnings.extend(beside_titles);
    social
}

/// Returns the heading of a page in its social image.
fn heading(page: &Page) -> &str {
    page.front.heading.as_deref().unwrap_or(&page.front.title)
}

/// Removes the characters of a text, in either case, from `missing`. Returns the removed letters as the author wrote them, or `None` if there are none.
fn remove_letters(text: &str, missing: &mut BTreeSet<char>) -> Option<Vec<String>> {
    let text = nfc(text);
    let mut taken = BTreeSet::new();
    let mut letters: Vec<String> = Vec::new();
    for letter in text.graphemes(true) {
        let cases = [letter, &letter.to_uppercase(), &letter.to_lowercase()].concat();
        let own: Vec<char> = cases.chars().filter(|one| missing.contains(one)).collect();
        if !own.is_empty() && !letters.iter().any(|other| other == letter) {
            letters.push(letter.to_owned());
        }
        taken.extend(own);
    }
    missing.retain(|character| !taken.contains(character));
    (!letters.is_empty()).then_some(letters)
}

/// Limit on the letters that a warning names.
const MAX_NAMED_LETTERS: usize = 8;

/// Describes missing letters: ``the fonts of theme `base` lack `a`, `b` and 2 more``.
fn describe_missing(scope: &PageScope, letters: &[String]) -> String {
    let (named, more) = letters.split_at(letters.len().min(MAX_NAMED_LETTERS));
    let mut named: Vec<String> = named.iter().map(|letter| format!("`{letter}`")).collect();
    if !more.is_empty() {
        named.push(format!("{} more", more.len()));
    }
    let last = named.pop().unwrap_or_default();
    let named = match named.is_empty() {
        true => last,
        false => format!("{} and {last}", named.join(", ")),
    };
    let theme = &scope.templates.theme.name;
    format!("the fonts of theme `{theme}` lack {named}")
}

fn page_warning(site: &Site, page: &Page, scope: &PageScope, letters: &[String]) -> Diagnostic {
    let key = match page.front.heading {
        Some(_) => "heading",
        None => "title",
    };
    let message = format!(
        "{}: the page's social image shows no text",
        describe_missing(scope, letters)
    );
    warning_at_key(site, page, key, Code::MissingLetters, message)
        .hint("set `image` to your own image, or add a font with these characters to the theme's `fonts/`")
}

/// Warns of characters that occur in no page title. They come from the names of the site and the company, else from the template.
fn site_warning(
    site: &Site,
    scopes: &[PageScope],
    mut missing: BTreeSet<char>,
) -> Option<Diagnostic> {
    let names: Vec<&str> = scopes
        .iter()
        .flat_map(|scope| {
            let name = &site.manifest_in(scope.language).name;
            let deployment = &scope.resolver.deployment;
            [name.as_str(), deployment.brand(site, scope.language)]
        })
        .collect();
    let names = names.join(" ");
    let (letters, hint) = match remove_letters(&names, &mut missing) {
        Some(letters) => (
            letters,
            "set `image` to your own image, or add a font with these characters to the theme's `fonts/`",
        ),
        None => {
            let letters: Vec<String> = missing.iter().map(char::to_string).collect();
            (letters, "convert the texts of the site's SVGs to paths")
        }
    };
    if letters.is_empty() {
        return None;
    }
    let message = format!(
        "{}: the social images show no text",
        describe_missing(&scopes[0], &letters)
    );
    let warning = Diagnostic::warning(Code::MissingLetters, site.name_of(MANIFEST), message);
    let warning = match site.position_of(&site.manifest.name) {
        Some(place) => site.locate(warning, MANIFEST, place),
        None => warning,
    };
    Some(warning.hint(hint))
}

/// Returns the alt text of a page's social image.
#[must_use]
pub(crate) fn alt_text(site: &Site, page: &Page) -> String {
    let title = heading(page);
    let language = site.manifest.language_of(&page.path);
    match site.manifest_in(language).name.as_str() {
        name if name == title => title.to_owned(),
        name => format!("{name}: {title}"),
    }
}

/// Renders the SVG of a page's social image.
fn render_svg(site: &Site, page: &Page, scope: &PageScope) -> Result<SocialSvg, Diagnostic> {
    let (templates, prepared, resolver) = (&scope.templates, &scope.prepared, &scope.resolver);
    let view = TemplateView {
        head: String::new(),
        site: site_view::site(site, scope, &page.path),
        company: site_view::company(resolver, site.manifest.split(&page.path).1),
        page: PageView {
            path: &page.path,
            title: &page.front.title,
            heading: heading(page),
            tags: &page.front.tags,
            date_text: page.front.date.map(|date| scope.language().date(date)),
            ..PageView::default()
        },
    };
    let (text, _) = templates.render(SOCIAL, &view, scope.clone())?;
    let text = with_colours(&text, |role| {
        let (day, _) = prepared.role(role, &templates.theme)?;
        Some(day)
    });
    let mut svg = normalise(&text);
    let document = Document::parse(&svg).map_err(|error| {
        Diagnostic::error(
            Code::TemplateFailed,
            format!("{}/{SOCIAL}", templates.theme.label),
            format!("the SVG is not valid XML: {error}"),
        )
    })?;
    let missing = missing_glyphs(&document, &templates.fonts);
    if !missing.is_empty() {
        svg = without_texts(&document);
    }
    Ok(SocialSvg { svg, missing })
}

/// Normalises a text for the renderer.
///
/// Letters and marks are composed, because fonts seldom have the marks alone. Invisible characters that the renderer reports as missing are removed. Joiners and direction marks stay.
fn normalise(text: &str) -> String {
    let is_invisible = |character: &char| {
        matches!(
            character,
            '\u{ad}' | '\u{200b}' | '\u{2060}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        )
    };
    let text = nfc(text);
    text.chars().filter(|one| !is_invisible(one)).collect()
}

/// Removes the texts of an SVG.
fn without_texts(document: &Document<'_>) -> String {
    let svg = document.input_text();
    let mut out = String::with_capacity(svg.len());
    let mut end = 0;
    let nodes = document.descendants();
    for text in nodes.filter(|node| node.tag_name().name() == "text") {
        let range = text.range();
        // A nested text is removed with its parent.
        if range.start >= end {
            out.push_str(&svg[end..range.start]);
            end = range.end;
        }
    }
    out.push_str(&svg[end..]);
    out
}

/// Replaces `var(--role)` by the colour of the role. Without such a role the fallback after the comma is used, else `currentColor`.
fn with_colours<'a>(svg: &str, colour: impl Fn(&str) -> Option<&'a str>) -> String {
    let mut out = String::with_capacity(svg.len());
    let mut rest = svg;
    while let Some((before, after)) = rest.split_once("var(--") {
        out.push_str(before);
        let (inside, behind) = after.split_once(')').unwrap_or((after, ""));
        let (name, other) = inside.split_once(',').unwrap_or((inside, "currentColor"));
        let role = name.trim().replace('-', "_");
        out.push_str(colour(&role).unwrap_or(other.trim()));
        rest = behind;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_letters_are_named_as_their_author_wrote_them() {
        let mut missing = BTreeSet::from(['Ł', 'Ź', '自', '\u{303}', '🚲']);
        let letters = remove_letters("łódź, łan: m\u{303} 🚲🚲 x", &mut missing);
        let expected = ["ł", "ź", "m\u{303}", "🚲"].map(ToOwned::to_owned);
        assert_eq!(letters, Some(expected.into()));
        assert_eq!(missing, BTreeSet::from(['自']));
        assert_eq!(remove_letters("x", &mut missing), None);
    }

    #[test]
    fn letters_are_composed_and_soft_hyphens_removed() {
        assert_eq!(
            normalise("Gro\u{308}\u{ad}ße\u{fe0f} ن\u{200c}ا"),
            "Größe ن\u{200c}ا"
        );
    }

    #[test]
    fn svg_without_its_texts_is_well_formed() {
        let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\"><g><text>a<tspan>b</tspan></text></g><path/><svg><text/></svg></svg>";
        let document = Document::parse(svg).expect("an SVG");
        assert_eq!(
            without_texts(&document),
            "<svg xmlns=\"http://www.w3.org/2000/svg\"><g></g><path/><svg></svg></svg>"
        );
    }

    #[test]
    fn custom_properties_become_colours() {
        let found = with_colours(
            "<style>a{fill:var(--on-ink)}</style><path fill=\"var(--ink)\"/><b c=\"var( --ink\"/><i d=\"var(--on-ink, 1)\" e=\"var(--ink, none)\"/>",
            |role| (role == "on_ink").then_some("#14181e"),
        );
        assert_eq!(
            found,
            "<style>a{fill:#14181e}</style><path fill=\"currentColor\"/><b c=\"var( --ink\"/><i d=\"#14181e\" e=\"none\"/>"
        );
    }
}
