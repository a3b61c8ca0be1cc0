//! What a rendering is busy with, for a watchdog: templates are trusted, but nothing keeps one from looping for ever.
//!
//! **Invariant:** ends nothing by itself. Whoever waits decides how long, and gives up; what writes or begins a page after that fails.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The pages that one attempt to render a tenant is busy with, on all its threads.
#[derive(Debug, Default)]
pub struct Progress {
    /// When each rendering that is in flight began, by its number.
    busy: Mutex<BTreeMap<u64, (Instant, String, String)>>,
    begun: AtomicU64,
    is_given_up: AtomicBool,
}

/// A rendering that is in flight, for as long as this lives.
pub(crate) struct BusyGuard<'a> {
    progress: &'a Progress,
    number: u64,
}

impl Progress {
    /// Begins to render the page at `path` with a template.
    pub(crate) fn begin(&self, path: &str, template: &str) -> BusyGuard<'_> {
        let number = self.begun.fetch_add(1, Relaxed);
        let rendering = (Instant::now(), path.to_owned(), template.to_owned());
        self.lock().insert(number, rendering);
        BusyGuard {
            progress: self,
            number,
        }
    }

    /// Whether nobody waits for the result any longer.
    pub(crate) fn is_given_up(&self) -> bool {
        self.is_given_up.load(Relaxed)
    }

    /// Gives the whole attempt up where one page has been rendered for longer than `limit`: returns the page's path and the template.
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
    fn what_is_given_up_names_the_page_that_is_still_being_rendered() {
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
