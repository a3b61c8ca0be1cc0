//! Which tenants a replica holds awake.
//!
//! An awake tenant has its content on the disk of the replica. A dormant tenant is one row of the index until a request needs its pages.
//!
//! ```text
//!           room for one more              content fetched
//! dormant ──────────────────────> waking ──────────────────> awake
//!    ^ └──request, in the place of the least recently requested──^ │
//!    └────────────── another tenant needs the place ───────────────┘
//! ```
//!
//! Callers repeat the event of a request while the request waits. A request that finds no place is therefore not remembered.
//!
//! **Invariants:** at most [`Residence::limit`] tenants are awake or waking. No tenant is fetched twice at once. A new version of a dormant tenant fetches nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The time after a request without an answer in which a tenant does not go to sleep: the request may still wait for pages.
pub const MIN_STAY: Duration = Duration::from_secs(10);

/// The time after a failed fetch in which a request does not begin another one.
pub const RETRY_DELAY: Duration = Duration::from_secs(2);

/// An event of a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'t> {
    /// A request waits for the tenant.
    Requested(&'t str),
    /// A request of the tenant was answered.
    Answered(&'t str),
    /// The content of the tenant is on the disk.
    Fetched(&'t str),
    /// The content of the tenant cannot be fetched.
    Failed(&'t str),
    /// The tenant was withdrawn.
    Withdrawn(&'t str),
}

/// A decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Remove the content of this tenant from the awake tenants.
    Sleep(String),
    /// Fetch the content of this tenant.
    Fetch(String),
}

/// A tenant that is awake or waking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Resident {
    /// The time of the last request, if there was any.
    used: Option<Duration>,
    /// Whether a request may wait for the tenant.
    is_awaited: bool,
    is_waking: bool,
}

/// The awake tenants of a replica.
#[derive(Debug)]
pub struct Residence {
    limit: usize,
    residents: BTreeMap<String, Resident>,
    /// The tenants that can go to sleep, by the time of their last request.
    by_use: BTreeSet<(Option<Duration>, String)>,
    /// The tenants that never go to sleep.
    needed: BTreeSet<String>,
    /// When fetches of tenants last failed.
    failed: BTreeMap<String, Duration>,
}

impl Residence {
    /// Returns a residence without tenants. The limit is at least one.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            limit: limit.max(1),
            residents: BTreeMap::new(),
            by_use: BTreeSet::new(),
            needed: BTreeSet::new(),
            failed: BTreeMap::new(),
        }
    }

    /// Returns the largest number of awake tenants.
    #[must_use]
    pub const fn limit(&self) -> usize {
        self.limit
    }

    /// Returns the number of tenants that are awake or waking.
    #[must_use]
    pub fn len(&self) -> usize {
        self.residents.len()
    }

    /// Returns whether no tenant is awake or waking.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.residents.is_empty()
    }

    /// Returns whether a tenant is awake or waking.
    #[must_use]
    pub fn has(&self, tenant: &str) -> bool {
        self.residents.contains_key(tenant)
    }

    /// Wakes a tenant whose version was just read, if there is room. Returns whether the tenant is awake or waking, so that the version is fetched.
    pub fn admit(&mut self, tenant: &str) -> bool {
        let has_room = self.residents.len() < self.limit;
        if has_room && !self.has(tenant) {
            let resident = Resident {
                used: None,
                is_awaited: false,
                is_waking: false,
            };
            self.insert(tenant, resident);
        }
        has_room || self.has(tenant)
    }

    /// Sets the tenants that never go to sleep, because the pages of others show them.
    pub fn set_needed(&mut self, needed: BTreeSet<String>) {
        let former = std::mem::replace(&mut self.needed, needed);
        let changed: Vec<String> = former.symmetric_difference(&self.needed).cloned().collect();
        for tenant in changed {
            if let Some(resident) = self.remove(&tenant) {
                self.insert(&tenant, resident);
            }
        }
    }

    /// Applies an event at a time of a monotonic clock. Returns the actions, in their order.
    pub fn step(&mut self, event: Event<'_>, now: Duration) -> Vec<Action> {
        match event {
            Event::Requested(tenant) if self.has(tenant) => self.touch(tenant, now, true),
            Event::Requested(tenant) => return self.wake(tenant, now),
            Event::Answered(tenant) => self.touch(tenant, now, false),
            Event::Fetched(tenant) => {
                if let Some(resident) = self.remove(tenant) {
                    let is_waking = false;
                    self.insert(
                        tenant,
                        Resident {
                            is_waking,
                            ..resident
                        },
                    );
                }
            }
            Event::Failed(tenant) => {
                self.failed
                    .retain(|_, failed| now.saturating_sub(*failed) < RETRY_DELAY);
                if self.remove(tenant).is_some() {
                    self.failed.insert(tenant.to_owned(), now);
                }
            }
            Event::Withdrawn(tenant) => drop(self.remove(tenant)),
        }
        Vec::new()
    }

    /// Wakes a dormant tenant, if there is room or another tenant can go to sleep.
    fn wake(&mut self, tenant: &str, now: Duration) -> Vec<Action> {
        let failed = self.failed.get(tenant);
        if failed.is_some_and(|failed| now.saturating_sub(*failed) < RETRY_DELAY) {
            return Vec::new();
        }
        let mut actions = Vec::new();
        if self.residents.len() >= self.limit {
            let is_quiet = |(used, name): &&(Option<Duration>, String)| {
                let resident = self.residents.get(name);
                resident.is_some_and(|resident| !resident.is_awaited)
                    || used.is_none_or(|used| now.saturating_sub(used) >= MIN_STAY)
            };
            let Some((_, quietest)) = self.by_use.iter().find(is_quiet).cloned() else {
                return Vec::new();
            };
            self.remove(&quietest);
            actions.push(Action::Sleep(quietest));
        }
        let resident = Resident {
            used: Some(now),
            is_awaited: true,
            is_waking: true,
        };
        self.insert(tenant, resident);
        actions.push(Action::Fetch(tenant.to_owned()));
        actions
    }

    fn touch(&mut self, tenant: &str, now: Duration, is_awaited: bool) {
        if let Some(resident) = self.remove(tenant) {
            let resident = Resident {
                used: Some(now),
                is_awaited,
                ..resident
            };
            self.insert(tenant, resident);
        }
    }

    fn insert(&mut self, tenant: &str, resident: Resident) {
        self.residents.insert(tenant.to_owned(), resident);
        if !resident.is_waking && !self.needed.contains(tenant) {
            self.by_use.insert((resident.used, tenant.to_owned()));
        }
    }

    fn remove(&mut self, tenant: &str) -> Option<Resident> {
        let resident = self.residents.remove(tenant)?;
        self.by_use.remove(&(resident.used, tenant.to_owned()));
        Some(resident)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn fetch(tenant: &str) -> Action {
        Action::Fetch(tenant.to_owned())
    }

    fn sleep(tenant: &str) -> Action {
        Action::Sleep(tenant.to_owned())
    }

    #[test]
    fn tenants_beyond_the_limit_are_dormant_and_new_versions_of_them_fetch_nothing() {
        let mut residence = Residence::new(2);
        assert!(residence.admit("bakery") && residence.admit("corner"));
        assert!(!residence.admit("mill") && !residence.admit("mill"));
        assert!(residence.admit("corner"), "a new version of an awake one");
        residence.step(Event::Withdrawn("corner"), SECOND);
        assert!(residence.admit("mill"), "there is room again");
    }

    #[test]
    fn request_wakes_a_tenant_in_the_place_of_the_least_recently_requested() {
        let mut residence = Residence::new(2);
        residence.admit("bakery");
        residence.admit("corner");
        residence.step(Event::Answered("bakery"), SECOND);
        let woken = residence.step(Event::Requested("mill"), 2 * SECOND);
        assert_eq!(woken, [sleep("corner"), fetch("mill")]);
        let again = residence.step(Event::Requested("mill"), 3 * SECOND);
        assert_eq!(again, [], "one fetch for all requests");
        residence.step(Event::Fetched("mill"), 3 * SECOND);
        let woken = residence.step(Event::Requested("corner"), 4 * SECOND);
        assert_eq!(woken, [sleep("bakery"), fetch("corner")]);
    }

    #[test]
    fn tenant_whose_request_may_wait_stays_for_a_time() {
        let mut residence = Residence::new(1);
        residence.step(Event::Requested("mill"), SECOND);
        residence.step(Event::Fetched("mill"), 2 * SECOND);
        let request = Event::Requested("corner");
        assert_eq!(residence.step(request, 3 * SECOND), []);
        let later = SECOND + MIN_STAY;
        let woken = residence.step(request, later);
        assert_eq!(woken, [sleep("mill"), fetch("corner")]);
        residence.step(Event::Fetched("corner"), later);
        residence.step(Event::Answered("corner"), later);
        let woken = residence.step(Event::Requested("mill"), later);
        assert_eq!(woken, [sleep("corner"), fetch("mill")]);
    }

    #[test]
    fn failed_fetch_is_repeated_after_a_delay() {
        let mut residence = Residence::new(1);
        let request = Event::Requested("mill");
        assert_eq!(residence.step(request, SECOND), [fetch("mill")]);
        residence.step(Event::Failed("mill"), 2 * SECOND);
        assert!(residence.is_empty());
        assert_eq!(residence.step(request, 3 * SECOND), []);
        let later = 2 * SECOND + RETRY_DELAY;
        assert_eq!(residence.step(request, later), [fetch("mill")]);
    }

    #[test]
    fn needed_tenant_does_not_go_to_sleep() {
        let mut residence = Residence::new(1);
        residence.admit("root");
        residence.set_needed(["root".to_owned()].into());
        assert_eq!(residence.step(Event::Requested("mill"), SECOND), []);
        residence.set_needed(BTreeSet::new());
        let woken = residence.step(Event::Requested("mill"), SECOND);
        assert_eq!(woken, [sleep("root"), fetch("mill")]);
    }

    /// A residence, and the tenants as its actions have left them.
    struct Replica {
        residence: Residence,
        awake: BTreeSet<String>,
        fetching: BTreeSet<String>,
    }

    impl Replica {
        /// Applies an event, and checks the invariants.
        fn step(&mut self, event: Event<'_>, now: Duration) {
            for action in self.residence.step(event, now) {
                match action {
                    Action::Sleep(tenant) => assert!(self.awake.remove(&tenant), "{tenant}"),
                    Action::Fetch(tenant) => {
                        assert!(!self.awake.contains(&tenant), "{tenant}");
                        assert!(self.fetching.insert(tenant), "fetched twice");
                    }
                }
            }
            let residents = self.awake.len() + self.fetching.len();
            assert!(residents <= self.residence.limit());
            assert_eq!(residents, self.residence.len());
        }

        /// Ends the fetch of a tenant, if there is one.
        fn end(&mut self, tenant: &str, is_found: bool, now: Duration) {
            if !self.fetching.remove(tenant) {
                return;
            }
            match is_found {
                true => {
                    self.awake.insert(tenant.to_owned());
                    self.step(Event::Fetched(tenant), now);
                }
                false => self.step(Event::Failed(tenant), now),
            }
        }
    }

    #[test]
    fn limit_and_single_fetches_hold_in_random_histories_and_waiting_requests_wake() {
        for seed in 0..500 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut replica = Replica {
                residence: Residence::new(random.usize(1..5)),
                awake: BTreeSet::new(),
                fetching: BTreeSet::new(),
            };
            let mut now = Duration::ZERO;
            for _ in 0..300 {
                now += Duration::from_millis(random.u64(0..3_000));
                let name = format!("tenant-{}", random.u32(0..8));
                match random.u32(0..8) {
                    0 => {
                        if replica.residence.admit(&name) && !replica.fetching.contains(&name) {
                            replica.awake.insert(name);
                        }
                    }
                    1..=3 => replica.step(Event::Requested(&name), now),
                    4 => replica.step(Event::Answered(&name), now),
                    5 => replica.end(&name, true, now),
                    6 => replica.end(&name, false, now),
                    _ => {
                        replica.awake.remove(&name);
                        replica.fetching.remove(&name);
                        replica.step(Event::Withdrawn(&name), now);
                    }
                }
            }
            for name in replica.fetching.clone() {
                replica.end(&name, true, now);
            }
            // A waiting request repeats its event.
            for _ in 0..=MIN_STAY.as_secs() {
                now += SECOND;
                replica.step(Event::Requested("cold"), now);
            }
            assert!(replica.residence.has("cold"), "{seed}");
        }
    }
}
