//! The source of tenants: surveys and jobs read it, and a watch notices changes.
//!
//! [`TenantSource`] is the interface, and [`folders`] implements it for folders on disk, and `bucket` for an object store. `bucket_releases` shares renderings through the same store, and [`dormant`] is the interface to tenants whose content is downloaded at a request.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::PathBuf;
use std::time::SystemTime;

use content::name::TenantId;
use content::report::Diagnostic;
use content::source::{Activity, FolderLimits, FolderTree, SourceError};

use crate::source::theme_folders::ThemesLocation;

#[cfg(feature = "bucket")]
pub mod bucket;
#[cfg(feature = "bucket")]
pub(crate) mod bucket_releases;
pub(crate) mod dormant;
pub(crate) mod folders;
pub(crate) mod survey;
pub(crate) mod theme_folders;
pub mod watch;

/// Reads the tenants of a deployment.
///
/// Each call may block for as long as the storage does not respond, so only surveys and jobs make calls.
pub(crate) trait TenantSource: Debug + Send + Sync {
    /// Returns the paths of the tenants' folders by name.
    ///
    /// # Errors
    /// Returns an error if the tenants cannot be listed.
    fn list(&self) -> Result<BTreeMap<String, PathBuf>, SourceError>;

    /// Returns the text of `deployment.yaml`, or `None` if the file does not exist.
    ///
    /// # Errors
    /// Returns a diagnostic if the file cannot be read.
    fn deployment(&self) -> Result<Option<String>, Diagnostic>;

    /// Returns the folder of themes, or `None` for the themes in the program.
    fn themes(&self) -> Option<ThemesLocation>;

    /// Returns the name of a tenant's folder in reports.
    fn label(&self, id: &TenantId) -> String;

    /// Returns whether a tenant exists although the list leaves it out, because its content is not on this machine. Reads no file.
    fn is_dormant(&self, _id: &TenantId) -> bool {
        false
    }

    /// Returns when a tenant was published, if the source knows it. Otherwise, the age of a preview is that of its files. Reads no file.
    fn published(&self, _id: &TenantId) -> Option<SystemTime> {
        None
    }

    /// Lists the files of a tenant. Through `activity`, other threads see whether the storage responds.
    fn tree(&self, id: &TenantId, limits: FolderLimits, activity: &Activity) -> FolderTree;
}
