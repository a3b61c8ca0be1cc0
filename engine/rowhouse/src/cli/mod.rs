//! The command line: text in, a [`Command`] out. It decides nothing.

pub mod flags;
pub mod https;
pub mod running;
mod starter;
mod version;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::builder::BoolishValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use ipnet::IpNet;
use url::Url;

use content::address::Origin;
use content::name::TenantId;
use content::tenant::manifest::Hsts;
use server::admin::host_name;
use server::settings::network;

use flags::{CachingFlags, LimitFlags};
use https::HttpsFlags;
pub use https::{CertificatesArguments, ProbeArguments};
pub use running::{AdminTokenFlag, ListFormat, RunningServer};
pub use starter::{Colour, NewArguments, StarterKind, StarterLanguage, plain_name};
pub use version::VERSION;

/// What the program ends with.
const EXIT_CODES: &str = "\
Exit codes:
  0  success
  1  errors were found (check, export), the server is not ready or not reachable (probe), or the
     server refused (releases, diff, rollback, resume)
  2  could not run, a command other than probe reached no server, or a second signal ended the
     process at once";

/// Serves many small sites from one program: a site is a folder.
#[derive(Debug, Parser)]
#[command(
    name = "rowhouse",
    version = VERSION,
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
    /// Serve all tenants, and take changes in their folders as they are saved (the default)
    Serve(Box<ServeArguments>),
    /// Print every error and warning in the tenants' folders
    Check(CheckArguments),
    /// List every page: its host, path, tenant and file
    Routes(RoutesArguments),
    /// List what a tenant served when: the releases that a running server keeps
    Releases(ReleasesArguments),
    /// Show what changed between two releases of a tenant
    Diff(DiffArguments),
    /// Serve an earlier release of a tenant, and stay with it
    Rollback(RollbackArguments),
    /// Follow a tenant's folder again after `rollback`
    Resume(ResumeArguments),
    /// List the certificate of every host that a running server serves
    Certificates(CertificatesArguments),
    /// Write all sites as files, for a static host or CDN
    Export(ExportArguments),
    /// Create a tenant's folder to start from
    New(NewArguments),
    /// Ask a running server whether it is ready
    Probe(ProbeArguments),
    /// Write JSON Schemas, with which editors complete and check what authors write
    Schema(SchemaArguments),
    /// Print a script with which a shell completes commands and flags
    Completions(CompletionsArguments),
    /// Print the manual page of the program or of a command
    Man(ManArguments),
    /// Serve the manual at a local address, or write it as files
    Manual(ManualArguments),
}

/// Where content comes from and where it is served.
#[derive(Debug, Clone, Args)]
pub struct ContentFlags {
    /// The folder of tenants: each folder in it is a site
    #[arg(
        long,
        env = "ROWHOUSE_TENANTS",
        value_name = "DIR",
        default_value = "tenants"
    )]
    pub tenants: PathBuf,
    /// The folder of themes [default: `themes` if there is one, otherwise the themes inside the program]
    #[arg(long, env = "ROWHOUSE_THEMES", value_name = "DIR")]
    pub themes: Option<PathBuf>,
    /// The file that names the tenant at the domain's root, and the hosts and paths that each tenant may claim [default: `deployment.yaml` in the folder of tenants, if there is one]
    #[arg(long, env = "ROWHOUSE_DEPLOYMENT", value_name = "FILE")]
    pub deployment: Option<PathBuf>,
    /// What visitors type to reach the sites: scheme, domain and, where there is one, port
    ///
    /// A tenant answers at a path of this domain (`/corner`) and at a host below it (`corner.<domain>`).
    #[arg(
        long,
        env = "ROWHOUSE_ORIGIN",
        value_name = "URL",
        default_value = "http://localhost:8080"
    )]
    pub origin: Origin,
    /// For how much of the domain browsers remember to come over TLS only: `host`, `subdomains`, `preload` or `off` [default: what the root tenant's manifest says, else `host`]
    ///
    /// `subdomains` and `preload` bind every host below the domain, those of other programs, too.
    #[arg(long, env = "ROWHOUSE_HSTS", value_name = "WHAT", value_parser = flags::hsts)]
    pub hsts: Option<Hsts>,
    /// A folder with another build of the islands (React components), as `node ui/build.mjs --out DIR` writes it [default: the one inside the program]
    #[arg(long, env = "ROWHOUSE_UI_DIST", value_name = "DIR")]
    pub ui_dist: Option<PathBuf>,
    /// Whether the examples of section types are pages: `manual` says so.
    #[arg(skip)]
    pub shows_kinds: bool,
}

/// `serve`.
#[derive(Debug, Clone, Args)]
pub struct ServeArguments {
    /// Content and origin.
    #[command(flatten)]
    pub content: ContentFlags,
    /// The address and port to listen on for visitors
    #[arg(
        long,
        env = "ROWHOUSE_LISTEN",
        value_name = "ADDRESS",
        default_value = "127.0.0.1:8080"
    )]
    pub listen: SocketAddr,
    /// The address and port to listen on for operators: health, metrics, how each tenant is
    #[arg(
        long,
        env = "ROWHOUSE_ADMIN",
        value_name = "ADDRESS",
        default_value = "127.0.0.1:8081"
    )]
    pub admin: SocketAddr,
    /// A host name by which operators reach that address, besides IP addresses and `localhost`
    ///
    /// May be given more than once; in the variable, separated by commas. Requests under any other name are refused, so that no web page can reach this address by a name of its own (DNS rebinding).
    #[arg(
        long,
        env = "ROWHOUSE_ADMIN_HOSTS",
        value_name = "NAME",
        value_delimiter = ',',
        value_parser = host_name
    )]
    pub admin_host: Vec<String>,
    /// What commands have to come with.
    #[command(flatten)]
    pub token: AdminTokenFlag,
    /// Time for requests in flight to finish after SIGTERM or Ctrl-C
    ///
    /// Keep it below the time after which your supervisor kills the process, which is 30 seconds for most.
    #[arg(
        long,
        env = "ROWHOUSE_GRACE",
        value_name = "SECONDS",
        default_value_t = 20
    )]
    pub grace: u64,
    /// How changes in the folders are noticed
    #[arg(
        long,
        env = "ROWHOUSE_WATCH",
        value_name = "HOW",
        default_value = "auto"
    )]
    pub watch: WatchMethod,
    /// A folder for what makes a restart quick and safe: last good copies, compressed pages, pictures [default: nothing is kept]
    ///
    /// It may be deleted at any time.
    #[arg(long, env = "ROWHOUSE_STATE", value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// The most bytes that tenants take in memory [default: half of what the machine or the cgroup has]
    ///
    /// Beyond the limit, tenants that were never requested are evicted first, then the least recently requested ones. They are rendered again at their next request. The program takes some 100 MB besides, and work in progress (reading, rendering) half as much as tenants: at least 192 MiB and at most 1 GiB, as far as the machine or the cgroup has it. The manual has measured figures: Sizing.
    #[arg(long, env = "ROWHOUSE_MEMORY", value_name = "BYTES")]
    pub memory: Option<usize>,
    /// How many releases of each tenant are kept below `--state`, to list, compare and go back to
    #[arg(
        long,
        env = "ROWHOUSE_KEEP_RELEASES",
        value_name = "NUMBER",
        default_value_t = 10
    )]
    pub keep_releases: usize,
    /// The most bytes below `--state`; the oldest releases go first
    ///
    /// Large files that a change replaced take at most half of it.
    #[arg(long, env = "ROWHOUSE_STATE_SIZE", value_name = "BYTES", default_value_t = 1 << 30)]
    pub state_size: u64,
    /// How long files with a hash in their name are served after pages no longer name them
    ///
    /// Pages that are open, or that a cache holds, go on asking for them. It holds over restarts with `--state`.
    #[arg(
        long,
        env = "ROWHOUSE_KEEP_ASSETS",
        value_name = "SECONDS",
        default_value_t = 24 * 60 * 60
    )]
    pub keep_assets: u32,
    /// For authors: open pages follow what is saved, errors are shown over them, drafts are shown
    #[arg(
        long,
        env = "ROWHOUSE_DEV",
        value_parser = clap::builder::FalseyValueParser::new()
    )]
    pub dev: bool,
    /// Log a line for each request, to stderr
    #[arg(
        long,
        env = "ROWHOUSE_ACCESS_LOG",
        value_name = "FORM",
        default_value = "off"
    )]
    pub access_log: AccessLogFlag,
    /// Include visitors' IP addresses in that log; they are personal data
    #[arg(long, env = "ROWHOUSE_LOG_ADDRESSES", value_parser = BoolishValueParser::new())]
    pub log_addresses: bool,
    /// The address or network of a proxy whose `X-Request-Id`, `traceparent` and `X-Forwarded-For` are believed
    ///
    /// May be given more than once; in the variable, separated by commas. From everybody else these header fields are ignored.
    #[arg(
        long,
        env = "ROWHOUSE_TRUSTED_PROXY",
        value_name = "CIDR",
        value_delimiter = ',',
        value_parser = network
    )]
    pub trusted_proxy: Vec<IpNet>,
    /// The OpenTelemetry collector that gets a span of each request (OTLP over HTTP, without TLS)
    ///
    /// Without a path, `/v1/traces` is added. A request that a trusted proxy sends with `traceparent` becomes part of that trace.
    #[arg(long, env = "ROWHOUSE_OTLP", value_name = "URL", value_parser = collector)]
    pub otlp: Option<Url>,
    /// HTTPS.
    #[command(flatten)]
    pub https: HttpsFlags,
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
    /// By the system's notifications, and by polling where there are none
    Auto,
    /// By looking at every file once a second, as network file systems need
    Poll,
    /// Not at all; SIGHUP reloads
    Off,
}

/// How requests are logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AccessLogFlag {
    /// As people read it
    Text,
    /// A JSON object a line, for programs
    Json,
    /// No lines
    Off,
}

/// `check`.
#[derive(Debug, Clone, Args)]
pub struct CheckArguments {
    /// The tenants to check [default: all]
    pub names: Vec<String>,
    /// Explain what a code such as `unknown-key` means, and check nothing
    #[arg(long, value_name = "CODE", conflicts_with = "names")]
    pub explain: Option<String>,
    /// The form of the output
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub format: CheckFormat,
    /// The folder that the server is given as `--state`: warns of tenants that were rolled back
    #[arg(long, env = "ROWHOUSE_STATE", value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Ask the running server, too: which hosts have no valid certificate, and why
    #[arg(long, conflicts_with = "explain")]
    pub live: bool,
    /// The server.
    #[command(flatten)]
    pub server: RunningServer,
    /// Content and origin.
    #[command(flatten)]
    pub content: ContentFlags,
}

/// How errors are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CheckFormat {
    /// As a compiler would
    Text,
    /// A JSON array
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
}

/// `export`.
#[derive(Debug, Clone, Args)]
pub struct ExportArguments {
    /// The folder to write into: new, empty or an earlier export. Each host becomes a folder in it
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// The static host whose rules and limits apply
    #[arg(long = "for", value_name = "HOST", default_value = "any")]
    pub host: StaticHost,
    /// Write the compressed forms (.br, .gz) of each file, too
    #[arg(long)]
    pub compressed: bool,
    /// Write the tenants without errors, and leave out the others
    #[arg(long)]
    pub despite_errors: bool,
    /// The most bytes that tenants take in memory [default: half of what the machine or the cgroup has]
    ///
    /// Pages beyond the limit are rendered once more when they are written.
    #[arg(long, env = "ROWHOUSE_MEMORY", value_name = "BYTES")]
    pub memory: Option<usize>,
    /// Content and origin.
    #[command(flatten)]
    pub content: ContentFlags,
    /// What shared caches may keep; last, since its heading holds for whatever comes after it.
    #[command(flatten)]
    pub caching: CachingFlags,
}

/// Where exported files will lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StaticHost {
    /// What all of them understand
    Any,
    /// Fail where there are more header rules or redirects than it reads
    Cloudflare,
    /// Add rules for the 404 pages of folders, which it does not find by itself
    Netlify,
    /// Write a configuration to include beside each host's folder, `<host>.nginx.conf`
    Nginx,
    /// Write a configuration to import beside each host's folder, `<host>.caddy`
    Caddy,
}

/// `schema`.
#[derive(Debug, Clone, Args)]
pub struct SchemaArguments {
    /// The folder to write them into, with a folder in it for each tenant [default: they are printed]
    #[arg(value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// The folder of tenants: each gets schemas with what its theme says of settings, sections and words
    #[arg(
        long,
        env = "ROWHOUSE_TENANTS",
        value_name = "DIR",
        default_value = "tenants"
    )]
    pub tenants: PathBuf,
    /// The folder of themes [default: `themes` if there is one, otherwise the themes inside the program]
    #[arg(long, env = "ROWHOUSE_THEMES", value_name = "DIR")]
    pub themes: Option<PathBuf>,
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
    /// The command whose page is wanted [default: the page of the program]
    pub command: Option<String>,
}

/// The address at which `manual` listens without a flag.
pub const MANUAL_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8090);

/// Returns the address that visitors type to reach a manual that listens on `port`: the one host that the manual answers on.
#[must_use]
pub fn manual_origin(port: u16) -> String {
    format!("http://localhost:{port}")
}

/// `manual`.
#[derive(Debug, Clone, Args)]
pub struct ManualArguments {
    /// The address and port to serve it at
    #[arg(long, value_name = "ADDRESS", default_value_t = MANUAL_LISTEN)]
    pub listen: SocketAddr,
    /// What visitors type to reach it [default: that address]
    #[arg(long, value_name = "URL")]
    pub origin: Option<Origin>,
    /// Write it as files for a static host into this folder, and serve nothing
    #[arg(long, value_name = "DIR", conflicts_with = "write")]
    pub export: Option<PathBuf>,
    /// Write it as a tenant's folder, to serve it among sites of your own
    #[arg(long, value_name = "DIR")]
    pub write: Option<PathBuf>,
}

/// `routes`.
#[derive(Debug, Clone, Args)]
pub struct RoutesArguments {
    /// The form of the output
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub format: ListFormat,
    /// Content and origin.
    #[command(flatten)]
    pub content: ContentFlags,
}

/// `releases`.
#[derive(Debug, Clone, Args)]
pub struct ReleasesArguments {
    /// The tenant
    #[arg(value_parser = TenantId::new)]
    pub tenant: TenantId,
    /// The form of the output
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub format: ListFormat,
    /// The server.
    #[command(flatten)]
    pub server: RunningServer,
}

/// `diff`.
#[derive(Debug, Clone, Args)]
pub struct DiffArguments {
    /// The tenant
    #[arg(value_parser = TenantId::new)]
    pub tenant: TenantId,
    /// The number of the earlier release [default: the one before the newest]
    pub from: Option<u64>,
    /// The number of the later release [default: the newest]
    pub to: Option<u64>,
    /// The server.
    #[command(flatten)]
    pub server: RunningServer,
}

/// `rollback`.
#[derive(Debug, Clone, Args)]
pub struct RollbackArguments {
    /// The tenant
    #[arg(value_parser = TenantId::new)]
    pub tenant: TenantId,
    /// The number of the release to serve [default: the one before what is served]
    pub release: Option<u64>,
    /// The server.
    #[command(flatten)]
    pub server: RunningServer,
    /// What the server wants commands to come with.
    #[command(flatten)]
    pub token: AdminTokenFlag,
}

/// `resume`.
#[derive(Debug, Clone, Args)]
pub struct ResumeArguments {
    /// The tenant
    #[arg(value_parser = TenantId::new)]
    pub tenant: TenantId,
    /// The server.
    #[command(flatten)]
    pub server: RunningServer,
    /// What the server wants commands to come with.
    #[command(flatten)]
    pub token: AdminTokenFlag,
}

/// The address of a collector.
fn collector(text: &str) -> Result<Url, String> {
    Url::parse(text)
        .ok()
        .filter(|url| url.scheme() == "http" && url.has_host())
        .ok_or_else(|| "give a URL without TLS, as in `http://127.0.0.1:4318`".to_owned())
}
