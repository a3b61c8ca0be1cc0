//! What costly pure work gave, by a digest of everything that it depends on: compressed bodies, rendered islands, drawn pictures.
//!
//! A cache belongs to one tenant, or to what all share. It holds what the last compilation used, and so does not grow; the owner may keep it over a restart.
//!
//! **Invariant:** changes no result. With an empty cache the bytes are the same and come later.

#[cfg(test)]
mod sources;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use sha2::{Digest, Sha256};

/// A digest of a kind of work and all that it depends on.
pub type Key = [u8; 32];

/// Results by their keys.
#[derive(Default)]
pub struct Cache {
    generations: Mutex<Generations>,
}

/// What some work gave.
#[derive(Debug, Clone)]
struct Made {
    bytes: Bytes,
    /// Whether it is made again sooner than it is read.
    is_cheap: bool,
}

/// Gives what was used before, when it is first requested.
type Load = Box<dyn FnOnce() -> Vec<(Bytes, Bytes)> + Send>;

#[derive(Default)]
struct Generations {
    /// What was used before, while nobody has requested it.
    unread: Option<Load>,
    before: HashMap<Key, Made>,
    used: HashMap<Key, Made>,
    /// Whether costly work was done since somebody last asked.
    grown: bool,
}

/// The sources that this program was built from, as a digest: another build may work in another way, whatever its version.
const BUILD: &str = env!("ROWHOUSE_BUILD");

/// The key of a kind of work on `parts`.
#[must_use]
pub(crate) fn key(kind: &str, parts: &[&[u8]]) -> Key {
    key_of(BUILD, kind, parts)
}

fn key_of(build: &str, kind: &str, parts: &[&[u8]]) -> Key {
    let mut hash = Sha256::new();
    for part in [build.as_bytes(), kind.as_bytes()].iter().chain(parts) {
        // The length keeps neighbours apart.
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

impl Cache {
    /// A cache of what was used before, as [`Cache::used`] gave it, loaded when somebody works with it for the first time.
    #[must_use]
    pub fn unread(load: impl FnOnce() -> Vec<(Bytes, Bytes)> + Send + 'static) -> Self {
        let generations = Generations {
            unread: Some(Box::new(load)),
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

    /// The results, loaded.
    fn loaded(&self) -> MutexGuard<'_, Generations> {
        let mut generations = self.generations();
        if let Some(load) = generations.unread.take() {
            generations.before.extend(by_key(load()));
        }
        generations
    }

    /// Begins another compilation: what the last one used may be used again.
    pub fn begin(&self) {
        let generations = &mut *self.generations();
        generations.before.extend(generations.used.drain());
    }

    /// Counts all that was used before as used again: what it was used for is as it was.
    pub(crate) fn use_again(&self) {
        let generations = &mut *self.loaded();
        for (key, made) in generations.before.drain() {
            generations.used.entry(key).or_insert(made);
        }
    }

    /// Whether all costly results that were there before were used, or nobody requested any of them.
    #[must_use]
    pub fn is_used_up(&self) -> bool {
        self.generations().before.values().all(|made| made.is_cheap)
    }

    /// Forgets what the compilation that ends now did not use, and gives the costly results that it did.
    pub fn used(&self) -> Vec<(Key, Bytes)> {
        let generations = &mut *self.generations();
        generations.unread = None;
        generations.before = HashMap::new();
        let mut used: Vec<_> = generations
            .used
            .iter()
            .filter(|(_, made)| !made.is_cheap)
            .map(|(key, made)| (*key, made.bytes.clone()))
            .collect();
        used.sort();
        used
    }

    /// Whether costly work was done since this was last asked.
    pub fn has_grown(&self) -> bool {
        std::mem::take(&mut self.generations().grown)
    }

    /// Whether there is a result, without using it.
    #[must_use]
    pub fn has(&self, key: &Key) -> bool {
        let generations = self.loaded();
        generations.before.contains_key(key) || generations.used.contains_key(key)
    }

    /// The result, from before or by doing the work. Failures are not kept.
    pub(crate) fn get<E>(
        &self,
        key: Key,
        work: impl FnOnce() -> Result<Bytes, E>,
    ) -> Result<Bytes, E> {
        self.made(key, false, work)
    }

    /// The same of work that takes no longer than reading its result from a disk: the owner does not keep it over a restart.
    pub(crate) fn get_cheap<E>(
        &self,
        key: Key,
        work: impl FnOnce() -> Result<Bytes, E>,
    ) -> Result<Bytes, E> {
        self.made(key, true, work)
    }

    fn made<E>(
        &self,
        key: Key,
        is_cheap: bool,
        work: impl FnOnce() -> Result<Bytes, E>,
    ) -> Result<Bytes, E> {
        if let Some(known) = self.known(&key) {
            return Ok(known);
        }
        let bytes = work()?;
        let made = Made {
            bytes: bytes.clone(),
            is_cheap,
        };
        let generations = &mut *self.generations();
        generations.grown |= !is_cheap;
        generations.used.insert(key, made);
        Ok(bytes)
    }

    /// A result that is there; it counts as used.
    pub(crate) fn known(&self, key: &Key) -> Option<Bytes> {
        let generations = &mut *self.loaded();
        if let Some(known) = generations.before.remove(key) {
            generations.used.insert(*key, known);
        }
        generations.used.get(key).map(|made| made.bytes.clone())
    }
}

fn by_key(entries: impl IntoIterator<Item = (Bytes, Bytes)>) -> HashMap<Key, Made> {
    let made = |bytes| Made {
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
    fn work_is_done_once_and_what_is_not_used_is_forgotten() {
        let cache = Cache::default();
        assert!(ask(&cache, "a") && ask(&cache, "b") && !ask(&cache, "a"));
        cache.begin();
        assert!(!ask(&cache, "a"));
        assert_eq!(cache.used().len(), 1);
        cache.begin();
        assert!(ask(&cache, "b"), "it was not used the last time");
    }

    #[test]
    fn failures_are_not_kept() {
        let cache = Cache::default();
        let failed: Result<Bytes, &str> = cache.get(key("test", &[]), || Err("no"));
        assert_eq!(failed, Err("no"));
        assert!(cache.used().is_empty());
    }

    #[test]
    fn what_is_cheap_is_used_again_and_not_handed_out() {
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
    fn another_build_has_other_keys() {
        let parts: [&[u8]; 1] = [b"bytes"];
        let own = key("test", &parts);
        assert_eq!(own, key_of(BUILD, "test", &parts));
        assert_ne!(own, key_of("another build", "test", &parts));
        assert_ne!(
            own,
            key_of(env!("CARGO_PKG_VERSION"), "test", &parts),
            "a version has many builds"
        );
    }
}
