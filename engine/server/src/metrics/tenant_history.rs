//! Samples each tenant's traffic of the last hour, for the charts of its page.
//!
//! Every [`SAMPLE_INTERVAL`](crate::metrics::history::SAMPLE_INTERVAL) the traffic counters are read, as in [`history`](crate::metrics::history). Three steps make a point, so an hour has [`POINTS`] points.
//!
//! Only points with requests are stored, and only for the [`MAX_TENANTS`] tenants that were requested last. An hour of requests to each of them takes 8 MB. For every other tenant that was ever requested, only the counters of the last step are stored.
//!
//! **Invariant:** bounded by [`MAX_TENANTS`], [`POINTS`] and the number of tenants, for any running time and any sequence of requests. A request costs nothing extra.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::metrics::history::{MAX_SAMPLES, Sample};
use release::snapshot::TrafficTable;
use release::snapshot::traffic::LATENCY_BOUNDS;

/// Steps per point: half a minute.
pub const STEPS_PER_POINT: usize = 3;

/// Points per hour.
pub const POINTS: usize = MAX_SAMPLES / STEPS_PER_POINT;

/// Maximum number of tenants with stored points.
pub const MAX_TENANTS: usize = 1_024;

/// The traffic of the last hour, by tenant.
#[derive(Debug, Default)]
pub struct TenantHistory(Mutex<HistoryTable>);

#[derive(Debug, Default)]
struct HistoryTable {
    /// The number of steps since startup.
    steps: usize,
    /// The duration of each point, newest last.
    times: VecDeque<Duration>,
    tenants: HashMap<Arc<str>, HistoryEntry>,
}

/// A tenant that was requested since startup.
#[derive(Debug, Default)]
struct HistoryEntry {
    /// The counters at the last step.
    total: Sample,
    /// The step of the last request.
    last: usize,
    /// The last point of the last hour that was discarded in favour of other tenants.
    discarded_until: Option<usize>,
    points: VecDeque<Point>,
}

/// The traffic of one point. It takes half the memory of a [`Sample`].
#[derive(Debug, Clone, Copy)]
struct Point {
    /// The number of the point since startup.
    number: usize,
    requests: u32,
    errors: u32,
    latency: [u32; LATENCY_BOUNDS.len() + 1],
}

impl TenantHistory {
    /// Adds a step. `tenants` has the counters since startup, `took` is the time since the last step.
    pub fn record(&self, tenants: &TrafficTable, took: Duration) {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.step(took);
        for (id, traffic) in tenants {
            table.add(id, &Sample::of(traffic));
        }
        table.tenants.retain(|id, _| tenants.contains_key(id));
        table.trim();
    }

    /// Returns the points of a tenant's last hour, oldest first, with empty points included. `None` if some of them were discarded.
    #[must_use]
    pub fn of(&self, tenant: &str) -> Option<Vec<Sample>> {
        let table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.of(tenant)
    }
}

impl HistoryTable {
    /// Returns the number of the current point.
    fn newest(&self) -> usize {
        self.steps.saturating_sub(1) / STEPS_PER_POINT
    }

    /// Returns the number of the first point of the last hour.
    fn oldest(&self) -> usize {
        (self.newest() + 1).saturating_sub(self.times.len())
    }

    fn step(&mut self, took: Duration) {
        let begins = self.steps.is_multiple_of(STEPS_PER_POINT);
        self.steps += 1;
        match self.times.back_mut() {
            Some(time) if !begins => *time += took,
            _ => self.times.push_back(took),
        }
        if self.times.len() > POINTS {
            self.times.pop_front();
        }
    }

    fn add(&mut self, id: &Arc<str>, total: &Sample) {
        let number = self.newest();
        if !self.tenants.contains_key(id) {
            if total.requests == 0 {
                return;
            }
            self.tenants.insert(Arc::clone(id), HistoryEntry::default());
        }
        let Some(entry) = self.tenants.get_mut(id) else {
            return;
        };
        let more = total.since(&entry.total, Duration::ZERO);
        entry.total = *total;
        if more.requests == 0 {
            return;
        }
        entry.last = self.steps;
        match entry.points.back_mut() {
            Some(point) if point.number == number => point.add(&more),
            _ => {
                let mut point = Point::new(number);
                point.add(&more);
                entry.points.push_back(point);
            }
        }
    }

    /// Discards points older than an hour, and the points of tenants beyond the limit, least recently requested first.
    fn trim(&mut self) {
        let oldest = self.oldest();
        let mut stored = Vec::new();
        for (id, entry) in &mut self.tenants {
            while entry
                .points
                .front()
                .is_some_and(|point| point.number < oldest)
            {
                entry.points.pop_front();
            }
            entry.discarded_until = entry
                .discarded_until
                .filter(|discarded_until| *discarded_until >= oldest);
            if entry.points.is_empty() {
                entry.points = VecDeque::new();
            } else {
                stored.push((entry.last, entry.points.len(), Arc::clone(id)));
            }
        }
        let over = stored.len().saturating_sub(MAX_TENANTS);
        if over == 0 {
            return;
        }
        // Among tenants that were last requested in the same step, those with fewer points lose theirs.
        stored.sort_unstable();
        for (_, _, id) in stored.into_iter().take(over) {
            if let Some(entry) = self.tenants.get_mut(&id) {
                entry.discarded_until = entry.points.back().map(|point| point.number);
                entry.points = VecDeque::new();
            }
        }
    }

    fn of(&self, tenant: &str) -> Option<Vec<Sample>> {
        let entry = self.tenants.get(tenant);
        if entry.is_some_and(|entry| entry.discarded_until.is_some()) {
            return None;
        }
        let mut points = entry.into_iter().flat_map(|entry| &entry.points).peekable();
        let oldest = self.oldest();
        let samples = self.times.iter().enumerate().map(|(index, took)| {
            let point = points.next_if(|point| point.number == oldest + index);
            point
                .map_or_else(Sample::default, Point::sample)
                .with_duration(*took)
        });
        Some(samples.collect())
    }
}

impl Point {
    const fn new(number: usize) -> Self {
        Self {
            number,
            requests: 0,
            errors: 0,
            latency: [0; LATENCY_BOUNDS.len() + 1],
        }
    }

    fn add(&mut self, more: &Sample) {
        let narrow = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        self.requests = self.requests.saturating_add(narrow(more.requests));
        self.errors = self.errors.saturating_add(narrow(more.errors));
        for (bucket, more) in self.latency.iter_mut().zip(more.latency) {
            *bucket = bucket.saturating_add(narrow(more));
        }
    }

    fn sample(&self) -> Sample {
        Sample {
            took: Duration::ZERO,
            requests: self.requests.into(),
            errors: self.errors.into(),
            latency: self.latency.map(u64::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use release::snapshot::ContentEncoding;

    use super::*;
    use crate::metrics::history::SAMPLE_INTERVAL;

    fn tenants(names: impl IntoIterator<Item = String>) -> TrafficTable {
        let names = names.into_iter();
        names
            .map(|name| (Arc::<str>::from(name), Arc::default()))
            .collect()
    }

    fn ask(tenants: &TrafficTable, name: &str, times: usize, status: StatusCode) {
        for _ in 0..times {
            let took = Duration::from_micros(30);
            tenants[name].record(status, ContentEncoding::Identity, 1, took);
        }
    }

    fn requests(history: &TenantHistory, name: &str) -> Vec<u64> {
        let samples = history.of(name).unwrap();
        samples.iter().map(|sample| sample.requests).collect()
    }

    #[test]
    fn point_is_the_traffic_of_three_steps() {
        let (history, all) = (
            TenantHistory::default(),
            tenants(["one", "two"].map(str::to_owned)),
        );
        assert_eq!(history.of("one"), Some(Vec::new()));
        ask(&all, "one", 20, StatusCode::OK);
        history.record(&all, SAMPLE_INTERVAL);
        // The current point grows with each step.
        assert_eq!(history.of("one").unwrap()[0].rate(), 2.0);
        ask(&all, "one", 4, StatusCode::INTERNAL_SERVER_ERROR);
        history.record(&all, SAMPLE_INTERVAL);
        history.record(&all, SAMPLE_INTERVAL);
        let [point] = history.of("one").unwrap().try_into().unwrap();
        assert_eq!((point.requests, point.errors), (24, 4));
        assert_eq!((point.took, point.latency[1]), (SAMPLE_INTERVAL * 3, 24));
        history.record(&all, SAMPLE_INTERVAL);
        ask(&all, "one", 7, StatusCode::OK);
        for _ in 0..3 {
            history.record(&all, SAMPLE_INTERVAL);
        }
        assert_eq!(requests(&history, "one"), [24, 7, 0]);
        assert_eq!(requests(&history, "two"), [0, 0, 0]);
        assert_eq!(requests(&history, "nobody"), [0, 0, 0]);
    }

    #[test]
    fn points_older_than_an_hour_are_discarded() {
        let (history, all) = (TenantHistory::default(), tenants(["one".to_owned()]));
        for _ in 0..1_000 {
            ask(&all, "one", 1, StatusCode::OK);
            history.record(&all, SAMPLE_INTERVAL);
        }
        let samples = history.of("one").unwrap();
        assert_eq!(samples.len(), POINTS);
        assert!(samples[1..].iter().rev().skip(1).all(|it| it.requests == 3));
        assert_eq!(SAMPLE_INTERVAL * 3 * 120, Duration::from_secs(3_600));
        // An hour later only the counters are left.
        for _ in 0..MAX_SAMPLES + STEPS_PER_POINT {
            history.record(&all, SAMPLE_INTERVAL);
        }
        assert_eq!(requests(&history, "one"), [0; POINTS]);
        let table = history.0.lock().unwrap();
        assert_eq!(table.tenants["one"].points.capacity(), 0);
    }

    #[test]
    fn beyond_the_limit_the_last_requested_tenants_keep_their_points() {
        let all = tenants((0..2 * MAX_TENANTS).map(|number| format!("tenant-{number:05}")));
        let history = TenantHistory::default();
        let kept = || {
            let table = history.0.lock().unwrap();
            let points = table.tenants.values().map(|entry| entry.points.len());
            points.filter(|points| *points > 0).count()
        };
        // Tenants without requests have no entry.
        history.record(&all, SAMPLE_INTERVAL);
        assert!(history.0.lock().unwrap().tenants.is_empty());
        for name in all.keys() {
            ask(&all, name, 1, StatusCode::OK);
        }
        history.record(&all, SAMPLE_INTERVAL);
        assert_eq!(kept(), MAX_TENANTS);
        for number in 0..MAX_TENANTS {
            ask(&all, &format!("tenant-{number:05}"), 2, StatusCode::OK);
        }
        history.record(&all, SAMPLE_INTERVAL);
        assert_eq!(kept(), MAX_TENANTS);
        // Some of its points were discarded, so the hour is incomplete.
        assert_eq!(history.of("tenant-00000"), None);
        for _ in 0..MAX_SAMPLES {
            ask(&all, "tenant-00000", 2, StatusCode::OK);
            history.record(&all, SAMPLE_INTERVAL);
        }
        assert_eq!(kept(), 1, "the other tenants had no requests for an hour");
        let last = requests(&history, "tenant-00000");
        assert_eq!((last.len(), last[5]), (POINTS, 6));
    }

    #[test]
    fn full_table_takes_eight_megabytes() {
        let deque = |points: usize| points.next_power_of_two() * size_of::<Point>();
        assert!(
            MAX_TENANTS * deque(POINTS) <= 9_000_000,
            "{}",
            deque(POINTS)
        );
        // The size of an entry without its points.
        assert!(
            size_of::<HistoryEntry>() <= 200,
            "{}",
            size_of::<HistoryEntry>()
        );
    }

    #[test]
    fn removed_tenant_leaves_no_entry() {
        let history = TenantHistory::default();
        for number in 0..2_000 {
            let name = format!("tenant-{number}");
            let all = tenants([name.clone()]);
            ask(&all, &name, 1, StatusCode::OK);
            history.record(&all, SAMPLE_INTERVAL);
        }
        assert_eq!(history.0.lock().unwrap().tenants.len(), 1);
        history.record(&TrafficTable::new(), SAMPLE_INTERVAL);
        assert!(history.0.lock().unwrap().tenants.is_empty());
    }
}
