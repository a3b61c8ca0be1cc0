//! The queue that wakes the reload loop: the scopes that changed, and the notice that other work is ready.
//!
//! Senders never block. Equal entries are one entry, so the queue holds at most one entry for each folder.
//! Senders do not keep a queue alive. Once the loop has ended, sending fails.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use crate::model::agenda::ReloadScope;

/// The entries of a queue.
#[derive(Debug, Default)]
struct Pending {
    scopes: BTreeSet<ReloadScope>,
    /// Whether other work is ready for the reload loop: the result of a job or survey, or a command.
    is_ready: bool,
}

impl Pending {
    fn is_empty(&self) -> bool {
        self.scopes.is_empty() && !self.is_ready
    }
}

#[derive(Debug, Default)]
struct QueueState {
    pending: Mutex<Pending>,
    arrived: Condvar,
}

impl QueueState {
    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The receiver of the queue.
#[derive(Debug, Default)]
pub(crate) struct ReloadQueue(Arc<QueueState>);

impl ReloadQueue {
    /// Returns a sender, which does not keep the queue alive.
    pub(crate) fn sender(&self) -> ReloadSender {
        ReloadSender(Arc::downgrade(&self.0))
    }

    /// Waits for an entry, for at most `timeout`, and empties the queue. Returns the scopes that changed.
    pub(crate) fn receive(&self, timeout: Duration) -> BTreeSet<ReloadScope> {
        self.wait_and_drain(timeout).scopes
    }

    /// Waits for an entry, for at most `timeout`, and empties the queue.
    fn wait_and_drain(&self, timeout: Duration) -> Pending {
        let is_empty = |pending: &mut Pending| pending.is_empty();
        let waited = (self.0.arrived).wait_timeout_while(self.0.lock(), timeout, is_empty);
        let (mut pending, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *pending)
    }

    /// Waits until other work is ready. Returns whether that happened within `timeout`.
    #[cfg(test)]
    pub(crate) fn is_woken(&self, timeout: Duration) -> bool {
        self.wait_and_drain(timeout).is_ready
    }
}

/// A sender to the queue of a reload loop.
#[derive(Debug, Clone, Default)]
pub struct ReloadSender(Weak<QueueState>);

/// The error of sending to a reload loop that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the reload loop has ended")]
pub(crate) struct LoopEnded;

impl ReloadSender {
    /// Requests a reload of a scope, once the scope has settled. Never blocks.
    ///
    /// # Errors
    /// Returns an error if the reload loop has ended.
    pub(crate) fn request(&self, scope: ReloadScope) -> Result<(), LoopEnded> {
        self.send(|pending| {
            pending.scopes.insert(scope);
        })
    }

    /// Notifies the reload loop that other work is ready. Never blocks.
    ///
    /// # Errors
    /// Returns an error if the reload loop has ended.
    pub(crate) fn wake(&self) -> Result<(), LoopEnded> {
        self.send(|pending| pending.is_ready = true)
    }

    /// Returns whether the reload loop has not ended.
    pub(crate) fn is_open(&self) -> bool {
        self.0.strong_count() > 0
    }

    fn send(&self, add: impl FnOnce(&mut Pending)) -> Result<(), LoopEnded> {
        let queue = self.0.upgrade().ok_or(LoopEnded)?;
        add(&mut queue.lock());
        queue.arrived.notify_all();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const TEST_TIMEOUT: Duration = Duration::from_secs(60);

    #[test]
    fn entries_of_all_senders_are_received_once() {
        let queue = ReloadQueue::default();
        let tenant = |name: &str| ReloadScope::Tenant(name.to_owned());
        let sender = queue.sender();
        thread::scope(|threads| {
            for name in ["a", "b"] {
                let sender = sender.clone();
                threads.spawn(move || {
                    for _ in 0..1000 {
                        sender.request(tenant(name)).expect("a queue");
                    }
                });
            }
        });
        let scopes = queue.receive(TEST_TIMEOUT);
        assert_eq!(scopes, [tenant("a"), tenant("b")].into());
        assert!(queue.receive(Duration::ZERO).is_empty());
        sender.wake().expect("a queue");
        assert!(
            queue.receive(TEST_TIMEOUT).is_empty(),
            "a wake has no scope"
        );
        drop(queue);
        assert_eq!(sender.wake(), Err(LoopEnded));
    }
}
