//! The arguments of the commands for authors, which need no running server: `check`, `routes`, `export`, `import`, `schema`, `completions`, `man` and `manual`.
//!
//! **Invariant:** gives no command to a server.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use clap_complete::Shell;

use content::address::Origin;

use crate::cli::flags::{CachingFlags, ContentFlags};
use crate::cli::running::{ListFormat, RunningServer};
use crate::cli::values;

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
