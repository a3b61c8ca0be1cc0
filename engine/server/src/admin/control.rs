//! The interface to the supervisor: lists and compares releases, rolls back, resumes, restores a removed tenant, and reads a folder again.
//!
//! **Invariant:** knows neither HTTP requests nor the storage of releases. The admin listener calls a [`Control`], the supervisor implements it, and neither knows the other.

use std::fmt;

use http::StatusCode;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The operations on tenants that the supervisor offers to operators.
///
/// The methods may block, and are called on threads where blocking is allowed. A list, a comparison and a command may run at the same time, but never two of one kind. Each call must return within a few seconds: callers do not wait longer, and the process cannot exit before it returns.
pub trait Control: fmt::Debug + Send + Sync {
    /// Returns the persisted releases of a tenant, newest first.
    ///
    /// # Errors
    /// When there is no state folder, no such tenant, or the operation failed.
    fn releases(&self, tenant: &str) -> Result<Vec<ReleaseLine>, ControlError>;

    /// Returns the changes between two releases, by path. `to` defaults to the newest release, and `from` to the release before `to`.
    ///
    /// # Errors
    /// When there is no state folder, no such tenant or release, or the operation failed.
    fn diff(
        &self,
        tenant: &str,
        from: Option<u64>,
        to: Option<u64>,
    ) -> Result<Vec<PageChange>, ControlError>;

    /// Rolls a tenant back to a release and pins it, so that changes in the folder have no effect. Without a number, the release before the current one is used. Returns the number of the current release.
    ///
    /// # Errors
    /// When there is no state folder, no such tenant or release, or the operation failed. The current release then stays.
    fn roll_back(&self, tenant: &str, release: Option<u64>) -> Result<u64, ControlError>;

    /// Unpins a tenant, so that it follows its folder again. Does nothing if the tenant is not pinned.
    ///
    /// # Errors
    /// When there is no state folder, no such tenant, or the operation failed.
    fn resume(&self, tenant: &str) -> Result<(), ControlError>;

    /// Serves a removed tenant from its last valid folder, until its folder is back. Does nothing if the tenant is restored already.
    ///
    /// # Errors
    /// When there is no state folder or no removed tenant of this name, its folder exists, or the operation failed.
    fn restore(&self, tenant: &str) -> Result<(), ControlError>;

    /// Requests a reload of the tenant's folder, as if a file had changed. The call does not wait for the reload; the status board reports its result.
    ///
    /// # Errors
    /// When there is no such tenant, or the reload loop has ended.
    fn read_again(&self, tenant: &str) -> Result<(), ControlError>;
}

/// A release in a list of releases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseLine {
    /// The release's number; a tenant's first release is 1.
    pub number: u64,
    /// When the release became current, in seconds since 1970.
    pub at: u64,
    /// The files that had changed.
    pub cause: Vec<String>,
    /// The number of pages.
    pub pages: usize,
    /// Whether this is the current release.
    pub is_served: bool,
    /// Whether the release is pinned. A pinned release stays current until an operator resumes the tenant, even if the folder changes.
    pub is_pinned: bool,
}

/// A path at which two releases, or two versions of a folder, differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageChange {
    /// The path below the tenant's root (`/terms`), the name of an error page (`404 page of /blog`), or the path of a file (`pages/terms.md`).
    pub path: String,
    /// The kind of change.
    pub change: ChangeKind,
    /// The difference that readers see, such as text, links and images: lines that begin with `-`, `+` or a space. Empty for an added or removed page.
    pub text: String,
    /// The difference that readers do not see, in the same form: tags, scripts, styles, files for machines.
    pub metadata: String,
}

impl PageChange {
    /// Returns whether readers see no difference.
    #[must_use]
    pub fn is_metadata(&self) -> bool {
        self.change == ChangeKind::Changed && self.text.is_empty()
    }
}

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// Only the later release has the path.
    Added,
    /// Only the earlier release has the path.
    Removed,
    /// Both releases have the path, with different content.
    Changed,
}

/// The admin listener's response to a rollback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollbackResponse {
    /// The number of the current release.
    pub release: u64,
}

/// The admin listener's response to a refused request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The reason, in words.
    pub error: String,
}

/// Error of an operation on a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ControlError {
    /// The server has no state folder.
    #[error("releases are not persisted: start the server with `--state`")]
    NoState,
    /// The tenant has no releases because the state cannot be written.
    #[error("`{tenant}` has no releases: the state cannot be written: {problem}")]
    StateFailed {
        /// The tenant's id.
        tenant: String,
        /// The reason.
        problem: String,
    },
    /// There is no such tenant.
    #[error("unknown tenant `{0}`")]
    UnknownTenant(String),
    /// The tenant's folder was removed.
    #[error(
        "the folder of `{0}` was removed: serve its last valid pages with `rowhouse restore {0}`"
    )]
    Removed(String),
    /// The tenant has no such release, or the release cannot be read.
    #[error(
        "`{tenant}` has no release {number}: choose one that `rowhouse releases {tenant}` lists"
    )]
    UnknownRelease {
        /// The tenant's id.
        tenant: String,
        /// The requested number.
        number: u64,
    },
    /// No number was given, and there is no earlier release to default to.
    #[error("`{0}` has no earlier release")]
    NoEarlierRelease(String),
    /// The operation failed, with the reason.
    #[error("{0}")]
    Failed(String),
}

impl ControlError {
    /// Returns the HTTP status of the error.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::NoState | Self::StateFailed { .. } | Self::Removed(_) => StatusCode::CONFLICT,
            Self::UnknownTenant(_) | Self::UnknownRelease { .. } | Self::NoEarlierRelease(_) => {
                StatusCode::NOT_FOUND
            }
            Self::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}
