//! The facts about a site that pages of every other site may show: its name, its address and its settings.
//!
//! Only settings that refer to no other file are shown: texts, colours and SVGs. The SVGs were sanitised before.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;
use tera::Value;

use crate::images::svg;
use crate::pages::values::data_walk::walk;
use content::formats::check_format;
use content::report::size_text;
use content::theme::data_schema::CheckedData;

/// Limit on an SVG that other sites' pages show, in bytes. Each of those pages contains a copy.
pub(crate) const MAX_SHARED_SVG_BYTES: usize = 64 << 10;

/// The facts about a site that other sites' pages may show.
#[derive(Debug, Clone, PartialEq)]
pub struct SiteCard {
    /// The tenant's id.
    pub tenant: String,
    /// Its display name.
    pub name: String,
    /// Its settings, if its site is valid and they fit its theme.
    pub(crate) settings: Option<Arc<CheckedData>>,
    /// The settings as template values.
    pub(crate) shown: Value,
    /// The settings as template values in other languages of the tenant, by language tag.
    pub(crate) translated: BTreeMap<String, Value>,
}

impl SiteCard {
    /// Returns the settings as template values for a page in a language.
    pub(crate) fn shown_in(&self, tag: &str) -> &Value {
        self.translated.get(tag).unwrap_or(&self.shown)
    }

    /// Returns the day and night colours of a setting.
    pub(crate) fn colours(&self, name: &str) -> Option<(&str, &str)> {
        colours(self.settings.as_ref()?.value.get(name)?)
    }
}

/// Rewrites an SVG for the pages of other sites, with `prefix` before its ids.
///
/// # Errors
/// Returns the reason why other sites cannot show it.
pub(crate) fn shared_svg(svg: &[u8], prefix: &str) -> Result<String, String> {
    if svg.len() > MAX_SHARED_SVG_BYTES {
        return Err(format!(
            "the SVG has {}; other sites show at most {}",
            size_text(svg.len() as u64),
            size_text(MAX_SHARED_SVG_BYTES as u64)
        ));
    }
    let svg = std::str::from_utf8(svg).map_err(|error| error.to_string())?;
    svg::isolate(svg, prefix, svg::SvgContext::Others)
}

/// Returns the settings of a site as template values for the pages of all sites. `drawings` holds HTML by JSON pointer.
pub(crate) fn shown(data: &CheckedData, drawings: &BTreeMap<String, Value>) -> Value {
    // Links are left out: they resolve only within the site's own pages.
    let shown = |format: &str| matches!(format, "colour" | "email" | "hostname" | "web-url");
    let mut formats = data.formats.clone();
    for (pointer, format) in &mut formats {
        if drawings.contains_key(pointer) {
            format.clone_from(pointer);
        }
    }
    let resolved = |format: &str, text: &str| match drawings.get(format) {
        Some(html) => html.clone(),
        None if shown(format) => Value::from(text),
        None => Value::none(),
    };
    walk(&data.value, &formats, &mut String::new(), &resolved)
}

/// Returns the day and night colours of a setting that has both.
///
/// Values that are not colours never reach a style, even if a theme's schema allows them.
pub(crate) fn colours(setting: &Json) -> Option<(&str, &str)> {
    let colour = |time: &str| {
        let colour = setting.get(time)?.as_str()?;
        check_format("colour", colour).is_ok().then_some(colour)
    };
    Some((colour("day")?, colour("night")?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_that_are_not_colours_are_refused() {
        let both = json!({"day": "#123456", "night": "#abcdef"});
        assert_eq!(colours(&both), Some(("#123456", "#abcdef")));
        for bad in ["red", "</style><script>", "#12345", "8:00"] {
            assert_eq!(
                colours(&json!({"day": "#123456", "night": bad})),
                None,
                "{bad}"
            );
        }
    }
}
