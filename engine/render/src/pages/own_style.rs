//! The style of a tenant's own settings.

use content::theme::data_schema::CheckedData;

use crate::compile::site_card::colours;
use crate::pages::values::resolve::logo_ratios;
use crate::styles::property;
use crate::theme::PageScope;

/// Writes the settings that are colours as a style, which overrides the theme's roles, and the proportions of logos.
pub(super) fn own_style(settings: &CheckedData, scope: Option<&PageScope>) -> String {
    let ratios = scope.map(|scope| logo_ratios(settings, scope));
    let pairs = settings.value.as_object();
    let properties: Vec<String> = pairs
        .into_iter()
        .flatten()
        .filter_map(|(name, setting)| {
            let (day, night) = colours(setting)?;
            Some(property(name, day, night))
        })
        .chain(ratios.into_iter().flatten())
        .collect();
    match properties.is_empty() {
        true => String::new(),
        false => format!(":root{{{}}}", properties.join(";")),
    }
}
