//! What all sites together answered in the last hour, for the console's charts.
//!
//! Every [`STEP`] the counters that requests add to in any case are read, and what they grew by is kept in a ring. A request does nothing for it.
//!
//! **Invariant:** [`KEPT`] samples at most, however long the process runs; knows no tenant.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use release::snapshot::traffic::{CLASSES, LATENCY_BOUNDS, Traffic};

/// How often a sample is taken.
pub const STEP: Duration = Duration::from_secs(10);

/// How many samples are kept: an hour of them.
pub const KEPT: usize = 360;

/// What was answered in some time, or since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sample {
    /// How long that time is.
    pub took: Duration,
    /// Requests answered.
    pub requests: u64,
    /// Those of them that were the server's fault (5xx).
    pub errors: u64,
    /// Requests by how long they took until their answer was ready: one for each of [`LATENCY_BOUNDS`], and one for the rest.
    pub latency: [u64; LATENCY_BOUNDS.len() + 1],
}

impl Sample {
    /// What a tenant has served since it came, without a time.
    #[must_use]
    pub fn of(traffic: &Traffic) -> Self {
        let mut sample = Self::default();
        sample.add_traffic(traffic);
        sample
    }

    /// Adds what a tenant has served.
    pub(crate) fn add_traffic(&mut self, traffic: &Traffic) {
        for count in traffic.counts() {
            self.requests += count.requests;
            if count.class == CLASSES[3] {
                self.errors += count.requests;
            }
        }
        for (bucket, more) in self.latency.iter_mut().zip(traffic.latency().buckets) {
            *bucket += more;
        }
    }

    /// This and another time together.
    #[must_use]
    pub fn plus(mut self, other: &Self) -> Self {
        self.took += other.took;
        self.requests += other.requests;
        self.errors += other.errors;
        for (bucket, more) in self.latency.iter_mut().zip(other.latency) {
            *bucket += more;
        }
        self
    }

    /// The same in another time.
    pub(crate) const fn lasting(mut self, took: Duration) -> Self {
        self.took = took;
        self
    }

    /// What came after `before`. A tenant that is gone took its counters along, so that nothing is less than zero.
    pub(crate) fn since(&self, before: &Self, took: Duration) -> Self {
        Self {
            took,
            requests: self.requests.saturating_sub(before.requests),
            errors: self.errors.saturating_sub(before.errors),
            latency: std::array::from_fn(|bucket| {
                self.latency[bucket].saturating_sub(before.latency[bucket])
            }),
        }
    }

    /// Requests a second; 0 for no time at all.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "for a chart")]
    pub fn rate(&self) -> f64 {
        match self.took.as_secs_f64() {
            0.0 => 0.0,
            seconds => self.requests as f64 / seconds,
        }
    }

    /// The share of requests that were answered with 5xx, from 0 to 1. Nothing without a request.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "for a chart")]
    pub fn error_share(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.errors as f64 / self.requests as f64)
    }

    /// The time in microseconds within which a share of the answers (0.99) was ready. Nothing without a request.
    ///
    /// Within a bucket answers are taken to lie evenly, as Prometheus' `histogram_quantile` does; of the last bucket only the lower bound is known.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "for a chart")]
    pub fn percentile(&self, share: f64) -> Option<f64> {
        let all: u64 = self.latency.iter().sum();
        if all == 0 {
            return None;
        }
        let rank = share.clamp(0.0, 1.0) * all as f64;
        let (mut below, mut lower) = (0.0, 0.0);
        for (count, bound) in self.latency.iter().zip(LATENCY_BOUNDS) {
            let (count, bound) = (*count as f64, bound as f64);
            if count > 0.0 && below + count >= rank {
                return Some(lower + (bound - lower) * (rank - below) / count);
            }
            below += count;
            lower = bound;
        }
        Some(lower)
    }
}

/// The samples of the last hour.
#[derive(Debug, Default)]
pub struct History {
    ring: Mutex<Ring>,
    /// How many samples were ever taken.
    taken: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Ring {
    samples: VecDeque<Sample>,
    /// The counters when the last one was taken.
    total: Sample,
}

impl History {
    /// Takes a sample: the counters now, and the time since the last one.
    pub fn take(&self, total: Sample, took: Duration) {
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let sample = total.since(&ring.total, took);
        if ring.samples.len() >= KEPT {
            ring.samples.pop_front();
        }
        ring.samples.push_back(sample);
        ring.total = total;
        self.taken.send_modify(|taken| *taken += 1);
    }

    /// The samples, oldest first.
    #[must_use]
    pub fn samples(&self) -> Vec<Sample> {
        let ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        ring.samples.iter().copied().collect()
    }

    /// How many samples were ever taken, to be waited on: another number is another chart.
    #[must_use]
    pub fn taken(&self) -> watch::Receiver<u64> {
        self.taken.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(requests: u64, errors: u64, latency: &[(usize, u64)]) -> Sample {
        let mut total = Sample {
            requests,
            errors,
            ..Sample::default()
        };
        for (bucket, count) in latency {
            total.latency[*bucket] = *count;
        }
        total
    }

    #[test]
    fn a_sample_is_what_came_since_the_last_one() {
        let history = History::default();
        history.take(total(20, 1, &[(0, 20)]), STEP);
        history.take(total(50, 4, &[(0, 40), (3, 10)]), STEP);
        // A tenant is gone with its counters.
        history.take(total(10, 0, &[]), STEP);
        let samples = history.samples();
        let rates: Vec<f64> = samples.iter().map(Sample::rate).collect();
        assert_eq!(rates, [2.0, 3.0, 0.0]);
        assert_eq!(samples[1].error_share(), Some(0.1));
        assert_eq!(samples[1].latency[..4], [20, 0, 0, 10]);
        assert_eq!(samples[2].error_share(), None);
        let both = samples[0].plus(&samples[1]);
        assert_eq!((both.requests, both.rate(), both.latency[0]), (50, 2.5, 40));
        assert_eq!(Sample::default().rate(), 0.0);
    }

    #[test]
    fn the_ring_holds_an_hour_and_no_more() {
        let history = History::default();
        for number in 1..=1_000 {
            history.take(total(number * number, 0, &[]), STEP);
        }
        let samples = history.samples();
        assert_eq!((samples.len(), *history.taken().borrow()), (KEPT, 1_000));
        assert_eq!(samples[KEPT - 1].requests, 1_000 * 1_000 - 999 * 999);
        assert_eq!(samples[0].requests, 641 * 641 - 640 * 640);
        assert_eq!(STEP * 360, Duration::from_secs(3_600));
    }

    #[test]
    fn a_percentile_lies_within_its_bucket() {
        assert_eq!(Sample::default().percentile(0.5), None);
        // 100 answers within 25 µs, 100 within 50 µs.
        let even = total(200, 0, &[(0, 100), (1, 100)]);
        assert_eq!(even.percentile(0.0), Some(0.0));
        assert_eq!(even.percentile(0.25), Some(12.5));
        assert_eq!(even.percentile(0.5), Some(25.0));
        assert_eq!(even.percentile(0.75), Some(37.5));
        assert_eq!(even.percentile(1.0), Some(50.0));
        // Of what is slower than the last bound nothing else is known.
        let slow = total(1, 0, &[(LATENCY_BOUNDS.len(), 1)]);
        assert_eq!(slow.percentile(0.99), Some(10_000_000.0));
        let mixed = total(100, 0, &[(0, 99), (7, 1)]);
        assert!(mixed.percentile(0.5).unwrap() < 25.0);
        assert_eq!(mixed.percentile(0.99), Some(25.0));
        assert_eq!(mixed.percentile(1.0), Some(25_000.0));
    }
}
