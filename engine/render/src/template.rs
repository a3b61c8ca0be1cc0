//! A theme's templates, and the functions that they can call.
//!
//! Layouts and components are HTML; `social.svg` is the one drawing among them.
//! Tera checks every template when it is added: an unknown filter, function or component is found at load, with its line.
//! While a page is rendered, its [`Scope`] lies in a thread-local cell, because Tera's functions are shared by all threads.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use tera::{Context, ErrorKind, Kwargs, State, Tera, TeraResult, Value};

use super::Inputs;
use super::asset::{self, ASSETS, Asset, ThemeAssets, theme_assets};
use super::cache::Cache;
use super::compress;
use super::island::{self, Call, Client, Islands};
use super::link::Resolver;
use super::markdown::{self, Surroundings};
use super::picture::fit;
use super::picture::fonts::Fonts;
use super::progress::Progress;
use super::view::View;
use content::report::{Code, Diagnostic, Place, Report, hint_for};
use content::theme::Theme;

/// A theme that is ready to render.
#[derive(Debug)]
pub struct Templates {
    /// The theme's folder.
    pub theme: Theme,
    /// Its public files and its stylesheet.
    pub assets: ThemeAssets,
    /// How much its stylesheet weighs on the way to a visitor, in bytes.
    pub(super) stylesheet_weight: usize,
    /// Its fonts, for drawings.
    pub(super) fonts: Arc<Fonts>,
    tera: Tera,
}

/// What the functions need to know about the page that is being rendered.
#[derive(Debug, Clone)]
pub struct Scope {
    /// Makes links right.
    pub resolver: Resolver,
    /// The tenant's files by name.
    pub tenant_assets: Arc<BTreeMap<String, Asset>>,
    /// The theme.
    pub templates: Arc<Templates>,
    /// The islands.
    pub islands: Arc<Islands>,
    /// What was worked out before.
    pub cache: Arc<Cache>,
    /// The islands used so far, with what makes them live.
    pub used: Vec<(String, Client)>,
    /// What is rendered now, for whoever waits for it.
    pub progress: Arc<Progress>,
    /// What kind of error an island made.
    pub failed: Option<Code>,
}

impl Scope {
    /// The scope of a page that uses no island yet.
    pub(super) fn new(
        resolver: &Resolver,
        tenant_assets: &Arc<BTreeMap<String, Asset>>,
        inputs: &Inputs,
    ) -> Self {
        Self {
            resolver: resolver.clone(),
            tenant_assets: Arc::clone(tenant_assets),
            templates: Arc::clone(&inputs.templates),
            islands: Arc::clone(&inputs.islands),
            cache: Arc::clone(&inputs.cache),
            used: Vec::new(),
            progress: Arc::clone(&inputs.progress),
            failed: None,
        }
    }
}

/// The drawing that shared links show, where the theme has one.
pub(super) const SOCIAL: &str = "social.svg";

thread_local! {
    static SCOPE: RefCell<Option<Scope>> = const { RefCell::new(None) };
}

impl Templates {
    /// Reads every template of a theme, and names its files.
    #[must_use]
    pub fn load(theme: &Theme) -> (Option<Self>, Report) {
        let mut report = Report::default();
        let assets = theme_assets(theme, &mut report);
        let mut tera = Tera::default();
        tera.autoescape_on([".html", ".svg"]);
        register(&mut tera);
        let mut sources = Vec::new();
        for (path, bytes) in &theme.files {
            if !path.ends_with(".html") && path != SOCIAL {
                continue;
            }
            match std::str::from_utf8(bytes) {
                Ok(text) => sources.push((path.as_str(), text)),
                Err(_) => report.push(Diagnostic::error(
                    Code::NotUtf8,
                    format!("{}/{path}", theme.label),
                    "the template is not UTF-8",
                )),
            }
        }
        if report.is_servable()
            && let Err(error) = tera.add_raw_templates(sources)
        {
            report.extend(located(&error, Code::TemplateFailed, theme));
        }
        let templates = report.is_servable().then(|| Self {
            stylesheet_weight: assets
                .stylesheet
                .as_ref()
                .map_or(0, |sheet| compress::weight(&sheet.bytes)),
            fonts: Arc::new(Fonts::of(theme)),
            theme: theme.clone(),
            assets,
            tera,
        });
        (templates, report)
    }

    /// The layouts that pages can name.
    pub fn layouts(&self) -> impl Iterator<Item = &str> + Clone {
        self.theme.files.keys().filter_map(|path| {
            path.strip_prefix("layouts/")
                .and_then(|name| name.strip_suffix(".html"))
        })
    }

    fn run(
        &self,
        template: &str,
        context: &Context,
        progress: Arc<Progress>,
    ) -> TeraResult<String> {
        let mut page = BoundedPage {
            html: Vec::new(),
            progress,
        };
        self.tera.render_to(template, context, &mut page)?;
        String::from_utf8(page.html).map_err(|error| tera::Error::message(error.to_string()))
    }

    /// Renders a template. The scope comes back with the islands that were used.
    ///
    /// # Errors
    /// A diagnostic that points into the theme.
    pub fn render(
        &self,
        template: &str,
        view: &View<'_>,
        scope: Scope,
    ) -> Result<(String, Scope), Diagnostic> {
        let progress = Arc::clone(&scope.progress);
        let _busy = progress.begin(view.page.path, template);
        SCOPE.set(Some(scope));
        let result =
            context(view).and_then(|context| self.run(template, &context, Arc::clone(&progress)));
        let scope = SCOPE.take();
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
                "the page's scope was lost while it was rendered",
            )),
        }
    }
}

/// The most bytes that one page may have.
const PAGE: usize = 8 << 20;

/// What is said of a page that is too long.
fn too_long() -> String {
    format!("the page has more than {PAGE} bytes: split it, or loop over less")
}

/// Takes what a page may have and no more, and nothing once nobody waits for it any longer.
struct BoundedPage {
    html: Vec<u8>,
    progress: Arc<Progress>,
}

impl io::Write for BoundedPage {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.progress.is_given_up() {
            return Err(io::Error::other("rendering took too long and was given up"));
        }
        if self.html.len() + bytes.len() > PAGE {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, too_long()));
        }
        self.html.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The view as Tera takes it. The head and the body are HTML already and not escaped again.
fn context(view: &View<'_>) -> TeraResult<Context> {
    let mut context = Context::new();
    context.insert_value("head", Value::safe_string(&view.head));
    context.insert("site", &view.site);
    context.insert("company", &view.company);
    let page = Value::try_from_serializable(&view.page)?;
    let mut page = page.into_map().unwrap_or_default();
    page.insert("body".into(), Value::safe_string(&view.page.body));
    context.insert_value("page", Value::from(page));
    Ok(context)
}

/// Points a Tera error into the theme's files.
fn located(error: &tera::Error, code: Code, theme: &Theme) -> Vec<Diagnostic> {
    match error.kind() {
        ErrorKind::SyntaxError(report) | ErrorKind::RenderingError(report) => {
            let span = report.span();
            let column = span.start_col + 1;
            let length = if span.end_line == span.start_line {
                (span.end_col + 1).saturating_sub(column).max(1)
            } else {
                1
            };
            let place = Place {
                line: span.start_line,
                column,
                length,
            };
            vec![in_theme(
                report.message(),
                code,
                report.filename(),
                place,
                theme,
            )]
        }
        _ => several(&error.to_string(), code, theme),
    }
}

/// Unknown names come as one text with a report for each: `error: message` and `--> file:line:column`.
fn several(text: &str, code: Code, theme: &Theme) -> Vec<Diagnostic> {
    let found: Vec<Diagnostic> = text
        .split("error: ")
        .filter_map(|block| {
            let (message, rest) = block.split_once('\n')?;
            let mut position = rest
                .lines()
                .find_map(|line| line.trim().strip_prefix("--> "))?
                .rsplitn(3, ':');
            let column = position.next()?.parse().ok()?;
            let line = position.next()?.parse().ok()?;
            let file = position.next()?;
            let place = Place {
                line,
                column,
                length: 1,
            };
            Some(in_theme(message, code, file, place, theme))
        })
        .collect();
    if found.is_empty() {
        return vec![Diagnostic::error(code, theme.label.clone(), one_line(text))];
    }
    found
}

fn in_theme(message: &str, code: Code, file: &str, place: Place, theme: &Theme) -> Diagnostic {
    let diagnostic = Diagnostic::error(code, format!("{}/{file}", theme.label), one_line(message));
    let text = theme
        .files
        .get(file)
        .and_then(|bytes| std::str::from_utf8(bytes).ok());
    match text {
        Some(text) => diagnostic.at(place, text),
        None => diagnostic,
    }
}

fn one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

fn register(tera: &mut Tera) {
    tera.register_function("url", url);
    tera.register_function("asset", asset);
    tera.register_function("svg", svg);
    tera.register_function("island", island_function);
    fit::register(tera);
    tera.register_filter("markdown", |text: &str, _: Kwargs, _: &State<'_>| {
        with_scope(|scope| {
            Ok(Value::safe_string(
                &markdown::render(text, &surroundings(scope)).html,
            ))
        })
    });
    tera.register_filter("inline_markdown", |text: &str, _: Kwargs, _: &State<'_>| {
        with_scope(|scope| {
            Ok(Value::safe_string(&markdown::render_inline(
                text,
                &surroundings(scope),
            )))
        })
    });
}

fn surroundings(scope: &Scope) -> Surroundings<'_> {
    Surroundings {
        resolver: &scope.resolver,
        assets: &scope.tenant_assets,
        themed: &scope.templates.assets.files,
    }
}

/// Work with the page that is being rendered.
pub(super) fn with_scope<T>(work: impl FnOnce(&mut Scope) -> TeraResult<T>) -> TeraResult<T> {
    SCOPE.with(|cell| match cell.borrow_mut().as_mut() {
        Some(scope) => work(scope),
        None => Err(tera::Error::message("this function only works in a page")),
    })
}

/// `url(to="/terms")`: a link made right for the page's place.
fn url(arguments: Kwargs, _: &State<'_>) -> TeraResult<Value> {
    let to = arguments.must_get::<&str>("to")?;
    with_scope(|scope| Ok(Value::from(scope.resolver.href(to))))
}

/// `asset(path="icons/x.svg")`: the address of the tenant's file, else of the theme's.
fn asset(arguments: Kwargs, _: &State<'_>) -> TeraResult<Value> {
    let path = arguments.must_get::<&str>("path")?;
    with_scope(|scope| match asset_href(scope, path) {
        Some(href) => Ok(Value::from(href)),
        None => Err(missing(scope, path)),
    })
}

/// A file of the tenant, else of the theme.
pub(super) fn asset_of<'s>(scope: &'s Scope, path: &str) -> Option<&'s Asset> {
    let own = scope.tenant_assets.get(path);
    own.or_else(|| scope.templates.assets.files.get(path))
}

/// Where a file of the tenant or the theme answers.
#[must_use]
pub fn asset_href(scope: &Scope, path: &str) -> Option<String> {
    if let Some(asset) = scope.tenant_assets.get(path) {
        return Some(
            scope
                .resolver
                .href(&format!("{ASSETS}{}", asset.hashed_name)),
        );
    }
    let asset = scope.templates.assets.files.get(path)?;
    Some(format!("{ASSETS}{}", asset.hashed_name))
}

fn missing(scope: &Scope, path: &str) -> tera::Error {
    let known = scope
        .tenant_assets
        .keys()
        .chain(scope.templates.assets.files.keys())
        .map(String::as_str);
    tera::Error::message(format!(
        "neither the tenant's assets nor the theme has `{path}`: {}",
        content::report::nearest(path, known).map_or_else(
            || "add the file".to_owned(),
            |name| format!("did you mean `{name}`?")
        )
    ))
}

/// `svg(path="houses/bluedoor.svg", class="mark")`: the drawing itself, hidden from assistive technology unless `label` names it.
///
/// A drawing `houses/<name>.svg` may be the tenant's own `assets/<name>.svg`, and any other the tenant's file of the same path. What of a tenant's drawing could run or load was left out before ([`svg`](super::svg)).
fn svg(arguments: Kwargs, _: &State<'_>) -> TeraResult<Value> {
    let path = arguments.must_get::<&str>("path")?;
    let class = arguments.get::<&str>("class")?;
    let label = arguments.get::<&str>("label")?;
    with_scope(|scope| {
        let name = path.strip_prefix("houses/").unwrap_or(path);
        let bytes = scope
            .tenant_assets
            .get(name)
            // Only what was made harmless as a drawing.
            .filter(|_| asset::is_drawing(name))
            .or_else(|| scope.templates.assets.files.get(path))
            .map(|asset| &asset.bytes)
            .ok_or_else(|| missing(scope, path))?;
        let text = std::str::from_utf8(bytes)
            .map_err(|_| tera::Error::message(format!("`{path}` is not UTF-8")))?;
        let start = text
            .find("<svg")
            .ok_or_else(|| tera::Error::message(format!("`{path}` holds no <svg>")))?;
        let mut attributes = match label {
            Some(label) => format!(" role=\"img\" aria-label=\"{}\"", markdown::escape(label)),
            None => " aria-hidden=\"true\" focusable=\"false\"".to_owned(),
        };
        if let Some(class) = class {
            attributes.push_str(&format!(" class=\"{}\"", markdown::escape(class)));
        }
        let inner = text[start + 4..].trim_end();
        Ok(Value::safe_string(&format!("<svg{attributes}{inner}")))
    })
}

/// `island(name="Header", props=..., client="load")`.
fn island_function(arguments: Kwargs, _: &State<'_>) -> TeraResult<Value> {
    let name = arguments.must_get::<&str>("name")?;
    let props = match arguments.get::<&Value>("props")? {
        Some(value) => {
            serde_json::to_value(value).map_err(|error| tera::Error::message(error.to_string()))?
        }
        None => serde_json::json!({}),
    };
    let client = match (
        arguments.get::<&str>("client")?.unwrap_or("visible"),
        arguments.get::<&str>("media")?,
    ) {
        ("load", _) => Client::Load,
        ("idle", _) => Client::Idle,
        ("visible", _) => Client::Visible,
        ("media", Some(query)) => Client::Media(query.to_owned()),
        ("media", None) => {
            return Err(tera::Error::message(
                "client=\"media\" needs media=\"(a query)\"",
            ));
        }
        ("interaction", _) => Client::Interaction,
        ("none", _) => Client::None,
        (other, _) => {
            let hint = hint_for(other, Client::NAMES);
            return Err(tera::Error::message(format!(
                "client=\"{other}\" is unknown: {hint}"
            )));
        }
    };
    with_scope(|scope| {
        let before = scope.used.iter().filter(|(used, _)| used == name).count();
        let prefix = match before {
            0 => format!("{}-", name.to_lowercase()),
            count => format!("{}{}-", name.to_lowercase(), count + 1),
        };
        let call = Call {
            name,
            props: &props,
            client: client.clone(),
            prefix: &prefix,
        };
        let html = island::render(&scope.islands, &call, &scope.cache).map_err(|error| {
            scope.failed = Some(error.code());
            tera::Error::message(error.to_string())
        })?;
        scope.used.push((name.to_owned(), client));
        Ok(Value::safe_string(&html))
    })
}
