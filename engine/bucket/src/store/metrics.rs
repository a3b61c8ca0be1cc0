//! Counts the requests to the store.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// The counts of all buckets that the process has opened.
static PROCESS: LazyLock<Arc<StoreMetrics>> = LazyLock::new(Arc::default);

/// The kinds of requests, as stores charge for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// Reads an object, or asks whether it exists.
    Read,
    /// Lists names.
    List,
    /// Creates or replaces an object.
    Write,
    /// Deletes an object.
    Delete,
}

impl RequestKind {
    /// All names, in the order of the counts.
    pub const NAMES: [&str; 4] = ["read", "list", "write", "delete"];
}

/// The results of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestResult {
    /// The request had its effect, or returned the object or the list.
    Done,
    /// The object still has the known tag.
    Unchanged,
    /// The object does not exist.
    Missing,
    /// The condition of a write did not hold.
    Refused,
    /// The store refuses the credentials.
    Denied,
    /// The store did not answer, or cannot do what was asked.
    Failed,
}

impl RequestResult {
    /// All names, in the order of the counts.
    const NAMES: [&str; 6] = [
        "done",
        "unchanged",
        "missing",
        "refused",
        "denied",
        "failed",
    ];
}

/// The names of the results of requests, in the order of the counts.
pub const RESULTS: [&str; 6] = RequestResult::NAMES;

/// Upper bounds of the time of a request, in milliseconds.
pub const LATENCY_BOUNDS: [u64; 10] = [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 10_000];

/// The counts of the requests to a store.
#[derive(Debug, Default)]
pub struct StoreMetrics {
    requests: [[AtomicU64; 6]; 4],
    latency: [AtomicU64; 11],
    latency_micros: AtomicU64,
    received: AtomicU64,
    sent: AtomicU64,
    cache_hits: AtomicU64,
    cache_misses: AtomicU64,
    leases: AtomicU64,
}

/// The counts at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreCounts {
    /// The requests by kind and result.
    pub requests: [[u64; 6]; 4],
    /// The requests by time: up to each of [`LATENCY_BOUNDS`], and beyond.
    pub latency: [u64; 11],
    /// The time of all requests together, in microseconds.
    pub latency_micros: u64,
    /// The bytes of all objects that were read.
    pub received: u64,
    /// The bytes of all objects that were written.
    pub sent: u64,
    /// The versions whose content was on the disk.
    pub cache_hits: u64,
    /// The versions whose content had to be read.
    pub cache_misses: u64,
    /// The leases that are held.
    pub leases: u64,
}

impl StoreMetrics {
    /// Returns the counts of all buckets that the process has opened.
    pub(crate) fn of_process() -> Arc<Self> {
        Arc::clone(&PROCESS)
    }

    /// Counts a request with its result and time.
    pub(crate) fn record(&self, kind: RequestKind, result: RequestResult, took: Duration) {
        self.requests[kind as usize][result as usize].fetch_add(1, Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let is_within = |bound: &u64| micros <= bound * 1_000;
        let bucket = LATENCY_BOUNDS.iter().position(is_within);
        self.latency[bucket.unwrap_or(LATENCY_BOUNDS.len())].fetch_add(1, Relaxed);
        self.latency_micros.fetch_add(micros, Relaxed);
    }

    /// Counts the bytes of an object that was read.
    pub(crate) fn record_received(&self, bytes: usize) {
        add(&self.received, bytes);
    }

    /// Counts the bytes of an object that was written.
    pub(crate) fn record_sent(&self, bytes: usize) {
        add(&self.sent, bytes);
    }

    /// Counts a version whose content is needed on the disk.
    pub(crate) fn record_cache(&self, is_hit: bool) {
        let counter = match is_hit {
            true => &self.cache_hits,
            false => &self.cache_misses,
        };
        add(counter, 1);
    }

    /// Counts a lease that is held from now on, or no longer.
    pub(crate) fn record_lease(&self, is_held: bool) {
        match is_held {
            true => self.leases.fetch_add(1, Relaxed),
            false => self.leases.fetch_sub(1, Relaxed),
        };
    }

    /// Returns the counts.
    #[must_use]
    pub fn counts(&self) -> StoreCounts {
        let load = |counter: &AtomicU64| counter.load(Relaxed);
        let mut counts = StoreCounts {
            latency_micros: load(&self.latency_micros),
            received: load(&self.received),
            sent: load(&self.sent),
            cache_hits: load(&self.cache_hits),
            cache_misses: load(&self.cache_misses),
            leases: load(&self.leases),
            ..StoreCounts::default()
        };
        let counters = self.requests.iter().flatten().chain(&self.latency);
        let values = counts.requests.iter_mut().flatten();
        for (counter, value) in counters.zip(values.chain(&mut counts.latency)) {
            *value = load(counter);
        }
        counts
    }
}

fn add(counter: &AtomicU64, count: usize) {
    counter.fetch_add(u64::try_from(count).unwrap_or(u64::MAX), Relaxed);
}
