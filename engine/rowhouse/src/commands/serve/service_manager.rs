//! Notifies the service manager (`sd_notify(3)`) of readiness, reloads and shutdown. Without `NOTIFY_SOCKET` the notifications are dropped.

use sd_notify::NotifyState;
use tracing::warn;

/// Requests are answered.
pub(crate) fn ready(status: &str) {
    notify(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// The folders are read again.
pub(crate) fn reloading() {
    // The time tells the service manager which of several reloads is meant.
    match NotifyState::monotonic_usec_now() {
        Ok(now) => notify(&[NotifyState::Reloading, now]),
        Err(_) => notify(&[NotifyState::Reloading]),
    }
}

/// No connection is accepted any longer.
pub(crate) fn stopping() {
    notify(&[NotifyState::Stopping, NotifyState::Status("draining")]);
}

fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        warn!(%error, "cannot notify the service manager at `NOTIFY_SOCKET`");
    }
}
