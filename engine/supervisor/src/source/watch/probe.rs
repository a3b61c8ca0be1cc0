//! Probes many paths at once, without waiting for file systems that do not respond.
//!
//! A call on a network mount without a server never returns. The thread of such a call is abandoned, and its path is not probed again until the call has returned.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The limit on threads of one call, without threads that are blocked in a file system.
const MAX_THREADS: usize = 8;

/// The interval at which probes are checked for exceeding their time limit.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The paths with probes in flight, and the start of each probe. Clones share the paths.
#[derive(Debug, Clone, Default)]
pub(super) struct PathProbe(Arc<Mutex<BTreeMap<PathBuf, Instant>>>);

/// The work of one call of [`PathProbe::each`].
struct ProbeWork<T, F> {
    probe: PathProbe,
    waiting: Mutex<VecDeque<PathBuf>>,
    results: SyncSender<(PathBuf, T)>,
    inspect: F,
}

impl PathProbe {
    /// Calls `inspect` with each path, on other threads.
    ///
    /// The result of a path is `None` if its probe takes longer than `limit`, or if an earlier probe is still in flight.
    pub(super) fn each<T, F>(
        &self,
        paths: impl IntoIterator<Item = PathBuf>,
        limit: Duration,
        inspect: F,
    ) -> BTreeMap<PathBuf, Option<T>>
    where
        T: Send + 'static,
        F: Fn(&Path) -> T + Send + Sync + 'static,
    {
        let mut found: BTreeMap<PathBuf, Option<T>> =
            paths.into_iter().map(|path| (path, None)).collect();
        let mut missing: BTreeSet<PathBuf> = {
            let in_flight = self.lock();
            let paths = found.keys().filter(|path| !in_flight.contains_key(*path));
            paths.cloned().collect()
        };
        let (results, received) = sync_channel(missing.len().max(1));
        let work = Arc::new(ProbeWork {
            probe: self.clone(),
            waiting: Mutex::new(missing.iter().cloned().collect()),
            results,
            inspect,
        });
        let mut threads = 0;
        while threads < MAX_THREADS.min(missing.len()) && work.start() {
            threads += 1;
        }
        if threads == 0 {
            // No thread could be started, so the calling thread does the work.
            work.run();
        }
        while !missing.is_empty() {
            match received.recv_timeout(CHECK_INTERVAL) {
                Ok((path, result)) => {
                    missing.remove(&path);
                    found.insert(path, Some(result));
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let stalled: Vec<PathBuf> = {
                let in_flight = self.lock();
                let is_stalled = |path: &&PathBuf| {
                    let begun = in_flight.get(*path);
                    begun.is_some_and(|begun| begun.elapsed() > limit)
                };
                missing.iter().filter(is_stalled).cloned().collect()
            };
            for path in stalled {
                missing.remove(&path);
                // A new thread replaces the blocked thread.
                work.start();
            }
        }
        found
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T, F> ProbeWork<T, F>
where
    T: Send + 'static,
    F: Fn(&Path) -> T + Send + Sync + 'static,
{
    /// Starts a thread that probes the queued paths. Returns whether the thread has started.
    fn start(self: &Arc<Self>) -> bool {
        let work = Arc::clone(self);
        let thread = thread::Builder::new().name("probe".to_owned());
        thread.spawn(move || work.run()).is_ok()
    }

    fn run(&self) {
        loop {
            let waiting = || self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(path) = waiting().pop_front() else {
                return;
            };
            self.probe.lock().insert(path.clone(), Instant::now());
            let result = (self.inspect)(&path);
            self.probe.lock().remove(&path);
            // The caller may have stopped waiting for this path.
            let _ = self.results.try_send((path, result));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn path_that_hangs_delays_no_other_path_and_is_not_probed_twice() {
        let probe = PathProbe::default();
        let (end, ends) = channel::<()>();
        let ends = Arc::new(Mutex::new(ends));
        let names: Vec<PathBuf> = (0..40).map(|number| number.to_string().into()).collect();
        let hangs = |path: &Path| path == Path::new("3") || path == Path::new("30");
        let inspect = {
            let ends = Arc::clone(&ends);
            move |path: &Path| {
                if hangs(path) {
                    let _ = ends.lock().expect("a lock").recv();
                }
                path.to_owned()
            }
        };
        let found = probe.each(names.clone(), Duration::from_millis(50), inspect);
        for (path, result) in &found {
            let expected = (!hangs(path)).then(|| path.clone());
            assert_eq!(*result, expected, "{path:?}");
        }
        let again = probe.each(names.clone(), Duration::from_secs(60), Path::to_owned);
        let missing: Vec<_> = again
            .iter()
            .filter(|(_, result)| result.is_none())
            .collect();
        assert_eq!(missing.len(), 2, "both probes are still in flight");
        drop(end);
        while !probe.lock().is_empty() {
            thread::yield_now();
        }
        let found = probe.each(names, Duration::from_secs(60), Path::to_owned);
        assert!(found.values().all(Option::is_some));
    }
}
