//! Folders on disk, and the notices of their changes.

pub mod watch;
