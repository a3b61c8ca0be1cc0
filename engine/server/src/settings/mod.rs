//! What can be set about serving, with a default and its reason for each.
//!
//! The limits are there so that no client, slow, broken or hostile, can take what the others need. They bound what one connection may hold, and how many there are.
//! Each limit is a flag of `serve` with the same default; `--help` says why it has that one.
//!
//! **Invariant:** plain values; whoever makes them reads the command line.

pub mod operator_file;

use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;

use super::tls::Tls;
use crate::access_log::AccessLog;
use crate::access_log::spans::RequestSpans;
use crate::connection::events::Events;

/// How to serve.
#[derive(Debug, Clone)]
pub struct ServeSettings {
    /// Threads that answer requests, each with its own event loop. Default: one a core, since a request only computes.
    pub workers: NonZeroUsize,
    /// How long requests in flight may take after the signal to stop. Default: 20 s, below the 30 s after which orchestrators kill.
    pub grace: Duration,
    /// Peers that are believed what they say of a request (see [`forwarded`](crate::request::forwarded)), and whose connections do not count towards [`Limits::connections_per_address`]. Default: nobody.
    pub trusted_proxies: Vec<IpNet>,
    /// Whether connections of trusted proxies begin with the PROXY protocol, which names the visitor (see [`proxy_header`](crate::connection::proxy_header)). Default: no; those of everybody else never do.
    pub proxy_protocol: bool,
    /// What HTTPS is spoken with. Default: nothing, and connections without TLS pay for none of it.
    pub tls: Option<Arc<Tls>>,
    /// Where a line for each request goes. Default: nowhere, since the counters tell most and proxies have a log.
    pub access_log: Option<AccessLog>,
    /// What is streamed to authors' browsers (`--dev`). Default: nothing, and no connection pays for it.
    pub events: Option<Events>,
    /// Who makes a span of each request. Default: nobody, which costs a request nothing.
    pub spans: Option<Arc<dyn RequestSpans>>,
    /// What one client may use.
    pub limits: Limits,
}

impl Default for ServeSettings {
    fn default() -> Self {
        Self {
            workers: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            grace: Duration::from_secs(20),
            trusted_proxies: Vec::new(),
            proxy_protocol: false,
            tls: None,
            access_log: None,
            events: None,
            spans: None,
            limits: Limits::default(),
        }
    }
}

impl ServeSettings {
    /// Whether `address` is a trusted proxy's.
    #[must_use]
    pub fn trusts(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.trusted_proxies
            .iter()
            .any(|network| network.contains(&address))
    }
}

/// What clients may use. Timeouts are kept to within a second: a late end costs nothing, an exact clock on every connection would.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Connections in all; for further ones, those that have been idle for longest make room.
    pub connections: usize,
    /// Connections of one address (IPv6: of one /64 network); further ones are closed at once.
    pub connections_per_address: usize,
    /// Time for a TLS handshake.
    pub handshake: Duration,
    /// TLS handshakes of one address (IPv6: of one /64 network) in flight at once; further ones are closed at once.
    pub handshakes_per_address: usize,
    /// TLS handshakes that one address may begin in a second, over time; four times as many may begin together.
    pub handshake_rate: u32,
    /// Time for all of a request's header fields to arrive.
    pub header_read: Duration,
    /// Time that a connection may stay open without a request.
    pub idle: Duration,
    /// Time without progress while a response is being written.
    pub write: Duration,
    /// Time from a request's first byte to its response's last.
    pub request: Duration,
    /// Bytes of a request's first line and header fields together; more is answered with 431.
    pub header_bytes: usize,
    /// Header fields of a request; more is answered with 431.
    pub header_fields: usize,
    /// Bytes of a request's path and query; more is answered with 414.
    pub uri_bytes: usize,
    /// Requests in flight at once on one HTTP/2 connection.
    pub http2_streams: u32,
    /// Requests that an HTTP/2 client may take back before they are looked at; then the connection ends.
    pub http2_resets: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 4096,
            connections_per_address: 256,
            handshake: Duration::from_secs(10),
            handshakes_per_address: 64,
            handshake_rate: 50,
            header_read: Duration::from_secs(10),
            idle: Duration::from_secs(130),
            write: Duration::from_secs(30),
            request: Duration::from_secs(300),
            header_bytes: 16 * 1024,
            header_fields: 100,
            uri_bytes: 4 * 1024,
            http2_streams: 128,
            http2_resets: 20,
        }
    }
}

/// A network (`10.0.0.0/8`) or a single address.
///
/// # Errors
/// When it is neither.
pub fn network(text: &str) -> Result<IpNet, String> {
    text.parse()
        .map(|network: IpNet| network.trunc())
        .or_else(|_| {
            text.parse()
                .map(|address: IpAddr| IpNet::from(address.to_canonical()))
        })
        .map_err(|_| {
            "give a network or an address, as in `10.0.0.0/8`, `fd00::/8` or `127.0.0.1`".to_owned()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_trusted_by_its_network() {
        let settings = ServeSettings {
            trusted_proxies: ["10.1.2.3/8", "127.0.0.1", "fd00::/8"]
                .map(|text| network(text).unwrap())
                .into(),
            ..ServeSettings::default()
        };
        for (address, trusted) in [
            ("10.200.0.1", true),
            ("11.0.0.1", false),
            ("127.0.0.1", true),
            ("::ffff:127.0.0.1", true),
            ("127.0.0.2", false),
            ("fd12::1", true),
            ("::1", false),
        ] {
            assert_eq!(
                settings.trusts(address.parse().unwrap()),
                trusted,
                "{address}"
            );
        }
        for text in ["", "localhost", "10.0.0.0/33", "10.0.0"] {
            assert!(network(text).unwrap_err().contains("10.0.0.0/8"), "{text}");
        }
    }
}
