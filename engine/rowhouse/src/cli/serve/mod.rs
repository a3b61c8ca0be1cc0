//! The arguments of `serve`.
//!
//! **Invariant:** each flag has a variable, for service managers and container engines.

pub mod alerts;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::BoolishValueParser;
use clap::{Args, ValueEnum};
use ipnet::IpNet;
use url::Url;

use server::admin::host_name;
use server::settings::network;

use crate::cli::flags::{CachingFlags, ContentFlags, LimitFlags};
use crate::cli::https::HttpsFlags;
use crate::cli::running::AdminTokenFlag;
use crate::cli::serve::alerts::AlertFlags;
use crate::cli::values;

/// The arguments of `serve`.
#[derive(Debug, Clone, Args)]
pub struct ServeArguments {
    /// The folders and the origin.
    #[command(flatten)]
    pub content: ContentFlags,
    /// Address and port to listen on for visitors
    ///
    /// A port alone listens on 127.0.0.1. `[::]:8080` and `0.0.0.0:8080` listen on every address.
    #[arg(
        long,
        env = "ROWHOUSE_LISTEN",
        value_name = "ADDRESS",
        default_value = "127.0.0.1:8080",
        value_parser = values::address
    )]
    pub listen: SocketAddr,
    /// Address and port of the admin listener: console, health, metrics
    #[arg(
        long,
        env = "ROWHOUSE_ADMIN",
        value_name = "ADDRESS",
        default_value = "127.0.0.1:8081",
        value_parser = values::address
    )]
    pub admin: SocketAddr,
    /// Host name of the admin listener, besides IP addresses and `localhost`
    ///
    /// May be repeated; in the variable, separate values by commas. Requests for any other name are refused. This stops web pages that reach the listener under a name of their own (DNS rebinding).
    #[arg(
        long,
        env = "ROWHOUSE_ADMIN_HOSTS",
        value_name = "NAME",
        value_delimiter = ',',
        value_parser = host_name
    )]
    pub admin_host: Vec<String>,
    /// The token of commands.
    #[command(flatten)]
    pub token: AdminTokenFlag,
    /// Time for requests in flight to finish after SIGTERM or Ctrl-C
    ///
    /// Choose less than the time after which the service manager kills the process. Most service managers wait for 30 seconds.
    #[arg(
        long,
        env = "ROWHOUSE_GRACE",
        value_name = "DURATION",
        default_value = "20s",
        value_parser = values::whole_seconds::<u64>
    )]
    pub grace: u64,
    /// Take over from the running server, without a failed request
    ///
    /// The running server passes its listening sockets to this process. Once this process is ready and accepts connections, the running server drains and exits. If this process does not become ready, the running server serves as before. Without a running server, this process starts normally. Start this process as the same user, with the same flags.
    #[arg(
        long,
        env = "ROWHOUSE_TAKEOVER",
        value_parser = BoolishValueParser::new()
    )]
    pub takeover: bool,
    /// Unix socket for `--takeover` [default: in `control` of `--state`]
    ///
    /// Only processes of the same user can use the socket. The default is the file `control/PORT.sock` in the folder of `--state`, where `PORT` is the port of `--admin`.
    #[arg(long, env = "ROWHOUSE_CONTROL_SOCKET", value_name = "FILE")]
    pub control_socket: Option<PathBuf>,
    /// Method of noticing changes in the folders
    #[arg(
        long,
        env = "ROWHOUSE_WATCH",
        value_name = "METHOD",
        default_value = "auto"
    )]
    pub watch: WatchMethod,
    /// Object store with the tenants, in place of `--tenants`
    ///
    /// A bucket and a prefix, such as `s3://bucket/sites`, `gs://bucket/sites` or `az://container/sites`. The server serves the tenants, themes and `deployment.yaml` that are published there, and follows changes. `--themes` and `--deployment` replace what is published. Any number of servers can follow one bucket. The variables of the store's own tools have the credentials and settings, such as `AWS_ACCESS_KEY_ID` and `AWS_ENDPOINT_URL`. The content is kept in the folder of `--state`, so that the server can start while the store is down.
    #[arg(long, env = "ROWHOUSE_STORE", value_name = "URL", requires = "state")]
    pub store: Option<String>,
    /// Interval at which the server asks the store for changes
    ///
    /// Each question is one conditional request. The interval varies by a quarter, so that servers do not ask at the same time.
    #[arg(
        long,
        env = "ROWHOUSE_STORE_POLL",
        value_name = "DURATION",
        default_value = "2s",
        value_parser = values::timeout
    )]
    pub store_poll: Duration,
    /// File with the key of certificates in the store
    ///
    /// The servers of one store share their ACME account and certificates: each certificate is ordered once, and any server answers the challenge. Private keys are encrypted with this key: 64 hexadecimal digits, as `openssl rand -hex 32` prints them, the same for all servers. Required if both `--store` and `--acme-contact` are set.
    #[arg(
        long,
        env = "ROWHOUSE_STORE_KEY_FILE",
        value_name = "FILE",
        requires = "store"
    )]
    pub store_key_file: Option<PathBuf>,
    /// Folder for releases, compressed pages and images [default: none]
    ///
    /// With this folder, a restart is quick, and tenants with errors keep their last valid pages. The state belongs to the domain of `--origin`, not to a path: the folder of tenants can move. If you delete the folder, earlier releases and pins are lost; its folder `certificates` has private keys.
    #[arg(long, env = "ROWHOUSE_STATE", value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Serve without a folder of `--state` that cannot be written
    ///
    /// The server then starts with an alarm. Without this flag, the server refuses to start if the folder is a file, belongs to another user, or is on a read-only disk. A full disk is an alarm in any case.
    #[arg(
        long,
        env = "ROWHOUSE_STATE_OPTIONAL",
        value_parser = BoolishValueParser::new()
    )]
    pub state_optional: bool,
    /// Memory limit for tenants, such as 512MiB [default: half of the memory]
    ///
    /// The default is half of the memory of the machine or the cgroup. Beyond the limit, tenants that were never requested are evicted first, then the least recently requested tenants. Evicted tenants are restored at their next request.
    ///
    /// The program itself needs about 100 MB more. Reading and rendering may use half of the limit: at least 192 MiB and at most 1 GiB, if the machine or the cgroup has that much. The page *Sizing* of the manual has measured figures.
    #[arg(long, env = "ROWHOUSE_MEMORY", value_name = "SIZE", value_parser = values::size::<usize>(0..=u64::MAX))]
    pub memory: Option<usize>,
    /// Releases of each tenant to keep, to list, compare and roll back to
    ///
    /// Releases are stored in the folder of `--state`.
    #[arg(
        long,
        env = "ROWHOUSE_KEEP_RELEASES",
        value_name = "NUMBER",
        default_value_t = 10
    )]
    pub keep_releases: usize,
    /// Size limit of the folder of `--state`, such as 512MiB
    ///
    /// Beyond the limit, the oldest releases are deleted first. Replaced large files take at most half of the limit.
    #[arg(long, env = "ROWHOUSE_STATE_SIZE", value_name = "SIZE", default_value = "1GiB", value_parser = values::size::<u64>(0..=u64::MAX))]
    pub state_size: u64,
    /// Time to serve replaced files (with a hash in the name) after a change
    ///
    /// Open pages and cached pages still request replaced files. With `--state`, these files outlive a restart.
    #[arg(
        long,
        env = "ROWHOUSE_KEEP_ASSETS",
        value_name = "DURATION",
        default_value = "24h",
        value_parser = values::whole_seconds::<u32>
    )]
    pub keep_assets: u32,
    /// Time to keep the history of a tenant after its folder was removed
    ///
    /// During this time, `rowhouse releases` lists the releases of the tenant, and `rowhouse restore` serves its last valid folder again. A restored tenant is kept until its folder is back.
    #[arg(
        long,
        env = "ROWHOUSE_KEEP_REMOVED",
        value_name = "DURATION",
        default_value = "30d",
        value_parser = values::whole_seconds::<u32>
    )]
    pub keep_removed: u32,
    /// Age at which a preview (folder `<id>@<label>`) is no longer served
    ///
    /// The age begins with the last change of the folder; with `--store`, with the last publication. The console and the log warn when a seventh of the time is left. After it, visitors of the preview get 410 until its folder changes.
    #[arg(
        long,
        env = "ROWHOUSE_PREVIEW_MAX_AGE",
        value_name = "DURATION",
        default_value = "14d",
        value_parser = values::whole_seconds::<u32>
    )]
    pub preview_max_age: u32,
    /// Longest wait for files whose upload has not ended
    ///
    /// A file that is open in the program that writes it, that still grows, or that has no end (images, videos, archives, PDF) is not published. Until it is complete, visitors get the last valid release, and the tenant is `receiving`. After this time, the folder is published as it is, unless a file has no end.
    #[arg(
        long,
        env = "ROWHOUSE_SETTLE_MAX",
        value_name = "DURATION",
        default_value = "60s",
        value_parser = values::whole_seconds::<u32>
    )]
    pub settle_max: u32,
    /// Author mode: live reload, errors over the page, drafts
    #[arg(
        long,
        env = "ROWHOUSE_DEV",
        value_parser = clap::builder::FalseyValueParser::new()
    )]
    pub dev: bool,
    /// Access log: a line for each request, to stderr
    #[arg(
        long,
        env = "ROWHOUSE_ACCESS_LOG",
        value_name = "FORMAT",
        default_value = "off"
    )]
    pub access_log: AccessLogFlag,
    /// Include visitors' IP addresses (personal data) in the access log
    #[arg(long, env = "ROWHOUSE_LOG_ADDRESSES", value_parser = BoolishValueParser::new())]
    pub log_addresses: bool,
    /// Address or network of a proxy whose `X-Forwarded-For` is trusted
    ///
    /// `X-Request-Id` and `traceparent` of this proxy are trusted, too. From any other address, these header fields are ignored. May be repeated; in the variable, separate values by commas.
    #[arg(
        long,
        env = "ROWHOUSE_TRUSTED_PROXY",
        value_name = "CIDR",
        value_delimiter = ',',
        value_parser = network
    )]
    pub trusted_proxy: Vec<IpNet>,
    /// OpenTelemetry collector that receives a span for each request
    ///
    /// The spans are sent as OTLP over HTTP, without TLS. A URL without a path gets `/v1/traces`. A request that a trusted proxy sends with `traceparent` becomes part of that trace.
    #[arg(long, env = "ROWHOUSE_OTLP", value_name = "URL", value_parser = collector)]
    pub otlp: Option<Url>,
    /// Answer plain HTTP/1.1 requests with hyper, too
    ///
    /// Without this flag, plain requests take the fast lane, which sends the same bytes in less time. If a client has a problem with the server, this flag shows whether the fast lane is the cause.
    #[arg(long, env = "ROWHOUSE_NO_FAST_LANE", value_parser = BoolishValueParser::new())]
    pub no_fast_lane: bool,
    /// HTTPS and certificates.
    #[command(flatten)]
    pub https: HttpsFlags,
    /// Alerts to a webhook.
    #[command(flatten)]
    pub alerts: AlertFlags,
    /// Caching of pages.
    #[command(flatten)]
    pub caching: CachingFlags,
    /// Limits on clients.
    #[command(flatten)]
    pub limits: LimitFlags,
}

/// The method of noticing changes in the folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WatchMethod {
    /// Notifications of the system, or polling where there are none
    Auto,
    /// Polling of all files once a second, for network file systems
    Poll,
    /// None; only SIGHUP reloads
    Off,
}

/// The format of the access log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AccessLogFlag {
    /// Text for people
    Text,
    /// A JSON object per line, for programs
    Json,
    /// No access log
    Off,
}

/// Parses the URL of a collector: HTTP without TLS.
fn collector(text: &str) -> Result<Url, String> {
    Url::parse(text)
        .ok()
        .filter(|url| url.scheme() == "http" && url.has_host())
        .ok_or_else(|| "write a URL without TLS, such as `http://127.0.0.1:4318`".to_owned())
}
