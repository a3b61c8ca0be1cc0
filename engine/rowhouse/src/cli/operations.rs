//! The arguments of the commands for tenants of a running server: `releases`, `diff`, `rollback`, `resume`, `restore`, `visits` and `token`.
//!
//! **Invariant:** only turns text into values; sends nothing.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use content::name::TenantId;

use crate::cli::flags::ContentFlags;
#[cfg(feature = "bucket")]
use crate::cli::fleet::AuthorFlag;
use crate::cli::running::{AdminTokenFlag, ListFormat, RunningServer};
use crate::cli::values;

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
