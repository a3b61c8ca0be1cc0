//! The arguments of the commands for an object store: `publish`, `unpublish` and `store`. `releases`, `diff`, `rollback` and `resume` share some.
//!
//! **Invariant:** knows no store.

use clap::{Args, Subcommand};

use content::name::TenantId;

/// The store.
#[derive(Debug, Clone, Args)]
pub struct StoreFlag {
    /// Bucket of the fleet, such as s3://bucket/prefix
    ///
    /// Also `gs://bucket/prefix` and `az://container/prefix`. The environment has the credentials and settings, under the names that the tools of the service use: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT_URL`, `AWS_ALLOW_HTTP`, `GOOGLE_SERVICE_ACCOUNT`, `AZURE_STORAGE_ACCOUNT_NAME` and others.
    #[arg(long, env = "ROWHOUSE_STORE", value_name = "URL")]
    pub store: String,
}

/// The author of a version.
#[derive(Debug, Clone, Args)]
pub struct AuthorFlag {
    /// Name of the author in the history [default: user@host]
    #[arg(long, env = "ROWHOUSE_AUTHOR", value_name = "NAME")]
    pub author: Option<String>,
}

/// The arguments of `unpublish`.
#[derive(Debug, Clone, Args)]
pub struct UnpublishArguments {
    /// Id of the tenant
    #[arg(value_parser = TenantId::new)]
    pub tenant: TenantId,
    /// The store.
    #[command(flatten)]
    pub store: StoreFlag,
    /// Unpublish only if this is the current version, else exit with 3
    #[arg(long, value_name = "VERSION")]
    pub expect: Option<u64>,
    /// The author.
    #[command(flatten)]
    pub author: AuthorFlag,
}

/// The arguments of `store`.
#[derive(Debug, Clone, Args)]
pub struct StoreArguments {
    /// The work.
    #[command(subcommand)]
    pub command: StoreCommand,
}

/// The work of `store`.
#[derive(Debug, Clone, Subcommand)]
pub enum StoreCommand {
    /// Prove that the store is fit for use, and that all objects are intact
    ///
    /// Races conditional writes, then reads every object that a version names and every rendered release, and compares its hash.
    Check(StoreFlag),
    /// Delete content that no version names, a day after it was first seen
    ///
    /// Servers with `--store` do the same once a day, one of them for all. The first run only notes what no version names. Also deletes releases that were rendered more than 30 days ago: a server that misses one renders it again.
    Collect(StoreFlag),
}
