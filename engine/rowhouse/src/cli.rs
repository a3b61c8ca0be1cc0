//! The command line: text in, a [`Command`] out. It decides nothing.

pub mod flags;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::BoolishValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use ipnet::IpNet;
use url::Url;

use content::address::Origin;
use server::admin::host_name;
use server::settings::network;

use flags::{CachingFlags, LimitFlags};

/// What the program ends with.
const EXIT_CODES: &str = "\
Exit codes:
  0  success
  1  `check` found errors, or `probe` found a server that is not ready
  2  could not run, or a second signal ended it at once";

/// Serves many small sites from one program: a site is a folder.
#[derive(Debug, Parser)]
#[command(
    name = "rowhouse",
    version,
    about,
    max_term_width = 100,
    after_help = EXIT_CODES,
    args_conflicts_with_subcommands = true
)]
pub struct Cli {
    /// What to do; without it, `serve`.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The flags of `serve`.
    #[command(flatten)]
    pub serve: ServeArguments,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve all tenants
    Serve(Box<ServeArguments>),
    /// Print every error and warning: 0 clean, 1 errors, 2 could not run
    Check(CheckArguments),
    /// Print who answers what: host, path, tenant, file
    Routes(RoutesArguments),
    /// Write the same bytes as files, for any static host or CDN
    Export(ExportArguments),
    /// Make a tenant to begin with
    New(NewArguments),
    /// Ask a running server whether it is ready: 0 ready, 1 not
    Probe(ProbeArguments),
    /// Write the JSON Schemas that editors complete and check with
    Schema(SchemaArguments),
    /// Print what a shell needs to complete commands and flags
    Completions(CompletionsArguments),
    /// Print the manual page, for `man`
    Man(ManArguments),
}

/// Where content comes from and where it is served.
#[derive(Debug, Clone, Args)]
pub struct Content {
    /// The folder of tenants
    #[arg(
        long,
        env = "ROWHOUSE_TENANTS",
        value_name = "DIR",
        default_value = "tenants"
    )]
    pub tenants: PathBuf,
    /// A folder of themes [default: `themes` where it is, else those within the program]
    #[arg(long, env = "ROWHOUSE_THEMES", value_name = "DIR")]
    pub themes: Option<PathBuf>,
    /// The file that says which tenant is at the domain's root, and what each may claim [default: `deployment.yaml` in the folder of tenants, where there is one]
    #[arg(long, env = "ROWHOUSE_DEPLOYMENT", value_name = "FILE")]
    pub deployment: Option<PathBuf>,
    /// Where visitors find the deployment: scheme, domain and port
    #[arg(
        long,
        env = "ROWHOUSE_ORIGIN",
        value_name = "URL",
        default_value = "http://localhost:8080"
    )]
    pub origin: Origin,
    /// A folder with another build of the islands, as `node ui/build.mjs --out DIR` makes it
    #[arg(long, env = "ROWHOUSE_UI_DIST", value_name = "DIR")]
    pub ui_dist: Option<PathBuf>,
}

/// `serve`.
#[derive(Debug, Clone, Args)]
pub struct ServeArguments {
    /// Content and origin.
    #[command(flatten)]
    pub content: Content,
    /// The address for visitors
    #[arg(
        long,
        env = "ROWHOUSE_LISTEN",
        value_name = "ADDRESS",
        default_value = "127.0.0.1:8080"
    )]
    pub listen: SocketAddr,
    /// The address for operators: health, metrics, tenants
    #[arg(
        long,
        env = "ROWHOUSE_ADMIN",
        value_name = "ADDRESS",
        default_value = "127.0.0.1:8081"
    )]
    pub admin: SocketAddr,
    /// A name that operators reach that address by: it answers only to this, to IP addresses and to `localhost`
    ///
    /// May be given more than once; in the variable, with commas between. Without it no other name is answered, so that no web page of somebody else can ask (DNS rebinding).
    #[arg(
        long,
        env = "ROWHOUSE_ADMIN_HOSTS",
        value_name = "NAME",
        value_delimiter = ',',
        value_parser = host_name
    )]
    pub admin_host: Vec<String>,
    /// How long requests may take to end after SIGTERM, in seconds; below the 30 after which orchestrators kill
    #[arg(
        long,
        env = "ROWHOUSE_GRACE",
        value_name = "SECONDS",
        default_value_t = 20
    )]
    pub grace: u64,
    /// How changes of the folders are noticed
    #[arg(
        long,
        env = "ROWHOUSE_WATCH",
        value_name = "HOW",
        default_value = "auto"
    )]
    pub watch: WatchMethod,
    /// A folder for what makes a restart fast and safe: last good copies, compressed bodies, pictures. May be deleted
    #[arg(long, env = "ROWHOUSE_STATE", value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// For authors: pages keep themselves as the files are, errors are shown over them, drafts are shown
    #[arg(
        long,
        env = "ROWHOUSE_DEV",
        value_parser = clap::builder::FalseyValueParser::new()
    )]
    pub dev: bool,
    /// One line a request, to stderr
    #[arg(
        long,
        env = "ROWHOUSE_ACCESS_LOG",
        value_name = "FORM",
        default_value = "off"
    )]
    pub access_log: AccessLog,
    /// Say in that line who asked, too: an address is personal data
    #[arg(long, env = "ROWHOUSE_LOG_ADDRESSES", value_parser = BoolishValueParser::new())]
    pub log_addresses: bool,
    /// A network or address of proxies that are believed: `X-Request-Id`, `traceparent`, `X-Forwarded-For`
    ///
    /// May be given more than once; in the variable, with commas between. Without it nobody is believed.
    #[arg(
        long,
        env = "ROWHOUSE_TRUSTED_PROXY",
        value_name = "CIDR",
        value_delimiter = ',',
        value_parser = network
    )]
    pub trusted_proxy: Vec<IpNet>,
    /// A collector on this machine or network that takes the spans of requests (OTLP over HTTP)
    ///
    /// Without a path, `/v1/traces` is meant. A request that a trusted proxy sends with `traceparent` becomes a part of that trace.
    #[arg(long, env = "ROWHOUSE_OTLP", value_name = "URL", value_parser = collector)]
    pub otlp: Option<Url>,
    /// How long pages may be kept.
    #[command(flatten)]
    pub caching: CachingFlags,
    /// What clients may use.
    #[command(flatten)]
    pub limits: LimitFlags,
}

/// How changes are noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WatchMethod {
    /// By the system's notifications, or by polling where there are none
    Auto,
    /// By looking at every file once a second: for network file systems
    Poll,
    /// Not at all: SIGHUP reloads
    Off,
}

/// How requests are logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AccessLog {
    /// For people
    Text,
    /// For programs
    Json,
    /// Not at all
    Off,
}

/// `check`.
#[derive(Debug, Clone, Args)]
pub struct CheckArguments {
    /// Only these tenants
    pub names: Vec<String>,
    /// Say what a code means, and check nothing
    #[arg(long, value_name = "CODE", conflicts_with = "names")]
    pub explain: Option<String>,
    /// How to print
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub format: CheckFormat,
    /// Content and origin.
    #[command(flatten)]
    pub content: Content,
}

/// How errors are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CheckFormat {
    /// As a compiler would
    Text,
    /// A list of objects
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
}

/// `export`.
#[derive(Debug, Clone, Args)]
pub struct ExportArguments {
    /// The folder to write into, one folder a host: empty, new, or an earlier export
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// The static host whose ways and limits count
    #[arg(long = "for", value_name = "HOST", default_value = "any")]
    pub host: StaticHost,
    /// Put the compressed forms (.br, .zst, .gz) beside each file
    #[arg(long)]
    pub compressed: bool,
    /// Write what has no error, and leave the rest out
    #[arg(long)]
    pub despite_errors: bool,
    /// What shared caches may keep.
    #[command(flatten)]
    pub caching: CachingFlags,
    /// Content and origin.
    #[command(flatten)]
    pub content: Content,
}

/// Where exported files will lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StaticHost {
    /// What all of them understand
    Any,
    /// More header rules or redirects than are read are an error
    Cloudflare,
    /// Rules for the 404 pages of folders, which it does not find by itself
    Netlify,
}

/// `new`.
#[derive(Debug, Clone, Args)]
pub struct NewArguments {
    /// The tenant's id: a-z, 0-9 and inner hyphens
    pub name: String,
    /// The folder of tenants
    #[arg(
        long,
        env = "ROWHOUSE_TENANTS",
        value_name = "DIR",
        default_value = "tenants"
    )]
    pub tenants: PathBuf,
}

/// `probe`.
#[derive(Debug, Clone, Args)]
pub struct ProbeArguments {
    /// The server's address for operators
    #[arg(
        long,
        env = "ROWHOUSE_ADMIN",
        value_name = "ADDRESS",
        default_value = "127.0.0.1:8081"
    )]
    pub admin: SocketAddr,
}

/// `schema`.
#[derive(Debug, Clone, Args)]
pub struct SchemaArguments {
    /// The folder to write them into; without it they are printed
    #[arg(value_name = "DIR")]
    pub directory: Option<PathBuf>,
}

/// `completions`.
#[derive(Debug, Clone, Args)]
pub struct CompletionsArguments {
    /// The shell
    pub shell: Shell,
}

/// `man`.
#[derive(Debug, Clone, Args)]
pub struct ManArguments {
    /// The command whose page is wanted; without it, that of the program
    pub command: Option<String>,
}

/// `routes`.
#[derive(Debug, Clone, Args)]
pub struct RoutesArguments {
    /// How to print
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub format: RoutesFormat,
    /// Content and origin.
    #[command(flatten)]
    pub content: Content,
}

/// How routes are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RoutesFormat {
    /// A table
    Text,
    /// A list of objects
    Json,
}

/// The address of a collector.
fn collector(text: &str) -> Result<Url, String> {
    Url::parse(text)
        .ok()
        .filter(|url| url.scheme() == "http" && url.has_host())
        .ok_or_else(|| "give a URL without TLS, as in `http://127.0.0.1:4318`".to_owned())
}
