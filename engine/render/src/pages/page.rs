//! Renders one page: its head, its template values, its layout and its style, and makes its resource at an address.
//!
//! `page_head` creates the values of the head.
//!
//! **Invariant:** a page is rendered once for all addresses of its tenant; [`LinkBase`] adapts it to each of them.

mod page_head;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;

use content::address::Address;
use content::report::Diagnostic;
use content::tenant::manifest::NamedLink;
use content::tenant::page::NotFound;
use content::tenant::{HiddenReason, Page, Site};
use content::theme::data_schema::CheckedData;
use release::snapshot::fields::Fields;
use release::snapshot::{Body, Resource};

use crate::compile::inputs::CompileInputs;
use crate::compile::prepared_tenant::PreparedTenant;
use crate::images::svg::sprite::FILE_MARK;
use crate::island::Hydration;
use crate::markdown::{self, RenderedText};
use crate::media;
use crate::pages::dev;
use crate::pages::head::script_tags::script_tags;
use crate::pages::head::{PageHead, SCRIPTS_MARK, STYLE_MARK, preload, speculation_rules};
use crate::pages::hierarchy;
use crate::pages::languages::direction::right_to_left;
use crate::pages::languages::link_languages::PageLanguages;
use crate::pages::links::link_base::LinkBase;
use crate::pages::links::resolver::Resolver;
use crate::pages::own_style::own_style;
use crate::pages::values::resolve::{entry, resolve};
use crate::pages::values::site_view;
use crate::pages::values::view::{LinkView, PageLink, PageView, StatusView, TemplateView};
use crate::resources::asset::{ASSETS, Asset, policy_hash};
use crate::resources::encodings::compress::{self, CompressionLevel};
use crate::resources::file_resource;
use crate::resources::header_fields::{self, BodyKind};
use crate::site_files::SiteFiles;
use crate::styles::{PageContent, PageStyle, font_of};
use crate::theme::language::Language;
use crate::theme::{EXAMPLE, PageScope, Templates, asset_href};

/// Renders the pages of a tenant, once for all its addresses.
pub(crate) struct Renderer<'a> {
    /// The tenant.
    pub site: &'a Site,
    /// Resolves links to marks, because pages are rendered for all addresses.
    pub resolver: Resolver,
    canonical: &'a Address,
    pub(super) prepared: &'a Arc<PreparedTenant>,
    /// The scopes of the tenant's languages, in the order of the manifest.
    scopes: Vec<PageScope>,
    /// The languages of the pages that links may lead to.
    link_languages: PageLanguages,
    pub(super) inputs: &'a CompileInputs,
    /// The generated files of the site: feeds, icons and social images.
    pub site_files: &'a SiteFiles,
    own_style: String,
}

/// Pages without a source file.
pub(crate) enum SpecialPage<'a> {
    /// No page exists at the path.
    ///
    /// The page is in the language with this index.
    NotFound(usize),
    /// No entry of this name exists in a collection.
    Entry(&'a Page, &'a NotFound),
    /// The method is not allowed for pages, in the language with this number.
    MethodNotAllowed(usize),
}

impl SpecialPage<'_> {
    /// Returns the status code of the page (RFC 9110, section 15.5).
    pub(crate) const fn status(&self) -> StatusCode {
        match self {
            Self::NotFound(_) | Self::Entry(..) => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed(_) => StatusCode::METHOD_NOT_ALLOWED,
        }
    }
}

impl<'a> Renderer<'a> {
    /// Prepares the parts that all pages of the tenant share.
    pub(crate) fn new(
        site: &'a Site,
        canonical: &'a Address,
        prepared: &'a Arc<PreparedTenant>,
        inputs: &'a CompileInputs,
        site_files: &'a SiteFiles,
    ) -> Self {
        let resolver = Resolver::new(site, LinkBase::for_all_addresses(), &inputs.deployment)
            .with_assets(&prepared.assets);
        let scopes = inputs.scopes(site, &resolver, prepared);
        let own_style = own_style(prepared.content.settings(0), scopes.first());
        Self {
            site,
            scopes,
            link_languages: PageLanguages::of(site, inputs),
            resolver,
            canonical,
            prepared,
            inputs,
            site_files,
            own_style,
        }
    }

    /// Whether the deployment's origin uses TLS.
    pub(crate) fn is_secure(&self) -> bool {
        self.inputs.deployment.origin.is_secure()
    }

    /// Makes the resource of a page at an address. `page` is `None` for pages without a source file.
    pub(crate) fn body(
        &self,
        html: String,
        status: StatusCode,
        fields: &PageFields,
        page: Option<&Page>,
    ) -> Resource {
        let noindex = page.is_none_or(|page| self.is_hidden(page));
        Resource::Body(Body {
            status,
            fields: Arc::clone(fields.of(noindex)),
            cache_tag: header_fields::cache_tag(&self.site.id, page),
            variants: compress::cached_variants(
                Bytes::from(html.into_bytes().into_boxed_slice()),
                true,
                self.inputs
                    .level(page.map_or(CompressionLevel::Error, |_| CompressionLevel::Page)),
                &self.inputs.cache,
            ),
        })
    }

    /// Whether search engines must not index a page: no page of a preview is indexed.
    fn is_hidden(&self, page: &Page) -> bool {
        page.front.noindex || self.site.id.is_preview()
    }

    /// Whether `--dev` is on.
    pub(crate) fn is_dev(&self) -> bool {
        self.inputs.islands.dev.is_some()
    }

    /// Whether section examples are pages that other pages show in frames.
    pub(crate) fn shows_section_examples(&self) -> bool {
        self.inputs.deployment.shows_section_examples
    }

    /// Returns the hash of the inline loader.
    pub(crate) fn loader_hash(&self) -> &str {
        &self.inputs.islands.loader_hash
    }

    /// The tenant's theme.
    pub(crate) fn templates(&self) -> &Templates {
        &self.inputs.templates
    }

    /// Returns the tenant's own colours as a style; empty if it has none.
    pub(crate) fn own_style(&self) -> &str {
        &self.own_style
    }

    /// Renders a page with only the example of a section type, and with `style`.
    pub(crate) fn example(
        &self,
        kind: &str,
        example: &CheckedData,
        style: &str,
    ) -> Result<RenderedPage, Diagnostic> {
        let scope = self.scope().for_page(None);
        let head = PageHead {
            title: kind.to_owned(),
            noindex: true,
            structured_data: None,
            ..self.common_head(&scope)
        };
        let page = PageView {
            path: "",
            title: kind,
            heading: kind,
            layout: "page",
            sections: vec![resolve(example, self.site, &scope)],
            // Some section types list the entries of their page. The example's page has none, so it gets three pages of the tenant.
            entries: (self.site.pages.values().take(3))
                .map(|page| entry(page, &scope))
                .collect(),
            ..PageView::default()
        };
        // No live-reload script: the gallery's own page has one, and browsers limit the connections to a host.
        let (html, scope) = self.render_template(EXAMPLE, page, &head, scope)?;
        let html = html.replacen(SCRIPTS_MARK, &script_tags(&scope), 1);
        Ok(self.add_style(html, &BTreeSet::from([kind]), &scope, style))
    }

    /// Returns the path of the tenant's icon.
    pub(crate) fn icon(&self) -> Option<String> {
        self.common_head(&self.scope()).icon
    }

    /// Returns the live-reload script's tag for a page of the engine's own with this content.
    pub(crate) fn dev_script(&self, html: &str) -> String {
        dev::element(&self.inputs.islands, self.site.id.as_str(), html, None)
    }

    /// Makes the resource of one of the tenant's own files.
    pub(crate) fn file(&self, asset: &Asset) -> Resource {
        file_resource::file(
            asset,
            BodyKind::of_tenant(&asset.name),
            self.is_secure(),
            self.inputs.level(CompressionLevel::Page),
            &self.inputs.cache,
        )
    }

    /// Makes the resource of a file, with its path.
    pub(crate) fn file_with_path(&self, asset: &Asset) -> (Box<str>, Arc<Resource>) {
        let path = format!("{ASSETS}{}", asset.hashed_name);
        (path.into(), Arc::new(self.file(asset)))
    }

    /// Renders a page of the tenant.
    pub(crate) fn page(&self, page: &Page) -> Result<RenderedPage, Diagnostic> {
        let language = self.site.manifest.language_of(&page.path);
        let mut scope = self.scopes[language].clone().for_page(Some(page));
        scope.resolver = scope.resolver.in_file(&page.file);
        let rendered = markdown::render(&page.body, &scope.link_context());
        let trail = self.trail(page, &scope);
        let canonical = self.resolver.url_at(self.canonical, &page.path);
        let head = self.head(page, &trail, &canonical, &scope);
        let layout = hierarchy::layout_of(self.site, page);
        let page_view = self.view(page, rendered, &trail, canonical, layout, &scope);
        self.finish(page_view, &head, scope, page.hidden)
    }

    /// Renders a page without a source file.
    pub(crate) fn special(&self, special: &SpecialPage<'_>) -> Result<RenderedPage, Diagnostic> {
        let status = special.status();
        let language = match special {
            SpecialPage::NotFound(language) | SpecialPage::MethodNotAllowed(language) => *language,
            SpecialPage::Entry(page, _) => self.site.manifest.language_of(&page.path),
        };
        let scope = self.scopes[language].clone().for_page(None);
        let word = |key: &str| scope.language().ui_string(key);
        let home = |key: &str| LinkView {
            label: word(key),
            href: Some(scope.resolver.href("/")),
            current: false,
            new_tab: false,
        };
        let (layout, title, text, back) = match special {
            SpecialPage::NotFound(_) => (
                "not-found",
                word("engine.not_found.title"),
                Some(word("engine.not_found.text")),
                home("engine.not_found.back"),
            ),
            SpecialPage::Entry(page, words) => (
                "not-found",
                words.title.clone(),
                words.text.clone(),
                self.link(&words.back, page, &scope),
            ),
            SpecialPage::MethodNotAllowed(_) => (
                "error",
                word("engine.error.title"),
                Some(word("engine.error.text")),
                home("engine.error.back"),
            ),
        };
        let reason = word(&format!("engine.status.{}", status.as_u16()));
        let common = self.common_head(&scope);
        let head = PageHead {
            title: self.title(&title, &scope),
            description: Some(text.clone().unwrap_or_else(|| title.clone())),
            image: common.image.clone().or_else(|| {
                let home = self.site.translation("/", language);
                self.generated_image(home.map_or("/", |home| &home.path))
            }),
            noindex: true,
            structured_data: None,
            ..common
        };
        let page = PageView {
            path: "",
            title: &title,
            heading: &title,
            // The error page describes itself by its status.
            description: text.as_deref().filter(|_| layout == "not-found"),
            layout,
            back: Some(back),
            status: Some(StatusView {
                code: status.as_u16(),
                reason: &reason,
                detail: self.detail(special),
            }),
            translations: self.switcher("/", language),
            ..PageView::default()
        };
        self.finish(page, &head, scope, None)
    }

    /// Returns the cause that an error page shows to authors (`--dev`), never to visitors.
    fn detail(&self, special: &SpecialPage<'_>) -> Option<&'static str> {
        match special {
            SpecialPage::MethodNotAllowed(_) if self.is_dev() => {
                Some("pages accept GET, HEAD and OPTIONS only")
            }
            _ => None,
        }
    }

    /// Renders the layout, then adds the scripts and the style that the result needs to the head.
    fn finish(
        &self,
        page: PageView<'_>,
        head: &PageHead,
        scope: PageScope,
        hidden: Option<HiddenReason>,
    ) -> Result<RenderedPage, Diagnostic> {
        let template = format!("layouts/{}.html", page.layout);
        let file = self.site.pages.get(page.path).map(|page| &page.file);
        let sections = file.and_then(|file| self.prepared.content.sections.get(file));
        let kinds = sections.into_iter().flatten();
        let kinds = kinds.map(|section| section.kind.as_str()).collect();
        let (html, scope) = self.render_template(&template, page, head, scope)?;
        // The live-reload script comes first, so that it observes every island that fails.
        let scripts = dev::tag(&scope, &html, head, hidden)
            + &script_tags(&scope)
            + &speculation_rules::tag();
        let html = media::load_first_eagerly(html).replacen(SCRIPTS_MARK, &scripts, 1);
        let html = self
            .link_languages
            .mark_links(html, scope.language, &scope.resolver);
        Ok(self.add_style(html, &kinds, &scope, &self.own_style))
    }

    /// Renders a template, and returns the HTML with the scope, which lists the islands that the page uses.
    fn render_template(
        &self,
        template: &str,
        page: PageView<'_>,
        head: &PageHead,
        scope: PageScope,
    ) -> Result<(String, PageScope), Diagnostic> {
        let view = TemplateView {
            head: head.html(),
            site: site_view::site(self.site, &scope, page.path),
            company: {
                let path = self.site.manifest.split(page.path).1;
                site_view::company(&scope.resolver, path)
            },
            page,
        };
        let rendered = self.inputs.templates.render(template, &view, scope.clone());
        let is_right_to_left = scope.language().is_right_to_left();
        rendered.map(|(html, scope)| match is_right_to_left {
            true => (right_to_left(html), scope),
            false => (html, scope),
        })
    }

    fn view<'p>(
        &'p self,
        page: &'p Page,
        rendered: RenderedText,
        trail: &[TrailStep],
        canonical: String,
        layout: &'p str,
        scope: &PageScope,
    ) -> PageView<'p> {
        let language = scope.language();
        let front = &page.front;
        let collection = hierarchy::collection_of(self.site, page);
        let siblings = collection
            .map(|parent| hierarchy::entries(self.site, &parent.path))
            .unwrap_or_default();
        let position = siblings
            .iter()
            .position(|sibling| sibling.path == page.path);
        let neighbour = |index: Option<usize>| {
            index
                .and_then(|index| siblings.get(index))
                .map(|page| self.link_to(page))
        };
        let entries = match &front.collection {
            Some(_) => hierarchy::entries(self.site, &page.path),
            None => Vec::new(),
        };
        PageView {
            path: &page.path,
            title: &front.title,
            heading: front.heading.as_deref().unwrap_or(&front.title),
            description: self.description(page),
            canonical: Some(canonical),
            layout,
            date: front.date.map(|date| date.day().to_string()),
            date_text: front.date.map(|date| language.date(date)),
            updated: front.updated.map(|date| date.day().to_string()),
            updated_text: front.updated.map(|date| language.date(date)),
            effective: front.effective,
            excerpt: front.excerpt.as_deref(),
            tags: &front.tags,
            body: rendered.html,
            contents: rendered.headings,
            breadcrumbs: self.breadcrumbs(trail),
            back: front.back.as_ref().map(|back| self.link(back, page, scope)),
            sections: site_view::sections(self.site, page, scope),
            entries: entries.into_iter().map(|page| entry(page, scope)).collect(),
            collection: collection.map(|page| self.link_to(page)),
            newer: neighbour(position.and_then(|index| index.checked_sub(1))),
            older: neighbour(position.map(|index| index + 1)),
            translations: self.switcher(&page.path, scope.language),
            status: None,
        }
    }

    /// Resolves a link of a page's front matter.
    fn link(&self, link: &NamedLink, page: &Page, scope: &PageScope) -> LinkView {
        let resolver = scope.resolver.clone().in_file(&page.file);
        LinkView {
            label: link.label.clone(),
            href: Some(resolver.href(link.link.as_str())),
            current: false,
            new_tab: link.new_tab,
        }
    }

    fn link_to(&self, page: &Page) -> PageLink {
        PageLink {
            label: page
                .front
                .heading
                .as_deref()
                .unwrap_or(&page.front.title)
                .to_owned(),
            href: self.resolver.href(&page.path),
        }
    }

    /// Returns the steps from the domain's home page to `page`.
    fn trail(&self, page: &Page, scope: &PageScope) -> Vec<TrailStep> {
        let home = TrailStep {
            name: scope.language().ui_string("engine.home"),
            url: match self.has_home() {
                true => {
                    let home = self.site.translation("/", scope.language);
                    let path = home.map_or("/", |home| home.path.as_str());
                    self.resolver.url_at(self.canonical, path)
                }
                false => {
                    let origin = &self.inputs.deployment.origin;
                    format!("{origin}{}", scope.resolver.company_path("/"))
                }
            },
            href: scope.resolver.home(),
        };
        let own = hierarchy::trail(self.site, page)
            .into_iter()
            .map(|(name, path)| TrailStep {
                name: name.to_owned(),
                url: self.resolver.url_at(self.canonical, path),
                href: self.resolver.href(path),
            });
        // The landing page may be the home page.
        let skipped = usize::from(self.has_home());
        std::iter::once(home).chain(own.skip(skipped)).collect()
    }

    fn breadcrumbs(&self, trail: &[TrailStep]) -> Vec<LinkView> {
        let last = trail.len() - 1;
        trail
            .iter()
            .enumerate()
            .map(|(index, step)| LinkView {
                label: step.name.clone(),
                href: (index < last).then(|| step.href.clone()),
                current: index == last,
                new_tab: false,
            })
            .collect()
    }

    /// Returns the scope in which templates run, with links for all addresses.
    pub(crate) fn scope(&self) -> PageScope {
        self.scopes[0].clone()
    }

    /// Returns the languages of the tenant's pages, in the order of the manifest.
    pub(crate) fn languages(&self) -> &[Arc<Language>] {
        &self.prepared.languages
    }

    /// Returns the scopes for files that are made for one address, by language.
    pub(crate) fn scopes_at(&self, address: &Address) -> Vec<PageScope> {
        let place = LinkBase::at(address, &self.inputs.deployment.origin);
        let scopes = self.scopes.iter().cloned();
        let scopes = scopes.map(|scope| PageScope {
            resolver: Resolver {
                place: place.clone(),
                ..scope.resolver
            },
            ..scope
        });
        scopes.collect()
    }

    /// Returns the link base of the tenant's canonical address.
    pub(crate) fn canonical_place(&self) -> LinkBase {
        LinkBase::at(self.canonical, &self.inputs.deployment.origin)
    }
}

/// A step on the path from the home page to a page.
struct TrailStep {
    name: String,
    url: String,
    href: String,
}

/// A rendered page. Its links contain the marks of [`LinkBase`](crate::pages::links::link_base::LinkBase).
#[derive(Default)]
pub(crate) struct RenderedPage {
    /// The HTML.
    pub(crate) html: String,
    /// The style's hash as a source expression for `style-src`: `'sha256-...'`.
    pub(crate) style: String,
    /// A file with the SVGs below the first view.
    pub(crate) drawings: Option<Asset>,
}

/// The header fields of a site's pages at an address.
pub(crate) struct PageFields {
    indexed: Arc<Fields>,
    hidden: Arc<Fields>,
}

impl PageFields {
    /// Returns the fields of pages with or without `noindex`.
    pub(crate) fn of(&self, noindex: bool) -> &Arc<Fields> {
        match noindex {
            true => &self.hidden,
            false => &self.indexed,
        }
    }
}

impl Renderer<'_> {
    /// Adds the style that the page uses to its head, followed by `own`, which overrides the theme's rules.
    ///
    /// Also makes the file of SVGs that are not inline, and points the page at it.
    fn add_style(
        &self,
        html: String,
        kinds: &BTreeSet<&str>,
        scope: &PageScope,
        own: &str,
    ) -> RenderedPage {
        let drawings = scope.sprite.file();
        let html = match &drawings {
            Some(file) => html.replace(FILE_MARK, &self.resolver.asset(file)),
            None => html,
        };
        let live = scope.used.iter();
        let live = live.filter(|(_, client)| *client != Hydration::None);
        let islands: BTreeSet<&str> = live.map(|(name, _)| name.as_str()).collect();
        let shown = PageContent {
            html: &html,
            sprite: drawings.as_ref().map_or(b"", |file| &file.bytes),
            language: self.site.manifest.languages()[scope.language].as_str(),
            islands: &islands.into_iter().collect::<Vec<_>>(),
            may_write: &|island, class| scope.islands.may_write(island, class),
            has_section_type: &|kind| kinds.contains(kind),
            sites: &self.inputs.deployment.sites,
        };
        let PageStyle { css, whole_fonts } = self.templates().assets.styles.of_page(&shown);
        let style = css + own;
        let fonts = self.preloaded(scope, &whole_fonts);
        let head = format!("<style>{style}</style>\n{}", preload(&fonts));
        RenderedPage {
            html: self
                .add_placeholder_colours(&html)
                .replacen(STYLE_MARK, &head, 1),
            style: policy_hash(&style),
            drawings,
        }
    }

    /// Returns the URLs of the fonts that the page preloads.
    fn preloaded(&self, scope: &PageScope, whole: &BTreeMap<String, String>) -> Vec<String> {
        let files = &self.templates().theme.manifest.preload;
        let address = |file: &String| match whole.get(font_of(file)) {
            Some(whole) => Some(whole.clone()),
            None => asset_href(scope, file),
        };
        files.iter().filter_map(address).collect()
    }

    /// Returns the header fields of the pages with these styles at an address.
    pub(crate) fn fields(&self, styles: &BTreeSet<String>, address: &Address) -> PageFields {
        let deployment = &self.inputs.deployment;
        // A tenant below a prefix of the domain does not decide the domain's policy.
        let hsts = if address.host == deployment.origin.domain() {
            deployment.hsts
        } else {
            self.site.manifest.hsts
        };
        let fields = |noindex| {
            let kind = BodyKind::Page {
                styles: styles.clone(),
                script: Some(self.loader_hash().to_owned()),
                noindex,
                framed: deployment.shows_section_examples,
                caching: deployment.caching,
                hsts,
            };
            header_fields::fields(&kind, "text/html; charset=utf-8", self.is_secure())
        };
        PageFields {
            indexed: fields(false),
            hidden: fields(true),
        }
    }
}
