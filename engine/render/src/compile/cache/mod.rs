//! Results of costly pure work (compressed bodies, rendered islands, rasterised images), keyed by a digest of all inputs.
//!
//! Each tenant has a cache, and one cache holds work that all tenants share. A cache keeps only the results that the last compilation used, so its size is bounded. The owner may persist it across a restart.
//!
//! **Invariant:** a cache never changes a result. An empty cache gives the same bytes, only later.

#[cfg(test)]
mod sources;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use sha2::{Digest, Sha256};

/// The digest of a kind of work and of all its inputs.
pub type CacheKey = [u8; 32];

/// Cached results by key.
#[derive(Default)]
pub struct Cache {
    generations: Mutex<Generations>,
}

/// A cached result.
#[derive(Debug, Clone)]
struct CachedResult {
    bytes: Bytes,
    /// Whether doing the work again is faster than reading the result from disk.
    is_cheap: bool,
}

/// Loads the results of an earlier process on the first access.
type PersistedLoader = Box<dyn FnOnce() -> Vec<(Bytes, Bytes)> + Send>;

#[derive(Default)]
struct Generations {
    /// Loads the persisted results; `None` once they are loaded.
    persisted: Option<PersistedLoader>,
    previous: HashMap<CacheKey, CachedResult>,
    used: HashMap<CacheKey, CachedResult>,
    /// Whether costly work was done since the last call of [`Cache::has_grown`].
    has_grown: bool,
}

/// The digest of the sources that this program was built from. Two builds of the same version may render differently.
const BUILD: &str = env!("ROWHOUSE_BUILD");

/// Returns the key of the work `kind` on `parts`.
#[must_use]
pub(crate) fn key(kind: &str, parts: &[&[u8]]) -> CacheKey {
    key_of(BUILD, kind, parts)
}

fn key_of(build: &str, kind: &str, parts: &[&[u8]]) -> CacheKey {
    let mut hash = Sha256::new();
    for part in [build.as_bytes(), kind.as_bytes()].iter().chain(parts) {
        // The length separates adjacent parts: `ab`, `c` and `a`, `bc` get different keys.
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

impl Cache {
    /// Creates a cache whose persisted results, as [`Cache::used`] returned them, are loaded on the first access.
    #[must_use]
    pub fn unread(load: impl FnOnce() -> Vec<(Bytes, Bytes)> + Send + 'static) -> Self {
        let generations = Generations {
            persisted: Some(Box::new(load)),
            ..Generations::default()
        };
        Self {
            generations: Mutex::new(generations),
        }
    }

    fn generations(&self) -> MutexGuard<'_, Generations> {
        self.generations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Loads the persisted results, and then locks all results.
    fn loaded(&self) -> MutexGuard<'_, Generations> {
        let mut generations = self.generations();
        if let Some(load) = generations.persisted.take() {
            generations.previous.extend(by_key(load()));
        }
        generations
    }

    /// Begins a compilation, which may use the results of the previous one.
    pub fn begin(&self) {
        let generations = &mut *self.generations();
        generations.previous.extend(generations.used.drain());
    }

    /// Marks all results of the previous compilation as used, because everything that they were made for is unchanged.
    pub(crate) fn use_again(&self) {
        let generations = &mut *self.loaded();
        for (key, made) in generations.previous.drain() {
            generations.used.entry(key).or_insert(made);
        }
    }

    /// Whether every costly result of the previous compilation was used again.
    ///
    /// Also true if the persisted results were never loaded.
    #[must_use]
    pub fn is_used_up(&self) -> bool {
        self.generations()
            .previous
            .values()
            .all(|made| made.is_cheap)
    }

    /// Ends the compilation: drops the unused results, and returns the costly results that were used.
    pub fn used(&self) -> Vec<(CacheKey, Bytes)> {
        let generations = &mut *self.generations();
        generations.persisted = None;
        generations.previous = HashMap::new();
        let mut used: Vec<_> = generations
            .used
            .iter()
            .filter(|(_, made)| !made.is_cheap)
            .map(|(key, made)| (*key, made.bytes.clone()))
            .collect();
        used.sort();
        used
    }

    /// Adds results that another process made. The owner does not persist them.
    pub fn add(&self, results: impl IntoIterator<Item = (CacheKey, Bytes)>) {
        let generations = &mut *self.loaded();
        for (key, bytes) in results {
            let is_cheap = true;
            let result = CachedResult { bytes, is_cheap };
            generations.previous.entry(key).or_insert(result);
        }
    }

    /// Adds results of costly work that another process did, as if this one had done it. The owner persists them.
    pub fn adopt(&self, results: impl IntoIterator<Item = (CacheKey, Bytes)>) {
        for (key, bytes) in results {
            // The work cannot fail.
            let _ = self.get(key, || Ok::<_, ()>(bytes));
        }
    }

    /// Whether costly work was done since the last call.
    pub fn has_grown(&self) -> bool {
        std::mem::take(&mut self.generations().has_grown)
    }

    /// Whether the cache holds a result for `key`. Does not mark it as used.
    #[must_use]
    pub fn has(&self, key: &CacheKey) -> bool {
        let generations = self.loaded();
        generations.previous.contains_key(key) || generations.used.contains_key(key)
    }

    /// Returns the cached result for `key`, or does the work and caches its result. Errors are not cached.
    pub(crate) fn get<E>(
        &self,
        key: CacheKey,
        work: impl FnOnce() -> Result<Bytes, E>,
    ) -> Result<Bytes, E> {
        self.get_or_compute(key, false, work)
    }

    /// Works like [`Cache::get`] for work that is at least as fast as reading its result from disk. The owner does not persist the result.
    pub(crate) fn get_cheap<E>(
        &self,
        key: CacheKey,
        work: impl FnOnce() -> Result<Bytes, E>,
    ) -> Result<Bytes, E> {
        self.get_or_compute(key, true, work)
    }

    fn get_or_compute<E>(
        &self,
        key: CacheKey,
        is_cheap: bool,
        work: impl FnOnce() -> Result<Bytes, E>,
    ) -> Result<Bytes, E> {
        if let Some(known) = self.reuse(&key) {
            return Ok(known);
        }
        let bytes = work()?;
        let made = CachedResult {
            bytes: bytes.clone(),
            is_cheap,
        };
        let generations = &mut *self.generations();
        generations.has_grown |= !is_cheap;
        generations.used.insert(key, made);
        Ok(bytes)
    }

    /// Returns the cached result for `key` and marks it as used.
    pub(crate) fn reuse(&self, key: &CacheKey) -> Option<Bytes> {
        let generations = &mut *self.loaded();
        if let Some(known) = generations.previous.remove(key) {
            generations.used.insert(*key, known);
        }
        generations.used.get(key).map(|made| made.bytes.clone())
    }
}

fn by_key(entries: impl IntoIterator<Item = (Bytes, Bytes)>) -> HashMap<CacheKey, CachedResult> {
    let made = |bytes| CachedResult {
        bytes,
        is_cheap: false,
    };
    let entries = entries.into_iter();
    entries
        .filter_map(|(key, bytes)| Some((key.as_ref().try_into().ok()?, made(bytes))))
        .collect()
}

impl fmt::Debug for Cache {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Cache").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(cache: &Cache, name: &str) -> bool {
        let mut worked = false;
        let result: Result<Bytes, ()> = cache.get(key("test", &[name.as_bytes()]), || {
            worked = true;
            Ok(Bytes::copy_from_slice(name.as_bytes()))
        });
        assert_eq!(result, Ok(Bytes::copy_from_slice(name.as_bytes())));
        worked
    }

    #[test]
    fn work_is_done_once_and_unused_results_are_dropped() {
        let cache = Cache::default();
        assert!(ask(&cache, "a") && ask(&cache, "b") && !ask(&cache, "a"));
        cache.begin();
        assert!(!ask(&cache, "a"));
        assert_eq!(cache.used().len(), 1);
        cache.begin();
        assert!(ask(&cache, "b"), "the last compilation did not use `b`");
    }

    #[test]
    fn errors_are_not_cached() {
        let cache = Cache::default();
        let failed: Result<Bytes, &str> = cache.get(key("test", &[]), || Err("no"));
        assert_eq!(failed, Err("no"));
        assert!(cache.used().is_empty());
    }

    #[test]
    fn cheap_results_are_used_again_but_not_persisted() {
        let cache = Cache::default();
        let ask = || {
            let mut worked = false;
            let made: Result<Bytes, ()> = cache.get_cheap(key("test", &[]), || {
                worked = true;
                Ok(Bytes::from("cheap"))
            });
            (made, worked)
        };
        assert_eq!(ask(), (Ok(Bytes::from("cheap")), true));
        assert!(cache.used().is_empty() && !cache.has_grown() && cache.is_used_up());
        cache.begin();
        assert_eq!(ask(), (Ok(Bytes::from("cheap")), false));
    }

    #[test]
    fn adopted_results_are_persisted_as_own_ones() {
        let cache = Cache::default();
        cache.adopt([(key("test", &[b"a"]), Bytes::from("adopted"))]);
        assert!(cache.has_grown());
        let known: Result<Bytes, ()> = cache.get(key("test", &[b"a"]), || Err(()));
        assert_eq!(known, Ok(Bytes::from("adopted")));
        assert_eq!(cache.used().len(), 1);
    }

    #[test]
    fn builds_have_different_keys() {
        let parts: [&[u8]; 1] = [b"bytes"];
        let own = key("test", &parts);
        assert_eq!(own, key_of(BUILD, "test", &parts));
        assert_ne!(own, key_of("another build", "test", &parts));
        assert_ne!(
            own,
            key_of(env!("CARGO_PKG_VERSION"), "test", &parts),
            "builds of one version have different keys"
        );
    }
}
