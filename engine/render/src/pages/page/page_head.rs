//! The head of a page: title, description, structured data and images for social networks.
//!
//! **Invariant:** writes no HTML; [`head`](crate::pages::head) does.

use std::sync::Mutex;

use content::name::reserved::WEB_MANIFEST;
use content::tenant::assets::named;
use content::tenant::page::PageSchema;
use content::tenant::{MANIFEST, Manifest, Page};

use crate::images::social_image;
use crate::markdown;
use crate::pages::head::structured_data::{self, GraphFacts};
use crate::pages::head::{PageHead, SocialImage};
use crate::pages::hierarchy::schema_of;
use crate::pages::languages::translations::translations;
use crate::pages::links::resolver::Resolver;
use crate::pages::links::text_context::LinkContext;
use crate::pages::markdown_form::named_form;
use crate::pages::page::{Renderer, TrailStep};
use crate::resources::asset::ASSETS;
use crate::site_files::Feed;
use crate::theme::{PageScope, asset_href};

impl Renderer<'_> {
    pub(super) fn head(
        &self,
        page: &Page,
        trail: &[TrailStep],
        canonical: &str,
        scope: &PageScope,
    ) -> PageHead {
        let common = self.common_head(scope);
        let own = page.front.image.as_ref();
        let image = own
            .and_then(|image| {
                let manifest = self.site.manifest_in(scope.language);
                self.named_image(image.as_str(), &page.file, manifest)
            })
            .or_else(|| self.generated_image(&page.path))
            .or_else(|| common.image.clone());
        let image_url = image.as_ref().map(|image| image.url.as_str());
        let is_article = schema_of(self.site, page) == Some(PageSchema::Article);
        PageHead {
            title: match page.front.draft {
                true => {
                    let title = self.title(&page.front.title, scope);
                    scope
                        .language()
                        .ui_string_with("engine.draft", "title", &title)
                }
                false => self.title(&page.front.title, scope),
            },
            description: self.description(page).map(ToOwned::to_owned),
            canonical: Some(canonical.to_owned()),
            markdown: named_form(self.site, page)
                .map(|path| self.resolver.url_at(self.canonical, &path)),
            alternates: translations(self.site, page)
                .into_iter()
                .map(|(language, path)| {
                    let url = self.resolver.url_at(self.canonical, path);
                    (language.to_owned(), url)
                })
                .collect(),
            noindex: self.is_hidden(page),
            kind: if is_article { "article" } else { "website" },
            structured_data: Some(self.structured_data(page, trail, canonical, image_url, scope)),
            feed: Feed::for_page(self.site, page).map(|feed| {
                let title = feed.title(self.brand(scope));
                (title, self.resolver.url_at(self.canonical, &feed.path()))
            }),
            image,
            ..common
        }
    }

    fn structured_data(
        &self,
        page: &Page,
        trail: &[TrailStep],
        canonical: &str,
        image: Option<&str>,
        scope: &PageScope,
    ) -> serde_json::Value {
        let home_url = self.home_url();
        let breadcrumbs: Vec<(String, String)> = trail
            .iter()
            .map(|step| (step.name.clone(), step.url.clone()))
            .collect();
        let (language, original) = self.site.manifest.split(&page.path);
        let manifest = self.site.manifest_in(language);
        let landing = original == "/" || schema_of(self.site, page) == Some(PageSchema::App);
        let questions = self.questions(page, canonical);
        let is_home = self.has_home() && page.path == "/";
        let icons = self.site_files.icons.as_ref().filter(|_| is_home);
        let logo = icons.map(|icons| self.canonical_asset(&icons.largest_file()));
        structured_data::graph(&GraphFacts {
            url: canonical,
            title: &page.front.title,
            description: self.description(page),
            language: self.site.manifest.languages()[language].as_str(),
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
            company: scope.resolver.company(),
            site_name: self.brand(scope),
            logo: logo.as_deref(),
            app: manifest
                .app
                .as_deref()
                .filter(|_| landing)
                .map(|app| (app, app.name.as_deref().unwrap_or(&manifest.name))),
            questions: &questions,
        })
    }

    /// Returns the questions and answers of the page's FAQ sections.
    fn questions(&self, page: &Page, canonical: &str) -> Vec<(String, String)> {
        let kinds = &self.inputs.templates.theme.section_types;
        let sections = self.prepared.content.sections.get(&page.file);
        let items = sections
            .into_iter()
            .flatten()
            .filter(|section| kinds.get(&section.kind).is_some_and(|kind| kind.is_faq))
            .filter_map(|section| section.data.value["items"].as_array())
            .flatten();
        items
            .filter_map(|item| {
                let (question, answer) = (item["question"].as_str()?, item["answer"].as_str()?);
                Some((question.to_owned(), self.answer(answer, canonical, page)))
            })
            .collect()
    }

    /// Renders an answer for use outside of its page: all links are absolute and canonical.
    fn answer(&self, text: &str, canonical: &str, page: &Page) -> String {
        let deployment = &self.inputs.deployment;
        let language = self.site.manifest.language_of(&page.path);
        let context = LinkContext {
            language: self.scopes[language].language(),
            resolver: &Resolver::at(self.site, self.canonical, deployment)
                .in_language(self.site, language)
                .with_assets(&self.prepared.assets)
                .in_file(&page.file),
            themed: &self.inputs.templates.assets.files,
            ids: &Mutex::default(),
        };
        let host = deployment.origin.at(&self.canonical.host);
        markdown::render_inline(text, &context)
            .replace("href=\"/", &format!("href=\"{host}/"))
            .replace("href=\"#", &format!("href=\"{canonical}#"))
    }

    /// Returns the head values that all pages of the tenant share.
    pub(super) fn common_head(&self, scope: &PageScope) -> PageHead {
        let theme = &self.inputs.templates;
        let manifest = self.site.manifest_in(scope.language);
        let role = |name: &String| {
            let (day, night) = self.prepared.role(name, &theme.theme)?;
            Some((day.to_owned(), night.to_owned()))
        };
        let icons = self.site_files.icons.as_ref();
        PageHead {
            site_name: self.brand(scope).to_owned(),
            image: manifest
                .image
                .as_ref()
                .and_then(|image| self.named_image(image.as_str(), MANIFEST, manifest))
                .or_else(|| self.default_image(manifest)),
            kind: "website",
            theme_colors: theme.theme.manifest.theme_color.as_ref().and_then(role),
            icon: icons.and_then(|icons| asset_href(scope, &icons.path)),
            touch_icon: icons.map(|icons| {
                let name = icons.touch.file_name("touch-icon");
                self.resolver.own(&format!("{ASSETS}{name}"))
            }),
            manifest: {
                let path = self.site.manifest.join(scope.language, WEB_MANIFEST);
                Some(self.resolver.href(&path))
            },
            app_store_id: manifest
                .app
                .as_ref()
                .and_then(|app| app.apple.as_ref()?.app_id.as_ref())
                .map(|id| id.as_str().to_owned()),
            ..PageHead::default()
        }
    }

    /// Returns the social image that an author named.
    fn named_image(&self, written: &str, file: &str, manifest: &Manifest) -> Option<SocialImage> {
        let (_, asset) = named(&self.prepared.assets, written, file)?;
        Some(SocialImage {
            url: self.canonical_asset(&asset.mark_used().hashed_name),
            alt: site_alt_text(manifest),
            size: asset.raster.as_ref().and_then(|raster| raster.size),
        })
    }

    /// Returns the generated social image with the title of the page at `path`.
    pub(super) fn generated_image(&self, path: &str) -> Option<SocialImage> {
        let drawing = self.site_files.social.get(path)?;
        let page = self.site.pages.get(path)?;
        Some(SocialImage {
            url: self.canonical_asset(&drawing.file_name("social")),
            alt: social_image::alt_text(self.site, page),
            size: Some(drawing.size()),
        })
    }

    /// Returns the root tenant's social image, the default if the theme generates none.
    fn default_image(&self, manifest: &Manifest) -> Option<SocialImage> {
        Some(SocialImage {
            url: self.inputs.deployment.image.clone()?,
            alt: site_alt_text(manifest),
            size: None,
        })
    }

    fn canonical_asset(&self, name: &str) -> String {
        let path = format!("{ASSETS}{name}");
        self.resolver.url_at(self.canonical, &path)
    }

    /// Returns the title of a page with the name that titles end with, unless it has that name already.
    pub(super) fn title(&self, page: &str, scope: &PageScope) -> String {
        let brand = self.brand(scope);
        match scope.resolver.company() {
            None if page == brand => page.to_owned(),
            _ => format!("{page} | {brand}"),
        }
    }

    /// Returns the name that titles end with: the company's, else the site's.
    fn brand(&self, scope: &PageScope) -> &str {
        self.inputs.deployment.brand(self.site, scope.language)
    }

    /// Returns whether the tenant's landing page is the home page.
    pub(super) fn has_home(&self) -> bool {
        self.inputs.deployment.has_home_at(&self.site.id)
    }

    /// Returns the canonical URL of the home page in its default language.
    fn home_url(&self) -> String {
        match self.has_home() {
            true => self.resolver.url_at(self.canonical, "/"),
            false => format!("{}/", self.inputs.deployment.origin),
        }
    }

    pub(super) fn description<'p>(&'p self, page: &'p Page) -> Option<&'p str> {
        let own = page
            .front
            .description
            .as_deref()
            .or(page.front.excerpt.as_deref());
        let language = self.site.manifest.language_of(&page.path);
        own.or(self.site.manifest_in(language).description.as_deref())
    }
}

fn site_alt_text(manifest: &Manifest) -> String {
    match &manifest.tagline {
        Some(tagline) => format!("{}: {tagline}", manifest.name),
        None => manifest.name.clone(),
    }
}
