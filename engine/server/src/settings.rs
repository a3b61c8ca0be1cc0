//! What can be set about serving, with a default and its reason for each.
//!
//! The limits are there so that no client, slow, broken or hostile, can take what the others need. They bound what one connection may hold, and how many there are.
//! They are flags of `serve` as they stand here, so that a limit has one name, one default and one reason; what the reason says is what `--help` prints.
//!
//! **Invariant:** plain values; whoever makes them reads the command line.

use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::time::Duration;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use ipnet::IpNet;
use opentelemetry_sdk::trace::SdkTracer;

use super::access::AccessLog;
use super::events::Events;

/// How to serve.
#[derive(Debug, Clone)]
pub struct ServeSettings {
    /// Threads that answer requests, each with its own event loop. Default: one a core, since a request only computes.
    pub workers: NonZeroUsize,
    /// How long requests under way may take after the signal to stop. Default: 20 s, below the 30 s after which orchestrators kill.
    pub grace: Duration,
    /// Peers that are believed what they say of a request (see [`origin`](super::origin)), and whose connections do not count towards [`Limits::connections_per_address`]. Default: nobody.
    pub trusted_proxies: Vec<IpNet>,
    /// Where a line for each request goes. Default: nowhere, since the counters tell most and proxies have a log.
    pub access_log: Option<AccessLog>,
    /// What is streamed to authors' browsers (`--dev`). Default: nothing, and no connection pays for it.
    pub events: Option<Events>,
    /// Who makes a span of each request. Default: nobody, which costs a request nothing.
    pub spans: Option<SdkTracer>,
    /// What one client may use.
    pub limits: Limits,
}

impl Default for ServeSettings {
    fn default() -> Self {
        Self {
            workers: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            grace: Duration::from_secs(20),
            trusted_proxies: Vec::new(),
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
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(next_help_heading = "Limits")]
pub struct Limits {
    /// Connections in all; for further ones, those that have been idle for longest make room
    ///
    /// While all have a request under way, further ones wait in the system's queue. An idle connection costs some 10 KB, so that the default comes to 40 MB. Each takes a descriptor: as many as the system allows (`LimitNOFILE`, `ulimit -n`), less some 256 for the program itself.
    #[arg(long = "max-connections", env = "ROWHOUSE_MAX_CONNECTIONS", value_name = "NUMBER",
        default_value_t = 4096, value_parser = from_one::<usize>())]
    pub connections: usize,
    /// Connections of one address (IPv6: of one /64 network); further ones are closed at once
    ///
    /// Trusted proxies may have more. The default is enough for the visitors behind one large office's address.
    #[arg(long = "max-connections-per-address", env = "ROWHOUSE_MAX_CONNECTIONS_PER_ADDRESS", value_name = "NUMBER",
        default_value_t = 256, value_parser = from_one::<usize>())]
    pub connections_per_address: usize,
    /// Time for all of a request's header fields to arrive
    ///
    /// It counts from the request's first byte or, on a new connection, from its start. The default is enough for a phone in a tunnel, and too short to hold connections for nothing.
    #[arg(long = "header-timeout", env = "ROWHOUSE_HEADER_TIMEOUT", value_name = "SECONDS",
        default_value = "10", value_parser = seconds)]
    pub header_read: Duration,
    /// Time that a connection may stay open without a request
    ///
    /// The default is longer than the two minutes for which Caddy keeps an unused connection, so that the proxy closes first and never sends into a closing one.
    #[arg(long = "idle-timeout", env = "ROWHOUSE_IDLE_TIMEOUT", value_name = "SECONDS",
        default_value = "130", value_parser = seconds)]
    pub idle: Duration,
    /// Time without progress while a response is being written
    ///
    /// A reader that takes nothing for as long as the default is gone.
    #[arg(long = "write-timeout", env = "ROWHOUSE_WRITE_TIMEOUT", value_name = "SECONDS",
        default_value = "30", value_parser = seconds)]
    pub write: Duration,
    /// Time from a request's first byte to its response's last
    ///
    /// Readers that take a byte now and then pass the other timeouts, and not this one. Within the default, 5 MB arrive at 140 kbit/s.
    #[arg(long = "request-timeout", env = "ROWHOUSE_REQUEST_TIMEOUT", value_name = "SECONDS",
        default_value = "300", value_parser = seconds)]
    pub request: Duration,
    /// Bytes of a request's first line and header fields together; more is answered with 431
    ///
    /// The default is twice what browsers with many cookies send, and what proxies allow at least.
    #[arg(long = "max-header-size", env = "ROWHOUSE_MAX_HEADER_SIZE", value_name = "BYTES",
        default_value_t = 16 * 1024, value_parser = RangedU64ValueParser::<usize>::new().range(256..=1024 * 1024))]
    pub header_bytes: usize,
    /// Header fields of a request; more is answered with 431
    ///
    /// Browsers send some twenty, and a chain of proxies as many again.
    #[arg(long = "max-header-fields", env = "ROWHOUSE_MAX_HEADER_FIELDS", value_name = "NUMBER",
        default_value_t = 100, value_parser = RangedU64ValueParser::<usize>::new().range(1..=10_000))]
    pub header_fields: usize,
    /// Bytes of a request's path and query; more is answered with 414
    ///
    /// No page has a name of half the default, and no query means anything here.
    #[arg(long = "max-uri-length", env = "ROWHOUSE_MAX_URI_LENGTH", value_name = "BYTES",
        default_value_t = 4 * 1024, value_parser = from_one::<usize>())]
    pub uri_bytes: usize,
    /// Requests under way at once on one HTTP/2 connection
    ///
    /// The default is more than the hundred that RFC 9113 (section 6.5.2) asks for at least, since every answer is in memory.
    #[arg(long = "http2-max-streams", env = "ROWHOUSE_HTTP2_MAX_STREAMS", value_name = "NUMBER",
        default_value_t = 128, value_parser = from_one::<u32>())]
    pub http2_streams: u32,
    /// Requests that an HTTP/2 client may take back before they are looked at; then the connection ends
    ///
    /// Browsers take back a few when a visitor leaves a page; the 'rapid reset' attack takes back thousands.
    #[arg(long = "http2-max-resets", env = "ROWHOUSE_HTTP2_MAX_RESETS", value_name = "NUMBER",
        default_value_t = 20, value_parser = from_one::<usize>())]
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
            request: Duration::from_secs(300),
            header_bytes: 16 * 1024,
            header_fields: 100,
            uri_bytes: 4 * 1024,
            http2_streams: 128,
            http2_resets: 20,
        }
    }
}

fn from_one<T: TryFrom<u64>>() -> RangedU64ValueParser<T> {
    RangedU64ValueParser::new().range(1..=u64::from(u32::MAX))
}

/// A time of more than nothing and less than a year.
fn seconds(text: &str) -> Result<Duration, String> {
    const YEAR: f64 = 365.0 * 24.0 * 3600.0;
    text.parse()
        .ok()
        .filter(|seconds| (0.001..=YEAR).contains(seconds))
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "give seconds above 0, as in `10` or `0.5`".to_owned())
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
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Flags {
        #[command(flatten)]
        limits: Limits,
    }

    fn parse(flags: &[&str]) -> Result<Limits, String> {
        Flags::try_parse_from(std::iter::once(&"rowhouse").chain(flags))
            .map(|flags| flags.limits)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn flags_and_library_have_the_same_defaults() {
        assert_eq!(parse(&[]), Ok(Limits::default()));
    }

    #[test]
    fn a_limit_is_set_by_its_flag() {
        let limits = parse(&["--header-timeout", "0.5", "--max-uri-length=64"]).unwrap();
        assert_eq!(limits.header_read, Duration::from_millis(500));
        assert_eq!(limits.uri_bytes, 64);
    }

    #[test]
    fn a_bad_limit_is_refused_with_its_flag_and_what_is_wanted() {
        for (flag, value, wanted) in [
            ("--max-connections", "0", "0 is not in 1.."),
            ("--max-header-size", "10", "10 is not in 256..=1048576"),
            ("--idle-timeout", "0", "give seconds above 0"),
            ("--idle-timeout", "NaN", "give seconds above 0"),
            ("--write-timeout", "soon", "give seconds above 0"),
            ("--http2-max-streams", "-1", "invalid"),
        ] {
            let error = parse(&[&format!("{flag}={value}")]).unwrap_err();
            assert!(
                error.contains(flag) && error.contains(wanted),
                "{flag} {value}: {error}"
            );
        }
    }

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
