//! Makes the value of `Date` (RFC 9110, section 6.6.1), once a second.
//!
//! **Invariant:** reads the system's clock only when the second has passed.

use std::time::{Duration, Instant};

use http::HeaderValue;
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;

/// The current value of `Date`.
#[derive(Debug)]
pub(crate) struct HttpDate {
    value: HeaderValue,
    /// When the value is no longer current.
    ends: Option<Instant>,
}

impl Default for HttpDate {
    fn default() -> Self {
        Self {
            value: HeaderValue::from_static(""),
            ends: None,
        }
    }
}

impl HttpDate {
    /// Returns the date. `now` is the current time.
    pub(crate) fn at(&mut self, now: Instant) -> &HeaderValue {
        if self.ends.is_none_or(|ends| now >= ends) {
            let time = Timestamp::now();
            // The year has four digits.
            let text = DateTimePrinter::new().timestamp_to_rfc9110_string(&time);
            if let Some(value) = text.ok().and_then(|text| HeaderValue::try_from(text).ok()) {
                self.value = value;
            }
            let since_second = Duration::from_nanos(time.subsec_nanosecond().unsigned_abs().into());
            self.ends = Some(now + Duration::from_secs(1).saturating_sub(since_second));
        }
        &self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn date_is_made_once_a_second() {
        let mut date = HttpDate::default();
        let now = Instant::now();
        let first = date.at(now).to_str().unwrap().to_owned();
        assert!(first.len() == 29 && first.ends_with(" GMT"), "{first}");
        date.value = HeaderValue::from_static("made");
        assert_eq!(date.at(now), "made");
        assert_ne!(date.at(now + Duration::from_secs(1)), "made");
    }
}
