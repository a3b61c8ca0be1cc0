//! What a tenant has served since it came, as plain counters.
//!
//! They hang on the [`Mount`](super::Mount), so that counting a request is a few additions and never a look-up by name, and they outlive the snapshot that led to them, so that a reload loses nothing.
//! Whoever shows them (as Prometheus text, for example) reads them from here.
//!
//! **Invariant:** knows no metrics library; the number of counters never depends on what a client sends.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use http::StatusCode;

use super::coding::Coding;

/// Upper bounds of the latency histogram, in microseconds; a last bucket takes what is slower.
///
/// Answers come from memory, so most of them fall into the first three; the upper ones show a machine that has no time.
pub const LATENCY_BOUNDS: [u64; 11] = [
    25, 50, 100, 250, 500, 1_000, 5_000, 25_000, 100_000, 1_000_000, 10_000_000,
];

/// The names of the status classes that are counted apart.
pub const CLASSES: [&str; 4] = ["2xx", "3xx", "4xx", "5xx"];

/// The counters of one tenant.
#[derive(Debug, Default)]
pub struct Traffic {
    cells: [[Cell; Coding::ALL.len()]; CLASSES.len()],
    latency: [AtomicU64; LATENCY_BOUNDS.len() + 1],
    latency_sum: AtomicU64,
    /// Whether a request was noted since [`Traffic::look`].
    is_noted: AtomicBool,
}

/// Requests and bytes of one status class in one encoding.
#[derive(Debug, Default)]
struct Cell {
    requests: AtomicU64,
    bytes: AtomicU64,
}

/// One line of [`Traffic::counts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// `2xx` to `5xx`.
    pub class: &'static str,
    /// The encoding of the body.
    pub coding: Coding,
    /// Responses.
    pub requests: u64,
    /// Bytes of bodies, as they went out.
    pub bytes: u64,
}

/// The latency histogram at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Latency {
    /// Responses by bucket, not cumulated: one for each of [`LATENCY_BOUNDS`] and one for the rest.
    pub buckets: [u64; LATENCY_BOUNDS.len() + 1],
    /// All durations together, in microseconds.
    pub sum: u64,
}

impl Traffic {
    /// Counts one response: `bytes` of body, and the time from its request until it was ready to be sent. How long a client takes to read it says nothing of the server.
    pub fn record(&self, status: StatusCode, coding: Coding, bytes: u64, took: Duration) {
        let class = usize::from(status.as_u16() / 100)
            .saturating_sub(2)
            .min(CLASSES.len() - 1);
        let cell = &self.cells[class][coding as usize];
        cell.requests.fetch_add(1, Relaxed);
        cell.bytes.fetch_add(bytes, Relaxed);

        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = LATENCY_BOUNDS
            .iter()
            .position(|bound| micros <= *bound)
            .unwrap_or(LATENCY_BOUNDS.len());
        self.latency[bucket].fetch_add(1, Relaxed);
        self.latency_sum.fetch_add(micros, Relaxed);
    }

    /// Notes that a request came. Returns whether it is the first since [`Traffic::look`].
    pub fn note(&self) -> bool {
        !self.is_noted.load(Relaxed) && !self.is_noted.swap(true, Relaxed)
    }

    /// Returns the number of requests, and waits for the next to be noted.
    pub fn look(&self) -> u64 {
        self.is_noted.store(false, Relaxed);
        self.latency().buckets.iter().sum()
    }

    /// The counters that are not zero.
    pub fn counts(&self) -> impl Iterator<Item = Count> {
        CLASSES.iter().zip(&self.cells).flat_map(|(class, row)| {
            Coding::ALL.iter().zip(row).filter_map(|(coding, cell)| {
                let requests = cell.requests.load(Relaxed);
                (requests > 0).then(|| Count {
                    class,
                    coding: *coding,
                    requests,
                    bytes: cell.bytes.load(Relaxed),
                })
            })
        })
    }

    /// The latency histogram.
    #[must_use]
    pub fn latency(&self) -> Latency {
        Latency {
            buckets: std::array::from_fn(|bucket| self.latency[bucket].load(Relaxed)),
            sum: self.latency_sum.load(Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_counted_by_class_and_coding() {
        let traffic = Traffic::default();
        traffic.record(
            StatusCode::OK,
            Coding::Brotli,
            10,
            Duration::from_micros(26),
        );
        traffic.record(StatusCode::OK, Coding::Brotli, 5, Duration::from_secs(60));
        traffic.record(StatusCode::NOT_FOUND, Coding::Identity, 7, Duration::ZERO);
        let counts: Vec<_> = traffic.counts().collect();
        assert_eq!(
            counts,
            [
                Count {
                    class: "2xx",
                    coding: Coding::Brotli,
                    requests: 2,
                    bytes: 15
                },
                Count {
                    class: "4xx",
                    coding: Coding::Identity,
                    requests: 1,
                    bytes: 7
                },
            ]
        );
        let latency = traffic.latency();
        assert_eq!(
            (
                latency.buckets[0],
                latency.buckets[1],
                latency.buckets[11],
                latency.sum
            ),
            (1, 1, 1, 60_000_026)
        );
    }
}
