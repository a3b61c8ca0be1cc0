//! What is made only for tenants that somebody asks for: their pictures, and the best codings of their pages.
//!
//! Both take longer than everything else. A server of ten thousand tenants, of which few have visitors at a time, does without for the others.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use rayon::prelude::*;
use tracing::warn;

use render::{Compiled, Unimproved};

use super::assembly::requests;
use super::background::Job;
use super::registry::{Registry, Round};
use super::tenant::Tenant;

/// So many jobs are ordered at one time.
const TOGETHER: usize = 64;

/// Names of tenants of whose pictures requests wait for one, as those say who wait.
#[derive(Debug, Clone, Default)]
pub(super) struct Names(Arc<Mutex<BTreeSet<String>>>);

impl Names {
    /// Adds a tenant. Whether that is new.
    pub(super) fn add(&self, id: &str) -> bool {
        let mut names = self.locked();
        !names.contains(id) && names.insert(id.to_owned())
    }

    fn locked(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether somebody has asked for a tenant.
#[derive(Debug)]
pub(super) struct Demand {
    /// The number of its requests when it was last looked, and when that was another number.
    requests: u64,
    since: Instant,
    /// The number of its requests when it went to sleep.
    asleep_at: u64,
    /// Whether a request waits for one of its pictures.
    is_wanted: bool,
    /// For what everything is made that is made later.
    finished: Weak<Compiled>,
}

impl Default for Demand {
    fn default() -> Self {
        Self {
            requests: 0,
            since: Instant::now(),
            asleep_at: 0,
            is_wanted: false,
            finished: Weak::new(),
        }
    }
}

impl Demand {
    /// It is out of memory: whoever asks next asks anew.
    pub(super) fn sleep(&mut self) {
        self.asleep_at = self.requests;
        self.is_wanted = false;
    }
}

impl Tenant {
    /// Notes whether somebody has asked for it since it was last looked.
    pub(super) fn look(&mut self) {
        let requests = self.compiled().map_or(0, |compiled| requests(compiled));
        if requests != self.demand.requests {
            self.demand.requests = requests;
            self.demand.since = Instant::now();
        }
    }

    /// When somebody was last seen to ask for it.
    pub(super) const fn used_at(&self) -> Instant {
        self.demand.since
    }

    /// What it serves, where somebody asked for it and something is still to be made.
    fn unfinished(&self) -> Option<&Arc<Compiled>> {
        let demand = &self.demand;
        // Counters of a tenant that was away begin anew.
        let is_asked = demand.is_wanted || demand.requests != demand.asleep_at;
        let compiled = self.compiled().filter(|_| is_asked)?;
        let is_finished = std::ptr::eq(demand.finished.as_ptr(), Arc::as_ptr(compiled));
        (!is_finished && !compiled.is_open()).then_some(compiled)
    }
}

impl Registry {
    /// Whether there is something to be made for tenants that somebody has asked for. Looks every second, and at once where a request waits.
    pub(super) fn has_unfinished(&mut self) -> bool {
        let mut is_wanted = false;
        self.wanted_pictures.locked().retain(|name| {
            let Some(tenant) = self.tenants.get_mut(name.as_str()) else {
                return false;
            };
            let is_there = (tenant.compiled()).is_some_and(|compiled| !compiled.is_open());
            tenant.demand.is_wanted |= is_there;
            is_wanted |= is_there;
            !is_there
        });
        if !is_wanted && !self.asked.is_over() {
            return false;
        }
        let begun = Instant::now();
        let mut has_any = false;
        for tenant in self.tenants.values_mut() {
            tenant.look();
            has_any |= tenant.unfinished().is_some();
        }
        self.asked = Round::since(begun);
        has_any
    }

    /// Some of what is still to be made for tenants that somebody has asked for: first what is waited for; once all tenants are rendered, other pictures, and codings last.
    pub(super) fn unfinished(&mut self) -> Vec<Job> {
        self.hosts.prune_pictures();
        let secure = self.places.origin.is_secure();
        let (mut pictures, mut codings) = (Vec::new(), Vec::new());
        let is_busy = self.workers.has_background();
        for tenant in self.tenants.values_mut() {
            if is_busy && !tenant.demand.is_wanted {
                continue;
            }
            let Some(compiled) = tenant.unfinished().map(Arc::clone) else {
                continue;
            };
            let undrawn = self.hosts.undrawn(&compiled, secure);
            let mut unimproved = compiled.unimproved().peekable();
            if undrawn.is_empty() && unimproved.peek().is_none() {
                tenant.demand.finished = Arc::downgrade(&compiled);
                tenant.demand.is_wanted = false;
                continue;
            }
            if !is_busy {
                codings.extend(unimproved.take(TOGETHER.saturating_sub(codings.len())));
            }
            let place = match tenant.demand.is_wanted {
                true => 0,
                false => pictures.len(),
            };
            pictures.splice(place..place, undrawn);
            if pictures.len() >= TOGETHER {
                break;
            }
        }
        let pictures = pictures.into_iter().map(Job::from);
        let jobs = pictures.chain(codings.into_iter().map(Job::from));
        jobs.take(TOGETHER).collect()
    }

    /// Draws all pictures into the last snapshot.
    pub fn draw(&mut self) {
        let secure = self.places.origin.is_secure();
        let tenants = self.tenants.values();
        let undrawn = tenants
            .filter_map(Tenant::compiled)
            .flat_map(|compiled| self.hosts.undrawn(compiled, secure));
        let undrawn: Vec<_> = undrawn.collect();
        undrawn.into_par_iter().for_each(|picture| {
            if let Err(problem) = picture.draw() {
                warn!(problem, "a picture cannot be drawn");
            }
        });
    }

    /// Makes the best codings of all pages in the last snapshot.
    pub fn improve(&self) {
        let tenants = self.tenants.values();
        let bodies: Vec<Unimproved> = tenants
            .filter_map(Tenant::compiled)
            .flat_map(|compiled| compiled.unimproved())
            .collect();
        bodies.into_par_iter().for_each(|body| body.improve());
    }
}
