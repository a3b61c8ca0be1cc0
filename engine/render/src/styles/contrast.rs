//! Computes the contrast of text and background (WCAG 2.2, success criterion 1.4.3).

/// The contrast that text of normal size needs (WCAG 2.2, 1.4.3, level AA).
const MIN_CONTRAST_RATIO: f64 = 4.5;

/// The hint about two colours whose contrast is too low.
pub(crate) const HINT: &str = "choose colours with a contrast of at least 4.5:1 (WCAG 2.2 AA)";

/// A time of day, which decides the colours of roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Time {
    Day,
    Night,
}

/// Both times of day.
pub(crate) const TIMES: [Time; 2] = [Time::Day, Time::Night];

impl Time {
    /// Returns the colour at this time, of the colours by day and by night.
    pub(crate) const fn of<'c>(self, (day, night): (&'c str, &'c str)) -> &'c str {
        match self {
            Self::Day => day,
            Self::Night => night,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Night => "night",
        }
    }
}

/// Returns a sentence about two roles, each with its colour, if their contrast is below 4.5:1.
pub(crate) fn problem(time: Time, text: (&str, &str), ground: (&str, &str)) -> Option<String> {
    let ((text, front), (ground, back)) = (text, ground);
    let ratio = ratio(front, back)?;
    let time = time.name();
    (ratio < MIN_CONTRAST_RATIO).then(|| {
        format!("by {time}, `{text}` {front} on `{ground}` {back} has a contrast of {ratio:.2}:1")
    })
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
