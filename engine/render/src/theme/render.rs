//! Renders a template with a page's values.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

use tera::{Context, ErrorKind, Tera, TeraResult, Value};

use super::error::{located, one_line};
use super::ui_strings::UiStrings;
use crate::compile::cache::Cache;
use crate::compile::prepared_tenant::PreparedTenant;
use crate::compile::watchdog::RenderAttempt;
use crate::images::svg::fonts::Fonts;
use crate::images::svg::sprite::Sprite;
use crate::island::{Hydration, Islands};
use crate::markdown::element_ids::{PageIds, ThemeIds};
use crate::pages::links::resolver::Resolver;
use crate::pages::links::text_context::LinkContext;
use crate::pages::values::view::TemplateView;
use crate::resources::asset::{ASSETS, Asset};
use crate::theme::language::Language;
use crate::theme::theme_files::ThemeAssets;
use content::report::{Code, Diagnostic, size_text};
use content::schema::FormattedText;
use content::tenant::Page;
use content::tenant::assets::named;
use content::theme::Theme;

/// A loaded theme, ready to render.
#[derive(Debug)]
pub struct Templates {
    /// The theme as it was read.
    pub theme: Theme,
    /// Its public files and its styles.
    pub assets: ThemeAssets,
    /// Its languages by tag (BCP 47).
    pub(crate) languages: BTreeMap<String, Arc<Language>>,
    /// Its fonts, for drawing SVGs.
    pub(crate) fonts: Arc<Fonts>,
    /// The ids in its templates.
    pub(crate) ids: Arc<ThemeIds>,
    pub(super) tera: Tera,
    /// Whether a snapshot serves its files.
    pub(super) served: AtomicBool,
}

/// The state of a page that is being rendered, which template functions use.
#[derive(Debug, Clone)]
pub struct PageScope {
    /// Resolves the links of the page.
    pub resolver: Resolver,
    /// The tenant, checked against the schemas of its theme.
    pub prepared: Arc<PreparedTenant>,
    /// The language of the page, as an index into the languages of the tenant.
    pub(crate) language: usize,
    /// The tenant's settings as template values at this address.
    pub settings: Value,
    /// The theme.
    pub templates: Arc<Templates>,
    /// The islands.
    pub islands: Arc<Islands>,
    /// The results of costly work.
    pub cache: Arc<Cache>,
    /// The islands used so far, with their hydration.
    pub used: Vec<(String, Hydration)>,
    /// The SVGs so far that move to a file of their own.
    pub(crate) sprite: Sprite,
    /// The ids assigned on the page so far.
    pub(crate) ids: Arc<Mutex<PageIds>>,
    /// The renderings in flight, for the watchdog.
    pub attempt: Arc<RenderAttempt>,
    /// The UI strings so far that contain characters of HTML syntax.
    pub(crate) ui_strings: UiStrings,
    /// The code of the error if an island failed.
    pub failed: Option<Code>,
}

impl PageScope {
    /// Returns the language of the page.
    pub(crate) fn language(&self) -> &Arc<Language> {
        &self.prepared.languages[self.language]
    }

    /// Returns the context for rendering Markdown on this page.
    pub(crate) fn link_context(&self) -> LinkContext<'_> {
        LinkContext {
            language: self.language(),
            resolver: &self.resolver,
            themed: &self.templates.assets.files,
            ids: &self.ids,
        }
    }

    /// Returns the id allocator of a page: its theme's ids and the ids of its sections are taken.
    pub(crate) fn page_ids(&self, page: Option<&Page>) -> PageIds {
        let ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ids = ids.clone();
        for fragment in page.into_iter().flat_map(|page| self.fragments(page)) {
            ids.reserve(&fragment.text);
        }
        ids
    }

    /// Returns the fragments that an author gave to the sections of a page.
    pub(crate) fn fragments(&self, page: &Page) -> impl Iterator<Item = &FormattedText> {
        self.prepared.content.fragments(&page.file)
    }

    /// Returns the scope for a page, with an id allocator of its own.
    #[must_use]
    pub(crate) fn for_page(self, page: Option<&Page>) -> Self {
        let ids = self.page_ids(page);
        Self {
            ids: Arc::new(Mutex::new(ids)),
            ..self
        }
    }
}

/// The template of social images.
pub(crate) const SOCIAL: &str = "social.svg";

thread_local! {
    static PAGE_SCOPE: RefCell<Option<PageScope>> = const { RefCell::new(None) };
}

impl Templates {
    /// Marks its files as served, so that pages may refer to them.
    pub fn set_served(&self) {
        self.served.store(true, Relaxed);
    }

    /// Whether a snapshot serves its files.
    #[must_use]
    pub fn is_served(&self) -> bool {
        self.served.load(Relaxed)
    }

    /// Returns the names of its layouts.
    pub fn layouts(&self) -> impl Iterator<Item = &str> + Clone {
        self.theme.files.keys().filter_map(|path| {
            path.strip_prefix("layouts/")
                .and_then(|name| name.strip_suffix(".html"))
        })
    }

    /// Returns a language by its tag or a prefix of the tag: `de` for `de-AT`.
    #[must_use]
    pub fn language(&self, tag: &str) -> Option<&Arc<Language>> {
        let mut tag = tag;
        loop {
            if let Some(language) = self.languages.get(tag) {
                return Some(language);
            }
            tag = tag.rsplit_once('-')?.0;
        }
    }

    /// Returns the text for requests to unknown hosts in a language, or in any language of the theme.
    #[must_use]
    pub fn unknown_host(&self, tag: &str) -> Option<String> {
        let language = self
            .language(tag)
            .or_else(|| self.languages.values().next())?;
        Some(language.ui_string("engine.unknown_host"))
    }

    fn run(
        &self,
        template: &str,
        context: &Context,
        attempt: Arc<RenderAttempt>,
    ) -> TeraResult<String> {
        let mut page = BoundedPage {
            html: Vec::new(),
            attempt,
        };
        self.tera.render_to(template, context, &mut page)?;
        String::from_utf8(page.html).map_err(|error| tera::Error::message(error.to_string()))
    }

    /// Renders a template. Returns the scope, too, which lists the islands that were used.
    ///
    /// # Errors
    /// Returns a diagnostic that points into the theme.
    pub fn render(
        &self,
        template: &str,
        view: &TemplateView<'_>,
        scope: PageScope,
    ) -> Result<(String, PageScope), Diagnostic> {
        let attempt = Arc::clone(&scope.attempt);
        let _busy = attempt.begin(view.page.path, template);
        PAGE_SCOPE.set(Some(scope));
        let result =
            context(view).and_then(|context| self.run(template, &context, Arc::clone(&attempt)));
        let scope = PAGE_SCOPE.take();
        match (result, scope) {
            (Ok(html), Some(scope)) => Ok((html, scope)),
            (Err(error), scope) => {
                if let ErrorKind::Io(io::ErrorKind::FileTooLarge) = error.kind() {
                    let file = format!("{}/{template}", self.theme.label);
                    return Err(Diagnostic::error(Code::TooLarge, file, too_long()));
                }
                let code = scope
                    .and_then(|scope| scope.failed)
                    .unwrap_or(Code::TemplateFailed);
                let failed = || {
                    Diagnostic::error(code, self.theme.label.clone(), one_line(&error.to_string()))
                };
                Err(located(&error, code, &self.theme)
                    .pop()
                    .unwrap_or_else(failed))
            }
            (Ok(_), None) => Err(Diagnostic::error(
                Code::TemplateFailed,
                self.theme.label.clone(),
                "the page's scope was lost during rendering",
            )),
        }
    }
}

/// Limit on the HTML of one page, in bytes.
const MAX_PAGE_BYTES: usize = 8 << 20;

/// Returns the message for a page above the limit.
fn too_long() -> String {
    let limit = size_text(MAX_PAGE_BYTES as u64);
    format!("the page has more than {limit}: split the page, or shorten its loops")
}

/// A page that is being written. Writing fails above the size limit, and once the rendering was given up.
struct BoundedPage {
    html: Vec<u8>,
    attempt: Arc<RenderAttempt>,
}

impl io::Write for BoundedPage {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.attempt.is_abandoned() {
            return Err(io::Error::other("rendering took too long and was stopped"));
        }
        if self.html.len() + bytes.len() > MAX_PAGE_BYTES {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, too_long()));
        }
        self.html.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Converts the values of a page for Tera. The head and the body are HTML and are not escaped again.
fn context(view: &TemplateView<'_>) -> TeraResult<Context> {
    let with = |value: Value, more: Vec<(&'static str, Value)>| {
        let mut map = value.into_map().unwrap_or_default();
        map.extend(more.into_iter().map(|(name, value)| (name.into(), value)));
        Value::from(map)
    };
    let site = Value::try_from_serializable(&view.site)?;
    let company = Value::try_from_serializable(&view.company)?;
    let page = Value::try_from_serializable(&view.page)?;
    let body = Value::safe_string(&view.page.body);
    let sections = Value::from(view.page.sections.clone());
    let mut context = Context::new();
    context.insert_value("head", Value::safe_string(&view.head));
    context.insert_value(
        "site",
        with(site, vec![("settings", view.site.settings.clone())]),
    );
    context.insert_value(
        "company",
        with(
            company,
            vec![("sites", Value::from(view.company.sites.clone()))],
        ),
    );
    context.insert_value(
        "page",
        with(page, vec![("body", body), ("sections", sections)]),
    );
    Ok(context)
}

/// Runs `work` with the scope of the page that is being rendered.
pub(super) fn with_scope<T>(work: impl FnOnce(&mut PageScope) -> TeraResult<T>) -> TeraResult<T> {
    PAGE_SCOPE.with(|cell| match cell.borrow_mut().as_mut() {
        Some(scope) => work(scope),
        None => Err(tera::Error::message("this function works only in a page")),
    })
}

impl PageScope {
    /// Returns the tenant's file that a text of the current file names, and marks the file as used.
    pub(crate) fn own_asset(&self, written: &str) -> Option<(&str, &Asset)> {
        let found = named(&self.prepared.assets, written, &self.resolver.file);
        found.map(|(key, asset)| (key, asset.mark_used()))
    }
}

/// Returns a file of the tenant, else of the theme.
pub(crate) fn asset_of<'s>(scope: &'s PageScope, path: &str) -> Option<&'s Asset> {
    let own = scope.own_asset(path).map(|(_, asset)| asset);
    own.or_else(|| scope.templates.assets.files.get(path))
}

/// Returns the URL of a file of the tenant, else of the theme.
#[must_use]
pub(crate) fn asset_href(scope: &PageScope, path: &str) -> Option<String> {
    if let Some((_, asset)) = scope.own_asset(path) {
        return Some(scope.resolver.asset(asset));
    }
    let asset = scope.templates.assets.files.get(path)?;
    Some(format!("{ASSETS}{}", asset.hashed_name))
}
