//! The arguments of the commands for an object store: `publish`, `unpublish` and `store`. `releases`, `diff`, `rollback` and `resume` share some.
//!
//! **Invariant:** knows no store.

use clap::{Args, Subcommand};

use content::name::TenantId;

use crate::cli::flags::ContentFlags;
use crate::cli::running::ListFormat;
use crate::cli::values;

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

/// The arguments of `publish`.
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
