//! `--store`: the tenants come from the bucket of a fleet.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use bucket::sealed::SealingKey;
use bucket::sealed::sealed_store::SealedObjects;
use bucket::store::Bucket;

use release::snapshot::Snapshot;
use server::acme::SharedStore;
use server::admin::status::StatusBoard;
use server::settings::operator_file;
use supervisor::source::bucket::BucketFollower;
use supervisor::{Registry, ReloadSender};
use tracing::info;

use super::shared_certificates::BucketCertificates;
use super::takeover::successor::Takeover;
use crate::cli::{ContentFlags, ServeArguments};
use crate::commands::fleet::host_name;
use crate::commands::memory;

/// The bucket that this process follows.
#[derive(Debug)]
pub(crate) struct FollowedStore(BucketFollower);

/// Returns the arguments with the address of the bucket in place of the folder of tenants, under which reports name files.
pub(crate) fn with_address(arguments: &ServeArguments) -> ServeArguments {
    let mut arguments = arguments.clone();
    if let Some(store) = &arguments.store {
        arguments.content.tenants = PathBuf::from(store.trim_end_matches('/'));
    }
    arguments
}

impl FollowedStore {
    /// Opens the bucket of `--store`, if the flag is set.
    ///
    /// # Errors
    /// Returns an error if the bucket cannot be used. A bucket that does not answer is not an error.
    pub(crate) fn open(
        arguments: &ServeArguments,
        board: &StatusBoard,
    ) -> anyhow::Result<Option<Self>> {
        let Some(store) = &arguments.store else {
            return Ok(None);
        };
        // The parser requires both flags together.
        let state = arguments.state.as_deref();
        let state = state.context("`--store` needs a folder for content: add `--state`")?;
        let host = host_name();
        let memory = arguments.memory.unwrap_or_else(memory::half);
        let machine = (&*host, memory);
        let follower = BucketFollower::open(store, state, arguments.store_poll, machine, board)?;
        Ok(Some(Self(follower)))
    }

    /// Returns the registry with the tenants of the bucket, and with its themes and `deployment.yaml` unless the flags name local ones.
    pub(crate) fn attach(&self, registry: Registry, local: &ContentFlags) -> Registry {
        for (flag, path, published) in [
            ("--themes", &local.themes, "themes"),
            ("--deployment", &local.deployment, "`deployment.yaml`"),
        ] {
            if let Some(path) = path {
                info!(path = %path.display(), "`{flag}` is set; the published {published} have no effect");
            }
        }
        // The default folder `themes` is for servers without a bucket.
        registry.with_bucket(&self.0, local.themes.clone())
    }
}

/// Returns the store of certificates in the bucket, if this process orders certificates for a fleet.
///
/// # Errors
/// Returns an error if the key of the bucket's secrets is missing or cannot be used.
pub(crate) fn certificates(
    arguments: &ServeArguments,
) -> anyhow::Result<Option<Arc<dyn SharedStore>>> {
    let (Some(store), Some(_)) = (&arguments.store, &arguments.https.acme_contact) else {
        return Ok(None);
    };
    let Some(file) = &arguments.store_key_file else {
        bail!(
            "`--acme-contact` with `--store` needs a key that encrypts certificates in the bucket: write the output of `openssl rand -hex 32` to a file, and add `--store-key-file FILE` to all servers of the bucket"
        );
    };
    let place = || format!("`--store-key-file {}`", file.display());
    let text = operator_file::read(file).with_context(place)?;
    let text = String::from_utf8_lossy(&text);
    let key = SealingKey::parse(&text).with_context(place)?;
    let objects = SealedObjects::new(Bucket::open(store)?, key);
    let certificates =
        BucketCertificates::start(objects).context("cannot start the thread for certificates")?;
    Ok(Some(Arc::new(certificates)))
}

/// Follows the bucket, if there is one, until the reload loop ends.
pub(crate) fn follow(
    followed: Option<FollowedStore>,
    board: &Arc<StatusBoard>,
    reloads: &ReloadSender,
) {
    if let Some(followed) = followed {
        followed.0.start(Arc::clone(board), reloads.clone());
    }
}

/// Returns the snapshot, or an empty one if the tenants of the bucket are not known yet: the reload loop reads them once the store answers, and the process is not ready until then.
///
/// # Errors
/// Returns the error of a server without a bucket, or of a server that takes over.
pub(crate) fn or_empty(
    snapshot: anyhow::Result<Snapshot>,
    followed: Option<&FollowedStore>,
    takeover: Option<&Takeover>,
) -> anyhow::Result<Snapshot> {
    match (followed, takeover) {
        (Some(_), None) => Ok(snapshot.unwrap_or_default()),
        _ => snapshot,
    }
}
