//! What pages of every site of the company may show of each of them: its name, its address and its settings.
//!
//! A neighbour's settings are the only thing of it that is known here, and of these only what needs nothing else of it: texts, colours and drawings. Drawings were made harmless before.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;
use tera::Value;

use crate::images::svg;
use crate::pages::data_walk::walk;
use content::formats::check_format;
use content::theme::shape::Data;

/// The most bytes of a drawing that other sites' pages show: it stands in every one of them.
pub(crate) const LARGEST_DRAWING: usize = 64 << 10;

/// A site of the company.
#[derive(Debug, Clone, PartialEq)]
pub struct Card {
    /// The tenant's id.
    pub tenant: String,
    /// Its name.
    pub name: String,
    /// Its settings, where it is there and they fit its theme.
    pub(crate) settings: Option<Arc<Data>>,
    /// The settings as templates see them.
    pub(crate) shown: Value,
}

impl Card {
    /// A setting that is a colour by day and by night.
    pub(crate) fn colours(&self, name: &str) -> Option<(&str, &str)> {
        colours(self.settings.as_ref()?.value.get(name)?)
    }
}

/// Writes a drawing so that pages of other sites can show it, with `prefix` before its ids.
///
/// # Errors
/// Why they do not show it.
pub(crate) fn shown_by_others(svg: &[u8], prefix: &str) -> Result<String, String> {
    if svg.len() > LARGEST_DRAWING {
        return Err(format!(
            "it has {} bytes, more than the {LARGEST_DRAWING} of a drawing that other sites show",
            svg.len()
        ));
    }
    let svg = std::str::from_utf8(svg).map_err(|error| error.to_string())?;
    svg::isolated(svg, prefix, svg::DrawingContext::Others)
}

/// The settings of a site as pages of all sites see them. `drawings` are HTML by their places.
pub(crate) fn shown(data: &Data, drawings: &BTreeMap<String, Value>) -> Value {
    // What leads somewhere leads there from its own pages only.
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

/// The colours by day and by night of a setting that has both. What is no colour never reaches a style, whatever a theme's schema lets pass.
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
    fn what_is_no_colour_reaches_no_style() {
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
