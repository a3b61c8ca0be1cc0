//! The replicas of a fleet, which the console lists on request, and the presence of this process in the list.
//!
//! ```text
//! Absent ── join ──> Listed ── leave ──> Leaving ── set_absent ──> Absent
//! ```
//!
//! **Invariant:** knows no store. Another thread lists the replicas when [`ReplicaBoard::is_requested`], and removes this process after [`ReplicaBoard::leaving`].

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::watch;

/// The silence after which a replica may have ended. Replicas beat every half minute.
pub const MAX_SILENCE: Duration = Duration::from_secs(2 * 60);

/// A replica of the fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaStatus {
    /// The id of the replica.
    pub id: String,
    /// Whether the replica is this process.
    pub is_this: bool,
    /// The name of the machine.
    pub host: String,
    /// The version of the program.
    pub version: String,
    /// When the process started.
    pub started: SystemTime,
    /// The time since the last heartbeat.
    pub silence: Duration,
    /// The number of changes of the bucket that the replica had not followed at its last heartbeat.
    pub lag: u64,
    /// The number of tenants whose content the replica has.
    pub tenants: u64,
    /// The number of other tenants.
    pub dormant: u64,
    /// The number of problems with the bucket.
    pub problems: u64,
}

/// The last list of replicas.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplicaList {
    /// The replicas by host; `None` if the store never answered.
    pub replicas: Option<Vec<ReplicaStatus>>,
    /// Whether the store has answered this request.
    pub is_current: bool,
}

/// Whether this process is in the list of replicas.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Presence {
    /// The process follows no bucket, or has left the list.
    #[default]
    Absent,
    /// A thread keeps the process in the list.
    Listed,
    /// The thread removes the process from the list.
    Leaving,
}

#[derive(Debug, Default)]
struct State {
    is_requested: bool,
    list: ReplicaList,
}

/// The board on which the replicas are listed when the console requests them.
#[derive(Debug, Default)]
pub struct ReplicaBoard {
    state: Mutex<State>,
    answered: Condvar,
    presence: watch::Sender<Presence>,
}

impl ReplicaBoard {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests a new list, and waits for it for at most `timeout`. Returns the last list.
    pub fn request(&self, timeout: Duration) -> ReplicaList {
        let mut state = self.lock();
        state.is_requested = true;
        state.list.is_current = false;
        let end = Instant::now() + timeout;
        while state.is_requested {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.answered.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.list.clone()
    }

    /// Returns whether a new list is requested.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.lock().is_requested
    }

    /// Answers the request with a new list, or with `None` if the store did not answer.
    pub fn set(&self, replicas: Option<Vec<ReplicaStatus>>) {
        let mut state = self.lock();
        state.is_requested = false;
        state.list.is_current = replicas.is_some();
        if replicas.is_some() {
            state.list.replicas = replicas;
        }
        drop(state);
        self.answered.notify_all();
    }

    /// Records that a thread keeps this process in the list.
    pub fn join(&self) {
        self.presence.send_replace(Presence::Listed);
    }

    /// Asks the thread to remove this process from the list. Has no effect without such a thread.
    pub fn leave(&self) {
        self.presence.send_if_modified(|presence| {
            let is_listed = *presence == Presence::Listed;
            if is_listed {
                *presence = Presence::Leaving;
            }
            is_listed
        });
    }

    /// Waits until this process is asked to leave.
    pub async fn leaving(&self) {
        self.until(|presence| presence == Presence::Leaving).await;
    }

    /// Records that this process has left the list, or that the thread ends without that.
    pub fn set_absent(&self) {
        self.presence.send_replace(Presence::Absent);
    }

    /// Waits while this process is being removed from the list.
    pub async fn left(&self) {
        self.until(|presence| presence != Presence::Leaving).await;
    }

    async fn until(&self, is_reached: impl Fn(Presence) -> bool) {
        let mut presence = self.presence.subscribe();
        // Fails without the sender only, which is borrowed.
        let _ = presence.wait_for(|presence| is_reached(*presence)).await;
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn request_waits_for_a_list_and_keeps_the_last() {
        let board = ReplicaBoard::default();
        assert_eq!(board.request(Duration::ZERO), ReplicaList::default());
        board.set(None);
        thread::scope(|threads| {
            threads.spawn(|| {
                while !board.is_requested() {
                    thread::yield_now();
                }
                board.set(Some(Vec::new()));
            });
            let list = board.request(Duration::from_secs(60));
            assert!(list.is_current && list.replicas.is_some());
        });
        let list = board.request(Duration::ZERO);
        assert!(!list.is_current && list.replicas.is_some());
    }

    #[tokio::test]
    async fn process_leaves_the_list_once_and_only_if_it_is_listed() {
        let board = ReplicaBoard::default();
        board.leave();
        // Without a thread, there is nothing to wait for.
        board.left().await;
        board.join();
        board.left().await;
        board.leave();
        board.leaving().await;
        let wait = Duration::from_millis(10);
        let left = tokio::time::timeout(wait, board.left()).await;
        assert!(left.is_err(), "the thread has not answered");
        board.set_absent();
        board.left().await;
    }
}
