//! Structured data: one JSON-LD graph per page (<https://schema.org>).
//!
//! Every page has a `WebPage` entry and a breadcrumb list, plus the entry for its schema type.
//!
//! **Invariant:** the graph states only facts from the content, and never invents ratings, reviews or prices.

use serde_json::{Value as Json, json};

use content::tenant::app::App;
use content::tenant::manifest::Company;
use content::tenant::page::PageSchema;

/// The facts that a page's graph is made from. All URLs are absolute and canonical.
#[derive(Debug)]
pub(crate) struct GraphFacts<'a> {
    /// The page's URL.
    pub url: &'a str,
    /// Its title, without the company's name.
    pub title: &'a str,
    /// Its description.
    pub description: Option<&'a str>,
    /// Its language.
    pub language: &'a str,
    /// Its schema type.
    pub schema: Option<PageSchema>,
    /// The publication date of an entry: `2025-07-21`.
    pub published: Option<String>,
    /// The date of the last change.
    pub modified: Option<String>,
    /// Its tags.
    pub tags: &'a [String],
    /// The URL of the social image.
    pub image: Option<&'a str>,
    /// The breadcrumbs: names and URLs, the page itself last.
    pub breadcrumbs: &'a [(String, String)],
    /// Whether it is the domain's home page.
    pub is_home: bool,
    /// The URL of the domain's home page.
    pub home_url: &'a str,
    /// The company, if there is a profile.
    pub company: Option<&'a Company>,
    /// The name of the company, else of the site.
    pub site_name: &'a str,
    /// The company's logo, a square image. Present on the domain's home page only.
    pub logo: Option<&'a str>,
    /// The app and its name, on its tenant's landing page.
    pub app: Option<(&'a App, &'a str)>,
    /// Questions, and answers as HTML.
    pub questions: &'a [(String, String)],
}

/// Builds the graph.
#[must_use]
pub(crate) fn graph(facts: &GraphFacts<'_>) -> Json {
    let mut graph = vec![page(facts), breadcrumbs(facts)];
    let organization_id = organization_id(facts);
    let publisher = organization_id.as_ref().map(|id| json!({"@id": id}));
    if facts.is_home {
        if let (Some(company), Some(id)) = (facts.company, &organization_id) {
            graph.push(organization(facts, company, id));
        }
        graph.push(without_nulls(json!({
            "@type": "WebSite",
            "@id": format!("{}#website", facts.home_url),
            "url": facts.home_url,
            "name": facts.site_name,
            "description": facts.company.map(|company| &company.description),
            "inLanguage": facts.language,
            "publisher": publisher,
        })));
    }
    if let Some((app, name)) = facts.app {
        graph.push(software(facts, app, name, publisher.as_ref()));
    }
    match facts.schema {
        Some(PageSchema::Service) => graph.push(without_nulls(json!({
            "@type": "Service",
            "@id": format!("{}#service", facts.url),
            "name": facts.title,
            "serviceType": facts.title,
            "description": facts.description,
            "url": facts.url,
            "provider": publisher,
            "areaServed": facts.company.map(|company| &company.country),
        }))),
        Some(PageSchema::Article) => graph.push(work(facts, "BlogPosting", publisher.as_ref())),
        Some(PageSchema::Project) => graph.push(work(facts, "CreativeWork", publisher.as_ref())),
        _ => {}
    }
    json!({"@context": "https://schema.org", "@graph": graph})
}

/// Returns the id of the company's entry, if there is a company profile.
fn organization_id(facts: &GraphFacts<'_>) -> Option<String> {
    let id = || format!("{}#organization", facts.home_url);
    facts.company.map(|_| id())
}

fn page(facts: &GraphFacts<'_>) -> Json {
    let own = match facts.schema {
        Some(PageSchema::About) => Some("AboutPage"),
        Some(PageSchema::Contact) => Some("ContactPage"),
        Some(PageSchema::Collection) => Some("CollectionPage"),
        _ => None,
    };
    let kind = match (own, facts.questions.is_empty()) {
        (Some(own), true) => json!(own),
        (Some(own), false) => json!([own, "FAQPage"]),
        (None, true) => json!("WebPage"),
        (None, false) => json!("FAQPage"),
    };
    let questions: Vec<Json> = facts
        .questions
        .iter()
        .map(|(question, answer)| {
            json!({
                "@type": "Question",
                "name": question,
                "acceptedAnswer": {"@type": "Answer", "text": answer},
            })
        })
        .collect();
    without_nulls(json!({
        "@type": kind,
        "@id": format!("{}#webpage", facts.url),
        "url": facts.url,
        "name": facts.title,
        "description": facts.description,
        "inLanguage": facts.language,
        "isPartOf": website(facts),
        "breadcrumb": {"@id": format!("{}#breadcrumb", facts.url)},
        "dateModified": facts.modified,
        "primaryImageOfPage": facts.image.map(|image| json!({"@type": "ImageObject", "url": image})),
        "mainEntity": if questions.is_empty() { Json::Null } else { questions.into() },
    }))
}

/// Describes the site that the page is part of.
///
/// The home page describes the site and its publisher in full. Every other page repeats their names, so that a crawler needs no second request. Without a company profile, only the home page is known to be part of the site.
fn website(facts: &GraphFacts<'_>) -> Json {
    let id = format!("{}#website", facts.home_url);
    if facts.is_home {
        return json!({"@id": id});
    }
    let Some(company) = facts.company else {
        return Json::Null;
    };
    json!({
        "@type": "WebSite",
        "@id": id,
        "url": facts.home_url,
        "name": company.name,
        "publisher": {
            "@type": "Organization",
            "@id": organization_id(facts),
            "name": company.name,
            "url": facts.home_url,
        },
    })
}

fn breadcrumbs(facts: &GraphFacts<'_>) -> Json {
    let items: Vec<Json> = facts
        .breadcrumbs
        .iter()
        .enumerate()
        .map(|(index, (name, url))| {
            json!({"@type": "ListItem", "position": index + 1, "name": name, "item": url})
        })
        .collect();
    json!({
        "@type": "BreadcrumbList",
        "@id": format!("{}#breadcrumb", facts.url),
        "itemListElement": items,
    })
}

fn organization(facts: &GraphFacts<'_>, company: &Company, id: &str) -> Json {
    let towns: Vec<Json> = company
        .locations
        .iter()
        .map(|town| {
            let (locality, region) = match town.split_once(", ") {
                Some((locality, region)) => (locality, Some(region)),
                None => (town.as_str(), None),
            };
            json!({"@type": "Place", "address": without_nulls(json!({
                "@type": "PostalAddress",
                "addressLocality": locality,
                "addressRegion": region,
                "addressCountry": company.country,
            }))})
        })
        .collect();
    let languages = match company.contact_languages.as_slice() {
        [] => Json::Null,
        [one] => one.as_str().into(),
        several => several.into(),
    };
    without_nulls(json!({
        "@type": "Organization",
        "@id": id,
        "name": company.name,
        "legalName": company.legal_name,
        "url": facts.home_url,
        "description": company.description,
        "logo": facts.logo.map(|url| json!({"@type": "ImageObject", "url": url})),
        "image": facts.image,
        "email": company.email.as_str(),
        "telephone": company.phone,
        "sameAs": company.network.as_ref().map(|url| json!([url.as_str()])),
        "location": if towns.is_empty() { Json::Null } else { towns.into() },
        "contactPoint": without_nulls(json!({
            "@type": "ContactPoint",
            "contactType": company.contact_type,
            "email": company.email.as_str(),
            "telephone": company.phone,
            "areaServed": company.country,
            "availableLanguage": languages,
        })),
    }))
}

fn software(facts: &GraphFacts<'_>, app: &App, name: &str, publisher: Option<&Json>) -> Json {
    let platforms: Vec<&str> = app
        .platforms
        .iter()
        .map(|platform| platform.name())
        .collect();
    without_nulls(json!({
        "@type": "SoftwareApplication",
        "@id": format!("{}#app", facts.url),
        "name": name,
        "description": facts.description,
        "url": facts.url,
        "image": facts.image,
        "applicationCategory": app.category,
        "operatingSystem": platforms.join(", "),
        "offers": {"@type": "Offer", "price": app.price.to_string(), "priceCurrency": app.currency},
        "publisher": publisher,
    }))
}

fn work(facts: &GraphFacts<'_>, kind: &str, publisher: Option<&Json>) -> Json {
    without_nulls(json!({
        "@type": kind,
        "@id": format!("{}#article", facts.url),
        "headline": facts.title,
        "description": facts.description,
        "url": facts.url,
        "image": facts.image,
        "datePublished": facts.published,
        "dateModified": facts.modified.as_ref().or(facts.published.as_ref()),
        "keywords": if facts.tags.is_empty() { Json::Null } else { facts.tags.into() },
        "inLanguage": facts.language,
        "author": publisher,
        "publisher": publisher,
        "mainEntityOfPage": {"@id": format!("{}#webpage", facts.url)},
    }))
}

fn without_nulls(value: Json) -> Json {
    match value {
        Json::Object(pairs) => pairs
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other,
    }
}
