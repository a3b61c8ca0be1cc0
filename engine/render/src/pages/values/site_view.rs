//! Creates the template values of a tenant, of its company and of a page's sections.

use tera::{Map, Value};

use crate::compile::site_card::SiteCard;
use crate::pages::hierarchy::name_of;
use crate::pages::links::resolver::Resolver;
use crate::pages::values::resolve::resolve;
use crate::pages::values::view::{ColumnView, CompanyView, LinkView, NavigationView, SiteView};
use crate::theme::PageScope;
use content::name::reserved::SEARCH;
use content::tenant::manifest::NamedLink;
use content::tenant::{Page, Site};

/// Returns the tenant as the page at `path` sees it.
#[must_use]
pub(crate) fn site<'a>(site: &'a Site, scope: &'a PageScope, path: &str) -> SiteView<'a> {
    let manifest = &site.manifest;
    let local = site.manifest_in(scope.language);
    let resolver = &scope.resolver;
    let legal = if resolver.is_root() {
        Vec::new()
    } else {
        site.pages
            .values()
            .filter(|page| {
                let (language, original) = manifest.split(&page.path);
                let is_legal =
                    page.front.layout.as_deref() == Some("legal") || original == "/support";
                // Pages without a translation are listed in the default language.
                let is_fallback =
                    language == 0 && site.translation(&page.path, scope.language).is_none();
                is_legal && (language == scope.language || is_fallback)
            })
            .map(|page| LinkView {
                label: name_of(page).to_owned(),
                href: Some(resolver.href(&page.path)),
                current: page.path == path,
                new_tab: false,
            })
            .collect()
    };
    SiteView {
        id: site.id.as_str(),
        name: &local.name,
        tagline: local.tagline.as_deref(),
        description: local.description.as_deref(),
        root: resolver.is_root(),
        language: manifest.languages()[scope.language].as_str(),
        dir: scope.language().direction(),
        home: resolver.href("/"),
        settings: scope.settings.clone(),
        search: manifest
            .search
            .then(|| resolver.href(&manifest.join(scope.language, SEARCH))),
        app: local.app.as_deref(),
        navigation: company_links(
            resolver
                .company()
                .map_or(&[], |company| &*company.navigation),
            resolver,
            manifest.split(path).1,
            resolver.is_root(),
        )
        .into_iter()
        .map(|link| NavigationView {
            label: link.label,
            href: link.href.unwrap_or_default(),
            current: link.current,
        })
        .collect(),
        legal,
    }
}

/// Returns the company as a page sees it. `path` is the path of the page or of its original.
#[must_use]
pub(crate) fn company<'a>(resolver: &'a Resolver, path: &str) -> CompanyView<'a> {
    let links = |links: &[NamedLink]| company_links(links, resolver, path, resolver.is_root());
    let view = CompanyView {
        year: resolver.deployment.year,
        home: match resolver.company() {
            Some(_) => resolver.home(),
            None => resolver.href("/"),
        },
        sites: resolver
            .deployment
            .sites
            .iter()
            .map(|card| card_view(card, resolver))
            .collect(),
        ..CompanyView::default()
    };
    let Some(company) = resolver.company() else {
        return view;
    };
    CompanyView {
        name: Some(&company.name),
        legal_name: Some(&company.legal_name),
        description: Some(&company.description),
        blurb: company.blurb.as_deref(),
        email: Some(company.email.as_str()),
        phone: company.phone.as_deref(),
        phone_hours: company.phone_hours.as_deref(),
        scheduling: company.scheduling.as_ref().map(|url| url.as_str()),
        network: company.network.as_ref().map(|url| url.as_str()),
        locations: &company.locations,
        columns: company
            .columns
            .iter()
            .map(|column| ColumnView {
                title: &column.title,
                links: links(&column.links),
            })
            .collect(),
        legal: links(&company.legal),
        time_zone: Some(company.time_zone.as_str()),
        country: company.country.as_deref(),
        ..view
    }
}

fn card_view(card: &SiteCard, resolver: &Resolver) -> Value {
    let id = card.tenant.as_str();
    let root = resolver.deployment.root.as_ref();
    let mut view = Map::default();
    view.insert("id".into(), id.into());
    let names = resolver
        .company()
        .map_or(&[][..], |company| &*company.sites);
    let name = names.iter().find(|site| site.tenant == id);
    let name = name.map_or(card.name.as_str(), |site| site.name.as_str());
    view.insert("name".into(), name.into());
    view.insert("href".into(), resolver.href(&format!("{id}:/")).into());
    view.insert("here".into(), (id == resolver.tenant.as_str()).into());
    view.insert(
        "root".into(),
        root.is_some_and(|root| root.as_str() == id).into(),
    );
    view.insert("settings".into(), card.shown_in(&resolver.language).clone());
    view.into()
}

fn company_links(
    links: &[NamedLink],
    resolver: &Resolver,
    path: &str,
    on_root: bool,
) -> Vec<LinkView> {
    links
        .iter()
        .map(|link| {
            let target = link.link.as_str();
            LinkView {
                label: link.label.clone(),
                href: Some(resolver.company_href(target)),
                current: on_root && (path == target || path.starts_with(&format!("{target}/"))),
                new_tab: link.new_tab,
            }
        })
        .collect()
}

/// Returns the sections of a page as template values.
#[must_use]
pub(crate) fn sections(site: &Site, page: &Page, scope: &PageScope) -> Vec<Value> {
    let sections = scope.prepared.content.sections.get(&page.file);
    let sections = sections.into_iter().flatten();
    sections
        .map(|section| resolve(&section.data, site, scope))
        .collect()
}
