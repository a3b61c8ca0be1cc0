//! What operators ask of whoever owns the tenants: which releases are kept, what changed between them, back to one, on with the folder, and the folder read again.
//!
//! **Invariant:** knows neither HTTP requests nor how releases are kept. The admin listener calls a [`Control`], the owner of the tenants is one, and neither knows the other.

use std::fmt;

use http::StatusCode;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The owner of the tenants, as operators reach it.
///
/// The methods may block, and are called on threads where that is allowed: a list, a comparison and a command at the same time, and never two of one kind. Each has to end by itself, within a few seconds: nobody waits for longer, and the process does not end before it.
pub trait Control: fmt::Debug + Send + Sync {
    /// The releases of a tenant that are kept, newest first.
    ///
    /// # Errors
    /// When nothing is kept, there is no such tenant, or the work failed.
    fn releases(&self, tenant: &str) -> Result<Vec<ReleaseLine>, ControlError>;

    /// What changed between two releases, by path. Without `to`, up to the newest; without `from`, since the one before `to`.
    ///
    /// # Errors
    /// When nothing is kept, there is no such tenant or release, or the work failed.
    fn diff(
        &self,
        tenant: &str,
        from: Option<u64>,
        to: Option<u64>,
    ) -> Result<Vec<PageChange>, ControlError>;

    /// Serves a release and stays with it, whatever changes in the folder. Without a number, that is the one before what is served. Returns the number of the release that is served now.
    ///
    /// # Errors
    /// When nothing is kept, there is no such tenant or release, or the work failed. What was served then stays.
    fn roll_back(&self, tenant: &str, release: Option<u64>) -> Result<u64, ControlError>;

    /// Follows the tenant's folder again; does nothing where it is followed already.
    ///
    /// # Errors
    /// When nothing is kept, there is no such tenant, or the work failed.
    fn resume(&self, tenant: &str) -> Result<(), ControlError>;

    /// Has the tenant's folder read again, as if something in it had changed. It is read soon; what comes of it is on the status board.
    ///
    /// # Errors
    /// When there is no such tenant, or nobody reads folders any longer.
    fn read_again(&self, tenant: &str) -> Result<(), ControlError>;
}

/// A release, as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseLine {
    /// Counts the tenant's releases, from 1.
    pub number: u64,
    /// Since when the tenant answered so, in seconds since 1970.
    pub at: u64,
    /// Which files had changed.
    pub cause: Vec<String>,
    /// How many pages the tenant had.
    pub pages: usize,
    /// Whether visitors get it now.
    pub is_served: bool,
    /// Whether it is served until somebody says otherwise, whatever changes in the folder.
    pub is_pinned: bool,
}

/// A path that two releases do not answer alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageChange {
    /// The path from the tenant's own root on (`/terms`), or the name of an error page (`404 page of /blog`).
    pub path: String,
    /// What happened to it.
    pub change: Change,
    /// The difference for people: lines that begin with `-`, `+` or a space. Empty where the page was added or removed.
    pub text: String,
}

/// What happened to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// Only the later release has it.
    Added,
    /// Only the earlier release has it.
    Removed,
    /// Both have it, with other content.
    Changed,
}

/// What the admin listener answers to a roll-back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RolledBack {
    /// The number of the release that is served now.
    pub release: u64,
}

/// What the admin listener answers where it refuses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Why, for people.
    pub error: String,
}

/// Why something that operators ask for cannot be done.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ControlError {
    /// The server has no folder for releases.
    #[error("nothing is kept: start the server with `--state`")]
    NoState,
    /// There is no such tenant.
    #[error("there is no tenant `{0}`")]
    UnknownTenant(String),
    /// The tenant has no such release, or it cannot be read.
    #[error("`{tenant}` has no release {number}: `rowhouse releases {tenant}` lists them")]
    UnknownRelease {
        /// The tenant.
        tenant: String,
        /// The number that was requested.
        number: u64,
    },
    /// No number was given, and the tenant has no release before the one that is meant.
    #[error("`{0}` has no earlier release")]
    NoEarlierRelease(String),
    /// The work failed; this says why.
    #[error("{0}")]
    Failed(String),
}

impl ControlError {
    /// The status with which the admin listener says so.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::NoState => StatusCode::CONFLICT,
            Self::UnknownTenant(_) | Self::UnknownRelease { .. } | Self::NoEarlierRelease(_) => {
                StatusCode::NOT_FOUND
            }
            Self::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}
