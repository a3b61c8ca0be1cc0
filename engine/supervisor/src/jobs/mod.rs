//! Work for one tenant, on a thread of the job pool: reading its folder, rendering it, restoring an earlier rendering.

pub(crate) mod compile;
pub(crate) mod packed;
pub(crate) mod read;
pub(crate) mod recalled;
pub(crate) mod render_threads;
pub(crate) mod unchanged;
pub(crate) mod work;
