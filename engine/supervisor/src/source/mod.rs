//! The folders on disk: surveys read them, and a watch notices their changes.

pub(crate) mod survey;
pub(crate) mod theme_folders;
pub mod watch;
