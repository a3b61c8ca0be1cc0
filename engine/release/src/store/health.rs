//! The failures of writes, for operators.
//!
//! **Invariant:** counts and remembers; decides nothing.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The releases that wait for the disk. Each of them has its pages in memory.
#[derive(Debug, Default)]
pub(super) struct QueuedReleases {
    count: AtomicUsize,
    bytes: AtomicU64,
}

impl QueuedReleases {
    pub(super) fn add(&self, bytes: u64) {
        self.count.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
    }

    pub(super) fn remove(&self, bytes: u64) {
        self.count.fetch_sub(1, Relaxed);
        self.bytes.fetch_sub(bytes, Relaxed);
    }

    pub(super) fn count(&self) -> usize {
        self.count.load(Relaxed)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }
}

/// The failures of jobs, and the reasons that concern all jobs.
#[derive(Debug, Default)]
pub(super) struct Health {
    panics: AtomicU64,
    failures: AtomicU64,
    /// The jobs that failed for a reason of their own, and have not succeeded since.
    failing: Mutex<BTreeSet<String>>,
    /// The reason that the folder is not claimed, or that the disk refuses all writes.
    problem: Mutex<Option<String>>,
}

impl Health {
    pub(super) fn panics(&self) -> u64 {
        self.panics.load(Relaxed)
    }

    pub(super) fn failures(&self) -> u64 {
        self.failures.load(Relaxed)
    }

    pub(super) fn failing_job(&self) -> Option<String> {
        locked(&self.failing).first().cloned()
    }

    /// Returns whether a job failed for a reason of its own, and has not succeeded since.
    pub(super) fn is_failing(&self, job: &str) -> bool {
        locked(&self.failing).contains(job)
    }

    pub(super) fn problem(&self) -> Option<String> {
        locked(&self.problem).clone()
    }

    pub(super) fn has_problem(&self) -> bool {
        locked(&self.problem).is_some()
    }

    /// Sets or clears the reason that nothing can be written. Returns whether there was a reason before.
    pub(super) fn set_problem(&self, problem: Option<String>) -> bool {
        std::mem::replace(&mut *locked(&self.problem), problem).is_some()
    }

    pub(super) fn record_panic(&self, job: String) {
        self.panics.fetch_add(1, Relaxed);
        self.record_failure(Some(job));
    }

    /// Records a failed job. `job`: its name, if the reason concerns this job only.
    pub(super) fn record_failure(&self, job: Option<String>) {
        self.failures.fetch_add(1, Relaxed);
        locked(&self.failing).extend(job);
    }

    pub(super) fn record_success(&self, job: &str) {
        locked(&self.failing).remove(job);
    }
}

fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
