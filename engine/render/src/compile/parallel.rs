//! Work on all threads of a pool.

use rayon::prelude::*;

/// What `work` makes of each, in order: on all threads of the pool that the caller runs on, or on the caller's own.
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
