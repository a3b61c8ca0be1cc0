//! What the head of a page says, from the page, the tenant and the company.

use std::sync::Mutex;

use super::{Renderer, Step};
use crate::asset::ASSETS;
use crate::head::{Head, SocialImage};
use crate::link::Resolver;
use crate::link_context::LinkContext;
use crate::markdown;
use crate::picture::social;
use crate::site_files::Feed;
use crate::structure::schema_of;
use crate::structured::{self, Facts};
use crate::template::{Scope, asset_href};
use content::name::reserved::WEB_MANIFEST;
use content::tenant::assets::named;
use content::tenant::page::PageSchema;
use content::tenant::{MANIFEST, Page};

impl Renderer<'_> {
    pub(super) fn head(&self, page: &Page, trail: &[Step], canonical: &str, scope: &Scope) -> Head {
        let common = self.common_head(scope);
        let own = page.front.image.as_ref();
        let image = own
            .and_then(|image| self.named_image(image.as_str(), &page.file))
            .or_else(|| self.drawn_image(&page.path))
            .or_else(|| common.image.clone());
        let image_url = image.as_ref().map(|image| image.url.as_str());
        let is_article = schema_of(self.site, page) == Some(PageSchema::Article);
        Head {
            title: match page.front.draft {
                true => {
                    let title = self.title(&page.front.title);
                    self.prepared
                        .language
                        .word_with("engine.draft", "title", &title)
                }
                false => self.title(&page.front.title),
            },
            description: self.description(page).map(ToOwned::to_owned),
            canonical: Some(canonical.to_owned()),
            noindex: page.front.noindex,
            kind: if is_article { "article" } else { "website" },
            structured_data: Some(self.structured_data(page, trail, canonical, image_url)),
            feed: Feed::for_page(self.site, page).map(|feed| {
                let title = feed.title(&self.inputs.deployment.company.name);
                (title, self.resolver.url_at(self.canonical, &feed.path()))
            }),
            image,
            ..common
        }
    }

    fn structured_data(
        &self,
        page: &Page,
        trail: &[Step],
        canonical: &str,
        image: Option<&str>,
    ) -> serde_json::Value {
        let deployment = &self.inputs.deployment;
        let home_url = format!("{}/", deployment.origin);
        let breadcrumbs: Vec<(String, String)> = trail
            .iter()
            .map(|step| (step.name.clone(), step.url.clone()))
            .collect();
        let landing = page.path == "/" || schema_of(self.site, page) == Some(PageSchema::App);
        let questions = self.questions(page, canonical);
        let is_home = self.resolver.is_root() && page.path == "/";
        let icons = self.site_files.icons.as_ref().filter(|_| is_home);
        let logo = icons.map(|icons| self.canonical_asset(&icons.largest_file()));
        structured::graph(&Facts {
            url: canonical,
            title: &page.front.title,
            description: self.description(page),
            language: self.site.manifest.language.as_str(),
            schema: schema_of(self.site, page),
            published: page.front.date.map(|date| date.day().to_string()),
            modified: (page.front.updated)
                .and_then(|_| page.front.last_change())
                .map(|date| date.day().to_string()),
            tags: &page.front.tags,
            image,
            breadcrumbs: &breadcrumbs,
            is_home,
            home_url: &home_url,
            company: &deployment.company,
            logo: logo.as_deref(),
            app: self
                .site
                .manifest
                .app
                .as_ref()
                .filter(|_| landing)
                .map(|app| (app, app.name.as_deref().unwrap_or(&self.site.manifest.name))),
            questions: &questions,
        })
    }

    /// The questions with their answers in the sections of those kinds that tell search engines of them.
    fn questions(&self, page: &Page, canonical: &str) -> Vec<(String, String)> {
        let kinds = &self.inputs.templates.theme.kinds;
        let sections = self.prepared.content.sections.get(&page.path);
        let items = sections
            .into_iter()
            .flatten()
            .filter(|section| kinds.get(&section.kind).is_some_and(|kind| kind.is_faq))
            .filter_map(|section| section.data.value["items"].as_array())
            .flatten();
        items
            .filter_map(|item| {
                let (question, answer) = (item["question"].as_str()?, item["answer"].as_str()?);
                Some((
                    question.to_owned(),
                    self.answer(answer, canonical, &page.file),
                ))
            })
            .collect()
    }

    /// An answer as it can be read away from its page: every link in it is absolute and canonical.
    fn answer(&self, text: &str, canonical: &str, file: &str) -> String {
        let deployment = &self.inputs.deployment;
        let context = LinkContext {
            language: &self.prepared.language,
            resolver: &Resolver::at(self.site, self.canonical, deployment)
                .with_assets(&self.prepared.assets)
                .in_file(file),
            themed: &self.inputs.templates.assets.files,
            ids: &Mutex::default(),
        };
        let host = deployment.origin.at(&self.canonical.host);
        markdown::render_inline(text, &context)
            .replace("href=\"/", &format!("href=\"{host}/"))
            .replace("href=\"#", &format!("href=\"{canonical}#"))
    }

    /// What every page of the tenant has in its head.
    pub(super) fn common_head(&self, scope: &Scope) -> Head {
        let theme = &self.inputs.templates;
        let company = &self.inputs.deployment.company;
        let manifest = &self.site.manifest;
        let role = |name: &String| {
            let (day, night) = self.prepared.role(name, &theme.theme)?;
            Some((day.to_owned(), night.to_owned()))
        };
        let icons = self.site_files.icons.as_ref();
        Head {
            site_name: company.name.clone(),
            image: manifest
                .image
                .as_ref()
                .and_then(|image| self.named_image(image.as_str(), MANIFEST))
                .or_else(|| self.borrowed_image()),
            kind: "website",
            theme_colors: theme.theme.manifest.theme_color.as_ref().and_then(role),
            icon: icons.and_then(|icons| asset_href(scope, &icons.path)),
            touch_icon: icons.map(|icons| {
                let name = icons.touch.file_name("touch-icon");
                self.resolver.own(&format!("{ASSETS}{name}"))
            }),
            manifest: Some(self.resolver.href(WEB_MANIFEST)),
            app_store_id: manifest
                .app
                .as_ref()
                .and_then(|app| app.apple.as_ref()?.app_id.as_ref())
                .map(|id| id.as_str().to_owned()),
            ..Head::default()
        }
    }

    /// A picture that the author names.
    fn named_image(&self, written: &str, file: &str) -> Option<SocialImage> {
        let (_, asset) = named(&self.prepared.assets, written, file)?;
        Some(SocialImage {
            url: self.canonical_asset(&asset.take().hashed_name),
            alt: self.image_words(),
            size: asset.raster.as_ref().and_then(|raster| raster.size),
        })
    }

    /// The picture with the title of the page at `path`.
    pub(super) fn drawn_image(&self, path: &str) -> Option<SocialImage> {
        let drawing = self.site_files.social.get(path)?;
        let page = self.site.pages.get(path)?;
        Some(SocialImage {
            url: self.canonical_asset(&drawing.file_name("social")),
            alt: social::words(self.site, page),
            size: Some(drawing.size()),
        })
    }

    /// The root tenant's picture, where a theme draws none.
    fn borrowed_image(&self) -> Option<SocialImage> {
        Some(SocialImage {
            url: self.inputs.deployment.image.clone()?,
            alt: self.image_words(),
            size: None,
        })
    }

    fn canonical_asset(&self, name: &str) -> String {
        let path = format!("{ASSETS}{name}");
        self.resolver.url_at(self.canonical, &path)
    }

    fn image_words(&self) -> String {
        let manifest = &self.site.manifest;
        match &manifest.tagline {
            Some(tagline) => format!("{}: {tagline}", manifest.name),
            None => manifest.name.clone(),
        }
    }

    pub(super) fn title(&self, page: &str) -> String {
        format!("{page} | {}", self.inputs.deployment.company.name)
    }

    pub(super) fn description<'p>(&'p self, page: &'p Page) -> Option<&'p str> {
        let own = page
            .front
            .description
            .as_deref()
            .or(page.front.excerpt.as_deref());
        own.or(self.site.manifest.description.as_deref())
    }
}
