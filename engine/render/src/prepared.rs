//! What is made of a tenant once, for all its pages at all its addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::asset::Asset;
use super::card::colours;
use super::language::Language;
use super::link::Deployment;
use super::stylesheet::Sheet;
use super::template::Templates;
use super::tenant_files::tenant_assets;
use content::report::{Code, Diagnostic, Report, hint_for};
use content::tenant::conform::{Conformed, conform};
use content::tenant::{MANIFEST, Site};
use content::theme::Theme;

/// A tenant in the shapes of its theme.
#[derive(Debug)]
pub struct Prepared {
    /// Its files by name.
    pub(crate) assets: BTreeMap<String, Asset>,
    /// What it says, by the schemas of its theme.
    pub(crate) content: Conformed,
    /// The language of its pages, with its own words.
    pub(crate) language: Arc<Language>,
    /// Its stylesheet.
    pub(crate) sheet: Arc<Sheet>,
}

impl Prepared {
    /// Prepares a tenant. None when it does not fit its theme.
    pub(crate) fn new(
        site: &Site,
        templates: &Templates,
        deployment: &Deployment,
        report: &mut Report,
    ) -> Option<Self> {
        let assets = tenant_assets(site, report);
        let (content, problems) = conform(site, &templates.theme);
        let fits = problems.is_servable();
        report.extend(problems);
        let language = language(site, templates, &content, report);
        let used: BTreeSet<&str> = content
            .sections
            .values()
            .flatten()
            .map(|section| section.kind.as_str())
            .collect();
        Some(Self {
            language: language.filter(|_| fits)?,
            sheet: templates.sheet(&used, &deployment.sites),
            assets,
            content,
        })
    }
}

impl Prepared {
    /// The colours of a role by day and by night: the tenant's, else the theme's.
    pub(crate) fn role<'a>(&'a self, name: &str, theme: &'a Theme) -> Option<(&'a str, &'a str)> {
        let own = self.content.settings.value.get(name).and_then(colours);
        let role = || theme.manifest.roles.get(name);
        own.or_else(|| role().map(|role| (role.day.as_str(), role.night.as_str())))
    }
}

/// The tenant's language as its theme speaks it: `de-AT`, else `de`.
fn language(
    site: &Site,
    templates: &Templates,
    content: &Conformed,
    report: &mut Report,
) -> Option<Arc<Language>> {
    let tag = site.manifest.language.as_str();
    let Some(language) = templates.language(tag) else {
        let names = templates.languages.keys().map(String::as_str);
        let message = format!(
            "the theme `{}` has no words in `{tag}`",
            templates.theme.name
        );
        let hint = format!(
            "{} Or add `strings/{tag}.yaml` to the theme",
            hint_for(tag, names)
        );
        let diagnostic = Diagnostic::error(Code::UnknownLanguage, site.name_of(MANIFEST), message);
        let place = site.place_of(tag);
        let located = match place {
            Some(place) => site.locate(diagnostic, MANIFEST, place),
            None => diagnostic,
        };
        report.push(located.hint(hint));
        return None;
    };
    Some(match content.strings.is_empty() {
        true => Arc::clone(language),
        false => Arc::new(language.with(&content.strings)),
    })
}
