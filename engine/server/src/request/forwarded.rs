//! Determines the visitor's address, and defines which header fields of proxies are trusted.
//!
//! Three fields are read from proxies that `--trusted-proxy` names, and ignored from all other peers:
//! * `X-Request-Id` is the request's id in the proxy's log, so that the lines of both logs can be matched. Two such fields are ignored, since the first may be the client's;
//! * `traceparent` (W3C Trace Context, section 3.2) names the trace of the request;
//! * `X-Forwarded-For` names the visitor. Each proxy appends the address of its own peer. The field is therefore read from its end, for as long as the addresses are trusted proxies.
//!
//! `X-Forwarded-Proto` and `X-Forwarded-Host` are never read: `--origin` sets the scheme, and proxies pass `Host` on unchanged. `Forwarded` (RFC 7239) would add nothing to these three fields.
//!
//! **Invariant:** pure; chooses no response.

use std::net::{IpAddr, SocketAddr};

use http::HeaderMap;
use http::header::HeaderName;

use crate::settings::ServeSettings;

pub(crate) const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Returns the visitor's address: the peer's, or the address that a trusted proxy names.
pub(crate) fn visitor(peer: IpAddr, headers: &HeaderMap, settings: &ServeSettings) -> IpAddr {
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

/// Parses an address as proxies write it: with or without brackets and port.
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
    fn visitor_is_the_address_that_the_last_trusted_proxy_names() {
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
