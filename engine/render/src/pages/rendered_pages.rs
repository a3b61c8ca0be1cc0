//! All pages of a tenant, rendered once for all of its addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use http::StatusCode;

use crate::compile::parallel::map_parallel;
use crate::pages::gallery;
use crate::pages::page::{RenderedPage, Renderer, Special};
use crate::resources::asset::Asset;
use content::report::{Code, Diagnostic, Report};
use content::tenant::Page;

/// The pages, with marks where links hang on the address ([`Place`](crate::pages::links::link_base::LinkBase)).
pub(crate) struct RenderedPages<'a> {
    /// Those that a file stands for.
    pub(crate) pages: Vec<(&'a Page, RenderedPage)>,
    /// What is said of a path that has no page, by the part of the site that it lies in: the deepest first, the whole last.
    pub(crate) not_found: Vec<(Box<str>, StatusCode, RenderedPage)>,
    /// What is said to a method that pages do not take.
    pub(crate) refused: (StatusCode, RenderedPage),
    /// What there is of the theme's gallery, by its paths.
    pub(crate) gallery: Vec<(String, RenderedPage)>,
}

/// Why a tenant's pages are not there.
pub(crate) enum NotRendered {
    /// They have more bytes than they may.
    TooMuch,
    /// One of them used up all that it was allowed. Most were never rendered, so that nothing can be said of their links.
    Endless(Report),
}

impl<'a> RenderedPages<'a> {
    /// Renders them, side by side where there are threads for it. The report says which templates failed.
    ///
    /// # Errors
    /// Where they have more than `most` bytes, or one does not end.
    pub(crate) fn render(
        renderer: &Renderer<'a>,
        most: usize,
    ) -> Result<(Self, Report), NotRendered> {
        let site = renderer.site;
        let mut failures = RenderFailures::default();
        for (diagnostic, file) in &renderer.site_files.failures {
            failures.add(diagnostic.clone(), site.name_of(file));
        }
        let bytes = AtomicUsize::new(0);
        // The first page that used up all that it was allowed, in the order of pages: what is said must not hang on which thread was quicker.
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
            Some((page, rendered))
        });
        if bytes.into_inner() > most {
            // Which pages were rendered hangs on the threads, and so does all that could be said of them.
            return Err(NotRendered::TooMuch);
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
        let mut special = |special: Special<'_>| {
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
                let (status, html) = special(Special::Entry(page, words));
                not_found.push((page.path.as_str().into(), status, html));
            }
        }
        let (status, html) = special(Special::NotFound);
        not_found.push(("".into(), status, html));
        let refused = special(Special::MethodNotAllowed);
        let report = failures.report(renderer);
        if !ends {
            return Err(NotRendered::Endless(report));
        }
        let rendered = Self {
            pages,
            not_found,
            refused,
            gallery: gallery::pages(renderer),
        };
        Ok((rendered, report))
    }

    /// All that visitors of the tenant see.
    fn all(&self) -> impl Iterator<Item = &RenderedPage> {
        let pages = self.pages.iter().map(|(_, html)| html);
        let not_found = self.not_found.iter().map(|(_, _, html)| html);
        pages.chain(not_found).chain([&self.refused.1])
    }

    /// The files of their drawings.
    pub(crate) fn drawings(&self) -> impl Iterator<Item = &Asset> {
        let gallery = self.gallery.iter().map(|(_, html)| html);
        let all = self.all().chain(gallery);
        all.filter_map(|html| html.drawings.as_ref())
    }

    /// The hashes of all styles that they carry.
    pub(crate) fn styles(&self) -> BTreeSet<String> {
        let styles = self.all().map(|html| html.style.clone());
        styles.filter(|style| !style.is_empty()).collect()
    }
}

/// Whether something used up all that it was allowed. It would do so on every page, which takes long and tells nothing more.
fn is_endless(diagnostic: &Diagnostic) -> bool {
    matches!(diagnostic.code, Code::TooLarge | Code::IslandFailed)
}

/// Templates that failed. One error in a theme often fails on every page: it is said once, with the first page.
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
                // A message may quote a link.
                message: renderer.canonical_place().put_in(&message),
                ..diagnostic
            }
        }));
        report
    }
}
