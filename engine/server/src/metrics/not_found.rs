//! Records the paths of the last day that have no page, for the console, where an operator may decide on a redirect.
//!
//! Only the path is recorded, without host, query and address. Paths that may contain personal data (an `@`) and paths longer than [`MAX_PATH_BYTES`] are skipped.
//! There is room for [`MAX_PATHS`] paths, and for [`MAX_PATHS_PER_TENANT`] of each tenant. A new path replaces the least frequent path and inherits its weight (the space-saving algorithm of Metwally, Agrawal and El Abbadi, 2005). So frequent paths stay, even while a scanner invents new paths.
//!
//! **Invariant:** bounded for any sequence of requests; a request never waits here.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// Maximum length of a recorded path, in bytes.
pub const MAX_PATH_BYTES: usize = 120;
/// Maximum number of paths of one tenant.
pub const MAX_PATHS_PER_TENANT: usize = 32;
/// Maximum number of paths of all tenants together, which take about 1 MB.
pub const MAX_PATHS: usize = 4_096;

const HOURS: usize = 24;
const SECONDS_PER_HOUR: u64 = 3_600;

/// A requested path without a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotFoundPath {
    /// The path below the tenant's root.
    pub path: String,
    /// Requests in the last day. A lower bound.
    pub count: u64,
}

/// The recorded paths of all tenants.
#[derive(Debug)]
pub struct NotFoundPaths {
    /// The time at which counting began, in seconds since 1970.
    since: AtomicU64,
    /// The number of recorded requests.
    recorded: AtomicU64,
    table: Mutex<PathTable>,
}

/// The recorded paths as a later process restores them.
#[derive(Debug, Serialize, Deserialize)]
struct SavedPaths {
    since: u64,
    tenants: Vec<(String, Vec<PathEntry>)>,
}

#[derive(Debug, Default)]
struct PathTable {
    tenants: HashMap<Arc<str>, Vec<PathEntry>>,
    count: usize,
    /// The hour of the last sweep of old paths.
    swept: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct PathEntry {
    path: Box<str>,
    /// Requests by hour of the day, in UTC.
    hours: [u32; HOURS],
    /// The hour of the last request, since 1970.
    last: u64,
    /// The weight of the path that this entry replaced.
    inherited: u64,
}

impl Default for NotFoundPaths {
    fn default() -> Self {
        Self {
            since: AtomicU64::new(now()),
            recorded: AtomicU64::new(0),
            table: Mutex::default(),
        }
    }
}

impl NotFoundPaths {
    /// Counts a request of `tenant` for a path without a page. The request is not counted if another thread holds the lock.
    pub(crate) fn record(&self, tenant: &Arc<str>, path: &str) {
        if is_recordable(path) {
            let mut table = match self.table.try_lock() {
                Ok(table) => table,
                Err(TryLockError::Poisoned(table)) => table.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            };
            table.record(tenant, path, hour(now()));
            self.recorded.fetch_add(1, Relaxed);
        }
    }

    /// Returns the number of recorded requests: a number that changes whenever the paths do.
    #[must_use]
    pub fn recorded(&self) -> u64 {
        self.recorded.load(Relaxed)
    }

    /// Returns all paths with their counts as bytes, for [`Self::restore`].
    #[must_use]
    pub fn save(&self) -> Vec<u8> {
        let table = self.lock();
        let tenants = table.tenants.iter();
        let saved = SavedPaths {
            since: self.since.load(Relaxed),
            tenants: tenants
                .map(|(tenant, entries)| (tenant.to_string(), entries.clone()))
                .collect(),
        };
        serde_json::to_vec(&saved).unwrap_or_default()
    }

    /// Replaces all paths by saved ones. Bytes that are not saved paths change nothing.
    pub fn restore(&self, saved: &[u8]) {
        let Ok(saved) = serde_json::from_slice::<SavedPaths>(saved) else {
            return;
        };
        let now = now();
        let mut table = PathTable::default();
        for (tenant, mut entries) in saved.tenants {
            // A clock that was ahead has left hours that are yet to come.
            entries.retain(|entry| is_recordable(&entry.path) && entry.last <= hour(now));
            entries.truncate(MAX_PATHS_PER_TENANT.min(MAX_PATHS - table.count));
            if !entries.is_empty() {
                table.count += entries.len();
                table.tenants.insert(tenant.into(), entries);
            }
        }
        self.since.store(saved.since.min(now), Relaxed);
        *self.lock() = table;
    }

    /// Returns the paths of a tenant, most frequent first.
    #[must_use]
    pub fn of(&self, tenant: &str) -> Vec<NotFoundPath> {
        self.lock().of(tenant, hour(now()))
    }

    /// Returns the paths of each tenant, most frequent first. Tenants are ordered by the count of their first path.
    #[must_use]
    pub fn tenants(&self) -> Vec<(Arc<str>, Vec<NotFoundPath>)> {
        let hour = hour(now());
        let table = self.lock();
        let tenants = table.tenants.keys();
        let all = tenants.map(|tenant| (Arc::clone(tenant), table.of(tenant, hour)));
        let mut all: Vec<_> = all.filter(|(_, paths)| !paths.is_empty()).collect();
        all.sort_by(|(one, first), (other, second)| {
            second[0].count.cmp(&first[0].count).then(one.cmp(other))
        });
        all
    }

    /// Returns the time since which the counts are complete: when counting began, or a day ago.
    #[must_use]
    pub fn counted_since(&self) -> SystemTime {
        let since = counted_since(self.since.load(Relaxed), now());
        UNIX_EPOCH + Duration::from_secs(since)
    }

    fn lock(&self) -> MutexGuard<'_, PathTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the seconds since 1970.
fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_secs()
}

/// Returns the hour since 1970 of a time in seconds.
const fn hour(seconds: u64) -> u64 {
    seconds / SECONDS_PER_HOUR
}

/// Returns the later of `since` and the first of the 24 hours that end with the hour of `now`, in seconds.
fn counted_since(since: u64, now: u64) -> u64 {
    let first = (hour(now) + 1).saturating_sub(HOURS as u64);
    since.max(first * SECONDS_PER_HOUR)
}

/// Returns whether a path is recorded: the console can show it and a redirect can use it.
fn is_recordable(path: &str) -> bool {
    path.len() <= MAX_PATH_BYTES
        && path.starts_with('/')
        && path
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'@')
        && !path.contains("%40")
}

impl PathTable {
    fn record(&mut self, tenant: &Arc<str>, path: &str, hour: u64) {
        if self.count >= MAX_PATHS && self.swept != hour {
            self.sweep(hour);
        }
        let is_full = self.count >= MAX_PATHS;
        let Some(entries) = self.tenants.get_mut(tenant) else {
            if !is_full {
                let entries = vec![PathEntry::new(path, hour)];
                self.tenants.insert(Arc::clone(tenant), entries);
                self.count += 1;
            }
            return;
        };
        if let Some(entry) = entries.iter_mut().find(|entry| *entry.path == *path) {
            entry.count_request(hour);
        } else if entries.len() < MAX_PATHS_PER_TENANT && !is_full {
            entries.push(PathEntry::new(path, hour));
            self.count += 1;
        } else if let Some(least) = entries.iter_mut().min_by_key(|entry| entry.weight(hour)) {
            let inherited = least.weight(hour);
            *least = PathEntry {
                inherited,
                ..PathEntry::new(path, hour)
            };
        }
    }

    /// Removes paths that were not requested for a day.
    fn sweep(&mut self, hour: u64) {
        self.swept = hour;
        self.tenants.retain(|_, entries| {
            entries.retain(|entry| entry.count(hour) > 0);
            !entries.is_empty()
        });
        self.count = self.tenants.values().map(Vec::len).sum();
    }

    fn of(&self, tenant: &str, hour: u64) -> Vec<NotFoundPath> {
        let entries = self.tenants.get(tenant).into_iter().flatten();
        let missing = entries.map(|entry| NotFoundPath {
            path: entry.path.to_string(),
            count: entry.count(hour),
        });
        let mut all: Vec<_> = missing.filter(|missing| missing.count > 0).collect();
        all.sort_by(|one, other| {
            let by_count = other.count.cmp(&one.count);
            by_count.then_with(|| one.path.cmp(&other.path))
        });
        all
    }
}

impl PathEntry {
    fn new(path: &str, hour: u64) -> Self {
        let mut entry = Self {
            path: path.into(),
            hours: [0; HOURS],
            last: hour,
            inherited: 0,
        };
        entry.count_request(hour);
        entry
    }

    fn count_request(&mut self, hour: u64) {
        let passed = hour.saturating_sub(self.last);
        for over in (self.last + 1..=hour).take(HOURS) {
            self.hours[slot(over)] = 0;
        }
        if passed >= HOURS as u64 {
            self.inherited = 0;
        }
        self.last = hour;
        let count = &mut self.hours[slot(hour)];
        *count = count.saturating_add(1);
    }

    /// Returns the number of requests in the 24 hours that end with `hour`.
    fn count(&self, hour: u64) -> u64 {
        let first = (hour + 1).saturating_sub(HOURS as u64);
        let counted = first.max((self.last + 1).saturating_sub(HOURS as u64))..=self.last;
        counted.map(|hour| u64::from(self.hours[slot(hour)])).sum()
    }

    /// Returns the weight by which a new path replaces the least frequent one.
    fn weight(&self, hour: u64) -> u64 {
        match self.count(hour) {
            0 => 0,
            count => count + self.inherited,
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "less than 24")]
const fn slot(hour: u64) -> usize {
    (hour % HOURS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(name: &str) -> Arc<str> {
        name.into()
    }

    fn counts(table: &PathTable, hour: u64) -> Vec<(String, u64)> {
        let all = table.of("app", hour).into_iter();
        all.map(|missing| (missing.path, missing.count)).collect()
    }

    #[test]
    fn paths_are_counted_for_one_day() {
        let (mut table, app) = (PathTable::default(), tenant("app"));
        for (path, hour) in [("/old", 0), ("/old", 0), ("/new", 1), ("/old", 23)] {
            table.record(&app, path, hour);
        }
        let of = |hour| counts(&table, hour);
        let (old, new) = ("/old".to_owned(), "/new".to_owned());
        assert_eq!(of(23), [(old.clone(), 3), (new.clone(), 1)]);
        assert_eq!(of(24), [(new.clone(), 1), (old.clone(), 1)]);
        assert_eq!(of(25), [(old.clone(), 1)]);
        assert_eq!(of(47), []);
        assert_eq!(of(1_000), []);
        // The same hour of a later day begins at zero.
        table.record(&app, "/old", 48);
        assert_eq!(counts(&table, 48), [(old, 1)]);
    }

    #[test]
    fn counts_cover_the_time_since_counting_began_and_at_most_one_day() {
        let minutes = |now: u64| counted_since(300, now * 60) / 60;
        assert_eq!([5, 1_379, 1_439].map(minutes), [5, 5, 5]);
        // The first hour is no longer counted.
        assert_eq!([1_440, 1_499, 1_500].map(minutes), [60, 60, 120]);
    }

    #[test]
    fn frequent_paths_stay_within_the_limit_of_a_tenant() {
        let (mut table, app) = (PathTable::default(), tenant("app"));
        for number in 0..10_000 {
            table.record(&app, &format!("/made-up/{number}"), 0);
            table.record(&app, "/pricing", 0);
        }
        let counts = counts(&table, 0);
        assert_eq!(counts.len(), MAX_PATHS_PER_TENANT);
        assert_eq!(counts[0], ("/pricing".to_owned(), 10_000));
        // An inherited weight is not shown as requests.
        assert!(
            counts[1..].iter().all(|(_, count)| *count == 1),
            "{counts:?}"
        );
    }

    #[test]
    fn paths_of_all_tenants_are_bounded() {
        let mut table = PathTable::default();
        for number in 0..MAX_PATHS + 100 {
            table.record(&tenant(&format!("tenant-{number}")), "/x", 0);
        }
        let count = |table: &PathTable| table.tenants.values().map(Vec::len).sum::<usize>();
        assert_eq!((table.count, count(&table)), (MAX_PATHS, MAX_PATHS));
        // The next day has room again.
        table.record(&tenant("late"), "/y", 24);
        assert_eq!((table.count, count(&table)), (1, 1));
        assert_eq!(table.of("late", 24)[0].path, "/y");
    }

    #[test]
    fn paths_with_personal_data_and_long_paths_are_skipped() {
        let not_found = NotFoundPaths::default();
        let long = format!("/{}", "a".repeat(MAX_PATH_BYTES));
        for path in ["/a@b.example", "/a%40b", "*", "", "/ä", &long] {
            not_found.record(&tenant("app"), path);
        }
        assert_eq!(not_found.of("app"), []);
        not_found.record(&tenant("app"), &long[..MAX_PATH_BYTES]);
        not_found.record(&tenant("app"), "/pricing");
        assert_eq!(not_found.of("app").len(), 2);
        assert_eq!(not_found.tenants()[0].0, tenant("app"));
        assert_eq!(not_found.of("other"), []);
    }

    #[test]
    fn saved_paths_are_restored_with_their_counts_and_their_beginning() {
        let before = NotFoundPaths::default();
        let since = now() - 7_200;
        before.since.store(since, Relaxed);
        for path in ["/pricing", "/pricing", "/old"] {
            before.record(&tenant("app"), path);
        }
        let after = NotFoundPaths::default();
        after.restore(&before.save());
        assert_eq!(after.of("app"), before.of("app"));
        assert_eq!(after.of("app")[0].count, 2);
        let begin = UNIX_EPOCH + Duration::from_secs(since);
        assert_eq!(after.counted_since(), begin);
        after.record(&tenant("app"), "/pricing");
        assert_eq!(after.of("app")[0].count, 3);
    }

    #[test]
    fn damaged_or_hostile_bytes_stay_within_the_limits() {
        let not_found = NotFoundPaths::default();
        not_found.record(&tenant("app"), "/pricing");
        for damaged in [
            &b""[..],
            b"{}",
            b"null",
            b"{\"since\":1,\"tenants\":[[\"a\"]]}",
        ] {
            not_found.restore(damaged);
            assert_eq!(not_found.of("app").len(), 1);
        }
        let entries = |count: usize, last: u64| -> Vec<PathEntry> {
            let entry = |number| PathEntry::new(&format!("/{number}"), last);
            (0..count).map(entry).collect()
        };
        let tenants = (0..MAX_PATHS).map(|number| (number.to_string(), entries(40, hour(now()))));
        let late = ("late".to_owned(), entries(1, hour(now()) + 24));
        let saved = SavedPaths {
            since: u64::MAX,
            tenants: std::iter::once(late).chain(tenants).collect(),
        };
        not_found.restore(&serde_json::to_vec(&saved).unwrap());
        let all = not_found.tenants();
        let count: usize = all.iter().map(|(_, paths)| paths.len()).sum();
        assert_eq!(count, MAX_PATHS);
        assert!(
            all.iter()
                .all(|(_, paths)| paths.len() <= MAX_PATHS_PER_TENANT)
        );
        assert_eq!(not_found.of("late"), []);
        assert!(not_found.counted_since() <= SystemTime::now());
    }
}
