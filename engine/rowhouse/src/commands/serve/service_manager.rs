//! Notifies the service manager (`sd_notify(3)`) of readiness, reloads and shutdown.
//!
//! **Invariant:** without `NOTIFY_SOCKET`, the notifications are dropped.

use sd_notify::NotifyState;
use tracing::warn;

/// Notifies that requests are served. `status` is for people.
pub(crate) fn ready(status: &str) {
    notify(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// Notifies that a reload has begun.
pub(crate) fn reloading() {
    // The time identifies the reload for the service manager.
    match NotifyState::monotonic_usec_now() {
        Ok(now) => notify(&[NotifyState::Reloading, now]),
        Err(_) => notify(&[NotifyState::Reloading]),
    }
}

/// Notifies that the server is draining.
pub(crate) fn stopping() {
    notify(&[NotifyState::Stopping, NotifyState::Status("draining")]);
}

fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        warn!(%error, "notifying the service manager at `NOTIFY_SOCKET` failed");
    }
}
