//! The flags of `serve` for the content, caching and limits, with their defaults and the reason for each default. Other commands share some.
//!
//! **Invariant:** a flag becomes a plain value of another crate, and is used for nothing else.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::RangedU64ValueParser;

use content::address::Origin;
use content::tenant::manifest::Hsts;
use render::CachePolicy;
use server::settings::Limits;

use super::values;

/// The folders of the content, and the origin of the sites.
#[derive(Debug, Clone, Args)]
pub struct ContentFlags {
    /// Folder of tenants; each folder in it is a site
    #[arg(
        long,
        env = "ROWHOUSE_TENANTS",
        value_name = "DIR",
        default_value = "tenants"
    )]
    pub tenants: PathBuf,
    /// Folder of themes [default: `themes` if it exists, else the built-in themes]
    #[arg(long, env = "ROWHOUSE_THEMES", value_name = "DIR")]
    pub themes: Option<PathBuf>,
    /// File that names the root tenant and the addresses of tenants
    ///
    /// The file names the tenant at the root of the domain, and lists the hosts and paths that each tenant may claim, and the credentials that its visitors need. The default is `deployment.yaml` in the folder of tenants, if that file exists.
    #[arg(long, env = "ROWHOUSE_DEPLOYMENT", value_name = "FILE")]
    pub deployment: Option<PathBuf>,
    /// URL that visitors type to reach the sites: scheme, domain, optional port
    ///
    /// Each tenant is served at a path of this domain (`/corner`) and at a host below it (`corner.<domain>`).
    #[arg(
        long,
        env = "ROWHOUSE_ORIGIN",
        value_name = "URL",
        default_value = "http://localhost:8080",
        value_parser = values::origin
    )]
    pub origin: Origin,
    /// Scope of HSTS (TLS only): `host`, `subdomains`, `preload` or `off`
    ///
    /// With `Strict-Transport-Security` (RFC 6797), browsers reach a host by TLS only. `subdomains` and `preload` bind every host below the domain, including the hosts of other programs. The default is the setting of the root tenant's manifest, or else `host`.
    #[arg(long, env = "ROWHOUSE_HSTS", value_name = "SCOPE", value_parser = hsts)]
    pub hsts: Option<Hsts>,
    /// Folder with a build of the islands [default: the built-in build]
    ///
    /// Islands are the React components of pages. `node ui/build.mjs --out DIR` writes such a folder.
    #[arg(long, env = "ROWHOUSE_UI_DIST", value_name = "DIR")]
    pub ui_dist: Option<PathBuf>,
    /// Whether the examples of section types are pages; only `manual` sets it.
    #[arg(skip)]
    pub shows_section_examples: bool,
}

/// How long caches may serve pages without asking the server. Browsers revalidate pages in any case.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Caching")]
pub struct CachingFlags {
    /// Time that shared caches such as a CDN may serve a page (`s-maxage`)
    ///
    /// Visitors behind a CDN see a changed page after this time, or when the CDN purges the `Cache-Tag` of the page. The tag `corner` stands for all pages of the tenant `corner`, and `corner/terms` for the page `/terms`. Without this flag, caches revalidate a page at every request.
    #[arg(
        long = "page-shared-max-age",
        env = "ROWHOUSE_PAGE_SHARED_MAX_AGE",
        value_name = "DURATION",
        value_parser = values::whole_seconds::<u32>
    )]
    pub shared_max_age: Option<u32>,
    /// Time that caches may serve an old page while they fetch the new page
    ///
    /// Responses name this time as `stale-while-revalidate` (RFC 5861).
    #[arg(
        long = "page-stale-while-revalidate",
        env = "ROWHOUSE_PAGE_STALE_WHILE_REVALIDATE",
        value_name = "DURATION",
        value_parser = values::whole_seconds::<u32>
    )]
    pub stale_while_revalidate: Option<u32>,
}

impl From<CachingFlags> for CachePolicy {
    fn from(flags: CachingFlags) -> Self {
        Self {
            shared_max_age: flags.shared_max_age,
            stale_while_revalidate: flags.stale_while_revalidate,
        }
    }
}

/// The limits on visitors' connections and requests.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitFlags {
    /// Visitors' connections at once
    ///
    /// At the limit, the connections with the longest idle time are closed for new connections. While every connection has a request in flight, new connections wait in the system's queue.
    ///
    /// An idle connection costs about 10 KB, so the default costs about 40 MB. Each connection takes a file descriptor. If the system allows fewer (`LimitNOFILE`, `ulimit -n`), the limit is lowered; about 256 descriptors are reserved for the program itself.
    #[arg(long = "max-connections", env = "ROWHOUSE_MAX_CONNECTIONS", value_name = "NUMBER",
        default_value_t = 4096, value_parser = from_one::<usize>())]
    pub connections: usize,
    /// Connections at once from one IP address (IPv6: one /64 network)
    ///
    /// Further connections are refused. Trusted proxies have no such limit. The default is enough for the visitors behind the address of a large office.
    #[arg(long = "max-connections-per-address", env = "ROWHOUSE_MAX_CONNECTIONS_PER_ADDRESS", value_name = "NUMBER",
        default_value_t = 256, value_parser = from_one::<usize>())]
    pub connections_per_address: usize,
    /// Time limit for a TLS handshake, with the PROXY header before it
    ///
    /// A handshake takes three packets each way. The default is enough even if each packet is lost once.
    #[arg(long = "handshake-timeout", env = "ROWHOUSE_HANDSHAKE_TIMEOUT", value_name = "DURATION",
        default_value = "10s", value_parser = values::timeout)]
    pub handshake: Duration,
    /// TLS handshakes in flight from one IP address (IPv6: one /64 network)
    ///
    /// Further handshakes are refused. Trusted proxies have no such limit. A handshake takes two round trips.
    #[arg(long = "max-handshakes-per-address", env = "ROWHOUSE_MAX_HANDSHAKES_PER_ADDRESS", value_name = "NUMBER",
        default_value_t = 64, value_parser = from_one::<usize>())]
    pub handshakes_per_address: usize,
    /// TLS handshakes per second from one IP address, on average
    ///
    /// A burst may have four times as many handshakes. A handshake takes a few hundred times the processor time of a request. A browser needs one or two handshakes per visit.
    #[arg(long = "handshake-rate", env = "ROWHOUSE_HANDSHAKE_RATE", value_name = "NUMBER",
        default_value_t = 50, value_parser = from_one::<u32>())]
    pub handshake_rate: u32,
    /// Time limit for all header fields of a request to arrive
    ///
    /// The time counts from the first byte of the request or, on a new connection, from its start. The default is enough for a phone with a bad connection, and limits how long a client can hold a connection without a request.
    #[arg(long = "header-timeout", env = "ROWHOUSE_HEADER_TIMEOUT", value_name = "DURATION",
        default_value = "10s", value_parser = values::timeout)]
    pub header_read: Duration,
    /// Time that a connection may stay open without a request
    ///
    /// The default is longer than the two minutes for which Caddy keeps an unused connection. So the proxy closes first, and never sends a request into a closing connection.
    #[arg(long = "idle-timeout", env = "ROWHOUSE_IDLE_TIMEOUT", value_name = "DURATION",
        default_value = "130s", value_parser = values::timeout)]
    pub idle: Duration,
    /// Time without progress while a response is written
    ///
    /// A client that reads nothing for this long is disconnected.
    #[arg(long = "write-timeout", env = "ROWHOUSE_WRITE_TIMEOUT", value_name = "DURATION",
        default_value = "30s", value_parser = values::timeout)]
    pub write: Duration,
    /// Time limit from a request's first byte to its response's last
    ///
    /// A client that reads single bytes passes the other timeouts, but not this timeout. Within the default, 5 MB arrive at 140 kbit/s.
    #[arg(long = "request-timeout", env = "ROWHOUSE_REQUEST_TIMEOUT", value_name = "DURATION",
        default_value = "5m", value_parser = values::timeout)]
    pub request: Duration,
    /// Size of a request's first line and header fields together
    ///
    /// A larger request gets status 431. The default is twice the size that browsers send with many cookies, and equals the lowest limit of common proxies.
    #[arg(long = "max-header-size", env = "ROWHOUSE_MAX_HEADER_SIZE", value_name = "SIZE",
        default_value = "16KiB", value_parser = values::size::<usize>(256..=1024 * 1024))]
    pub header_bytes: usize,
    /// Header fields of a request
    ///
    /// A request with more fields gets status 431. Browsers send about twenty, and a chain of proxies adds as many.
    #[arg(long = "max-header-fields", env = "ROWHOUSE_MAX_HEADER_FIELDS", value_name = "NUMBER",
        default_value_t = 100, value_parser = RangedU64ValueParser::<usize>::new().range(1..=10_000))]
    pub header_fields: usize,
    /// Size of a request's path and query
    ///
    /// A longer path and query get status 414. No page has a path of half the default, and the server ignores queries.
    #[arg(long = "max-uri-length", env = "ROWHOUSE_MAX_URI_LENGTH", value_name = "SIZE",
        default_value = "4KiB", value_parser = values::size::<usize>(1..=u64::from(u32::MAX)))]
    pub uri_bytes: usize,
    /// Requests in flight at once on one HTTP/2 connection
    ///
    /// The default is above the 100 that RFC 9113 (section 6.5.2) recommends as a minimum, since every response is in memory.
    #[arg(long = "http2-max-streams", env = "ROWHOUSE_HTTP2_MAX_STREAMS", value_name = "NUMBER",
        default_value_t = 128, value_parser = from_one::<u32>())]
    pub http2_streams: u32,
    /// Requests that an HTTP/2 client may cancel before they are processed
    ///
    /// At the limit, the connection is closed. Browsers cancel a few requests when a visitor leaves a page; the Rapid Reset attack cancels thousands.
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

/// Parses the scope of HSTS, as a manifest has it under `hsts`.
pub(super) fn hsts(text: &str) -> Result<Hsts, String> {
    let value = serde_json::Value::String(text.to_owned());
    serde_json::from_value(value)
        .map_err(|_| "write `host`, `subdomains`, `preload` or `off`".to_owned())
}

fn from_one<T: TryFrom<u64>>() -> RangedU64ValueParser<T> {
    RangedU64ValueParser::new().range(1..=u64::from(u32::MAX))
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
    fn flag_sets_its_limit() {
        let limits = parse(&[
            "--header-timeout=0.5",
            "--write-timeout=200ms",
            "--max-uri-length=64",
            "--max-header-size=8KiB",
        ]);
        let limits = limits.unwrap();
        assert_eq!(limits.header_read, Duration::from_millis(500));
        assert_eq!(limits.write, Duration::from_millis(200));
        assert_eq!((limits.uri_bytes, limits.header_bytes), (64, 8192));
    }

    #[test]
    fn bad_limit_is_refused_with_its_flag_and_the_right_form() {
        for (flag, value, form) in [
            ("--max-connections", "0", "0 is not in 1.."),
            ("--max-header-size", "10", "from 256 to 1048576 bytes"),
            ("--idle-timeout", "0", "such as 200ms"),
            ("--idle-timeout", "NaN", "such as 200ms"),
            ("--write-timeout", "soon", "such as 200ms"),
            ("--http2-max-streams", "-1", "invalid"),
        ] {
            let error = parse(&[&format!("{flag}={value}")]).unwrap_err();
            assert!(
                error.contains(flag) && error.contains(form),
                "{flag} {value}: {error}"
            );
        }
    }
}
