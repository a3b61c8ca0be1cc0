//! A part of a snapshot that is made while the snapshot is served.

use std::sync::OnceLock;

use tokio::sync::Notify;

/// A value that is made after the snapshot is built: empty at first, filled once.
#[derive(Debug)]
pub struct Slot<T> {
    made: OnceLock<Option<T>>,
    filled: Notify,
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self {
            made: OnceLock::new(),
            filled: Notify::new(),
        }
    }
}

impl<T> From<T> for Slot<T> {
    fn from(made: T) -> Self {
        Self {
            made: OnceLock::from(Some(made)),
            filled: Notify::new(),
        }
    }
}

impl<T> Slot<T> {
    /// Fills the slot permanently. `None` means that there will never be a value. Ignores a second call.
    pub fn fill(&self, made: Option<T>) {
        let _ = self.made.set(made);
        self.filled.notify_waiters();
    }

    /// Returns whether the slot is not filled yet.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.made.get().is_none()
    }

    /// Returns the value, if there is one by now.
    #[must_use]
    pub fn get(&self) -> Option<&T> {
        self.made.get()?.as_ref()
    }

    /// Consumes the slot and returns its value.
    #[must_use]
    pub fn into_inner(self) -> Option<T> {
        self.made.into_inner()?
    }

    /// Waits until the slot is filled.
    pub async fn filled(&self) {
        let filled = self.filled.notified();
        if self.is_open() {
            filled.await;
        }
    }
}
