//! Evaluates preconditions and ranges (RFC 9110, sections 13 and 14).
//!
//! For a response that would be 200, in the order of section 13.2.2:
//! 1. `If-Match`, by strong comparison: without a match, 412.
//! 2. `If-None-Match`, by weak comparison: with a match, 304.
//! 3. `Range`, for a body that supports ranges, if `If-Range` is absent or matches: 206, or 416 if the range holds no byte. A range that is malformed, in another unit or one of several is ignored, and the complete body is sent. The RFC allows all of that, and clients of sites do not request several ranges.
//!
//! No response has `Last-Modified`. The date on a page does not change when the layout around its text changes. The modification time of a file only says when the file was copied. So `If-Modified-Since` and `If-Unmodified-Since` are ignored, as a recipient without a date must do (sections 13.1.3 and 13.1.4). A date in `If-Range` never matches.
//!
//! A field may be repeated. Repeated list fields are one list (section 5.3). A repeated `Range` is ignored. Repeated `If-Range` fields must all match.
//!
//! **Invariant:** pure; knows the validators of one variant and the fields of the request, but no routes and bodies.

use std::ops::Range;

use http::header::{self, AsHeaderName, GetAll, HeaderMap, HeaderName, HeaderValue};

/// The conditional fields of a request.
#[derive(Debug, Default)]
pub(crate) struct Conditions<'r> {
    if_match: Option<FieldLines<'r>>,
    if_none_match: Option<FieldLines<'r>>,
    if_range: Option<FieldLines<'r>>,
    /// The caller clears it for every method but GET.
    pub(crate) range: Option<&'r HeaderValue>,
}

/// All lines of one field.
type FieldLines<'r> = GetAll<'r, HeaderValue>;

impl<'r> Conditions<'r> {
    /// Stores the field `name` if it is a conditional field. The caller passes each name in `headers`.
    pub(crate) fn read(&mut self, name: &HeaderName, headers: &'r HeaderMap) {
        match *name {
            header::IF_MATCH => self.if_match = Some(headers.get_all(name)),
            header::IF_NONE_MATCH => self.if_none_match = Some(headers.get_all(name)),
            header::IF_RANGE => self.if_range = Some(headers.get_all(name)),
            header::RANGE => self.range = single_value(headers, name),
            _ => {}
        }
    }
}

/// Returns the value of a field, or `None` if the field is absent or repeated.
pub(crate) fn single_value(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&HeaderValue> {
    let mut lines = headers.get_all(name).iter();
    let line = lines.next();
    line.filter(|_| lines.next().is_none())
}

/// The validators of the chosen variant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Validators<'v> {
    /// A strong entity tag, with quotes.
    pub(crate) etag: &'v HeaderValue,
    /// The length of the body in bytes, or `None` if the body does not support ranges.
    pub(crate) range_length: Option<usize>,
}

/// The result of evaluating the preconditions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ConditionOutcome {
    /// 200 with the complete body.
    Full,
    /// 206 with this range of bytes.
    Partial(Range<usize>),
    /// 304.
    NotModified,
    /// 412.
    Failed,
    /// 416.
    Unsatisfiable,
}

/// Evaluates the conditions in the order of the module's documentation.
#[must_use]
pub(crate) fn evaluate(
    conditions: &Conditions<'_>,
    validators: Validators<'_>,
) -> ConditionOutcome {
    let Validators { etag, range_length } = validators;

    // 1.
    if let Some(field) = &conditions.if_match
        && !matches_any(field, etag, EtagComparison::Strong)
    {
        return ConditionOutcome::Failed;
    }

    // 2.
    if let Some(field) = &conditions.if_none_match
        && matches_any(field, etag, EtagComparison::Weak)
    {
        return ConditionOutcome::NotModified;
    }

    // 3.
    if let (Some(range), Some(length)) = (conditions.range, range_length)
        && conditions
            .if_range
            .iter()
            .flatten()
            .all(|validator| validator == etag)
    {
        return parse_range(range.as_bytes(), length);
    }
    ConditionOutcome::Full
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EtagComparison {
    Strong,
    Weak,
}

/// Returns whether the list of entity tags contains `etag`, or is `*`.
fn matches_any(field: &FieldLines<'_>, etag: &HeaderValue, comparison: EtagComparison) -> bool {
    let mut lines = field.iter().map(HeaderValue::as_bytes);
    lines.any(|line| line_matches(line, etag.as_bytes(), comparison))
}

/// Returns whether a line lists `etag`. Tags may contain commas, so the line is read from quote to quote.
fn line_matches(line: &[u8], etag: &[u8], comparison: EtagComparison) -> bool {
    let mut rest = line.trim_ascii();
    if rest == b"*" {
        return true;
    }
    while let Some(start) = memchr::memchr(b'"', rest) {
        let is_weak = rest[..start].ends_with(b"W/");
        let Some(length) = memchr::memchr(b'"', &rest[start + 1..]) else {
            return false;
        };
        let end = start + length + 2;
        if &rest[start..end] == etag && !(is_weak && comparison == EtagComparison::Strong) {
            return true;
        }
        rest = &rest[end..];
    }
    false
}

/// Parses `bytes=first-last`, `bytes=first-` or `bytes=-suffix` for a body of `length` bytes.
fn parse_range(range: &[u8], length: usize) -> ConditionOutcome {
    let Some((unit, set)) = range.split_at_checked(6) else {
        return ConditionOutcome::Full;
    };
    if !unit.eq_ignore_ascii_case(b"bytes=") {
        return ConditionOutcome::Full;
    }
    let set = set.trim_ascii();
    let Some(dash) = memchr::memchr(b'-', set) else {
        return ConditionOutcome::Full;
    };
    let bytes = match (&set[..dash], &set[dash + 1..]) {
        ([], suffix) => match parse_number(suffix) {
            Some(suffix) => length.saturating_sub(suffix)..length,
            None => return ConditionOutcome::Full,
        },
        (first, []) => match parse_number(first) {
            Some(first) => first..length,
            None => return ConditionOutcome::Full,
        },
        (first, last) => match (parse_number(first), parse_number(last)) {
            (Some(first), Some(last)) if first <= last => first..last.saturating_add(1).min(length),
            _ => return ConditionOutcome::Full,
        },
    };
    if bytes.start < bytes.end {
        ConditionOutcome::Partial(bytes)
    } else {
        ConditionOutcome::Unsatisfiable
    }
}

/// Parses a number that consists of digits only. Numbers that do not fit become the largest.
fn parse_number(digits: &[u8]) -> Option<usize> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_usize, |number, digit| {
        digit.is_ascii_digit().then(|| {
            number
                .saturating_mul(10)
                .saturating_add(usize::from(digit - b'0'))
        })
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DATE: &str = "Wed, 21 Oct 2026 07:28:00 GMT";

    fn outcome(fields: &[(&str, &str)]) -> ConditionOutcome {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                value.parse().unwrap(),
            );
        }
        let mut conditions = Conditions::default();
        for name in headers.keys() {
            conditions.read(name, &headers);
        }
        evaluate(
            &conditions,
            Validators {
                etag: &HeaderValue::from_static("\"abc\""),
                range_length: Some(10),
            },
        )
    }

    #[test]
    fn matching_if_none_match_gets_304() {
        for field in [
            "\"abc\"",
            "W/\"abc\"",
            "*",
            " * ",
            "\"x\", \"abc\"",
            "\"x\",W/\"abc\" ,\"y\"",
            "\"a,b\", \"abc\"",
        ] {
            assert_eq!(
                outcome(&[("if-none-match", field)]),
                ConditionOutcome::NotModified,
                "{field}"
            );
        }
        for field in ["\"x\"", "abc", "\"abc", "", "\"ab\"c\"", "\"x, \"abc\""] {
            assert_eq!(
                outcome(&[("if-none-match", field)]),
                ConditionOutcome::Full,
                "{field}"
            );
        }
    }

    #[test]
    fn conditional_dates_are_ignored() {
        for field in ["if-modified-since", "if-unmodified-since"] {
            assert_eq!(outcome(&[(field, DATE)]), ConditionOutcome::Full, "{field}");
        }
    }

    #[test]
    fn failed_precondition_gets_412() {
        assert_eq!(outcome(&[("if-match", "\"x\"")]), ConditionOutcome::Failed);
        assert_eq!(
            outcome(&[("if-match", "W/\"abc\"")]),
            ConditionOutcome::Failed
        );
        assert_eq!(outcome(&[("if-match", "\"abc\"")]), ConditionOutcome::Full);
        assert_eq!(
            outcome(&[("if-match", "*"), ("if-none-match", "\"abc\"")]),
            ConditionOutcome::NotModified
        );
    }

    #[test]
    fn single_range_is_served() {
        for (field, expected) in [
            ("bytes=0-3", ConditionOutcome::Partial(0..4)),
            ("bytes=3-", ConditionOutcome::Partial(3..10)),
            ("bytes=-3", ConditionOutcome::Partial(7..10)),
            ("bytes=-30", ConditionOutcome::Partial(0..10)),
            (
                "Bytes=9-99999999999999999999999999",
                ConditionOutcome::Partial(9..10),
            ),
            ("bytes=10-", ConditionOutcome::Unsatisfiable),
            ("bytes=10-12", ConditionOutcome::Unsatisfiable),
            ("bytes=-0", ConditionOutcome::Unsatisfiable),
            ("bytes=3-1", ConditionOutcome::Full),
            ("bytes=0-1,3-4", ConditionOutcome::Full),
            ("bytes=-", ConditionOutcome::Full),
            ("bytes=a-b", ConditionOutcome::Full),
            ("bytes=--3", ConditionOutcome::Full),
            ("lines=0-3", ConditionOutcome::Full),
            ("bytes", ConditionOutcome::Full),
        ] {
            assert_eq!(outcome(&[("range", field)]), expected, "{field}");
        }
    }

    #[test]
    fn if_range_must_match_the_strong_tag() {
        let range = ("range", "bytes=0-3");
        assert_eq!(
            outcome(&[range, ("if-range", "\"abc\"")]),
            ConditionOutcome::Partial(0..4)
        );
        for other in ["\"x\"", "W/\"abc\"", DATE] {
            assert_eq!(
                outcome(&[range, ("if-range", other)]),
                ConditionOutcome::Full,
                "{other}"
            );
        }
        assert_eq!(
            outcome(&[range, ("if-none-match", "\"abc\"")]),
            ConditionOutcome::NotModified
        );
    }

    #[test]
    fn repeated_list_fields_are_one_list() {
        let none = |lines: &[&str]| {
            let fields: Vec<_> = lines.iter().map(|line| ("if-none-match", *line)).collect();
            outcome(&fields)
        };
        assert_eq!(none(&["\"abc\"", "\"x\""]), ConditionOutcome::NotModified);
        assert_eq!(
            none(&["\"x\"", "\"y\", W/\"abc\""]),
            ConditionOutcome::NotModified
        );
        assert_eq!(none(&["\"x\"", "\"y\""]), ConditionOutcome::Full);
        assert_eq!(none(&["\"x", "abc\""]), ConditionOutcome::Full);
        let all = |lines: [&str; 2]| outcome(&lines.map(|line| ("if-match", line)));
        assert_eq!(all(["\"abc\"", "\"x\""]), ConditionOutcome::Full);
        assert_eq!(all(["\"x\"", "\"abc\""]), ConditionOutcome::Full);
        assert_eq!(all(["\"x\"", "W/\"abc\""]), ConditionOutcome::Failed);
    }

    #[test]
    fn repeated_range_is_ignored_and_repeated_if_range_must_agree() {
        let twice = |name, lines: [&'static str; 2]| lines.map(|line| (name, line));
        assert_eq!(
            outcome(&twice("range", ["bytes=0-1", "bytes=2-3"])),
            ConditionOutcome::Full
        );
        let [one, other] = twice("if-range", ["\"abc\"", "\"x\""]);
        assert_eq!(
            outcome(&[("range", "bytes=0-3"), one, other]),
            ConditionOutcome::Full
        );
        assert_eq!(
            outcome(&[("range", "bytes=0-3"), other, one]),
            ConditionOutcome::Full
        );
        assert_eq!(
            outcome(&[("range", "bytes=0-3"), one, one]),
            ConditionOutcome::Partial(0..4)
        );
    }

    proptest! {
        #[test]
        fn range_is_within_the_body(field in "bytes=[0-9]{0,3}-[0-9]{0,3}", length in 0_usize..200) {
            if let ConditionOutcome::Partial(range) = parse_range(field.as_bytes(), length) {
                prop_assert!(range.start < range.end && range.end <= length);
            }
        }
    }
}
