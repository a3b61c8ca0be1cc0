//! Work on all threads of a rayon pool.

use rayon::prelude::*;

/// Maps each item with `work` and returns the results in order.
///
/// Uses all threads of the pool that the caller runs on. A caller outside a pool does the work on its own thread.
pub(crate) fn map_parallel<T: Send, R: Send>(
    items: impl Iterator<Item = T>,
    work: impl Fn(T) -> R + Send + Sync,
) -> Vec<R> {
    if rayon::current_thread_index().is_none() {
        return items.map(work).collect();
    }
    let items: Vec<T> = items.collect();
    items.into_par_iter().map(work).collect()
}
