//! The command line: parses arguments and environment variables into a [`Cli`].
//!
//! | module | contents |
//! |---|---|
//! | [`alerts`] | alerts |
//! | `fleet` | `publish`, `unpublish` and `store`; in builds with the feature `bucket` |
//! | [`flags`] | limits and caching |
//! | [`https`] | HTTPS, `certificates` and `probe` |
//! | [`running`] | the address and the token of a running server |
//! | `starter` | the arguments of `new` |
//! | `values` | parsers of sizes, durations, addresses and the origin |
//! | `exit_codes`, `signals` | the lists of exit codes and signals |
//! | `version` | the version and the commit |
//!
//! **Invariant:** decides nothing; it only turns text into values.

pub mod alerts;
pub(crate) mod exit_codes;
pub mod flags;
#[cfg(feature = "bucket")]
pub mod fleet;
pub mod https;
pub mod running;
pub(crate) mod signals;
mod starter;
mod values;
mod version;

use std::env;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::BoolishValueParser;
use clap::{Arg, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use ipnet::IpNet;
use url::Url;

use content::address::Origin;
use content::name::TenantId;
use content::tenant::manifest::Hsts;
use server::admin::host_name;
use server::settings::network;

use alerts::AlertFlags;
use flags::{CachingFlags, LimitFlags};
#[cfg(feature = "bucket")]
use fleet::{AuthorFlag, StoreArguments, StoreFlag, UnpublishArguments};
use https::HttpsFlags;
pub use https::{CertificatesArguments, CertificatesCommand, ProbeArguments, RenewArguments};
pub use running::{AdminTokenFlag, ListFormat, RunningServer};
pub use starter::{
    Colour, NewArguments, NewThemeArguments, StarterKind, StarterLanguage, plain_name,
};
pub use version::VERSION;

/// Serves many small sites from one program: a site is a folder.
#[derive(Debug, Parser)]
#[command(
    name = "rowhouse",
    version = VERSION,
    about,
    max_term_width = 79,
    after_help = exit_codes::help(),
    args_conflicts_with_subcommands = true
)]
pub struct Cli {
    /// The command; `serve` if there is none.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The flags of `serve`.
    #[command(flatten)]
    pub serve: ServeArguments,
}

impl Cli {
    /// Parses the arguments and the variables of this process. Prints help, the version or an error and exits, if one of them is due.
    ///
    /// An empty variable counts as unset: service managers and container engines often have them.
    #[must_use]
    pub fn from_process() -> Self {
        let command = without_empty_variables(Self::command());
        let matches = command.get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }
}

/// Removes empty variables from the arguments of a command and of its subcommands.
fn without_empty_variables(command: clap::Command) -> clap::Command {
    let is_empty = |argument: &Arg| {
        let value = argument.get_env().and_then(env::var_os);
        value.is_some_and(|value| value.is_empty())
    };
    let ignored = |argument: Arg| match is_empty(&argument) {
        true => argument.env(None::<&'static str>),
        false => argument,
    };
    command
        .mut_args(ignored)
        .mut_subcommands(|subcommand| subcommand.mut_args(ignored))
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve all tenants, with live reload of folders (the default)
    Serve(Box<ServeArguments>),
    /// Print every error and warning in the tenants' folders
    Check(CheckArguments),
    /// List every page with its host, path, tenant and file
    ///
    /// The JSON also has the path of each page's Markdown form (`/terms.md`).
    Routes(RoutesArguments),
    /// List the releases of a tenant on a running server
    Releases(ReleasesArguments),
    /// Publish tenants to the object store of a fleet
    ///
    /// Checks the folders, uploads what the store lacks, and replaces the version of each changed tenant at once. A tenant with errors is left as it is. Two commands may run at once: at most one replaces a version, and the other ends with exit code 3.
    #[cfg(feature = "bucket")]
    Publish(PublishArguments),
    /// Withdraw a tenant from the object store of a fleet
    #[cfg(feature = "bucket")]
    Unpublish(UnpublishArguments),
    /// Check the object store of a fleet, or delete its garbage
    #[cfg(feature = "bucket")]
    Store(StoreArguments),
    /// Show the changes between two releases of a tenant
    Diff(DiffArguments),
    /// Serve an earlier release of a tenant until `resume`
    Rollback(RollbackArguments),
    /// Serve a tenant's folder again after `rollback`
    Resume(ResumeArguments),
    /// Serve a tenant again after its folder was removed
    Restore(RestoreArguments),
    /// Count the visits of a tenant by day, without cookies
    ///
    /// The counts come from the running server, and are stored in the folder of its `--state`.
    Visits(VisitsArguments),
    /// Create a token for a protected site, and the lines to add
    ///
    /// Prints a new random token, and the lines for `deployment.yaml` that protect a tenant with it. The file has the hash of the token only, and the token is not stored.
    Token(TokenArguments),
    /// List the certificates of a running server, or renew one
    Certificates(CertificatesArguments),
    /// Write all sites as files for a static host or CDN
    ///
    /// Previews (folders `<id>@<label>`) and protected tenants are left out.
    Export(ExportArguments),
    /// Convert settings of another server for a manifest
    Import(ImportArguments),
    /// Create the folder of a new tenant
    New(NewArguments),
    /// Create the folder of a new theme with a parent
    ///
    /// The theme has only its differences from the parent: colours, a style sheet, and one replaced file as an example.
    NewTheme(NewThemeArguments),
    /// Check whether a running server is ready
    Probe(ProbeArguments),
    /// Write JSON Schemas with which editors complete and check YAML
    Schema(SchemaArguments),
    /// Print a completion script for a shell
    Completions(CompletionsArguments),
    /// Print the manual page of the program or of a command
    Man(ManArguments),
    /// Serve the manual on this machine, or write it as files
    Manual(ManualArguments),
}

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
    #[arg(long, env = "ROWHOUSE_HSTS", value_name = "SCOPE", value_parser = flags::hsts)]
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

/// The arguments of `check`.
#[derive(Debug, Clone, Args)]
pub struct CheckArguments {
    /// Tenants to check [default: all]
    pub names: Vec<String>,
    /// Explain a code such as `unknown-key`, without a check
    #[arg(long, value_name = "CODE", conflicts_with = "names")]
    pub explain: Option<String>,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: CheckFormat,
    /// Folder of the server's `--state`, to warn of tenants that were rolled back
    #[arg(long, env = "ROWHOUSE_STATE", value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Also ask the running server which hosts have no valid certificate, and why
    #[arg(long, conflicts_with = "explain")]
    pub live: bool,
    /// The running server.
    #[command(flatten)]
    pub server: RunningServer,
    /// The folders and the origin.
    #[command(flatten)]
    pub content: ContentFlags,
}

/// The output format of `check`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CheckFormat {
    /// Text like the messages of a compiler
    Text,
    /// A JSON array
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
}

/// The arguments of `export`.
#[derive(Debug, Clone, Args)]
pub struct ExportArguments {
    /// Folder to write to: new, empty or an earlier export
    ///
    /// The export has a folder for each host.
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Static host whose rules and limits apply
    #[arg(long = "for", value_name = "HOST", default_value = "any")]
    pub host: StaticHost,
    /// Also write each file compressed (.br, .gz)
    #[arg(long)]
    pub compressed: bool,
    /// Write the tenants without errors, even if other tenants have errors
    #[arg(long)]
    pub despite_errors: bool,
    /// Memory limit for tenants, such as 512MiB [default: half of the memory]
    ///
    /// The default is half of the memory of the machine or the cgroup. Pages beyond the limit are rendered a second time when they are written.
    #[arg(long, env = "ROWHOUSE_MEMORY", value_name = "SIZE", value_parser = values::size::<usize>(0..=u64::MAX))]
    pub memory: Option<usize>,
    /// The folders and the origin.
    #[command(flatten)]
    pub content: ContentFlags,
    /// Caching of pages. The field is the last, since its help heading applies to all flags after it.
    #[command(flatten)]
    pub caching: CachingFlags,
}

/// The static host that an export is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StaticHost {
    /// Only rules that every static host understands
    Any,
    /// Fail if there are more header rules or redirects than Cloudflare reads
    Cloudflare,
    /// Add rules for the 404 pages of folders, which Netlify needs
    Netlify,
    /// Write `<host>.nginx.conf`, to include, beside each host's folder
    Nginx,
    /// Write `<host>.caddy`, to import, beside each host's folder
    Caddy,
}

/// The arguments of `import`.
#[derive(Debug, Clone, Args)]
pub struct ImportArguments {
    /// The settings to convert.
    #[command(subcommand)]
    pub kind: ImportKind,
}

/// The settings that `import` converts.
#[derive(Debug, Clone, Subcommand)]
pub enum ImportKind {
    /// Print redirects of files as lines of a manifest
    ///
    /// Reads `_redirects` of Netlify and Cloudflare Pages, `Redirect` and `RedirectMatch` of Apache, and `rewrite` and `return` of nginx. The lines go to stdout. Each line that a manifest cannot express goes to stderr, with the reason.
    Redirects(ImportRedirectsArguments),
}

/// The arguments of `import redirects`.
#[derive(Debug, Clone, Args)]
pub struct ImportRedirectsArguments {
    /// Files to read, such as `_redirects`, `.htaccess` or `nginx.conf`
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
}

/// The arguments of `schema`.
#[derive(Debug, Clone, Args)]
pub struct SchemaArguments {
    /// Folder to write to [default: print to stdout]
    ///
    /// Each tenant gets its own folder with schemas.
    #[arg(value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// Folder of tenants
    ///
    /// Each tenant gets schemas with the settings, sections and UI strings of its theme.
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
}

/// The arguments of `completions`.
#[derive(Debug, Clone, Args)]
pub struct CompletionsArguments {
    /// Shell that the script is for
    pub shell: Shell,
}

/// The arguments of `man`.
#[derive(Debug, Clone, Args)]
pub struct ManArguments {
    /// Command that the page describes [default: the program]
    pub command: Option<String>,
}

/// The default of `manual --listen`.
pub const MANUAL_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8090);

/// Returns the origin of a manual that listens on `port`. The manual has no other host.
#[must_use]
pub fn manual_origin(port: u16) -> String {
    format!("http://localhost:{port}")
}

/// The arguments of `manual`.
#[derive(Debug, Clone, Args)]
pub struct ManualArguments {
    /// Address and port to listen on
    #[arg(long, value_name = "ADDRESS", default_value_t = MANUAL_LISTEN, value_parser = values::address)]
    pub listen: SocketAddr,
    /// URL that readers type to reach the manual [default: address of `--listen`]
    #[arg(long, value_name = "URL", value_parser = values::origin)]
    pub origin: Option<Origin>,
    /// Folder to write the manual to, as files for a static host
    #[arg(long, value_name = "DIR", conflicts_with = "write")]
    pub export: Option<PathBuf>,
    /// Folder to write the manual to, as a tenant for your own server
    #[arg(long, value_name = "DIR")]
    pub write: Option<PathBuf>,
}

/// The arguments of `routes`.
#[derive(Debug, Clone, Args)]
pub struct RoutesArguments {
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: ListFormat,
    /// The folders and the origin.
    #[command(flatten)]
    pub content: ContentFlags,
}

/// The arguments of `releases`.
#[derive(Debug, Clone, Args)]
pub struct ReleasesArguments {
    /// Id of the tenant
    ///
    /// In the bucket of a fleet, also `@themes` and `@deployment`.
    #[arg(value_parser = values::versioned_name)]
    pub tenant: String,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: ListFormat,
    /// Bucket of a fleet, whose versions are listed in place of releases
    #[cfg(feature = "bucket")]
    #[arg(long, env = "ROWHOUSE_STORE", value_name = "URL")]
    pub store: Option<String>,
    /// The running server.
    #[command(flatten)]
    pub server: RunningServer,
}

/// The arguments of `publish`.
#[cfg(feature = "bucket")]
#[derive(Debug, Clone, Args)]
pub struct PublishArguments {
    /// Tenants to publish, `@themes` or `@deployment` [default: all of these]
    ///
    /// `@themes` is the folder of themes, if there is one, and `@deployment` the file `deployment.yaml`, if it exists.
    pub names: Vec<String>,
    /// The store.
    #[command(flatten)]
    pub store: StoreFlag,
    /// Publish as the preview `<id>@<LABEL>` of each tenant
    ///
    /// The address is `<LABEL>--<id>.<domain>`, and the live tenant stays as it is. Each publication begins the age of the preview again, also if nothing has changed. `unpublish <id>@<LABEL>` withdraws the preview. Only tenants have previews: themes and `deployment.yaml` are not published.
    #[arg(long, value_name = "LABEL", value_parser = values::preview_label)]
    pub preview: Option<String>,
    /// Publish only if this is the current version (0: none), else exit with 3
    #[arg(long, value_name = "VERSION")]
    pub expect: Option<u64>,
    /// Go on, and publish each folder that changes or is added
    ///
    /// Ends when it is interrupted. Changes are published once the folder has been quiet for half a second. A folder with errors is reported and left as it is. A removed folder stays published. While the store is down, publications wait. With `--format json`, each line is one JSON object.
    #[arg(long, conflicts_with = "expect")]
    pub watch: bool,
    /// The author.
    #[command(flatten)]
    pub author: AuthorFlag,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: ListFormat,
    /// The folders and the origin.
    #[command(flatten)]
    pub content: ContentFlags,
}

/// The arguments of `diff`.
#[derive(Debug, Clone, Args)]
pub struct DiffArguments {
    /// Id of the tenant
    ///
    /// In the bucket of a fleet, also `@themes` and `@deployment`.
    #[arg(value_parser = values::versioned_name)]
    pub tenant: String,
    /// Number of the earlier release [default: the second newest]
    pub from: Option<u64>,
    /// Number of the later release [default: the newest]
    pub to: Option<u64>,
    /// Also show the differences that readers do not see: tags, styles, scripts
    #[arg(long)]
    pub all: bool,
    /// Bucket of a fleet, whose versions are compared by their files
    #[cfg(feature = "bucket")]
    #[arg(long, env = "ROWHOUSE_STORE", value_name = "URL")]
    pub store: Option<String>,
    /// The running server.
    #[command(flatten)]
    pub server: RunningServer,
}

/// The arguments of `rollback`.
#[derive(Debug, Clone, Args)]
pub struct RollbackArguments {
    /// Id of the tenant
    ///
    /// In the bucket of a fleet, also `@themes` and `@deployment`.
    #[arg(value_parser = values::versioned_name)]
    pub tenant: String,
    /// Number of the release to serve [default: the previous release]
    pub release: Option<u64>,
    /// Bucket of a fleet, whose replicas serve an earlier version
    #[cfg(feature = "bucket")]
    #[arg(long, env = "ROWHOUSE_STORE", value_name = "URL")]
    pub store: Option<String>,
    /// The author, in the store.
    #[cfg(feature = "bucket")]
    #[command(flatten)]
    pub author: AuthorFlag,
    /// The running server.
    #[command(flatten)]
    pub server: RunningServer,
    /// The token of commands.
    #[command(flatten)]
    pub token: AdminTokenFlag,
}

/// The arguments of `resume`.
#[derive(Debug, Clone, Args)]
pub struct ResumeArguments {
    /// Id of the tenant
    ///
    /// In the bucket of a fleet, also `@themes` and `@deployment`.
    #[arg(value_parser = values::versioned_name)]
    pub tenant: String,
    /// Bucket of a fleet, whose replicas serve the newest version again
    #[cfg(feature = "bucket")]
    #[arg(long, env = "ROWHOUSE_STORE", value_name = "URL")]
    pub store: Option<String>,
    /// The author, in the store.
    #[cfg(feature = "bucket")]
    #[command(flatten)]
    pub author: AuthorFlag,
    /// The running server.
    #[command(flatten)]
    pub server: RunningServer,
    /// The token of commands.
    #[command(flatten)]
    pub token: AdminTokenFlag,
}

/// The arguments of `visits`.
#[derive(Debug, Clone, Args)]
pub struct VisitsArguments {
    /// Id of the tenant
    #[arg(value_parser = TenantId::new)]
    pub tenant: TenantId,
    /// Number of days, today included: 1 to 400
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 30,
        value_parser = clap::value_parser!(u16).range(1..=400)
    )]
    pub days: u16,
    /// Output format
    ///
    /// Text has a table by day, then the pages and the referring hosts of all days together. JSON also has the pages and the hosts of each day.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: VisitsFormat,
    /// The running server.
    #[command(flatten)]
    pub server: RunningServer,
}

/// The output format of `visits`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum VisitsFormat {
    /// Tables
    Text,
    /// A JSON object
    Json,
}

/// The arguments of `token`.
#[derive(Debug, Clone, Args)]
pub struct TokenArguments {
    /// Name of the credential in `deployment.yaml`, for example `client`
    #[arg(value_parser = values::credential_name)]
    pub name: String,
    /// User name that the browser asks for [default: the name]
    #[arg(long, value_name = "USER", value_parser = values::user_name)]
    pub user: Option<String>,
    /// Id of the tenant or preview to protect
    #[arg(long, value_name = "ID", value_parser = TenantId::new)]
    pub tenant: Option<TenantId>,
    /// Last day of the credential, in UTC [default: in 90 days]
    #[arg(long, value_name = "DATE", value_parser = values::day)]
    pub expires: Option<jiff::civil::Date>,
}

/// The arguments of `restore`.
#[derive(Debug, Clone, Args)]
pub struct RestoreArguments {
    /// Id of the tenant
    #[arg(value_parser = TenantId::new)]
    pub tenant: TenantId,
    /// Write the last valid folder of the tenant to this new folder
    ///
    /// The files come from the state, so that no server needs to run. In the folder of tenants, a running server then serves the new folder.
    #[arg(long, value_name = "DIR", requires = "state")]
    pub to: Option<PathBuf>,
    /// Folder of the server's `--state`, which `--to` reads
    #[arg(long, env = "ROWHOUSE_STATE", value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// The folders and the origin.
    #[command(flatten)]
    pub content: ContentFlags,
    /// The running server.
    #[command(flatten)]
    pub server: RunningServer,
    /// The token of commands.
    #[command(flatten)]
    pub token: AdminTokenFlag,
}

/// Parses the URL of a collector: HTTP without TLS.
fn collector(text: &str) -> Result<Url, String> {
    Url::parse(text)
        .ok()
        .filter(|url| url.scheme() == "http" && url.has_host())
        .ok_or_else(|| "write a URL without TLS, such as `http://127.0.0.1:4318`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The widest line of a help text, in characters.
    const MAX_HELP_WIDTH: usize = 79;

    /// The widest description of a command that fits a line of the list of commands, in characters.
    const MAX_ABOUT_WIDTH: usize = 63;

    fn commands() -> Vec<clap::Command> {
        let mut program = Cli::command();
        program.build();
        let subcommands: Vec<_> = program.get_subcommands().cloned().collect();
        [vec![program], subcommands].concat()
    }

    #[test]
    fn definition_of_the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_help_line_is_short() {
        for mut command in commands() {
            let name = command.get_name().to_owned();
            for text in [command.render_help(), command.render_long_help()] {
                for line in text.to_string().lines() {
                    assert!(line.chars().count() <= MAX_HELP_WIDTH, "{name}: {line}");
                }
            }
            let about = command.get_about().map(ToString::to_string);
            let width = about.as_ref().map_or(0, |about| about.chars().count());
            assert!(width <= MAX_ABOUT_WIDTH, "{name}: {about:?}");
            let arguments = command.get_arguments().map(|argument| {
                let help = argument.get_help().map(ToString::to_string);
                (argument.get_id().to_string(), help.unwrap_or_default())
            });
            for (id, help) in arguments.chain([("about".to_owned(), about.unwrap_or_default())]) {
                assert!(!help.is_empty(), "{name} {id}");
                assert!(
                    help.chars().count() <= MAX_HELP_WIDTH,
                    "{name} {id}: {help}"
                );
            }
        }
    }

    #[test]
    fn exit_codes_name_commands_that_exist() {
        let known = commands();
        for (_, commands, meaning) in exit_codes::EXIT_CODES {
            for command in commands {
                let is_known = known.iter().any(|known| known.get_name() == *command);
                assert!(is_known, "{command}: {meaning}");
            }
        }
    }

    #[test]
    fn human_values_and_plain_numbers_mean_the_same() {
        let serve = |flags: &[&str]| {
            let cli = Cli::try_parse_from([&["rowhouse"][..], flags].concat()).unwrap();
            let serve = cli.serve;
            (
                serve.memory,
                serve.state_size,
                serve.grace,
                serve.keep_assets,
                serve.listen,
            )
        };
        let plain = serve(&[
            "--memory=536870912",
            "--state-size=1073741824",
            "--grace=20",
            "--keep-assets=86400",
            "--listen=127.0.0.1:8080",
        ]);
        assert_eq!(serve(&["--memory=512MiB"]), plain);
        let written = serve(&[
            "--memory=512MiB",
            "--state-size=1GiB",
            "--grace=20s",
            "--keep-assets=24h",
            "--listen=8080",
        ]);
        assert_eq!(written, plain);
    }

    #[test]
    fn wrong_values_are_refused_with_the_right_form() {
        for (flag, form) in [
            ("--origin=studio.example", "write `https://studio.example`"),
            ("--listen=:8080", "`[::]:8080` for every address"),
            ("--https=443", "`[::]:443` for every address"),
            ("--memory=much", "such as 512MiB"),
            ("--memory=", "such as 512MiB"),
            ("--grace=200ms", "whole seconds"),
        ] {
            let error = Cli::try_parse_from(["rowhouse", flag])
                .unwrap_err()
                .to_string();
            assert!(error.contains(form), "{flag}: {error}");
        }
    }
}
