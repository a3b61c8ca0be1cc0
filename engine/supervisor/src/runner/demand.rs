//! Who is asked for, and what is in memory.
//!
//! **Invariant:** plain values; knows no tenant.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use render::Compiled;

/// Names of tenants of whose pictures requests wait for one, as those say who wait.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names(Arc<Mutex<BTreeSet<String>>>);

impl Names {
    /// Adds a tenant. Whether that is new.
    pub(crate) fn add(&self, id: &str) -> bool {
        let mut names = self.locked();
        !names.contains(id) && names.insert(id.to_owned())
    }

    pub(crate) fn locked(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether somebody has asked for a tenant.
#[derive(Debug)]
pub(crate) struct Demand {
    /// The number of its requests when it was last looked, and when that was another number.
    pub(crate) requests: u64,
    pub(crate) since: Instant,
    /// The number of its requests when it went to sleep.
    pub(crate) asleep_at: u64,
    /// Whether a request waits for one of its pictures.
    pub(crate) is_wanted: bool,
    /// For what everything is made that is made later.
    pub(crate) finished: Weak<Compiled>,
    /// The bytes of these pages, which only grow where somebody asks.
    pub(crate) pages: (Weak<Compiled>, usize),
}

impl Default for Demand {
    fn default() -> Self {
        Self {
            requests: 0,
            since: Instant::now(),
            asleep_at: 0,
            is_wanted: false,
            finished: Weak::new(),
            pages: (Weak::new(), 0),
        }
    }
}

impl Demand {
    /// It is out of memory: whoever asks next asks anew.
    pub(crate) fn sleep(&mut self) {
        self.asleep_at = self.requests;
        self.is_wanted = false;
    }
}

/// So large a part of the memory for pages may be taken beyond it for a second.
const SLACK: usize = 4;

/// What was in memory at the last look, with what came since.
#[derive(Debug)]
pub(crate) struct InMemory {
    pub(crate) bytes: usize,
    pub(crate) tenants: usize,
    /// The bytes that there is room for.
    pub(crate) most: usize,
    /// Of tenants that were taken out since the last snapshot, which still has them.
    pub(crate) leaving: usize,
    /// How often a tenant was taken out.
    pub(crate) evictions: u64,
    /// How often one was taken up as it was rendered before.
    pub(crate) recalls: u64,
}

impl InMemory {
    /// Whether there is so much more than there is room for that no time is to be lost.
    pub(crate) const fn is_overfull(&self) -> bool {
        self.bytes.saturating_sub(self.most) > self.most / SLACK
    }

    /// Whether so much is leaving that a snapshot without it is worth its time.
    pub(crate) const fn has_much_leaving(&self) -> bool {
        self.leaving > self.most / SLACK
    }
}

impl Default for InMemory {
    fn default() -> Self {
        Self {
            bytes: 0,
            tenants: 0,
            most: usize::MAX,
            leaving: 0,
            evictions: 0,
            recalls: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_more_than_there_is_room_for_is_too_much_and_without_a_limit_nothing_is() {
        let of = |bytes, leaving, most| {
            let memory = InMemory {
                bytes,
                leaving,
                most,
                ..InMemory::default()
            };
            (memory.is_overfull(), memory.has_much_leaving())
        };
        assert_eq!(of(125, 25, 100), (false, false));
        assert_eq!(of(126, 0, 100), (true, false));
        assert_eq!(of(0, 26, 100), (false, true));
        assert_eq!(of(1 << 40, 1 << 40, usize::MAX), (false, false));
    }
}
