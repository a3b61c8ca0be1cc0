//! Chooses the content encoding of a response (RFC 9110, section 12.5.3).
//!
//! 1. Without `Accept-Encoding` the body is sent unencoded: the client may understand any encoding, but has not said so.
//! 2. Each encoding has the weight of its own element, otherwise the weight of `*`, otherwise none. `x-gzip` means `gzip`. If an element is repeated, the higher weight counts. Invalid elements are ignored.
//! 3. `identity` is acceptable unless an element refuses it, and ranks below all encodings with a weight.
//! 4. The highest weight wins. At equal weights the server's order decides, smallest body first.
//! 5. If no encoding is acceptable, the body is sent unencoded. The RFC allows 406 as well, but a page that the client can perhaps read is more useful.
//!
//! **Invariant:** pure; allocates nothing; reads the fields as bytes and never fails.

use http::header::HeaderValue;

use release::snapshot::{ContentEncoding, Variant, Variants};

/// Weights are in thousandths, since a weight has at most three decimal digits.
type QualityWeight = u16;

/// The content encodings that a client accepts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AcceptedEncodings {
    listed: [Option<QualityWeight>; ContentEncoding::ALL.len()],
    wildcard: Option<QualityWeight>,
}

impl AcceptedEncodings {
    /// Reads an `Accept-Encoding` field. Several fields are one list (RFC 9110, section 5.3).
    pub(crate) fn read(&mut self, field: &HeaderValue) {
        for element in field.as_bytes().split(|byte| *byte == b',') {
            // Elements are short, so a plain loop is faster than a vectorised search.
            let (token, weight) = match element.iter().position(|byte| *byte == b';') {
                None => (element.trim_ascii(), Some(1000)),
                Some(end) => (element[..end].trim_ascii(), weight(&element[end + 1..])),
            };
            let Some(weight) = weight else { continue };
            let slot = match parse_encoding(token) {
                Some(encoding) => &mut self.listed[encoding as usize],
                None if token == b"*" => &mut self.wildcard,
                None => continue,
            };
            *slot = (*slot).max(Some(weight));
        }
    }

    /// Returns the weight of `encoding`, or zero if it is not acceptable.
    const fn weight(&self, encoding: ContentEncoding) -> QualityWeight {
        match (self.listed[encoding as usize], self.wildcard) {
            // All weights are doubled, so that 1 is above zero and below every explicit weight.
            (None, None) if matches!(encoding, ContentEncoding::Identity) => 1,
            (Some(weight), _) | (None, Some(weight)) => weight * 2,
            (None, None) => 0,
        }
    }
}

/// Returns the variant to send. `variants` is in the server's order, with identity last.
///
/// Returns `None` only if `variants` is empty.
#[must_use]
pub(crate) fn choose<'v>(
    variants: &'v Variants,
    accepted: &AcceptedEncodings,
) -> Option<&'v Variant> {
    let mut best = None;
    let mut highest = 0;
    for variant in variants.iter() {
        let weight = accepted.weight(variant.encoding);
        if weight > highest {
            highest = weight;
            best = Some(variant);
        }
    }
    best.or_else(|| variants.identity())
}

fn parse_encoding(token: &[u8]) -> Option<ContentEncoding> {
    match token.len() {
        2 if token.eq_ignore_ascii_case(b"br") => Some(ContentEncoding::Brotli),
        4 if token.eq_ignore_ascii_case(b"gzip") => Some(ContentEncoding::Gzip),
        6 if token.eq_ignore_ascii_case(b"x-gzip") => Some(ContentEncoding::Gzip),
        8 if token.eq_ignore_ascii_case(b"identity") => Some(ContentEncoding::Identity),
        _ => None,
    }
}

/// Parses a weight (`q=0.5`) into thousandths: `0` or `1` with up to three decimal digits, all zero after `1` (RFC 9110, section 12.4.2).
fn weight(parameter: &[u8]) -> Option<QualityWeight> {
    let [b'q' | b'Q', b'=', value @ ..] = parameter.trim_ascii() else {
        return None;
    };
    let (one, digits) = match value {
        [b'0'] => return Some(0),
        [b'1'] => return Some(1000),
        [b'0', b'.', digits @ ..] => (false, digits),
        [b'1', b'.', digits @ ..] => (true, digits),
        _ => return None,
    };
    if digits.len() > 3 {
        return None;
    }
    let mut thousandths = 0;
    let mut unit = 100;
    for digit in digits {
        match digit {
            b'0'..=b'9' => thousandths += u16::from(digit - b'0') * unit,
            _ => return None,
        }
        unit /= 10;
    }
    match (one, thousandths) {
        (false, thousandths) => Some(thousandths),
        (true, 0) => Some(1000),
        (true, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use release::payload::Payload;

    use super::*;

    fn variants(encodings: &[ContentEncoding]) -> Variants {
        encodings
            .iter()
            .map(|encoding| Variant {
                encoding: *encoding,
                bytes: Payload::default(),
                etag: HeaderValue::from_static("\"x\""),
            })
            .collect()
    }

    fn chosen(encodings: &[ContentEncoding], fields: &[&str]) -> ContentEncoding {
        let mut accepted = AcceptedEncodings::default();
        for field in fields {
            accepted.read(&field.parse().unwrap());
        }
        choose(&variants(encodings), &accepted).unwrap().encoding
    }

    #[test]
    fn highest_weight_wins_then_the_smallest_body() {
        for (fields, expected) in [
            (&["gzip, deflate, br, zstd"][..], ContentEncoding::Brotli),
            (&["gzip, deflate"], ContentEncoding::Gzip),
            (&["gzip", "br"], ContentEncoding::Brotli),
            (&["BR;Q=0.5 , gzip ; q=0.8"], ContentEncoding::Gzip),
            (&["x-gzip"], ContentEncoding::Gzip),
            (&["*"], ContentEncoding::Brotli),
            (&["br;q=0, *"], ContentEncoding::Gzip),
            (&["gzip;q=0.001"], ContentEncoding::Gzip),
            (&["identity, gzip;q=0.5"], ContentEncoding::Identity),
            (&["br;q=0.5, *;q=0.5"], ContentEncoding::Brotli),
            (&["br;q=0.2, br;q=0.9, gzip;q=0.5"], ContentEncoding::Brotli),
        ] {
            assert_eq!(
                chosen(&ContentEncoding::ALL, fields),
                expected,
                "{fields:?}"
            );
        }
    }

    #[test]
    fn best_encoding_is_sent_once_it_is_added() {
        let variants = variants(&[ContentEncoding::Gzip, ContentEncoding::Identity]);
        let mut accepted = AcceptedEncodings::default();
        accepted.read(&HeaderValue::from_static("gzip, br, zstd"));
        let sent = || choose(&variants, &accepted).unwrap().encoding;
        assert_eq!(sent(), ContentEncoding::Gzip);
        assert!(variants.can_improve());
        variants.improve(Some(Variant {
            encoding: ContentEncoding::Brotli,
            bytes: Payload::default(),
            etag: HeaderValue::from_static("\"y\""),
        }));
        assert_eq!(sent(), ContentEncoding::Brotli);
        variants.improve(None);
        assert_eq!(
            sent(),
            ContentEncoding::Brotli,
            "a variant is added at most once"
        );
        assert!(!variants.can_improve());
        let variants = variants_without_best();
        assert_eq!(
            choose(&variants, &accepted).unwrap().encoding,
            ContentEncoding::Gzip
        );
    }

    fn variants_without_best() -> Variants {
        let variants = variants(&[ContentEncoding::Gzip, ContentEncoding::Identity]);
        variants.improve(None);
        variants
    }

    #[test]
    fn identity_is_sent_if_nothing_else_is_acceptable() {
        for fields in [
            &[][..],
            &[""],
            &["deflate"],
            &["gzip;q=0"],
            &["identity;q=0"],
            &["*;q=0"],
            &["br;q=2, gzip;q=0.1234, br;q=x"],
            &["br;level=4"],
        ] {
            assert_eq!(
                chosen(&ContentEncoding::ALL, fields),
                ContentEncoding::Identity,
                "{fields:?}"
            );
        }
        assert_eq!(
            chosen(&[ContentEncoding::Identity], &["br, identity;q=0"]),
            ContentEncoding::Identity
        );
    }

    /// The same rules, written for reading: each rule scans the complete list.
    fn reference(
        encodings: &[ContentEncoding],
        elements: &[(String, Option<u16>)],
    ) -> ContentEncoding {
        let listed = |name: &str| {
            elements
                .iter()
                .filter(|(token, _)| token.eq_ignore_ascii_case(name))
                .filter_map(|(_, weight)| *weight)
                .max()
        };
        let weight_of = |encoding: &ContentEncoding| {
            let own = match encoding {
                ContentEncoding::Gzip => listed("gzip").max(listed("x-gzip")),
                other => listed(other.token()),
            };
            match own.or(listed("*")) {
                Some(weight) => f64::from(weight),
                None if *encoding == ContentEncoding::Identity => 0.5,
                None => 0.0,
            }
        };
        let best = encodings.iter().map(weight_of).fold(0.0, f64::max);
        if best == 0.0 {
            return ContentEncoding::Identity;
        }
        *encodings
            .iter()
            .find(|encoding| weight_of(encoding) == best)
            .unwrap()
    }

    fn token() -> impl Strategy<Value = String> {
        prop::sample::select(vec![
            "br", "BR", "zstd", "gzip", "x-gzip", "GZip", "identity", "*", "deflate", "", "b r",
        ])
        .prop_map(str::to_owned)
    }

    proptest! {
        #[test]
        fn negotiation_matches_the_reference(
            elements in prop::collection::vec((token(), prop::option::weighted(0.9, 0..=1000_u16)), 0..6),
            spaces in prop::collection::vec(prop::sample::select(vec!["", " ", "\t"]), 6),
            available in prop::sample::subsequence(vec![ContentEncoding::Brotli, ContentEncoding::Gzip], 0..=2),
        ) {
            let mut encodings = available;
            encodings.push(ContentEncoding::Identity);
            let field: Vec<String> = elements
                .iter()
                .zip(&spaces)
                .map(|((token, weight), space)| match weight {
                    Some(1000) => format!("{space}{token}{space}"),
                    Some(weight) => format!("{token}{space};{space}q=0.{weight:03}"),
                    None => format!("{token};q=no"),
                })
                .collect();
            prop_assert_eq!(chosen(&encodings, &[&field.join(",")]), reference(&encodings, &elements));
        }

        #[test]
        fn any_bytes_are_accepted_without_failure(field in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(value) = HeaderValue::from_bytes(&field) {
                let mut accepted = AcceptedEncodings::default();
                accepted.read(&value);
                prop_assert!(choose(&variants(&ContentEncoding::ALL), &accepted).is_some());
            }
        }
    }
}
