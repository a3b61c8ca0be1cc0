//! Counts the visits of each tenant by day, without cookies and without anything about a visitor.
//!
//! Workers pass on requests for pages ([`page_request`]). [`Visits::settle`] counts them: the views by page and by referring host, and bots apart ([`bots`]). Bytes and 404 responses are read from the counters of the [`Traffic`].
//!
//! A day is a day in UTC, so that it is the same for all tenants and all replicas, and has 24 hours. A request counts on the day on which it is settled, at most two seconds after the response.
//!
//! **Invariant:** bounded by the constants below for any sequence of requests. Stores no address, no user agent, and of a referrer only the host.

mod bots;
mod day;
pub(crate) mod page_request;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use release::snapshot::TrafficTable;
#[cfg(doc)]
use release::snapshot::traffic::Traffic;

use self::bots::BotDetector;
pub use self::day::{DayVisits, MAX_NAMES_PER_DAY, NameCount, NameCounts};
use self::page_request::{PageRequest, PageRequestQueue};

/// Number of days that are kept, today included.
pub const MAX_DAYS: usize = 400;
/// Maximum number of pages and referring hosts in memory, of all tenants and days, which take about 8 MB. Beyond it, those of the oldest days become *other*.
pub const MAX_NAMES: usize = 100_000;
/// Maximum number of days of all tenants together, which take about 60 MB. Beyond it, the oldest days are dropped.
pub const MAX_TENANT_DAYS: usize = 400_000;

/// A day of all tenants.
type Day = HashMap<Arc<str>, DayVisits>;

/// The visits of all tenants.
#[derive(Debug, Default)]
pub struct Visits {
    /// The requests that are not counted yet.
    pub(crate) queue: Arc<PageRequestQueue>,
    table: Mutex<VisitTable>,
}

#[derive(Debug, Default)]
struct VisitTable {
    days: BTreeMap<Date, Day>,
    /// The number of names in all days.
    names: usize,
    /// The number of tenants in all days.
    tenant_days: usize,
    /// The last day whose names were merged to make room.
    merged_until: Option<Date>,
    /// The days that differ from their last persisted version.
    changed: BTreeSet<Date>,
    /// The views of each tenant since startup.
    views: HashMap<Arc<str>, u64>,
    bots: BotDetector,
}

impl Visits {
    /// Returns the number of buffers that were dropped, because too many were queued.
    pub(crate) fn lost(&self) -> u64 {
        self.queue.lost()
    }

    /// Counts the queued requests, and the traffic of `tenants` since the last call.
    pub fn settle(&self, tenants: &TrafficTable) {
        let mut table = self.lock();
        let buffers = self.queue.drain();
        table.settle(today(), &buffers, tenants);
    }

    /// Returns the days of a tenant with visits, oldest first. The last `days` days are considered.
    #[must_use]
    pub fn of(&self, tenant: &str, days: usize) -> Vec<(Date, DayVisits)> {
        let first = first_of(today(), days);
        let table = self.lock();
        let days = table.days.range(first..);
        days.filter_map(|(date, day)| Some((*date, day.get(tenant)?.clone())))
            .collect()
    }

    /// Returns the views of each tenant since startup, for `/metrics`.
    pub(crate) fn views(&self) -> HashMap<Arc<str>, u64> {
        self.lock().views.clone()
    }

    /// Returns the days that have changed since the last call.
    pub fn take_changed(&self) -> BTreeSet<Date> {
        std::mem::take(&mut self.lock().changed)
    }

    /// Returns a day as bytes, for [`Self::restore`]. `None` if the day has no visits.
    #[must_use]
    pub fn save(&self, date: Date) -> Option<Vec<u8>> {
        let table = self.lock();
        let day = table.days.get(&date)?;
        // In order, so that the same day gives the same bytes.
        let day: BTreeMap<&str, &DayVisits> =
            day.iter().map(|(tenant, day)| (&**tenant, day)).collect();
        serde_json::to_vec(&day).ok()
    }

    /// Returns whether a day has visits.
    #[must_use]
    pub fn has(&self, date: Date) -> bool {
        self.lock().days.contains_key(&date)
    }

    /// Restores saved days, and drops days that are damaged, too old or in the future.
    pub fn restore(&self, days: impl IntoIterator<Item = (Date, Vec<u8>)>) {
        let today = today();
        let first = first_of(today, MAX_DAYS);
        let mut table = self.lock();
        for (date, saved) in days {
            match serde_json::from_slice(&saved) {
                Ok(day) if (first..=today).contains(&date) => table.restore(date, day),
                _ => {
                    table.changed.insert(date);
                }
            }
        }
        table.trim(today);
    }

    /// Drops all visits of a tenant.
    pub fn forget(&self, tenant: &str) {
        self.lock().forget(tenant);
    }

    fn lock(&self) -> MutexGuard<'_, VisitTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the current day in UTC.
#[must_use]
pub fn today() -> Date {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = now.unwrap_or_default().as_secs();
    let now = i64::try_from(seconds)
        .ok()
        .and_then(|seconds| Timestamp::from_second(seconds).ok());
    now.unwrap_or(Timestamp::UNIX_EPOCH)
        .to_zoned(TimeZone::UTC)
        .date()
}

/// Returns the first of the last `days` days.
#[must_use]
pub fn first_of(today: Date, days: usize) -> Date {
    let back = i64::try_from(days.clamp(1, MAX_DAYS) - 1).unwrap_or_default();
    today.saturating_sub(Span::new().days(back))
}

impl VisitTable {
    fn settle(&mut self, today: Date, buffers: &[Vec<u8>], tenants: &TrafficTable) {
        for buffer in buffers {
            let mut rest = &buffer[..];
            while let Some(request) = PageRequest::read(&mut rest) {
                self.count(today, tenants, &request);
            }
        }
        for (tenant, traffic) in tenants {
            let [bytes, not_found] = traffic.take_increase();
            if bytes + not_found > 0 {
                let day = self.entry(today, tenant);
                day.bytes += bytes;
                day.not_found += not_found;
            }
        }
        self.trim(today);
    }

    fn count(&mut self, today: Date, tenants: &TrafficTable, request: &PageRequest<'_>) {
        let is_bot = self.bots.is_bot(request.agent);
        let has_room = self.names + 2 <= MAX_NAMES || self.merge_oldest_names(today);
        // The id of the traffic table is shared by all days.
        let tenant = tenants.get_key_value(request.tenant);
        let tenant = tenant.map_or_else(|| request.tenant.into(), |(id, _)| Arc::clone(id));
        let day = self.entry(today, &tenant);
        if is_bot {
            day.bots += 1;
            return;
        }
        if request.is_ahead {
            day.ahead += 1;
            return;
        }
        day.views += 1;
        let mut grown = usize::from(day.pages.count(request.path, has_room));
        if let Some(host) = host_name(request.referrer) {
            grown += usize::from(day.referrers.count(&host, has_room));
        }
        self.names += grown;
        *self.views.entry(tenant).or_default() += 1;
    }

    /// Returns the counts of a tenant, which the caller changes.
    fn entry(&mut self, date: Date, tenant: &Arc<str>) -> &mut DayVisits {
        self.changed.insert(date);
        let day = self.days.entry(date).or_default();
        if !day.contains_key(tenant) {
            self.tenant_days += 1;
        }
        day.entry(Arc::clone(tenant)).or_default()
    }

    /// Merges the names of the oldest day that has any, in memory only. Returns whether there is room for names of `today`.
    fn merge_oldest_names(&mut self, today: Date) -> bool {
        let first = match self.merged_until {
            Some(date) => Bound::Excluded(date),
            None => Bound::Unbounded,
        };
        if first == Bound::Excluded(today) {
            return false;
        }
        for (date, day) in self.days.range_mut((first, Bound::Excluded(today))) {
            self.merged_until = Some(*date);
            let merged: usize = (day.values_mut())
                .map(|visits| visits.pages.merge_names() + visits.referrers.merge_names())
                .sum();
            self.names -= merged;
            if merged > 0 && self.names + 2 <= MAX_NAMES {
                return true;
            }
        }
        false
    }

    /// Drops days that are too old or beyond the limit.
    fn trim(&mut self, today: Date) {
        let first = first_of(today, MAX_DAYS);
        while let Some(oldest) = self.days.first_entry()
            && (*oldest.key() < first
                || self.tenant_days > MAX_TENANT_DAYS && *oldest.key() < today)
        {
            let (date, day) = oldest.remove_entry();
            self.tenant_days -= day.len();
            self.names -= day.values().map(DayVisits::names).sum::<usize>();
            self.changed.insert(date);
        }
    }

    /// Restores a day.
    fn restore(&mut self, date: Date, saved: BTreeMap<String, DayVisits>) {
        let day = self.days.entry(date).or_default();
        for (tenant, mut visits) in saved {
            visits.limit();
            let has_room = self.names + visits.names() <= MAX_NAMES;
            if !has_room {
                visits.pages.merge_names();
                visits.referrers.merge_names();
            }
            self.names += visits.names();
            if day.insert(tenant.into(), visits).is_none() {
                self.tenant_days += 1;
            }
        }
    }

    fn forget(&mut self, tenant: &str) {
        self.views.remove(tenant);
        for (date, day) in &mut self.days {
            if let Some(visits) = day.remove(tenant) {
                self.names -= visits.names();
                self.tenant_days -= 1;
                self.changed.insert(*date);
            }
        }
        self.days.retain(|_, day| !day.is_empty());
    }
}

/// Returns a referring host in lower case. `None` if it is not a name: an IP address may be personal data.
fn host_name(host: &[u8]) -> Option<String> {
    let name = str::from_utf8(host).ok()?.trim_end_matches('.');
    let is_label = |label: &str| {
        let mut bytes = label.bytes();
        !label.is_empty() && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    let is_name = name.split('.').all(is_label)
        && name.contains('.')
        && name
            .rsplit('.')
            .next()?
            .bytes()
            .any(|byte| byte.is_ascii_alphabetic());
    is_name.then(|| name.to_ascii_lowercase())
}

#[cfg(test)]
mod tests;
