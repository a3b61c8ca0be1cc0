//! The threads that work for the event loop.
//!
//! - [`job_pool`] runs jobs, such as readings and builds, on all processors.
//! - [`background`] renders images, and makes Markdown forms and content encodings.
//! - [`surveyor`] runs surveys of the folders.
//! - [`watcher`] runs the watch over the folders.
//!
//! **Invariant:** the threads return results; only the event loop changes the data of tenants.

pub(crate) mod background;
pub(crate) mod job_pool;
pub(crate) mod surveyor;
pub(crate) mod watcher;
