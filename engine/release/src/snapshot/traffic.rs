//! Counters of a tenant's requests, bytes and latency since it was first served.
//!
//! The counters belong to the [`Mount`](super::Mount): counting a request takes a few additions and no look-up by name. The counters outlive the snapshot that holds the mount, so a reload loses no count.
//! Exporters, for example the Prometheus endpoint, read them from here.
//!
//! **Invariant:** knows no metrics library; the number of counters never depends on client input.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use http::StatusCode;

use super::content_encoding::ContentEncoding;

/// Upper bounds of the latency histogram, in microseconds. A final bucket counts slower responses.
///
/// Responses come from memory, so most fall into the first three buckets. High buckets indicate an overloaded machine.
pub const LATENCY_BOUNDS: [u64; 11] = [
    25, 50, 100, 250, 500, 1_000, 5_000, 25_000, 100_000, 1_000_000, 10_000_000,
];

/// The labels of the status classes, each counted separately.
pub const CLASSES: [&str; 4] = ["2xx", "3xx", "4xx", "5xx"];

/// The traffic counters of one tenant.
#[derive(Debug, Default)]
pub struct Traffic {
    cells: [[TrafficCell; ContentEncoding::ALL.len()]; CLASSES.len()],
    latency: [AtomicU64; LATENCY_BOUNDS.len() + 1],
    latency_sum: AtomicU64,
    /// Responses with status 404.
    not_found: AtomicU64,
    /// The bytes and the 404 responses that [`Traffic::take_increase`] has returned.
    taken: [AtomicU64; 2],
    /// Whether [`Traffic::note`] was called since the last [`Traffic::rearm`].
    is_noted: AtomicBool,
}

/// Requests and bytes of one status class in one encoding.
#[derive(Debug, Default)]
struct TrafficCell {
    requests: AtomicU64,
    bytes: AtomicU64,
}

/// One item of [`Traffic::counts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrafficCount {
    /// The status class, `2xx` to `5xx`.
    pub class: &'static str,
    /// The content encoding of the body.
    pub encoding: ContentEncoding,
    /// The number of responses.
    pub requests: u64,
    /// Bytes of response bodies, as sent.
    pub bytes: u64,
}

/// The latency histogram at one point in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Latency {
    /// Responses per bucket, not cumulative: one bucket for each of [`LATENCY_BOUNDS`] and one for slower responses.
    pub buckets: [u64; LATENCY_BOUNDS.len() + 1],
    /// The sum of all latencies, in microseconds.
    pub sum: u64,
}

impl Traffic {
    /// Counts one response with `bytes` of body.
    ///
    /// `took` runs from the request until the response is ready to send. The time a client takes to read says nothing about the server.
    pub fn record(
        &self,
        status: StatusCode,
        encoding: ContentEncoding,
        bytes: u64,
        took: Duration,
    ) {
        let class = usize::from(status.as_u16() / 100)
            .saturating_sub(2)
            .min(CLASSES.len() - 1);
        let cell = &self.cells[class][encoding as usize];
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

    /// Counts a response with status 404, besides [`Traffic::record`].
    pub fn record_not_found(&self) {
        self.not_found.fetch_add(1, Relaxed);
    }

    /// Returns the bytes of response bodies and the 404 responses since the last call.
    pub fn take_increase(&self) -> [u64; 2] {
        let bytes = self.counts().map(|count| count.bytes).sum();
        let now = [bytes, self.not_found.load(Relaxed)];
        // A call at the same time may have read newer counts.
        std::array::from_fn(|index| {
            now[index].saturating_sub(self.taken[index].fetch_max(now[index], Relaxed))
        })
    }

    /// Notes a request. Returns whether it is the first since the last [`Traffic::rearm`].
    pub fn note(&self) -> bool {
        !self.is_noted.load(Relaxed) && !self.is_noted.swap(true, Relaxed)
    }

    /// Returns the number of requests, and resets [`Traffic::note`] so that it reports the next request.
    pub fn rearm(&self) -> u64 {
        self.is_noted.store(false, Relaxed);
        self.latency().buckets.iter().sum()
    }

    /// Returns the counters that are not zero.
    pub fn counts(&self) -> impl Iterator<Item = TrafficCount> {
        CLASSES.iter().zip(&self.cells).flat_map(|(class, row)| {
            ContentEncoding::ALL
                .iter()
                .zip(row)
                .filter_map(|(encoding, cell)| {
                    let requests = cell.requests.load(Relaxed);
                    (requests > 0).then(|| TrafficCount {
                        class,
                        encoding: *encoding,
                        requests,
                        bytes: cell.bytes.load(Relaxed),
                    })
                })
        })
    }

    /// Returns the latency histogram.
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
    fn responses_are_counted_by_class_and_encoding() {
        let traffic = Traffic::default();
        traffic.record(
            StatusCode::OK,
            ContentEncoding::Brotli,
            10,
            Duration::from_micros(26),
        );
        traffic.record(
            StatusCode::OK,
            ContentEncoding::Brotli,
            5,
            Duration::from_secs(60),
        );
        traffic.record(
            StatusCode::NOT_FOUND,
            ContentEncoding::Identity,
            7,
            Duration::ZERO,
        );
        let counts: Vec<_> = traffic.counts().collect();
        assert_eq!(
            counts,
            [
                TrafficCount {
                    class: "2xx",
                    encoding: ContentEncoding::Brotli,
                    requests: 2,
                    bytes: 15
                },
                TrafficCount {
                    class: "4xx",
                    encoding: ContentEncoding::Identity,
                    requests: 1,
                    bytes: 7
                },
            ]
        );
        traffic.record_not_found();
        assert_eq!(traffic.take_increase(), [22, 1]);
        assert_eq!(traffic.take_increase(), [0, 0]);
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
