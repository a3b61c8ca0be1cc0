//! The paths of the last day that tenants have no page for, for the console: what a redirect might be made for.
//!
//! A visitor's path is the only thing that is kept, without host, query and address. What may name somebody (an `@`) and what is longer than [`MAX_PATH_BYTES`] is passed over.
//! There is room for [`MAX_PATHS`] paths, [`MAX_PATHS_PER_TENANT`] of each tenant. Those that are requested most often stay, although a scanner makes up new ones all the time: a new path takes the place of the least frequent one together with its weight (the space-saving algorithm of Metwally, Agrawal and El Abbadi, 2005).
//!
//! **Invariant:** bounded, whatever clients ask for; a request waits for nobody here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// The longest path that is kept, in bytes.
pub const MAX_PATH_BYTES: usize = 120;
/// Paths of one tenant.
pub const MAX_PATHS_PER_TENANT: usize = 32;
/// Paths of all tenants together: a megabyte.
pub const MAX_PATHS: usize = 4_096;

const HOURS: usize = 24;
const SECONDS_PER_HOUR: u64 = 3_600;

/// A path that was requested, and not found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotFoundPath {
    /// The path from the tenant's own root on.
    pub path: String,
    /// How often it was requested in the last day, at least.
    pub count: u64,
}

/// The paths that were not found.
#[derive(Debug)]
pub struct NotFoundPaths {
    begun: Instant,
    table: Mutex<PathTable>,
}

#[derive(Debug, Default)]
struct PathTable {
    tenants: HashMap<Arc<str>, Vec<PathEntry>>,
    count: usize,
    /// The hour in which what is over was last thrown out.
    swept: u64,
}

#[derive(Debug)]
struct PathEntry {
    path: Box<str>,
    /// By the hour of the day since the start.
    hours: [u32; HOURS],
    /// The hour in which it was last requested.
    last: u64,
    /// The weight of what was in this place before.
    inherited: u64,
}

impl Default for NotFoundPaths {
    fn default() -> Self {
        Self {
            begun: Instant::now(),
            table: Mutex::default(),
        }
    }
}

impl NotFoundPaths {
    /// Counts a path that `tenant` has not. Where another thread counts just now, this one is not counted.
    pub(crate) fn record(&self, tenant: &Arc<str>, path: &str) {
        if is_kept(path) {
            let mut table = match self.table.try_lock() {
                Ok(table) => table,
                Err(TryLockError::Poisoned(table)) => table.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            };
            table.record(tenant, path, self.hour());
        }
    }

    /// The paths of a tenant, the most frequent first.
    #[must_use]
    pub fn of(&self, tenant: &str) -> Vec<NotFoundPath> {
        let hour = self.hour();
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.of(tenant, hour)
    }

    /// The tenants with the most frequent path of each, the most frequent first.
    #[must_use]
    pub fn tenants(&self) -> Vec<(Arc<str>, Vec<NotFoundPath>)> {
        let hour = self.hour();
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let tenants = table.tenants.keys();
        let all = tenants.map(|tenant| (Arc::clone(tenant), table.of(tenant, hour)));
        let mut all: Vec<_> = all.filter(|(_, paths)| !paths.is_empty()).collect();
        all.sort_by(|(one, first), (other, second)| {
            second[0].count.cmp(&first[0].count).then(one.cmp(other))
        });
        all
    }

    /// The time that the counts are of: since the process began, and a day at most.
    #[must_use]
    pub fn counted_for(&self) -> Duration {
        counted_for(self.begun.elapsed())
    }

    fn hour(&self) -> u64 {
        self.begun.elapsed().as_secs() / SECONDS_PER_HOUR
    }
}

/// The part of `elapsed` that the hours of the day cover: the hour that has begun, and those before it.
fn counted_for(elapsed: Duration) -> Duration {
    let hour = elapsed.as_secs() / SECONDS_PER_HOUR;
    let forgotten = (hour + 1).saturating_sub(HOURS as u64);
    elapsed.saturating_sub(Duration::from_secs(forgotten * SECONDS_PER_HOUR))
}

/// Whether a path can be shown, and led elsewhere.
fn is_kept(path: &str) -> bool {
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
            entry.ask(hour);
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

    /// Throws out what nobody has requested in a day.
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
        entry.ask(hour);
        entry
    }

    fn ask(&mut self, hour: u64) {
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

    /// How often it was requested within a day before the end of `hour`.
    fn count(&self, hour: u64) -> u64 {
        let first = (hour + 1).saturating_sub(HOURS as u64);
        let counted = first.max((self.last + 1).saturating_sub(HOURS as u64))..=self.last;
        counted.map(|hour| u64::from(self.hours[slot(hour)])).sum()
    }

    /// What decides who makes room for a new path.
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
    fn paths_are_counted_for_a_day() {
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
        // An hour of the day comes again without what was counted then.
        table.record(&app, "/old", 48);
        assert_eq!(counts(&table, 48), [(old, 1)]);
    }

    #[test]
    fn counts_are_of_the_time_since_the_start_and_of_a_day_at_most() {
        let minutes = |elapsed: u64| counted_for(Duration::from_secs(elapsed * 60)).as_secs() / 60;
        assert_eq!([0, 5, 1_379, 1_439].map(minutes), [0, 5, 1_379, 1_439]);
        // The first hour is counted no longer.
        assert_eq!([1_440, 1_441, 1_499].map(minutes), [1_380, 1_381, 1_439]);
    }

    #[test]
    fn a_tenant_has_so_many_paths_and_the_frequent_ones_stay() {
        let (mut table, app) = (PathTable::default(), tenant("app"));
        for number in 0..10_000 {
            table.record(&app, &format!("/made-up/{number}"), 0);
            table.record(&app, "/pricing", 0);
        }
        let counts = counts(&table, 0);
        assert_eq!(counts.len(), MAX_PATHS_PER_TENANT);
        assert_eq!(counts[0], ("/pricing".to_owned(), 10_000));
        // What a path inherits is not shown as its own.
        assert!(
            counts[1..].iter().all(|(_, count)| *count == 1),
            "{counts:?}"
        );
    }

    #[test]
    fn all_tenants_together_have_so_many() {
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
    fn what_names_somebody_or_is_long_is_passed_over() {
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
}
