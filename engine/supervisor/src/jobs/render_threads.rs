//! A limit on the threads that render the pages of large tenants in parallel.
//!
//! Each of these threads has its own JavaScript engine. All jobs share a few threads for each processor, so that a new theme does not start threads for each large tenant.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use rayon::{ThreadPool, ThreadPoolBuilder};

/// The number of threads that all jobs share.
#[derive(Debug)]
pub(crate) struct RenderThreads {
    /// The number of threads that are not leased. `None` before the first lease.
    free: Mutex<Option<usize>>,
}

/// The number of threads that one job has leased. [`RenderThreads::release`] returns them when rendering ends or the job is abandoned.
#[derive(Debug, Default)]
pub(crate) struct ThreadLease(AtomicUsize);

/// The threads of this process.
pub(crate) static RENDER_THREADS: RenderThreads = RenderThreads {
    free: Mutex::new(None),
};

impl RenderThreads {
    /// Leases at most `wanted` free threads, and notes them in `lease`. Returns a pool of them. `total` is the number of threads before the first lease.
    ///
    /// Returns `None` if fewer than two threads are wanted or free: the caller's own thread is as fast.
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

    /// Releases the threads of a lease. A second call has no effect.
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
    fn large_jobs_share_the_threads() {
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
        assert!(threads.lease(8, 4, &second).is_none(), "no thread is free");
        threads.release(&first);
        threads.release(&first);
        let pool = threads.lease(3, 4, &second).expect("a pool");
        assert_eq!(pool.current_num_threads(), 3);
        assert!(
            threads.lease(3, 4, &third).is_none(),
            "one free thread is too few"
        );
    }
}
