//! Holds the latest text for the event stream at [`PATH`], which authors' browsers read with `--dev`.
//!
//! **Invariant:** knows neither the meaning nor the readers of the texts.

use std::sync::Arc;

use tokio::sync::watch;

/// Path of the event stream, on every known host.
pub const PATH: &str = "/.rowhouse/events";

/// The latest text and its subscribers.
#[derive(Debug, Clone)]
pub struct EventChannel {
    pub(crate) latest: watch::Sender<Arc<str>>,
}

impl EventChannel {
    /// Creates the event source with its first text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self {
            latest: watch::Sender::new(text.into()),
        }
    }

    /// Sends a text to all current and future subscribers.
    pub fn publish(&self, text: &str) {
        self.latest.send_replace(text.into());
    }
}
