//! `--store`: the tenants come from the bucket of a fleet.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;

use release::snapshot::Snapshot;
use server::admin::status::StatusBoard;
use supervisor::source::bucket::BucketFollower;
use supervisor::{Registry, ReloadSender};

use super::takeover::successor::Takeover;
use crate::cli::ServeArguments;

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
        let follower = BucketFollower::open(store, state, arguments.store_poll, board)?;
        Ok(Some(Self(follower)))
    }

    /// Returns the registry with the tenants of the bucket.
    pub(crate) fn attach(&self, registry: Registry) -> Registry {
        registry.with_bucket(&self.0)
    }
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
