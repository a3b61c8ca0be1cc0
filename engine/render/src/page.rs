//! One page: its head, its view, its layout, and its bytes at an address.

mod about;
mod ground;
mod styled;

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;

pub(super) use styled::{PageFields, Written};

use super::asset::{ASSETS, Asset};
use super::card::colours;
use super::compress::{self, Level};
use super::describe;
use super::dev;
use super::files;
use super::head::{Head, SCRIPTS_MARK};
use super::inputs::Inputs;
use super::link::Resolver;
use super::markdown::{self, Rendered};
use super::media;
use super::place::Place;
use super::policy::{self, BodyKind};
use super::prepared::Prepared;
use super::resolve::{entry, resolve};
use super::script::script_tags;
use super::site_files::SiteFiles;
use super::speculation;
use super::structure;
use super::stylesheet::property;
use super::template::{EXAMPLE, Scope, Templates};
use super::view::{LinkView, PageLink, PageView, StatusView, View};
use content::address::Address;
use content::report::Diagnostic;
use content::tenant::manifest::NamedLink;
use content::tenant::page::NotFound;
use content::tenant::{Page, Site};
use content::theme::shape::Data;
use release::snapshot::{Body, Resource};

/// A page whose root says that its text goes from right to left, unless the layout says a direction itself (WHATWG HTML, section 3.2.6.4).
fn right_to_left(mut html: String) -> String {
    let Some(start) = html.find("<html") else {
        return html;
    };
    let end = html[start..]
        .find('>')
        .map_or(html.len(), |end| start + end);
    if !html[start..end].contains(" dir=") {
        html.insert_str(end, " dir=\"rtl\"");
    }
    html
}

/// Renders the pages of a tenant for all of its addresses at once.
pub(super) struct Renderer<'a> {
    /// The tenant.
    pub site: &'a Site,
    /// Marks links, until it is known where they stand.
    pub resolver: Resolver,
    canonical: &'a Address,
    prepared: &'a Arc<Prepared>,
    scope: Scope,
    inputs: &'a Inputs,
    /// The files around the pages.
    pub site_files: &'a SiteFiles,
    own_style: String,
}

/// Pages that no file stands for.
pub(super) enum Special<'a> {
    /// No page at this path.
    NotFound,
    /// No entry of this name in a collection.
    Entry(&'a Page, &'a NotFound),
    /// A page was asked for with a method that it does not take.
    MethodNotAllowed,
}

impl Special<'_> {
    /// The status that it comes with (RFC 9110, section 15.5).
    pub(super) const fn status(&self) -> StatusCode {
        match self {
            Self::NotFound | Self::Entry(..) => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        }
    }
}

impl<'a> Renderer<'a> {
    /// Prepares what all pages of the tenant share.
    pub(super) fn new(
        site: &'a Site,
        canonical: &'a Address,
        prepared: &'a Arc<Prepared>,
        inputs: &'a Inputs,
        site_files: &'a SiteFiles,
    ) -> Self {
        let resolver = Resolver::new(site, Place::everywhere(), &inputs.deployment)
            .with_assets(&prepared.assets);
        Self {
            site,
            scope: inputs.scope(site, resolver.clone(), prepared),
            resolver,
            canonical,
            prepared,
            inputs,
            site_files,
            own_style: own_style(&prepared.content.settings),
        }
    }

    /// Whether visitors come over TLS.
    pub(super) fn secure(&self) -> bool {
        self.inputs.deployment.origin.is_secure()
    }

    /// The bytes of a page with their headers; without a `page`, of one that no file stands for.
    pub(super) fn body(
        &self,
        html: String,
        status: StatusCode,
        fields: &PageFields,
        page: Option<&Page>,
    ) -> Resource {
        let noindex = page.is_none_or(|page| page.front.noindex);
        Resource::Body(Body {
            status,
            fields: Arc::clone(fields.of(noindex)),
            cache_tag: policy::cache_tag(&self.site.id, page),
            variants: compress::kept_variants(
                Bytes::from(html.into_bytes().into_boxed_slice()),
                true,
                self.inputs
                    .level(page.map_or(Level::Error, |_| Level::Page)),
                &self.inputs.cache,
            ),
        })
    }

    /// Whether this is for authors (`--dev`).
    pub(super) fn is_dev(&self) -> bool {
        self.inputs.islands.dev.is_some()
    }

    /// Whether examples of kinds of section are pages for other pages.
    pub(super) fn shows_kinds(&self) -> bool {
        self.inputs.deployment.shows_kinds
    }

    /// The hash of the script that pages hold.
    pub(super) fn loader_hash(&self) -> &str {
        &self.inputs.islands.loader_hash
    }

    /// The tenant's theme.
    pub(super) fn templates(&self) -> &Templates {
        &self.inputs.templates
    }

    /// The tenant's own colours as a style; empty without any.
    pub(super) fn own_style(&self) -> &str {
        &self.own_style
    }

    /// A section with nothing around it, in a style.
    pub(super) fn example(
        &self,
        kind: &str,
        example: &Data,
        style: &str,
    ) -> Result<Written, Diagnostic> {
        let scope = self.scope().for_page(None);
        let head = Head {
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
            // Some kinds show the entries of their page, and an example is on none that has any.
            entries: (self.site.pages.values().take(3))
                .map(|page| entry(page, &scope))
                .collect(),
            ..PageView::default()
        };
        // Without the script of `--dev`: the gallery around it has one, and a browser opens few connections to a host.
        let (html, scope) = self.rendered(EXAMPLE, page, &head, scope)?;
        let html = html.replacen(SCRIPTS_MARK, &script_tags(&scope), 1);
        Ok(self.styled(html, &BTreeSet::from([kind]), &scope, style))
    }

    /// Where the tenant's icon is.
    pub(super) fn icon(&self) -> Option<String> {
        self.common_head(&self.scope()).icon
    }

    /// What `--dev` adds to a page of the engine's own with this content.
    pub(super) fn dev_script(&self, html: &str) -> String {
        dev::element(&self.inputs.islands, self.site.id.as_str(), html, false)
    }

    /// One of the tenant's own files.
    pub(super) fn file(&self, asset: &Asset) -> Resource {
        files::file(
            asset,
            BodyKind::of_tenant(&asset.name),
            self.secure(),
            self.inputs.level(Level::Page),
            &self.inputs.cache,
        )
    }

    /// The same with the path that it answers at.
    pub(super) fn at_its_name(&self, asset: &Asset) -> (Box<str>, Arc<Resource>) {
        let path = format!("{ASSETS}{}", asset.hashed_name);
        (path.into(), Arc::new(self.file(asset)))
    }

    /// A page of the tenant.
    pub(super) fn page(&self, page: &Page) -> Result<Written, Diagnostic> {
        let mut scope = self.scope().for_page(Some(page));
        scope.resolver = scope.resolver.in_file(&page.file);
        let rendered = markdown::render(&page.body, &scope.link_context());
        let trail = self.trail(page);
        let canonical = self.resolver.url_at(self.canonical, &page.path);
        let head = self.head(page, &trail, &canonical, &scope);
        let layout = structure::layout_of(self.site, page);
        let page_view = self.view(page, rendered, &trail, canonical, layout, &scope);
        self.finish(page_view, &head, scope, page.front.draft)
    }

    /// A page that no file stands for.
    pub(super) fn special(&self, special: &Special<'_>) -> Result<Written, Diagnostic> {
        let status = special.status();
        let word = |key: &str| self.prepared.language.word(key);
        let home = |key: &str| LinkView {
            label: word(key),
            href: Some(self.resolver.href("/")),
            current: false,
            new_tab: false,
        };
        let (layout, title, text, back) = match special {
            Special::NotFound => (
                "not-found",
                word("engine.not_found.title"),
                Some(word("engine.not_found.text")),
                home("engine.not_found.back"),
            ),
            Special::Entry(page, words) => (
                "not-found",
                words.title.clone(),
                words.text.clone(),
                self.link(&words.back, page),
            ),
            Special::MethodNotAllowed => (
                "error",
                word("engine.error.title"),
                Some(word("engine.error.text")),
                home("engine.error.back"),
            ),
        };
        let reason = word(&format!("engine.status.{}", status.as_u16()));
        let scope = self.scope().for_page(None);
        let common = self.common_head(&scope);
        let head = Head {
            title: self.title(&title),
            description: Some(text.clone().unwrap_or_else(|| title.clone())),
            image: common.image.clone().or_else(|| self.drawn_image("/")),
            noindex: true,
            structured_data: None,
            ..common
        };
        let page = PageView {
            path: "",
            title: &title,
            heading: &title,
            // The error page says what it is about by its status.
            description: text.as_deref().filter(|_| layout == "not-found"),
            layout,
            back: Some(back),
            status: Some(StatusView {
                code: status.as_u16(),
                reason: &reason,
                detail: self.detail(special),
            }),
            ..PageView::default()
        };
        self.finish(page, &head, scope, false)
    }

    /// The cause of an error page, which authors see and visitors do not.
    fn detail(&self, special: &Special<'_>) -> Option<&'static str> {
        match special {
            Special::MethodNotAllowed if self.is_dev() => {
                Some("pages answer GET, HEAD and OPTIONS only")
            }
            _ => None,
        }
    }

    /// Renders the layout, and puts the scripts and the style into the head once it is known what they are for.
    fn finish(
        &self,
        page: PageView<'_>,
        head: &Head,
        scope: Scope,
        draft: bool,
    ) -> Result<Written, Diagnostic> {
        let template = format!("layouts/{}.html", page.layout);
        let sections = self.prepared.content.sections.get(page.path);
        let kinds = sections.into_iter().flatten();
        let kinds = kinds.map(|section| section.kind.as_str()).collect();
        let (html, scope) = self.rendered(&template, page, head, scope)?;
        // The script of `--dev` comes first, so that it hears of every island that fails.
        let scripts =
            dev::tag(&scope, &html, head, draft) + &script_tags(&scope) + &speculation::tag();
        let html = media::first_at_once(html).replacen(SCRIPTS_MARK, &scripts, 1);
        Ok(self.styled(html, &kinds, &scope, &self.own_style))
    }

    /// A page by a template, and its scope with the islands that it uses.
    fn rendered(
        &self,
        template: &str,
        page: PageView<'_>,
        head: &Head,
        scope: Scope,
    ) -> Result<(String, Scope), Diagnostic> {
        let view = View {
            head: head.html(),
            site: describe::site(self.site, &scope, page.path),
            company: describe::company(&self.resolver, page.path),
            page,
        };
        let rendered = self.inputs.templates.render(template, &view, scope.clone());
        let is_right_to_left = self.prepared.language.is_right_to_left();
        rendered.map(|(html, scope)| match is_right_to_left {
            true => (right_to_left(html), scope),
            false => (html, scope),
        })
    }

    fn view<'p>(
        &'p self,
        page: &'p Page,
        rendered: Rendered,
        trail: &[Step],
        canonical: String,
        layout: &'p str,
        scope: &Scope,
    ) -> PageView<'p> {
        let language = &self.prepared.language;
        let front = &page.front;
        let collection = structure::collection_of(self.site, page);
        let siblings = collection
            .map(|parent| structure::entries(self.site, &parent.path))
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
            Some(_) => structure::entries(self.site, &page.path),
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
            back: front.back.as_ref().map(|back| self.link(back, page)),
            sections: describe::sections(self.site, page, scope),
            entries: entries.into_iter().map(|page| entry(page, scope)).collect(),
            collection: collection.map(|page| self.link_to(page)),
            newer: neighbour(position.and_then(|index| index.checked_sub(1))),
            older: neighbour(position.map(|index| index + 1)),
            status: None,
        }
    }

    /// A link of a page's front matter.
    fn link(&self, link: &NamedLink, page: &Page) -> LinkView {
        let resolver = self.resolver.clone().in_file(&page.file);
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

    /// The way to a page from the domain's home page.
    fn trail(&self, page: &Page) -> Vec<Step> {
        let home = Step {
            name: self.prepared.language.word("engine.home"),
            url: format!("{}/", self.inputs.deployment.origin),
            href: self.resolver.company_href("/"),
        };
        let own = structure::trail(self.site, page)
            .into_iter()
            .map(|(name, path)| Step {
                name: name.to_owned(),
                url: self.resolver.url_at(self.canonical, path),
                href: self.resolver.href(path),
            });
        // The root tenant's landing page is the home page itself.
        let skipped = usize::from(self.resolver.is_root());
        std::iter::once(home).chain(own.skip(skipped)).collect()
    }

    fn breadcrumbs(&self, trail: &[Step]) -> Vec<LinkView> {
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

    /// What its templates work with.
    pub(super) fn scope(&self) -> Scope {
        self.scope.clone()
    }

    /// The same for what is made at one address.
    pub(super) fn scope_at(&self, address: &Address) -> Scope {
        let resolver = Resolver::at(self.site, address, &self.inputs.deployment);
        Scope {
            resolver: resolver.with_assets(&self.prepared.assets),
            ..self.scope()
        }
    }

    /// Where the tenant's pages are to be found.
    pub(super) fn canonical_place(&self) -> Place {
        Place::at(self.canonical, &self.inputs.deployment.origin)
    }
}

/// A step on the way to a page.
struct Step {
    name: String,
    url: String,
    href: String,
}

/// The settings that are colours, in the place of the theme's roles.
fn own_style(settings: &Data) -> String {
    let settings = settings.value.as_object();
    let properties: Vec<String> = settings
        .into_iter()
        .flatten()
        .filter_map(|(name, setting)| {
            let (day, night) = colours(setting)?;
            Some(property(name, day, night))
        })
        .collect();
    match properties.is_empty() {
        true => String::new(),
        false => format!(":root{{{}}}", properties.join(";")),
    }
}

#[cfg(test)]
mod tests {
    use super::right_to_left;

    #[test]
    fn root_of_a_page_says_its_direction_once() {
        for (layout, page) in [
            ("<html lang=\"ar\"><p>", "<html lang=\"ar\" dir=\"rtl\"><p>"),
            ("<html dir=\"auto\"><p>", "<html dir=\"auto\"><p>"),
            ("<p dir=\"ltr\">", "<p dir=\"ltr\">"),
        ] {
            assert_eq!(right_to_left(layout.to_owned()), page);
        }
    }
}
