//! Checks a tenant against the schemas of its theme, once for all its pages.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;
use tera::{Map, Value};

use crate::compile::prepared_tenant::{ListedPage, PreparedTenant};
use crate::compile::site_card::{SiteCard, shared_svg, shown};
use crate::media::media_type::is_svg;
use crate::pages::hierarchy::{layout_of, name_of};
use crate::pages::values::data_walk::inline_svg;
use crate::resources::asset::Asset;
use crate::resources::tenant_files::{tenant_asset, tenant_assets};
use crate::theme::Templates;
use crate::theme::language::Language;
use content::report::{Code, Diagnostic, Report, hint_for};
use content::tenant::check_with_theme::{check_with_theme, settings};
use content::tenant::{MANIFEST, Site, assets};
use content::theme::data_schema::CheckedData;
use content::theme::strings::Strings;

/// Prepares a tenant. Returns `None` if it does not fit its theme; the report says why.
pub(crate) fn prepare(
    site: &Site,
    templates: &Templates,
    report: &mut Report,
) -> Option<PreparedTenant> {
    let assets = Arc::new(tenant_assets(site, report));
    let (content, problems) = check_with_theme(&site.written, &templates.theme);
    let fits = problems.is_servable();
    report.extend(problems);
    let tags = site.manifest.languages().iter().enumerate();
    // Each language that the theme lacks is reported.
    let languages: Vec<_> = tags
        .map(|(index, tag)| {
            let own = content.strings(index);
            language(tag.as_str(), site, templates, own, report)
        })
        .collect();
    let languages: Option<Vec<_>> = languages.into_iter().collect();
    Some(PreparedTenant {
        languages: languages.filter(|_| fits)?,
        pages: pages(site),
        listed: std::sync::Mutex::default(),
        assets,
        content,
    })
}

fn pages(site: &Site) -> Vec<ListedPage> {
    let found = site.pages.values().filter(|page| !page.front.noindex);
    let mut listed: Vec<ListedPage> = found
        .map(|page| {
            let (language, original) = site.manifest.split(&page.path);
            let segments = original.split('/').filter(|part| !part.is_empty());
            ListedPage {
                label: name_of(page).to_owned(),
                path: page.path.clone(),
                layout: layout_of(site, page).to_owned(),
                language,
                depth: segments.count(),
            }
        })
        .collect();
    // Segment by segment, so that each page is followed by the pages below it.
    listed.sort_by(|one, other| one.path.split('/').cmp(other.path.split('/')));
    listed
}

/// Returns the theme's language for the tenant's tag, with the tenant's own UI strings: `de-AT` if the theme has it, else `de`.
fn language(
    tag: &str,
    site: &Site,
    templates: &Templates,
    own: &Strings,
    report: &mut Report,
) -> Option<Arc<Language>> {
    let Some(language) = templates.language(tag) else {
        let names = templates.languages.keys().map(String::as_str);
        let message = format!(
            "the theme `{}` has no UI strings in `{tag}`",
            templates.theme.name
        );
        let hint = format!(
            "add `strings/{tag}.yaml` to the theme; {}",
            hint_for(tag, names)
        );
        let diagnostic = Diagnostic::error(Code::UnknownLanguage, site.name_of(MANIFEST), message);
        let place = site.position_of(tag);
        let located = match place {
            Some(place) => site.locate(diagnostic, MANIFEST, place),
            None => diagnostic,
        };
        report.push(located.hint(hint));
        return None;
    };
    let as_it_is = own.is_empty() && templates.languages.contains_key(tag);
    Some(match as_it_is {
        true => Arc::clone(language),
        false => Arc::new(language.of_tenant(tag, own)),
    })
}

/// Creates the card of a tenant. Without a site it has only the tenant's name.
#[must_use]
pub fn card(tenant: &str, name: &str, site: Option<(&Site, &Templates)>) -> SiteCard {
    let mut card = SiteCard {
        tenant: tenant.to_owned(),
        name: name.to_owned(),
        settings: None,
        shown: Value::from(Map::default()),
        translated: BTreeMap::new(),
    };
    let Some((site, templates)) = site else {
        return card;
    };
    let Some(all) = settings(&site.written, &templates.theme) else {
        return card;
    };
    let languages = site.manifest.languages().iter();
    for (index, (language, data)) in languages.zip(all).enumerate() {
        let shown = shown_settings(&data, site, templates);
        if index == 0 {
            card.shown = shown;
            card.settings = Some(Arc::new(data));
        } else if shown != card.shown {
            card.translated.insert(language.as_str().to_owned(), shown);
        }
    }
    card
}

/// Returns the settings of a site as template values for the pages of all sites.
fn shown_settings(data: &CheckedData, site: &Site, templates: &Templates) -> Value {
    let mut drawings = BTreeMap::new();
    for (pointer, format) in &data.formats {
        let Some(Json::String(text)) = data.value.pointer(pointer) else {
            continue;
        };
        let path = match format.as_str() {
            "icon" => format!("icons/{text}.svg"),
            "drawing" => text.clone(),
            _ => continue,
        };
        if let Some(html) = inline_setting_svg(&path, pointer, site, templates) {
            drawings.insert(pointer.clone(), Value::safe_string(&html));
        }
    }
    shown(data, &drawings)
}

/// Returns an SVG of a setting as inline HTML for the pages of all sites. The tenant's own report names SVGs that are not shown.
fn inline_setting_svg(
    path: &str,
    setting: &str,
    site: &Site,
    templates: &Templates,
) -> Option<String> {
    let named = assets::named(&site.assets, path, MANIFEST);
    let Some((key, bytes)) = named.filter(|(key, _)| is_svg(key)) else {
        return inline_svg(templates.assets.files.get(path)?, None, None);
    };
    let asset = tenant_asset(key, bytes, key).0;
    // The class that themes select the SVG by is the name of the setting. The tenant does not choose it.
    let name = setting
        .rsplit('/')
        .find(|part| part.starts_with(char::is_alphabetic));
    let name = name.unwrap_or_default();
    let prefix = format!("{}-{name}-", site.id);
    let svg = shared_svg(&asset.bytes, &prefix).ok()?;
    let asset = Asset::of_tenant(key, svg.into());
    inline_svg(&asset, Some(name), None)
}
