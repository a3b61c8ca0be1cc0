//! The pages that an attempt to render a tenant is working on, for a watchdog. A template of a trusted theme may still loop for ever.
//!
//! **Invariant:** does not stop a rendering by itself. The caller decides when to give up. After that, every attempt to write to a page or to begin a page fails.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The pages that one attempt to render a tenant is working on, on all its threads.
#[derive(Debug, Default)]
pub struct RenderAttempt {
    /// The renderings in flight by number: start time, path and template.
    busy: Mutex<BTreeMap<u64, (Instant, String, String)>>,
    begun: AtomicU64,
    is_abandoned: AtomicBool,
}

/// Marks a rendering as in flight until it is dropped.
pub(crate) struct RenderingGuard<'a> {
    attempt: &'a RenderAttempt,
    number: u64,
}

impl RenderAttempt {
    /// Registers the rendering of the page at `path` with a template.
    pub(crate) fn begin(&self, path: &str, template: &str) -> RenderingGuard<'_> {
        let number = self.begun.fetch_add(1, Relaxed);
        let rendering = (Instant::now(), path.to_owned(), template.to_owned());
        self.lock().insert(number, rendering);
        RenderingGuard {
            attempt: self,
            number,
        }
    }

    /// Whether the attempt was given up, so that nothing uses its result.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.is_abandoned.load(Relaxed)
    }

    /// Gives up the attempt if a page has been rendering for longer than `limit`. Returns that page's path and template.
    pub fn abandon_after(&self, limit: Duration) -> Option<(String, String)> {
        let busy = self.lock();
        let mut renderings = busy.values();
        let (_, path, template) = renderings.find(|(begin, _, _)| begin.elapsed() > limit)?;
        self.is_abandoned.store(true, Relaxed);
        Some((path.clone(), template.clone()))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, (Instant, String, String)>> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RenderingGuard<'_> {
    fn drop(&mut self) {
        self.attempt.lock().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abandoned_rendering_names_the_page_in_flight() {
        let attempt = RenderAttempt::default();
        let first = attempt.begin("/", "layouts/page.html");
        let second = attempt.begin("/terms", "layouts/legal.html");
        drop(first);
        assert_eq!(attempt.abandon_after(Duration::from_secs(60)), None);
        assert!(!attempt.is_abandoned());
        let page = ("/terms".to_owned(), "layouts/legal.html".to_owned());
        assert_eq!(attempt.abandon_after(Duration::ZERO), Some(page));
        assert!(attempt.is_abandoned());
        drop(second);
        assert_eq!(attempt.abandon_after(Duration::ZERO), None);
    }
}
