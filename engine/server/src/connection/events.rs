//! Texts for whoever listens on [`PATH`]: what is streamed to authors' browsers with `--dev`.
//!
//! **Invariant:** does not know what the texts mean, nor who listens.

use std::sync::Arc;

use tokio::sync::watch;

/// Where events are to be had, on every known host.
pub const PATH: &str = "/.rowhouse/events";

/// The latest text, and those who wait for the next.
#[derive(Debug, Clone)]
pub struct Events {
    pub(crate) latest: watch::Sender<Arc<str>>,
}

impl Events {
    /// Begins with a text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self {
            latest: watch::Sender::new(text.into()),
        }
    }

    /// Tells all who listen, and all who come later.
    pub fn publish(&self, text: &str) {
        self.latest.send_replace(text.into());
    }
}
