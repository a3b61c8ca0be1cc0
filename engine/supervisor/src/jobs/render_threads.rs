//! A limit on the threads that render the pages of large tenants side by side.
//!
//! Each of these threads has a JavaScript engine of its own. All jobs together lease no more than a few threads for each processor, so that a new theme for many large tenants does not start that many for each of them.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use rayon::{ThreadPool, ThreadPoolBuilder};

/// The threads that all jobs lease from.
#[derive(Debug)]
pub(crate) struct RenderThreads {
    /// How many are not leased; none before the first lease.
    free: Mutex<Option<usize>>,
}

/// Threads that one job has leased. They are returned when the lease is dropped, or released because the job was given up.
#[derive(Debug, Default)]
pub(crate) struct ThreadLease(AtomicUsize);

/// The threads of this process.
pub(crate) static RENDER_THREADS: RenderThreads = RenderThreads {
    free: Mutex::new(None),
};

impl RenderThreads {
    /// Leases free threads, `wanted` at most, into `lease`. Returns a pool of them, or `None` where fewer than two are free: the caller's own thread does as much.
    pub(crate) fn lease(
        &self,
        wanted: usize,
        total: usize,
        lease: &ThreadLease,
    ) -> Option<ThreadPool> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let available = free.get_or_insert(total);
        let leased = wanted.min(*available);
        if leased < 2 {
            return None;
        }
        *available -= leased;
        drop(free);
        lease.0.fetch_add(leased, Relaxed);
        let pool = ThreadPoolBuilder::new().num_threads(leased).build();
        if pool.is_err() {
            self.release(lease);
        }
        pool.ok()
    }

    /// Returns the threads of a lease, once.
    pub(crate) fn release(&self, lease: &ThreadLease) {
        let leased = lease.0.swap(0, Relaxed);
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(free) = free.as_mut() {
            *free += leased;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_jobs_share_the_processors() {
        let threads = RenderThreads {
            free: Mutex::new(None),
        };
        let (first, second, third) = (
            ThreadLease::default(),
            ThreadLease::default(),
            ThreadLease::default(),
        );
        let pool = threads.lease(8, 4, &first).expect("a pool");
        assert_eq!(pool.current_num_threads(), 4);
        assert!(threads.lease(8, 4, &second).is_none(), "none is free");
        threads.release(&first);
        threads.release(&first);
        let pool = threads.lease(3, 4, &second).expect("a pool");
        assert_eq!(pool.current_num_threads(), 3);
        assert!(threads.lease(3, 4, &third).is_none(), "one is free");
    }
}
