//! Refuses `--store` in a build without the feature `bucket`.
//!
//! **Invariant:** has the same items as the module for builds with the feature.

use std::sync::Arc;

use anyhow::bail;

use release::snapshot::Snapshot;
use server::acme::SharedStore;
use server::admin::status::StatusBoard;
use supervisor::{Registry, ReloadSender};

use super::takeover::successor::Takeover;
use crate::cli::{ContentFlags, ServeArguments};

/// The bucket that a process follows. This build has none.
#[derive(Debug)]
pub(crate) enum FollowedStore {}

/// Returns the arguments.
pub(crate) fn with_address(arguments: &ServeArguments) -> ServeArguments {
    arguments.clone()
}

impl FollowedStore {
    /// Fails if `--store` is set, so that no other tenants are served.
    pub(crate) fn open(
        arguments: &ServeArguments,
        _: &StatusBoard,
    ) -> anyhow::Result<Option<Self>> {
        if arguments.store.is_some() {
            bail!(
                "this build cannot use an object store: remove `--store` (ROWHOUSE_STORE), or build rowhouse with `--features bucket`"
            );
        }
        Ok(None)
    }

    /// Returns the registry with the tenants of the bucket.
    pub(crate) fn attach(&self, _: Registry, _: &ContentFlags) -> Registry {
        match *self {}
    }
}

/// Returns no store.
///
/// # Errors
/// Never.
pub(crate) fn certificates(_: &ServeArguments) -> anyhow::Result<Option<Arc<dyn SharedStore>>> {
    Ok(None)
}

/// Does nothing.
pub(crate) const fn follow(_: Option<FollowedStore>, _: &Arc<StatusBoard>, _: &ReloadSender) {}

/// Returns the snapshot.
///
/// # Errors
/// Returns the given error.
pub(crate) fn or_empty(
    snapshot: anyhow::Result<Snapshot>,
    _: Option<&FollowedStore>,
    _: Option<&Takeover>,
) -> anyhow::Result<Snapshot> {
    snapshot
}
