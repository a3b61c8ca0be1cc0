//! What the head of a page says, from the page, the tenant and the company.

use std::collections::BTreeMap;

use super::{Renderer, Step};
use crate::asset::ASSETS;
use crate::head::{Head, SocialImage};
use crate::link::Resolver;
use crate::markdown::{self, LinkContext};
use crate::picture::social;
use crate::site_files::Feed;
use crate::structured::{self, Facts};
use crate::template::{Scope, asset_href};
use crate::view;
use content::name::reserved::WEB_MANIFEST;
use content::tenant::Page;
use content::tenant::page::PageSchema;
use content::tenant::section::Section;

impl Renderer<'_> {
    pub(super) fn head(&self, page: &Page, trail: &[Step], canonical: &str, scope: &Scope) -> Head {
        let common = self.common_head(scope);
        let own = page.front.image.as_ref();
        let image = own
            .and_then(|image| self.named_image(image.as_str()))
            .or_else(|| self.drawn_image(&page.path))
            .or_else(|| common.image.clone());
        let image_url = image.as_ref().map(|image| image.url.as_str());
        let is_article = view::schema_of(self.site, page) == Some(PageSchema::Article);
        Head {
            title: match page.front.draft {
                true => format!("Draft: {}", self.title(&page.front.title)),
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
        let landing = page.path == "/" || view::schema_of(self.site, page) == Some(PageSchema::App);
        let questions: Vec<(String, String)> = page
            .front
            .sections
            .iter()
            .filter_map(|section| match section {
                Section::Questions { items, .. } => Some(items),
                _ => None,
            })
            .flatten()
            .map(|item| {
                (
                    item.question.clone(),
                    self.answer(item.answer.as_str(), canonical),
                )
            })
            .collect();
        let is_home = self.resolver.is_root() && page.path == "/";
        let icons = self.site_files.icons.as_ref().filter(|_| is_home);
        let logo = icons.map(|icons| self.canonical_asset(&icons.largest_file()));
        structured::graph(&Facts {
            url: canonical,
            title: &page.front.title,
            description: self.description(page),
            language: &self.site.manifest.language,
            schema: view::schema_of(self.site, page),
            published: page.front.date.map(|date| date.day().to_string()),
            modified: page.front.updated.map(|date| date.day().to_string()),
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

    /// An answer as it can be read away from its page: every link in it is absolute and canonical.
    fn answer(&self, text: &str, canonical: &str) -> String {
        let deployment = &self.inputs.deployment;
        let context = LinkContext {
            resolver: &Resolver::new(self.site, self.canonical, deployment),
            assets: self.assets,
            themed: &self.inputs.templates.assets.files,
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
            let role = theme.theme.manifest.roles.get(name)?;
            let own = |colours: &BTreeMap<String, _>, default: &content::tenant::values::Colour| {
                colours.get(name).unwrap_or(default).as_str().to_owned()
            };
            Some((
                own(&manifest.brand.day, &role.day),
                own(&manifest.brand.night, &role.night),
            ))
        };
        let icons = self.site_files.icons.as_ref();
        Head {
            site_name: company.name.clone(),
            image: manifest
                .image
                .as_ref()
                .and_then(|image| self.named_image(image.as_str()))
                .or_else(|| self.borrowed_image()),
            kind: "website",
            theme_colors: theme.theme.manifest.theme_color.as_ref().and_then(role),
            icon: icons.and_then(|icons| asset_href(scope, &icons.path)),
            touch_icon: icons
                .map(|icons| format!("{ASSETS}{}", icons.touch.file_name("touch-icon"))),
            manifest: Some(self.resolver.href(WEB_MANIFEST)),
            app_store_id: manifest
                .app
                .as_ref()
                .and_then(|app| app.apple.as_ref()?.app_id.as_ref())
                .map(|id| id.as_str().to_owned()),
            fonts: theme
                .theme
                .manifest
                .preload
                .iter()
                .filter_map(|path| asset_href(scope, path))
                .collect(),
            stylesheet: theme.assets.stylesheet.as_ref().map(|sheet| {
                (
                    format!("{ASSETS}{}", sheet.hashed_name),
                    sheet.integrity.clone(),
                )
            }),
            brand_style: self.brand_style.clone(),
            ..Head::default()
        }
    }

    /// A picture that the author names.
    fn named_image(&self, path: &str) -> Option<SocialImage> {
        let asset = self.assets.get(path)?;
        let size = imagesize::blob_size(&asset.bytes).ok();
        Some(SocialImage {
            url: self.canonical_asset(&asset.hashed_name),
            alt: self.image_words(),
            size: size.and_then(|size| {
                Some((
                    u32::try_from(size.width).ok()?,
                    u32::try_from(size.height).ok()?,
                ))
            }),
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
