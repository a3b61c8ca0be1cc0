//! The flags of `serve` that set what the crates below know as plain values: one name, one default and one reason each.
//!
//! **Invariant:** what is here is turned into such a value, and used for nothing else.

use std::time::Duration;

use clap::Args;
use clap::builder::RangedU64ValueParser;

use content::tenant::manifest::Hsts;
use render::Caching;
use server::settings::Limits;

/// How long shared caches, a CDN's for example, may keep pages. Browsers ask again in any case.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Caching")]
pub struct CachingFlags {
    /// Time for which shared caches, such as a CDN, may keep a page without asking (`s-maxage`)
    ///
    /// A saved page reaches the visitors of a CDN after that time, or once the CDN is told to purge its `Cache-Tag`: the tenant's id for all its pages (`corner`), or id and path for one (`corner/terms`). Without this flag caches ask every time.
    #[arg(
        long = "page-shared-max-age",
        env = "ROWHOUSE_PAGE_SHARED_MAX_AGE",
        value_name = "SECONDS"
    )]
    pub shared_max_age: Option<u32>,
    /// Time for which caches may answer with an old page while they ask for the new one (`stale-while-revalidate`)
    #[arg(
        long = "page-stale-while-revalidate",
        env = "ROWHOUSE_PAGE_STALE_WHILE_REVALIDATE",
        value_name = "SECONDS"
    )]
    pub stale_while_revalidate: Option<u32>,
}

impl From<CachingFlags> for Caching {
    fn from(flags: CachingFlags) -> Self {
        Self {
            shared_max_age: flags.shared_max_age,
            stale_while_revalidate: flags.stale_while_revalidate,
        }
    }
}

/// What one client may use.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitFlags {
    /// Connections at once; for further ones, those that have been idle for longest are closed
    ///
    /// While all have a request in flight, further ones wait in the system's queue. An idle connection costs some 10 KB, so that the default comes to 40 MB. Each takes a file descriptor: where the system allows fewer (`LimitNOFILE`, `ulimit -n`), the limit is lowered, and some 256 are left to the program itself.
    #[arg(long = "max-connections", env = "ROWHOUSE_MAX_CONNECTIONS", value_name = "NUMBER",
        default_value_t = 4096, value_parser = from_one::<usize>())]
    pub connections: usize,
    /// Connections at once of one address (IPv6: of one /64 network); further ones are refused
    ///
    /// Trusted proxies may have more. The default is enough for the visitors behind one large office's address.
    #[arg(long = "max-connections-per-address", env = "ROWHOUSE_MAX_CONNECTIONS_PER_ADDRESS", value_name = "NUMBER",
        default_value_t = 256, value_parser = from_one::<usize>())]
    pub connections_per_address: usize,
    /// Time for a TLS handshake, and for what a proxy says before it
    ///
    /// It takes three packets each way; the default is enough where each of them is lost once.
    #[arg(long = "handshake-timeout", env = "ROWHOUSE_HANDSHAKE_TIMEOUT", value_name = "SECONDS",
        default_value = "10", value_parser = seconds)]
    pub handshake: Duration,
    /// TLS handshakes of one address (IPv6: of one /64 network) in flight at once; further ones are refused
    ///
    /// Trusted proxies may have more. A handshake is over in the time of two round trips.
    #[arg(long = "max-handshakes-per-address", env = "ROWHOUSE_MAX_HANDSHAKES_PER_ADDRESS", value_name = "NUMBER",
        default_value_t = 64, value_parser = from_one::<usize>())]
    pub handshakes_per_address: usize,
    /// TLS handshakes that one address may begin in a second, over time; four times as many may begin together
    ///
    /// A handshake costs a few hundred times what a request does. A browser needs one or two for a visit.
    #[arg(long = "handshake-rate", env = "ROWHOUSE_HANDSHAKE_RATE", value_name = "NUMBER",
        default_value_t = 50, value_parser = from_one::<u32>())]
    pub handshake_rate: u32,
    /// Time for all of a request's header fields to arrive
    ///
    /// It counts from the request's first byte or, on a new connection, from its start. The default is enough for a phone in a tunnel, and too short to hold connections open for nothing.
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
    /// A client that takes nothing for that long is gone.
    #[arg(long = "write-timeout", env = "ROWHOUSE_WRITE_TIMEOUT", value_name = "SECONDS",
        default_value = "30", value_parser = seconds)]
    pub write: Duration,
    /// Time from a request's first byte to its response's last
    ///
    /// Clients that take a byte now and then pass the other timeouts, but not this one. Within the default, 5 MB arrive at 140 kbit/s.
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
    /// No page has a path of half the default, and no query means anything here.
    #[arg(long = "max-uri-length", env = "ROWHOUSE_MAX_URI_LENGTH", value_name = "BYTES",
        default_value_t = 4 * 1024, value_parser = from_one::<usize>())]
    pub uri_bytes: usize,
    /// Requests in flight at once on one HTTP/2 connection
    ///
    /// The default is more than the hundred that RFC 9113 (section 6.5.2) asks for at least, since every answer is in memory.
    #[arg(long = "http2-max-streams", env = "ROWHOUSE_HTTP2_MAX_STREAMS", value_name = "NUMBER",
        default_value_t = 128, value_parser = from_one::<u32>())]
    pub http2_streams: u32,
    /// Requests that an HTTP/2 client may cancel before they are looked at; then its connection is closed
    ///
    /// Browsers cancel a few when a visitor leaves a page; the 'rapid reset' attack cancels thousands.
    #[arg(long = "http2-max-resets", env = "ROWHOUSE_HTTP2_MAX_RESETS", value_name = "NUMBER",
        default_value_t = 20, value_parser = from_one::<usize>())]
    pub http2_resets: usize,
}

impl From<&LimitFlags> for Limits {
    fn from(flags: &LimitFlags) -> Self {
        Self {
            connections: flags.connections,
            connections_per_address: flags.connections_per_address,
            handshake: flags.handshake,
            handshakes_per_address: flags.handshakes_per_address,
            handshake_rate: flags.handshake_rate,
            header_read: flags.header_read,
            idle: flags.idle,
            write: flags.write,
            request: flags.request,
            header_bytes: flags.header_bytes,
            header_fields: flags.header_fields,
            uri_bytes: flags.uri_bytes,
            http2_streams: flags.http2_streams,
            http2_resets: flags.http2_resets,
        }
    }
}

/// What a manifest may say of `hsts`, too.
pub(super) fn hsts(text: &str) -> Result<Hsts, String> {
    let value = serde_json::Value::String(text.to_owned());
    serde_json::from_value(value)
        .map_err(|_| "give `host`, `subdomains`, `preload` or `off`".to_owned())
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Flags {
        #[command(flatten)]
        limits: LimitFlags,
    }

    fn parse(flags: &[&str]) -> Result<Limits, String> {
        Flags::try_parse_from(std::iter::once(&"rowhouse").chain(flags))
            .map(|flags| Limits::from(&flags.limits))
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
}
