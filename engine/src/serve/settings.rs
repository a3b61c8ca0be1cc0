//! What can be set about serving, with a default and its reason for each.
//!
//! The limits are there so that no client, slow, broken or hostile, can take what the others need. They bound what one connection may hold, and how many there are.
//!
//! **Invariant:** plain values; reads no flags and no environment.

use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::time::Duration;

/// How to serve.
#[derive(Debug, Clone)]
pub struct ServeSettings {
    /// Threads that answer requests, each with its own event loop. Default: one a core, since a request only computes.
    pub workers: NonZeroUsize,
    /// How long requests under way may take after the signal to stop. Default: 20 s, below the 30 s after which orchestrators kill.
    pub grace: Duration,
    /// Peers whose `X-Request-Id` is believed and who may hold more connections than [`Limits::connections_per_address`]. Default: the loopback addresses, where a proxy on the same machine is.
    pub trusted_proxies: Vec<IpAddr>,
    /// Whether each request is told as an event of the target [`access`](super::access::TARGET). Default: no, since it costs a request half as much again.
    pub access_log: bool,
    /// What one client may use.
    pub limits: Limits,
}

impl Default for ServeSettings {
    fn default() -> Self {
        Self {
            workers: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            grace: Duration::from_secs(20),
            trusted_proxies: vec![
                IpAddr::from([127, 0, 0, 1]),
                IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]),
            ],
            access_log: false,
            limits: Limits::default(),
        }
    }
}

/// What clients may use. Timeouts are kept to within a second: a late end costs nothing, an exact clock on every connection would.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections in all; further ones wait in the system's queue. Default: 4096, what an idle connection costs (some 10 KB) makes 40 MB of it.
    pub connections: usize,
    /// Connections of one address (IPv6: of one /64 network); further ones are closed at once. Default: 256, enough for the visitors behind one large office's address.
    pub connections_per_address: usize,
    /// Time for all of a request's header fields to arrive, from the first byte or, on a new connection, from its start. Default: 10 s, enough for a phone in a tunnel, too short to hold connections for nothing.
    pub header_read: Duration,
    /// Time that a connection may stay open between requests. Default: 130 s, longer than the two minutes for which Caddy keeps an unused connection, so that the proxy closes first and never sends into a closing one.
    pub idle: Duration,
    /// Time without progress while a response is being written. Default: 30 s, since a reader that takes nothing for so long is gone.
    pub write: Duration,
    /// Bytes of a request's first line and header fields together; more is answered with 431. Default: 16 KiB, twice what browsers with many cookies send, and the least that every proxy allows.
    pub header_bytes: usize,
    /// Header fields of a request; more is answered with 431. Default: 100.
    pub header_fields: usize,
    /// Bytes of the path and query; more is answered with 414. Default: 4 KiB; no page has a name of half that.
    pub uri_bytes: usize,
    /// Requests under way at once on one HTTP/2 connection. Default: 128; more than the hundred that RFC 9113 (section 6.5.2) asks for at least, since every answer is in memory.
    pub http2_streams: u32,
    /// Requests that an HTTP/2 client may take back before they are answered; then the connection ends. Default: 20 (the 'rapid reset' attack sends thousands).
    pub http2_resets: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 4096,
            connections_per_address: 256,
            header_read: Duration::from_secs(10),
            idle: Duration::from_secs(130),
            write: Duration::from_secs(30),
            header_bytes: 16 * 1024,
            header_fields: 100,
            uri_bytes: 4 * 1024,
            http2_streams: 128,
            http2_resets: 20,
        }
    }
}
