//! The picture that shared links show: the theme's `social.svg` with the page's title, by day.
//!
//! The template sees what a page's layout sees. It names colours as style sheets do, `var(--ink)`, and gets the tenant's, because the renderer knows no custom properties.

use std::collections::BTreeMap;
use std::sync::Arc;

use resvg::usvg::roxmltree::Document;

use super::super::describe;
use super::super::parallel::side_by_side;
use super::super::template::{SOCIAL, Scope};
use super::super::view::{PageView, View};
use super::{Drawing, Form};
use content::report::{Code, Diagnostic};
use content::tenant::{Page, Site};

/// What the sites that show shared links recommend.
const SIZE: Form = Form::Png(1200, 630);

/// The drawings of the pages that name no picture, by the page's path, and the templates that failed with the file of the page.
pub(crate) struct Social {
    pub(crate) drawings: BTreeMap<String, Arc<Drawing>>,
    pub(crate) failures: Vec<(Diagnostic, String)>,
}

/// Prepares the drawings of a tenant. None where the theme has no template for them.
pub(crate) fn prepare(site: &Site, scope: &Scope, ground: Option<&str>) -> Social {
    let mut social = Social {
        drawings: BTreeMap::new(),
        failures: Vec::new(),
    };
    let templates = &scope.templates;
    if site.manifest.image.is_some() || !templates.theme.files.contains_key(SOCIAL) {
        return social;
    }
    let pages = site.pages.values();
    let pages = pages.filter(|page| page.front.image.is_none());
    let made = side_by_side(pages, |page| (page, text(site, page, scope)));
    for (page, text) in made {
        match text {
            Ok(text) => {
                let drawing = Drawing::new(text, SIZE, ground, &templates.fonts)
                    .of_file(site.name_of(&page.file));
                social.drawings.insert(page.path.clone(), Arc::new(drawing));
            }
            Err(diagnostic) => social.failures.push((diagnostic, page.file.clone())),
        }
    }
    social
}

/// What the picture shows, in words.
#[must_use]
pub(crate) fn words(site: &Site, page: &Page) -> String {
    let title = page.front.heading.as_deref().unwrap_or(&page.front.title);
    match site.manifest.name.as_str() {
        name if name == title => title.to_owned(),
        name => format!("{name}: {title}"),
    }
}

fn text(site: &Site, page: &Page, scope: &Scope) -> Result<String, Diagnostic> {
    let (templates, prepared, resolver) = (&scope.templates, &scope.prepared, &scope.resolver);
    let view = View {
        head: String::new(),
        site: describe::site(site, scope, &page.path),
        company: describe::company(resolver, &page.path),
        page: PageView {
            path: &page.path,
            title: &page.front.title,
            heading: page.front.heading.as_deref().unwrap_or(&page.front.title),
            tags: &page.front.tags,
            date_text: page.front.date.map(|date| prepared.language.date(date)),
            ..PageView::default()
        },
    };
    let (text, _) = templates.render(SOCIAL, &view, scope.clone())?;
    let text = with_colours(&text, |role| {
        let (day, _) = prepared.role(role, &templates.theme)?;
        Some(day)
    });
    match Document::parse(&text) {
        Ok(_) => Ok(text),
        Err(error) => Err(Diagnostic::error(
            Code::TemplateFailed,
            format!("{}/{SOCIAL}", templates.theme.label),
            format!("the drawing is no XML: {error}"),
        )),
    }
}

/// Puts colours in the place of `var(--role)`. Where there is no such role, what stands behind its comma, else `currentColor`.
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
