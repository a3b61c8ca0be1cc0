//! What a supervisor is told (`sd_notify(3)`): ready, reloading, stopping. Where there is none, nothing.

use sd_notify::NotifyState;
use tracing::warn;

/// Requests are answered.
pub(super) fn ready(status: &str) {
    notify(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// The folders are read again.
pub(super) fn reloading() {
    // The time tells the supervisor which of several reloads is meant.
    match NotifyState::monotonic_usec_now() {
        Ok(now) => notify(&[NotifyState::Reloading, now]),
        Err(_) => notify(&[NotifyState::Reloading]),
    }
}

/// No connection is accepted any longer.
pub(super) fn stopping() {
    notify(&[NotifyState::Stopping, NotifyState::Status("draining")]);
}

fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        warn!(%error, "the supervisor of `NOTIFY_SOCKET` cannot be told");
    }
}
