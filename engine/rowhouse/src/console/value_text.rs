//! Numbers, sizes and times as text.
//!
//! **Invariant:** knows no page; the same value gives the same text.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

/// A moment in several forms.
#[derive(Debug, Clone, Serialize)]
pub(super) struct MomentView {
    /// The time in the format of RFC 3339.
    pub(super) machine: String,
    /// Date and time in the time zone of the server.
    pub(super) local: String,
    /// Whether the moment is now or in the past.
    pub(super) is_past: bool,
    /// The distance from now: `4 min ago`, or `in 12 days`.
    pub(super) relative: String,
    /// The time since then: `4 min`.
    pub(super) lasting: String,
}

impl MomentView {
    /// Returns the forms of `at`, relative to `now`.
    pub(super) fn new(at: SystemTime, now: SystemTime) -> Self {
        let (machine, local) = match Timestamp::try_from(at) {
            Ok(at) => {
                let zoned = at.to_zoned(TimeZone::system());
                let whole = Timestamp::from_second(at.as_second()).unwrap_or(at);
                (
                    whole.to_string(),
                    zoned.strftime("%Y-%m-%d %H:%M:%S %Z").to_string(),
                )
            }
            Err(_) => (String::new(), String::new()),
        };
        let relative = match now.duration_since(at) {
            Ok(past) if past < Duration::from_secs(1) => "just now".to_owned(),
            Ok(past) => format!("{} ago", span(past)),
            Err(future) => format!("in {}", span(future.duration())),
        };
        Self {
            machine,
            local,
            is_past: at <= now,
            relative,
            lasting: span(now.duration_since(at).unwrap_or_default()),
        }
    }

    /// Returns the moment `at` seconds after the start of 1970.
    pub(super) fn of_seconds(at: u64, now: SystemTime) -> Self {
        Self::new(SystemTime::UNIX_EPOCH + Duration::from_secs(at), now)
    }
}

/// Returns a duration in its largest unit: `59 s`, `4 min`, `3 h`, `12 days`.
pub(super) fn span(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3_600 => format!("{} min", seconds / 60),
        seconds @ 3_600..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

/// Returns a number with its noun: `1 site`, `2,000 sites`.
pub(super) fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(number as u64))
}

/// Returns a number with commas between thousands.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns bytes with three digits: `812 B`, `1.24 MB`.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub(super) fn bytes(number: u64) -> String {
    let mut value = number as f64;
    if number < 1_000 {
        return format!("{number} B");
    }
    for unit in ["kB", "MB", "GB"] {
        value /= 1_000.0;
        if value < 999.5 {
            return format!("{} {unit}", digits(value));
        }
    }
    format!("{} TB", digits(value / 1_000.0))
}

/// Returns microseconds with three digits: `12.5 µs`, `1.24 ms`, `3.00 s`.
pub(super) fn micros(value: f64) -> String {
    if value < 999.5 {
        format!("{} µs", digits(value))
    } else if value < 999_500.0 {
        format!("{} ms", digits(value / 1_000.0))
    } else {
        format!("{} s", digits(value / 1_000_000.0))
    }
}

/// Returns a share between 0 and 1 as a percentage.
pub(super) fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        small if small < 0.01 => "< 0.01 %".to_owned(),
        value => format!("{} %", digits(value)),
    }
}

/// Returns a number with three digits; a larger number has all digits before its point.
pub(super) fn digits(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        value if value < 9.995 => format!("{value:.2}"),
        value if value < 99.95 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_units_and_three_digits() {
        let ago = |seconds| span(Duration::from_secs(seconds));
        assert_eq!(
            [0, 59, 60, 3_599, 3_600, 172_799, 172_800].map(ago),
            ["0 s", "59 s", "1 min", "59 min", "1 h", "47 h", "2 days"]
        );
        assert_eq!(
            [0, 812, 1_000, 1_236_000, 999_600_000, 12_000_000_000_000].map(bytes),
            ["0 B", "812 B", "1.00 kB", "1.24 MB", "1.00 GB", "12.0 TB"]
        );
        assert_eq!(
            [0.0, 12.5, 999.0, 1_240.0, 3_000_000.0].map(micros),
            ["0 µs", "12.5 µs", "999 µs", "1.24 ms", "3.00 s"]
        );
        assert_eq!(
            [0.0, 0.000_01, 0.0123, 1.0].map(percent),
            ["0 %", "< 0.01 %", "1.23 %", "100 %"]
        );
        assert_eq!(
            [0, 999, 1_000, 1_234_567].map(grouped),
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(
            (count(1, "site"), count(2_000, "site")),
            ("1 site".to_owned(), "2,000 sites".to_owned())
        );
    }

    #[test]
    fn moment_is_in_the_past_or_in_the_future() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let relative = |at| MomentView::of_seconds(at, now).relative;
        assert_eq!(relative(1_000_000), "just now");
        assert_eq!(relative(999_700), "5 min ago");
        assert_eq!(relative(2_000_000), "in 11 days");
        assert_eq!(
            MomentView::of_seconds(0, now).machine,
            "1970-01-01T00:00:00Z"
        );
    }
}
