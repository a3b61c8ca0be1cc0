//! Settings of the server, each with its default and the reason for the default.
//!
//! The limits keep a slow, broken or hostile client from using the resources of other clients. The limits apply to the resources of a connection, and to the number of connections.
//! Each limit is a flag of `serve` with the same default; `--help` gives the reason for the default.
//!
//! **Invariant:** plain values; the caller parses the command line.

pub mod operator_file;

use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use ipnet::IpNet;

use super::tls::Tls;
use crate::access_log::AccessLog;
use crate::access_log::spans::RequestSpans;
use crate::connection::events::EventChannel;

/// Settings of the server.
#[derive(Debug, Clone)]
pub struct ServeSettings {
    /// Worker threads, each with its own event loop. Default: one per core, since a request only uses the CPU.
    pub workers: NonZeroUsize,
    /// Grace period for requests in flight after the signal to stop. Default: 20 s, below the 30 s after which orchestrators kill a process.
    pub grace: Duration,
    /// Proxies whose header fields about a request are trusted (see [`forwarded`](crate::request::forwarded)). Their connections do not count towards [`Limits::connections_per_address`]. Default: none.
    pub trusted_proxies: Vec<IpNet>,
    /// Whether connections of trusted proxies begin with a PROXY protocol header, which names the visitor (see [`proxy_header`](crate::connection::proxy_header)). Other connections never begin with such a header. Default: no.
    pub proxy_protocol: bool,
    /// The certificates and settings of HTTPS. Default: none; connections without TLS then cost nothing extra.
    pub tls: Option<Arc<Tls>>,
    /// The origin to which requests for other names of this machine are redirected (see [`is_loopback`](crate::response::redirect::is_loopback)). Default: none. Only for servers that other machines cannot reach.
    pub loopback_origin: Option<HeaderValue>,
    /// Whether visitors reach the origin by HTTPS. Connections without TLS then come from a proxy that ends TLS, unless this program ends TLS itself. Protected tenants need it. Default: no.
    pub is_origin_secure: bool,
    /// The access log. Default: none, since the counters hold most figures and proxies have a log of their own.
    pub access_log: Option<AccessLog>,
    /// Events that are streamed to authors' browsers (`--dev`). Default: none; connections then cost nothing extra.
    pub events: Option<EventChannel>,
    /// The recorder of a span for each request. Default: none, which costs a request nothing.
    pub spans: Option<Arc<dyn RequestSpans>>,
    /// Whether plain HTTP/1.1 requests are answered without hyper (see [`fast_lane`](crate::connection::fast_lane)). Default: yes.
    pub fast_lane: bool,
    /// Limits on the resources of a client.
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
            loopback_origin: None,
            is_origin_secure: false,
            access_log: None,
            events: None,
            spans: None,
            fast_lane: true,
            limits: Limits::default(),
        }
    }
}

impl ServeSettings {
    /// Returns whether `address` belongs to a trusted proxy.
    #[must_use]
    pub fn trusts(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.trusted_proxies
            .iter()
            .any(|network| network.contains(&address))
    }
}

/// Limits on the resources of a client.
///
/// Timeouts are checked twice a second, so a connection may end up to a second late. An exact timer on every connection would cost time per request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Open connections. Beyond the limit, the connections that have been idle for longest are closed.
    pub connections: usize,
    /// Open connections per client address (IPv6: per /64 network). Further connections are closed at once.
    pub connections_per_address: usize,
    /// Timeout for a TLS handshake.
    pub handshake: Duration,
    /// TLS handshakes in flight per client address (IPv6: per /64 network). Further connections are closed at once.
    pub handshakes_per_address: usize,
    /// TLS handshakes per second and client address, on average. A burst may have four times as many.
    pub handshake_rate: u32,
    /// Timeout for all header fields of a request to arrive.
    pub header_read: Duration,
    /// Timeout for a connection without a request.
    pub idle: Duration,
    /// Timeout for a response of which no byte can be written.
    pub write: Duration,
    /// Timeout from the first byte of a request to the last byte of its response.
    pub request: Duration,
    /// Bytes of a request's first line and header fields together. Larger requests get 431.
    pub header_bytes: usize,
    /// Header fields of a request. Requests with more get 431.
    pub header_fields: usize,
    /// Bytes of a request's path and query. Longer targets get 414.
    pub uri_bytes: usize,
    /// Requests in flight on one HTTP/2 connection.
    pub http2_streams: u32,
    /// Requests that an HTTP/2 client may reset before they are processed. Beyond the limit the connection is closed.
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

/// Parses a network (`10.0.0.0/8`) or a single address.
///
/// # Errors
/// When `text` is neither.
pub fn network(text: &str) -> Result<IpNet, String> {
    text.parse()
        .map(|network: IpNet| network.trunc())
        .or_else(|_| {
            text.parse()
                .map(|address: IpAddr| IpNet::from(address.to_canonical()))
        })
        .map_err(|_| {
            "write a network or an address, as in `10.0.0.0/8`, `fd00::/8` or `127.0.0.1`"
                .to_owned()
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
