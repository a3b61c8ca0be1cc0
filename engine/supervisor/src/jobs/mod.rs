//! Work for one tenant, on a thread of the job pool: reading its folder, rendering it, restoring an earlier rendering.

pub(crate) mod arrival;
pub(crate) mod compile;
pub(crate) mod outcome;
pub(crate) mod packed_folder;
pub(crate) mod persisted_reading;
pub(crate) mod pin;
pub(crate) mod read;
pub(crate) mod render_threads;
pub(crate) mod restored_build;
pub(crate) mod shared_encodings;
pub(crate) mod shared_release;
