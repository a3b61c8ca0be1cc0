//! Reads the trace of a request (W3C Trace Context).
//!
//! **Invariant:** pure; does not know which peers are trusted.

use std::fmt;

use http::HeaderMap;
use http::header::HeaderName;

use crate::request::preconditions::single_value;

pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The trace of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trace {
    /// The trace id, common to all spans of the trace.
    pub id: u128,
    /// The id of the span that sent the request.
    pub parent: u64,
    /// Whether the sender asks for the trace to be recorded.
    pub sampled: bool,
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.id)
    }
}

impl Trace {
    /// Returns the trace that the request's `traceparent` field names, if the field is valid. The caller checks that the peer is trusted.
    pub(crate) fn named_by(headers: &HeaderMap) -> Option<Self> {
        Self::parse(single_value(headers, TRACEPARENT)?.to_str().ok()?)
    }

    /// Parses `00-<32 digits>-<16 digits>-<2 digits>`. Later versions may append fields (sections 3.2.2 and 4).
    fn parse(text: &str) -> Option<Self> {
        let (known, more) = text.split_at_checked(55)?;
        let mut parts = known.split('-');
        let mut hex = |digits: usize| {
            let part = parts.next()?;
            let lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            (part.len() == digits && part.bytes().all(lower))
                .then(|| u128::from_str_radix(part, 16).ok())?
        };
        let (version, id, parent, flags) = (hex(2)?, hex(32)?, hex(16)?, hex(2)?);
        let ends = more.is_empty() || (version > 0 && more.starts_with('-'));
        (version < 0xff && id > 0 && parent > 0 && ends).then_some(Self {
            id,
            parent: u64::try_from(parent).ok()?,
            sampled: flags & 1 == 1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_traceparent_is_parsed() {
        let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let known = Trace::parse(trace).unwrap();
        assert_eq!(known.to_string(), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!((known.parent, known.sampled), (0xb7ad_6b71_6920_3331, true));
        let later = format!("cc{}-more", &trace[2..]);
        assert_eq!(Trace::parse(&later), Some(known));
        for bad in [
            "",
            "00",
            &trace[..54],
            &format!("{trace}-more"),
            &format!("ff{}", &trace[2..]),
            &trace.to_uppercase(),
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331_01",
            "00-0af7651916cd43dd8448eb211c80319\u{e9}-b7ad6b716920333-01",
        ] {
            assert_eq!(Trace::parse(bad), None, "{bad}");
        }
    }
}
