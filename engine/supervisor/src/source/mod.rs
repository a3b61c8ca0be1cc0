//! Folders on disk, and the notices of their changes.

pub(crate) mod survey;
pub mod watch;
