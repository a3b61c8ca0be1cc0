//! Preconditions and ranges (RFC 9110, sections 13 and 14).
//!
//! For a body that would be answered with 200, in the order of section 13.2.2:
//! 1. `If-Match`, compared strongly: false is 412.
//! 2. `If-None-Match`, compared weakly: a match is 304.
//! 3. `Range`, for a body that allows it, if `If-Range` is absent or true: 206, or 416 where no byte is left. A field that is malformed, in another unit, or asks for several ranges is passed over, and the whole body goes out: all of that is allowed, and nobody asks a site for several.
//!
//! Nothing has a `Last-Modified`: a day that a page states stays when what is around its text changes, and when a file was written says when it was copied. So `If-Modified-Since` and `If-Unmodified-Since` are passed over, as a recipient without a date must (sections 13.1.3 and 13.1.4), and a date in `If-Range` is false.
//!
//! A field may come in several lines. Those of a list are one list (section 5.3). A range in several lines is passed over. Several lines of `If-Range` must all be true.
//!
//! **Invariant:** pure; knows the validators of one variant and the fields of the request, nothing of routes and bodies.

use std::ops::Range;

use http::header::{self, AsHeaderName, GetAll, HeaderMap, HeaderName, HeaderValue};

/// The fields of a request that make it conditional.
#[derive(Debug, Default)]
pub(crate) struct Conditions<'r> {
    if_match: Option<FieldLines<'r>>,
    if_none_match: Option<FieldLines<'r>>,
    if_range: Option<FieldLines<'r>>,
    /// To be left out for every method but GET.
    pub(crate) range: Option<&'r HeaderValue>,
}

/// All the lines of one field.
type FieldLines<'r> = GetAll<'r, HeaderValue>;

impl<'r> Conditions<'r> {
    /// Reads the field of that name, if it is one of a condition; to be called for each name that `headers` has.
    pub(crate) fn read(&mut self, name: &HeaderName, headers: &'r HeaderMap) {
        match *name {
            header::IF_MATCH => self.if_match = Some(headers.get_all(name)),
            header::IF_NONE_MATCH => self.if_none_match = Some(headers.get_all(name)),
            header::IF_RANGE => self.if_range = Some(headers.get_all(name)),
            header::RANGE => self.range = only(headers, name),
            _ => {}
        }
    }
}

/// The one line of a field; `None` where there are several, or none.
pub(crate) fn only(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&HeaderValue> {
    let mut lines = headers.get_all(name).iter();
    let line = lines.next();
    line.filter(|_| lines.next().is_none())
}

/// What the chosen variant is compared with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Validators<'v> {
    /// A strong entity tag, with quotes.
    pub(crate) etag: &'v HeaderValue,
    /// The length of the body; `None` where no range may be requested.
    pub(crate) range_of: Option<usize>,
}

/// What is to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ConditionOutcome {
    /// 200 with all of the body.
    Whole,
    /// 206 with these bytes of it.
    Part(Range<usize>),
    /// 304.
    NotModified,
    /// 412.
    Failed,
    /// 416.
    Unsatisfiable,
}

/// Decides by the steps above.
#[must_use]
pub(crate) fn evaluate(
    conditions: &Conditions<'_>,
    validators: Validators<'_>,
) -> ConditionOutcome {
    let Validators { etag, range_of } = validators;

    // 1.
    if let Some(field) = &conditions.if_match
        && !lists(field, etag, EtagComparison::Strong)
    {
        return ConditionOutcome::Failed;
    }

    // 2.
    if let Some(field) = &conditions.if_none_match
        && lists(field, etag, EtagComparison::Weak)
    {
        return ConditionOutcome::NotModified;
    }

    // 3.
    if let (Some(range), Some(length)) = (conditions.range, range_of)
        && conditions
            .if_range
            .iter()
            .flatten()
            .all(|validator| validator == etag)
    {
        return part(range.as_bytes(), length);
    }
    ConditionOutcome::Whole
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EtagComparison {
    Strong,
    Weak,
}

/// Whether the list of entity tags has `etag`, or is `*`.
fn lists(field: &FieldLines<'_>, etag: &HeaderValue, comparison: EtagComparison) -> bool {
    let mut lines = field.iter().map(HeaderValue::as_bytes);
    lines.any(|line| line_lists(line, etag.as_bytes(), comparison))
}

/// A tag may hold a comma, so the list is read from quote to quote.
fn line_lists(line: &[u8], etag: &[u8], comparison: EtagComparison) -> bool {
    let mut rest = line.trim_ascii();
    if rest == b"*" {
        return true;
    }
    while let Some(start) = memchr::memchr(b'"', rest) {
        let weak = rest[..start].ends_with(b"W/");
        let Some(length) = memchr::memchr(b'"', &rest[start + 1..]) else {
            return false;
        };
        let end = start + length + 2;
        if &rest[start..end] == etag && !(weak && comparison == EtagComparison::Strong) {
            return true;
        }
        rest = &rest[end..];
    }
    false
}

/// `bytes=first-last`, `bytes=first-` or `bytes=-suffix` of a body of `length` bytes.
fn part(range: &[u8], length: usize) -> ConditionOutcome {
    let Some((unit, set)) = range.split_at_checked(6) else {
        return ConditionOutcome::Whole;
    };
    if !unit.eq_ignore_ascii_case(b"bytes=") {
        return ConditionOutcome::Whole;
    }
    let set = set.trim_ascii();
    let Some(dash) = memchr::memchr(b'-', set) else {
        return ConditionOutcome::Whole;
    };
    let bytes = match (&set[..dash], &set[dash + 1..]) {
        ([], suffix) => match number(suffix) {
            Some(suffix) => length.saturating_sub(suffix)..length,
            None => return ConditionOutcome::Whole,
        },
        (first, []) => match number(first) {
            Some(first) => first..length,
            None => return ConditionOutcome::Whole,
        },
        (first, last) => match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => first..last.saturating_add(1).min(length),
            _ => return ConditionOutcome::Whole,
        },
    };
    if bytes.start < bytes.end {
        ConditionOutcome::Part(bytes)
    } else {
        ConditionOutcome::Unsatisfiable
    }
}

/// A number of digits alone; one too large for any body counts as the largest.
fn number(digits: &[u8]) -> Option<usize> {
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
                range_of: Some(10),
            },
        )
    }

    #[test]
    fn a_known_tag_is_not_sent_again() {
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
                ConditionOutcome::Whole,
                "{field}"
            );
        }
    }

    #[test]
    fn no_date_says_whether_a_body_changed() {
        for field in ["if-modified-since", "if-unmodified-since"] {
            assert_eq!(
                outcome(&[(field, DATE)]),
                ConditionOutcome::Whole,
                "{field}"
            );
        }
    }

    #[test]
    fn a_failed_precondition_is_412() {
        assert_eq!(outcome(&[("if-match", "\"x\"")]), ConditionOutcome::Failed);
        assert_eq!(
            outcome(&[("if-match", "W/\"abc\"")]),
            ConditionOutcome::Failed
        );
        assert_eq!(outcome(&[("if-match", "\"abc\"")]), ConditionOutcome::Whole);
        assert_eq!(
            outcome(&[("if-match", "*"), ("if-none-match", "\"abc\"")]),
            ConditionOutcome::NotModified
        );
    }

    #[test]
    fn one_range_is_served() {
        for (field, expected) in [
            ("bytes=0-3", ConditionOutcome::Part(0..4)),
            ("bytes=3-", ConditionOutcome::Part(3..10)),
            ("bytes=-3", ConditionOutcome::Part(7..10)),
            ("bytes=-30", ConditionOutcome::Part(0..10)),
            (
                "Bytes=9-99999999999999999999999999",
                ConditionOutcome::Part(9..10),
            ),
            ("bytes=10-", ConditionOutcome::Unsatisfiable),
            ("bytes=10-12", ConditionOutcome::Unsatisfiable),
            ("bytes=-0", ConditionOutcome::Unsatisfiable),
            ("bytes=3-1", ConditionOutcome::Whole),
            ("bytes=0-1,3-4", ConditionOutcome::Whole),
            ("bytes=-", ConditionOutcome::Whole),
            ("bytes=a-b", ConditionOutcome::Whole),
            ("bytes=--3", ConditionOutcome::Whole),
            ("lines=0-3", ConditionOutcome::Whole),
            ("bytes", ConditionOutcome::Whole),
        ] {
            assert_eq!(outcome(&[("range", field)]), expected, "{field}");
        }
    }

    #[test]
    fn if_range_needs_the_same_body() {
        let range = ("range", "bytes=0-3");
        assert_eq!(
            outcome(&[range, ("if-range", "\"abc\"")]),
            ConditionOutcome::Part(0..4)
        );
        for other in ["\"x\"", "W/\"abc\"", DATE] {
            assert_eq!(
                outcome(&[range, ("if-range", other)]),
                ConditionOutcome::Whole,
                "{other}"
            );
        }
        assert_eq!(
            outcome(&[range, ("if-none-match", "\"abc\"")]),
            ConditionOutcome::NotModified
        );
    }

    #[test]
    fn the_lines_of_a_list_are_one_list() {
        let none = |lines: &[&str]| {
            let fields: Vec<_> = lines.iter().map(|line| ("if-none-match", *line)).collect();
            outcome(&fields)
        };
        assert_eq!(none(&["\"abc\"", "\"x\""]), ConditionOutcome::NotModified);
        assert_eq!(
            none(&["\"x\"", "\"y\", W/\"abc\""]),
            ConditionOutcome::NotModified
        );
        assert_eq!(none(&["\"x\"", "\"y\""]), ConditionOutcome::Whole);
        assert_eq!(none(&["\"x", "abc\""]), ConditionOutcome::Whole);
        let all = |lines: [&str; 2]| outcome(&lines.map(|line| ("if-match", line)));
        assert_eq!(all(["\"abc\"", "\"x\""]), ConditionOutcome::Whole);
        assert_eq!(all(["\"x\"", "\"abc\""]), ConditionOutcome::Whole);
        assert_eq!(all(["\"x\"", "W/\"abc\""]), ConditionOutcome::Failed);
    }

    #[test]
    fn what_is_no_list_does_not_count_when_it_comes_twice() {
        let twice = |name, lines: [&'static str; 2]| lines.map(|line| (name, line));
        assert_eq!(
            outcome(&twice("range", ["bytes=0-1", "bytes=2-3"])),
            ConditionOutcome::Whole
        );
        let [one, other] = twice("if-range", ["\"abc\"", "\"x\""]);
        assert_eq!(
            outcome(&[("range", "bytes=0-3"), one, other]),
            ConditionOutcome::Whole
        );
        assert_eq!(
            outcome(&[("range", "bytes=0-3"), other, one]),
            ConditionOutcome::Whole
        );
        assert_eq!(
            outcome(&[("range", "bytes=0-3"), one, one]),
            ConditionOutcome::Part(0..4)
        );
    }

    proptest! {
        #[test]
        fn a_part_is_within_the_body(field in "bytes=[0-9]{0,3}-[0-9]{0,3}", length in 0_usize..200) {
            if let ConditionOutcome::Part(range) = part(field.as_bytes(), length) {
                prop_assert!(range.start < range.end && range.end <= length);
            }
        }
    }
}
