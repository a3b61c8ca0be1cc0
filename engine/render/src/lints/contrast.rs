//! Checks the contrast of text and background (WCAG 2.2, success criterion 1.4.3).

use crate::compile::prepared_tenant::PreparedTenant;
use content::report::{Code, Diagnostic};
use content::tenant::{MANIFEST, Site};
use content::theme::Theme;

/// The contrast that text of normal size needs (WCAG 2.2, 1.4.3, level AA).
const MIN_CONTRAST_RATIO: f64 = 4.5;

/// Returns a warning for each colour pair of the theme that the tenant's colours bring below 4.5:1, by day or by night.
#[must_use]
pub(super) fn check(site: &Site, prepared: &PreparedTenant, theme: &Theme) -> Vec<Diagnostic> {
    ["day", "night"]
        .into_iter()
        .flat_map(|time| {
            theme
                .manifest
                .contrast
                .iter()
                .filter_map(move |[text, ground]| {
                    let (text_by, ground_by) =
                        (prepared.role(text, theme)?, prepared.role(ground, theme)?);
                    let (front, back) = match time {
                        "day" => (text_by.0, ground_by.0),
                        _ => (text_by.1, ground_by.1),
                    };
                    let ratio = ratio(front, back)?;
                    (ratio < MIN_CONTRAST_RATIO).then(|| {
                        Diagnostic::warning(
                            Code::LowContrast,
                            site.name_of(MANIFEST),
                            format!(
                                "by {time}, `{text}` {front} on `{ground}` {back} has a contrast of {ratio:.2}:1"
                            ),
                        )
                        .hint(format!("choose colours with a contrast of at least {MIN_CONTRAST_RATIO}:1 (WCAG 2.2 AA)"))
                    })
                })
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Returns the contrast ratio of two colours `#rrggbb`, from 1 to 21 (WCAG 2.2, contrast ratio).
fn ratio(one: &str, other: &str) -> Option<f64> {
    let (one, other) = (luminance(one)?, luminance(other)?);
    Some((one.max(other) + 0.05) / (one.min(other) + 0.05))
}

/// Returns the relative luminance of a colour, from 0 to 1 (WCAG 2.2, relative luminance).
fn luminance(colour: &str) -> Option<f64> {
    let channel = |start: usize| {
        let value = f64::from(u8::from_str_radix(colour.get(start..start + 2)?, 16).ok()?) / 255.0;
        Some(if value <= 0.04045 {
            value / 12.92
        } else {
            ((value + 0.055) / 1.055).powf(2.4)
        })
    };
    Some(0.2126 * channel(1)? + 0.7152 * channel(3)? + 0.0722 * channel(5)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contrast_of_black_on_white_is_twenty_one() {
        assert!((ratio("#000000", "#ffffff").expect("colours") - 21.0).abs() < 0.001);
        assert!((ratio("#777777", "#ffffff").expect("colours") - 4.48).abs() < 0.01);
        assert_eq!(ratio("#12", "#ffffff"), None);
    }
}
