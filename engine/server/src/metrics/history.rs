//! Samples the traffic of the last hour, of all tenants together, for the console's charts.
//!
//! Every [`SAMPLE_INTERVAL`] the traffic counters are read, and their increase is stored in a ring buffer. A request costs nothing extra.
//!
//! **Invariant:** at most [`MAX_SAMPLES`] samples, however long the process runs; knows no tenant.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use release::snapshot::traffic::{CLASSES, LATENCY_BOUNDS, Traffic};

/// Interval between samples.
pub const SAMPLE_INTERVAL: Duration = Duration::from_secs(10);

/// Number of samples in the ring: one hour.
pub const MAX_SAMPLES: usize = 360;

/// The traffic of a period, or since startup.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sample {
    /// The length of the period.
    pub took: Duration,
    /// Requests answered.
    pub requests: u64,
    /// Requests answered with a 5xx status.
    pub errors: u64,
    /// Requests by the time until their response was ready: one bucket for each of [`LATENCY_BOUNDS`], and one for longer times. Not cumulative.
    pub latency: [u64; LATENCY_BOUNDS.len() + 1],
}

impl Sample {
    /// Returns a tenant's traffic since the tenant was added, without a period.
    #[must_use]
    pub fn of(traffic: &Traffic) -> Self {
        let mut sample = Self::default();
        sample.add_traffic(traffic);
        sample
    }

    /// Adds a tenant's traffic.
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

    /// Returns the sum of this period and another.
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

    /// Returns the same traffic with another period.
    pub(crate) const fn with_duration(mut self, took: Duration) -> Self {
        self.took = took;
        self
    }

    /// Returns the increase since `before`. The counters of a removed tenant disappear, so each difference is at least zero.
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

    /// Returns requests per second, or 0 for an empty period.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "for a chart")]
    pub fn rate(&self) -> f64 {
        match self.took.as_secs_f64() {
            0.0 => 0.0,
            seconds => self.requests as f64 / seconds,
        }
    }

    /// Returns the share of responses with a 5xx status, from 0 to 1. `None` without requests.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "for a chart")]
    pub fn error_share(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.errors as f64 / self.requests as f64)
    }

    /// Returns the time in microseconds within which a share of the responses was ready (0.99 for the 99th percentile). `None` without requests.
    ///
    /// Responses within a bucket are assumed to be evenly distributed, as in Prometheus' `histogram_quantile`. For the last bucket the lower bound is returned.
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
    /// The number of samples since startup.
    taken: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Ring {
    samples: VecDeque<Sample>,
    /// The counters at the last sample.
    total: Sample,
}

impl History {
    /// Adds a sample. `total` is the traffic since startup, `took` the time since the last sample.
    pub fn record(&self, total: Sample, took: Duration) {
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let sample = total.since(&ring.total, took);
        if ring.samples.len() >= MAX_SAMPLES {
            ring.samples.pop_front();
        }
        ring.samples.push_back(sample);
        ring.total = total;
        self.taken.send_modify(|taken| *taken += 1);
    }

    /// Returns the samples, oldest first.
    #[must_use]
    pub fn samples(&self) -> Vec<Sample> {
        let ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        ring.samples.iter().copied().collect()
    }

    /// Returns a receiver of the number of samples since startup, which changes with each sample.
    #[must_use]
    pub fn sample_count(&self) -> watch::Receiver<u64> {
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
    fn sample_is_the_increase_since_the_last_one() {
        let history = History::default();
        history.record(total(20, 1, &[(0, 20)]), SAMPLE_INTERVAL);
        history.record(total(50, 4, &[(0, 40), (3, 10)]), SAMPLE_INTERVAL);
        // A tenant is removed with its counters.
        history.record(total(10, 0, &[]), SAMPLE_INTERVAL);
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
    fn ring_holds_one_hour() {
        let history = History::default();
        for number in 1..=1_000 {
            history.record(total(number * number, 0, &[]), SAMPLE_INTERVAL);
        }
        let samples = history.samples();
        assert_eq!(
            (samples.len(), *history.sample_count().borrow()),
            (MAX_SAMPLES, 1_000)
        );
        assert_eq!(samples[MAX_SAMPLES - 1].requests, 1_000 * 1_000 - 999 * 999);
        assert_eq!(samples[0].requests, 641 * 641 - 640 * 640);
        assert_eq!(SAMPLE_INTERVAL * 360, Duration::from_secs(3_600));
    }

    #[test]
    fn percentile_is_interpolated_within_its_bucket() {
        assert_eq!(Sample::default().percentile(0.5), None);
        // 100 responses within 25 µs, 100 within 50 µs.
        let even = total(200, 0, &[(0, 100), (1, 100)]);
        assert_eq!(even.percentile(0.0), Some(0.0));
        assert_eq!(even.percentile(0.25), Some(12.5));
        assert_eq!(even.percentile(0.5), Some(25.0));
        assert_eq!(even.percentile(0.75), Some(37.5));
        assert_eq!(even.percentile(1.0), Some(50.0));
        // Beyond the last bound only the bound is known.
        let slow = total(1, 0, &[(LATENCY_BOUNDS.len(), 1)]);
        assert_eq!(slow.percentile(0.99), Some(10_000_000.0));
        let mixed = total(100, 0, &[(0, 99), (7, 1)]);
        assert!(mixed.percentile(0.5).unwrap() < 25.0);
        assert_eq!(mixed.percentile(0.99), Some(25.0));
        assert_eq!(mixed.percentile(1.0), Some(25_000.0));
    }
}
