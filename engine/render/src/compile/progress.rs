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
pub struct Progress {
    /// The renderings in flight by number: start time, path and template.
    busy: Mutex<BTreeMap<u64, (Instant, String, String)>>,
    begun: AtomicU64,
    is_given_up: AtomicBool,
}

/// Marks a rendering as in flight until it is dropped.
pub(crate) struct BusyGuard<'a> {
    progress: &'a Progress,
    number: u64,
}

impl Progress {
    /// Registers the rendering of the page at `path` with a template.
    pub(crate) fn begin(&self, path: &str, template: &str) -> BusyGuard<'_> {
        let number = self.begun.fetch_add(1, Relaxed);
        let rendering = (Instant::now(), path.to_owned(), template.to_owned());
        self.lock().insert(number, rendering);
        BusyGuard {
            progress: self,
            number,
        }
    }

    /// Whether the attempt was given up, so that nothing uses its result.
    pub(crate) fn is_given_up(&self) -> bool {
        self.is_given_up.load(Relaxed)
    }

    /// Gives up the attempt if a page has been rendering for longer than `limit`. Returns that page's path and template.
    pub fn give_up_after(&self, limit: Duration) -> Option<(String, String)> {
        let busy = self.lock();
        let mut renderings = busy.values();
        let (_, path, template) = renderings.find(|(begin, _, _)| begin.elapsed() > limit)?;
        self.is_given_up.store(true, Relaxed);
        Some((path.clone(), template.clone()))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, (Instant, String, String)>> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for BusyGuard<'_> {
    fn drop(&mut self) {
        self.progress.lock().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abandoned_rendering_names_the_page_in_flight() {
        let progress = Progress::default();
        let first = progress.begin("/", "layouts/page.html");
        let second = progress.begin("/terms", "layouts/legal.html");
        drop(first);
        assert_eq!(progress.give_up_after(Duration::from_secs(60)), None);
        assert!(!progress.is_given_up());
        let page = ("/terms".to_owned(), "layouts/legal.html".to_owned());
        assert_eq!(progress.give_up_after(Duration::ZERO), Some(page));
        assert!(progress.is_given_up());
        drop(second);
        assert_eq!(progress.give_up_after(Duration::ZERO), None);
    }
}
