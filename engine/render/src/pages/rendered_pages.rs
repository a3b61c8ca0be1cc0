//! Renders all pages of a tenant, once for all its addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use http::StatusCode;

use crate::compile::parallel::map_parallel;
use crate::pages::gallery;
use crate::pages::page::{RenderedPage, Renderer, SpecialPage};
use crate::resources::asset::Asset;
use content::report::{Code, Diagnostic, Report};
use content::tenant::Page;

/// The rendered pages of a tenant. Links contain the marks of [`LinkBase`](crate::pages::links::link_base::LinkBase).
pub(crate) struct RenderedPages<'a> {
    /// Pages with a source file.
    pub(crate) pages: Vec<(&'a Page, RenderedPage)>,
    /// The 404 pages by path prefix: the deepest prefix first, the complete site last.
    pub(crate) not_found: Vec<(Box<str>, StatusCode, RenderedPage)>,
    /// The 405 pages, for methods that pages do not support, by path prefix: the default language last.
    pub(crate) refused: Vec<(Box<str>, StatusCode, RenderedPage)>,
    /// The pages of the theme's gallery by path.
    pub(crate) gallery: Vec<(String, RenderedPage)>,
}

/// The reason why a tenant's pages were not rendered.
pub(crate) enum RenderError {
    /// Their HTML exceeds the limit.
    TooMuch,
    /// A page exceeded the time or size limit. Most pages were not rendered, so nothing is known about their links.
    Endless(Report),
}

impl<'a> RenderedPages<'a> {
    /// Renders the pages, in parallel if the caller runs on a pool. The report names the templates that failed.
    ///
    /// # Errors
    /// Returns an error if the pages exceed `most` bytes, or if one page exceeds its own limits.
    pub(crate) fn render(
        renderer: &Renderer<'a>,
        most: usize,
    ) -> Result<(Self, Report), RenderError> {
        let site = renderer.site;
        let mut failures = RenderFailures::default();
        for (diagnostic, file) in &renderer.site_files.failures {
            failures.add(diagnostic.clone(), site.name_of(file));
        }
        let bytes = AtomicUsize::new(0);
        // The index of the first page that exceeded a limit. Later pages are skipped, so that the report does not depend on the timing of threads.
        let exhausted = AtomicUsize::new(usize::MAX);
        let rendered = map_parallel(site.pages.values().enumerate(), |(index, page)| {
            if index > exhausted.load(Relaxed) {
                return None;
            }
            let rendered = renderer.page(page);
            let length = rendered.as_ref().map_or(0, |page| page.html.len());
            let is_too_much = bytes.fetch_add(length, Relaxed) + length > most;
            if rendered.as_ref().is_err_and(is_endless) || is_too_much {
                exhausted.fetch_min(index, Relaxed);
            }
            Some((&**page, rendered))
        });
        if bytes.into_inner() > most {
            // Which pages were rendered depends on the timing of threads, so their failures are not reported.
            return Err(RenderError::TooMuch);
        }
        let until = exhausted.into_inner().saturating_add(1);
        let mut pages = Vec::new();
        let mut ends = true;
        for (page, rendered) in rendered.into_iter().take(until).flatten() {
            match rendered {
                Ok(html) => pages.push((page, html)),
                Err(diagnostic) => {
                    ends &= !is_endless(&diagnostic);
                    failures.add(diagnostic, site.name_of(&page.file));
                }
            }
        }
        let mut special = |special: SpecialPage<'_>| {
            let status = special.status();
            let html = renderer.special(&special);
            let html = html.map_err(|diagnostic| {
                ends &= !is_endless(&diagnostic);
                failures.add(diagnostic, format!("the page for status {status}"));
            });
            (status, html.unwrap_or_default())
        };
        let mut not_found = Vec::new();
        for page in site.pages.values().rev() {
            let collection = page.front.collection.as_ref();
            if let Some(words) = collection.and_then(|collection| collection.not_found.as_ref()) {
                let (status, html) = special(SpecialPage::Entry(page, words));
                not_found.push((page.path.as_str().into(), status, html));
            }
        }
        let mut refused = Vec::new();
        for language in (0..site.manifest.languages().len()).rev() {
            let area = match language {
                0 => String::new(),
                _ => site.manifest.home_of(language),
            };
            let (status, html) = special(SpecialPage::NotFound(language));
            not_found.push((area.as_str().into(), status, html));
            let (status, html) = special(SpecialPage::MethodNotAllowed(language));
            refused.push((area.into(), status, html));
        }
        let report = failures.report(renderer);
        if !ends {
            return Err(RenderError::Endless(report));
        }
        let rendered = Self {
            pages,
            not_found,
            refused,
            gallery: gallery::pages(renderer),
        };
        Ok((rendered, report))
    }

    /// Returns all pages that visitors see.
    fn all(&self) -> impl Iterator<Item = &RenderedPage> {
        let pages = self.pages.iter().map(|(_, html)| html);
        let errors = self.not_found.iter().chain(&self.refused);
        pages.chain(errors.map(|(_, _, html)| html))
    }

    /// Returns the SVG files of the pages.
    pub(crate) fn svg_files(&self) -> impl Iterator<Item = &Asset> {
        let gallery = self.gallery.iter().map(|(_, html)| html);
        let all = self.all().chain(gallery);
        all.filter_map(|html| html.drawings.as_ref())
    }

    /// Returns the hashes of the styles of all pages.
    pub(crate) fn styles(&self) -> BTreeSet<String> {
        let styles = self.all().map(|html| html.style.clone());
        styles.filter(|style| !style.is_empty()).collect()
    }
}

/// Whether a template or an island exceeded a limit. It would do so on every page, so rendering stops.
fn is_endless(diagnostic: &Diagnostic) -> bool {
    matches!(diagnostic.code, Code::TooLarge | Code::IslandFailed)
}

/// Templates that failed. An error in a theme often fails on every page, so it is reported once, with the first page and a count.
#[derive(Default)]
struct RenderFailures(BTreeMap<Diagnostic, Vec<String>>);

impl RenderFailures {
    fn add(&mut self, diagnostic: Diagnostic, page: String) {
        self.0.entry(diagnostic).or_default().push(page);
    }

    fn report(self, renderer: &Renderer<'_>) -> Report {
        let mut report = Report::default();
        report.extend(self.0.into_iter().map(|(diagnostic, pages)| {
            let first = pages.first().map_or("", String::as_str);
            let others = match pages.len() {
                0 | 1 => String::new(),
                count => format!(" and {} more", count - 1),
            };
            let message = format!("{} (rendering `{first}`{others})", diagnostic.message);
            Diagnostic {
                // The message may quote a link.
                message: renderer.canonical_place().replace_marks(&message),
                ..diagnostic
            }
        }));
        report
    }
}
