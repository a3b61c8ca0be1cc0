//! Distinguishes a slow disk from a disk that does not respond.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The file system calls during one read of a folder. A clone tracks the same read.
///
/// A call on a network mount whose server is gone never returns and cannot be interrupted. Another thread detects that here and abandons the read.
#[derive(Debug, Clone, Default)]
pub struct Activity(Arc<Mutex<Option<Instant>>>);

impl Activity {
    /// Notes that a call begins now.
    pub(super) fn begin(&self) {
        *self.lock() = Some(Instant::now());
    }

    /// Notes that no call is in flight, or only one that may take long.
    pub(super) fn end(&self) {
        *self.lock() = None;
    }

    /// Returns whether a call has been in flight for longer than `limit`.
    #[must_use]
    pub fn is_stalled(&self, limit: Duration) -> bool {
        self.lock().is_some_and(|since| since.elapsed() > limit)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
