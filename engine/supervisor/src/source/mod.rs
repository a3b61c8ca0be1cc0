//! Folders on disk, and the notices of their changes.

pub(crate) mod survey;
pub(crate) mod theme_folders;
pub mod watch;
