//! What a request says of where it comes from, and who is believed.
//!
//! A proxy that is named by `--trusted-proxy` is believed three fields; of everybody else they are not even read:
//! * `X-Request-Id` names the request in its log, so that both logs can be laid side by side; one that comes twice names nothing, since the first may be the client's;
//! * `traceparent` (W3C Trace Context, section 3.2) names the trace that the request belongs to;
//! * `X-Forwarded-For` names the visitor. Each proxy adds the address that it was reached from at the end, so it is read from there, and no further than the proxies are trusted.
//!
//! `X-Forwarded-Proto` and `X-Forwarded-Host` are read of nobody: the scheme is that of `--origin`, and proxies pass `Host` on unchanged. `Forwarded` (RFC 7239) says nothing that the three do not.
//!
//! **Invariant:** pure; decides no answer.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use http::HeaderMap;
use http::header::HeaderName;

use super::condition::only;
use super::settings::ServeSettings;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The trace that a request belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trace {
    /// The same for all that follows from one visit.
    pub id: u128,
    /// The span in which the request was made.
    pub parent: u64,
    /// Whether whoever began the trace wants it recorded.
    pub sampled: bool,
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.id)
    }
}

impl Trace {
    /// The trace that a trusted proxy names, if what it says is one.
    pub(super) fn named_by(headers: &HeaderMap) -> Option<Self> {
        Self::parse(only(headers, TRACEPARENT)?.to_str().ok()?)
    }

    /// `00-<32 digits>-<16 digits>-<2 digits>`; later versions may add more (section 3.2.2 and 4).
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

/// The visitor's address: the peer's or, where that is a trusted proxy, the one that it names.
pub(super) fn visitor(peer: IpAddr, headers: &HeaderMap, settings: &ServeSettings) -> IpAddr {
    let fields: Vec<_> = headers.get_all(X_FORWARDED_FOR).iter().collect();
    let mut hops = fields
        .iter()
        .rev()
        .filter_map(|field| field.to_str().ok())
        .flat_map(|field| field.rsplit(','));
    let mut visitor = peer.to_canonical();
    while settings.trusts(visitor)
        && let Some(hop) = hops.next().and_then(address)
    {
        visitor = hop;
    }
    visitor
}

/// An address as proxies write it: some add the port.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let bare = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
        .unwrap_or(text);
    let with_port = || text.parse().ok().map(|address: SocketAddr| address.ip());
    let address = bare.parse().ok().or_else(with_port)?;
    Some(IpAddr::to_canonical(&address))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;
    use crate::settings::network;

    #[test]
    fn a_trace_is_continued_and_nothing_else_is_taken_for_one() {
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

    #[test]
    fn the_visitor_is_whom_the_last_trusted_proxy_names() {
        let settings = ServeSettings {
            trusted_proxies: ["10.0.0.0/8", "fd00::/8"]
                .map(|text| network(text).unwrap())
                .into(),
            ..ServeSettings::default()
        };
        for (peer, fields, expected) in [
            ("192.0.2.1", &["198.51.100.7"][..], "192.0.2.1"),
            ("10.0.0.1", &[], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.7"], "198.51.100.7"),
            ("10.0.0.1", &["invented, 198.51.100.7"], "198.51.100.7"),
            (
                "10.0.0.1",
                &["192.0.2.9, 198.51.100.7, 10.0.0.2"],
                "198.51.100.7",
            ),
            ("10.0.0.1", &["192.0.2.9", "198.51.100.7"], "198.51.100.7"),
            ("10.0.0.1", &["10.0.0.3"], "10.0.0.3"),
            ("10.0.0.1", &["198.51.100.7:443"], "198.51.100.7"),
            ("fd00::1", &["[2001:db8::7]:443"], "2001:db8::7"),
            ("fd00::1", &["[2001:db8::7]"], "2001:db8::7"),
            ("::ffff:10.0.0.1", &["198.51.100.7"], "198.51.100.7"),
            ("10.0.0.1", &["unknown"], "10.0.0.1"),
        ] {
            let mut headers = HeaderMap::new();
            for field in fields {
                headers.append(X_FORWARDED_FOR, HeaderValue::from_static(field));
            }
            assert_eq!(
                visitor(peer.parse().unwrap(), &headers, &settings).to_string(),
                expected,
                "{peer} {fields:?}"
            );
        }
    }
}
