//! A replica follows the bucket: it reads the head, then the changed pointers, then their content.
//!
//! ```text
//! head ── changed ──> pointers ── other version ──> content ──> folder on the disk
//!   └── missed ring, once an hour ──> list ──┘
//! ```
//!
//! A tenant goes away when a publisher writes a pointer without content. A pointer that is missing removes nothing: an emptied or exchanged bucket is more likely than the end of a tenant.
//!
//! The published themes and `deployment.yaml` are followed like tenants, under the names in [`SHARED`].
//!
//! A follower with a limit downloads the content of that many tenants. The others are dormant: a new version changes only their row.
//!
//! `known` has the tenants that a replica knows, awake or dormant, and [`rows`] the dormant ones. [`wake`] downloads the content of a dormant tenant that a request needs.
//!
//! **Invariant:** a tenant keeps its last complete version until another version is complete.

mod known;
pub mod rows;
pub mod wake;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::future::ready;
use std::path::PathBuf;
use std::pin::pin;
use std::time::{Duration, Instant, SystemTime};

use futures_util::{StreamExt as _, stream};

use fleet::exchange::ObjectTag;
use fleet::head::{ChangedPointers, Head};
use fleet::key::{ObjectKey, POINTERS, SHARED};

use crate::download::cache::ContentCache;
use crate::download::fetch::{FetchError, fetch};
use crate::follow::known::{Known, PendingVersion, SharedKnown, is_shared};
use crate::follow::rows::SharedRows;
use crate::follow::wake::Waker;
use crate::store::{Bucket, Change, StoreError};

/// The interval at which all pointers are listed: a publisher may fail to write the head.
pub(crate) const LIST_INTERVAL: Duration = Duration::from_secs(3_600);

/// The time after which content that could not be used is read again.
const RETRY_INTERVAL: Duration = Duration::from_secs(30);

/// The limit on requests in flight.
const MAX_REQUESTS: usize = 64;

/// The limit on changes of the index that are not on the disk while pointers are read.
const MAX_UNSAVED: usize = 10_000;

/// The limit on tenants whose content is in memory at once.
const MAX_DOWNLOADS: usize = 4;

/// The head as last seen.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SeenHead {
    Unknown,
    Missing,
    Present(ObjectTag, u64),
}

/// A folder that all tenants share, as far as the replica knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SharedFolder {
    /// Whether there is a newer version is not known, or the newest version cannot be used. The last version that can be used may be on the disk.
    Unknown(Option<PathBuf>),
    /// Nothing was published.
    Absent,
    /// The newest version.
    Current(PathBuf),
}

impl Default for SharedFolder {
    fn default() -> Self {
        Self::Unknown(None)
    }
}

/// The replica's side of the protocol.
#[derive(Debug)]
pub struct Follower {
    bucket: Bucket,
    cache: ContentCache,
    known: SharedKnown,
    head: SeenHead,
    listed: Option<Instant>,
}

impl Follower {
    /// Returns a follower that has the content of an earlier process, and downloads the content of all tenants. Sends no request.
    #[must_use]
    pub fn new(bucket: Bucket, mut cache: ContentCache) -> Self {
        let (index, rows) = cache.index();
        Self {
            known: SharedKnown::new(Known::new(index, rows)),
            bucket,
            cache,
            head: SeenHead::Unknown,
            listed: None,
        }
    }

    /// Sets the largest number of tenants whose content is on the disk. Others are dormant until a request needs them.
    #[must_use]
    pub fn with_limit(self, limit: usize) -> Self {
        self.known.lock().set_limit(limit);
        self
    }

    /// Returns a function of the replica that wakes dormant tenants, with requests through `bucket`, which has the same address.
    #[must_use]
    pub fn waker(&self, bucket: Bucket) -> Waker {
        Waker::new(bucket, self.cache.clone(), self.known.clone())
    }

    /// Returns the dormant tenants.
    #[must_use]
    pub fn rows(&self) -> SharedRows {
        self.known.lock().rows.clone()
    }

    /// Returns the number of tenants without content on the disk.
    #[must_use]
    pub fn dormant(&self) -> usize {
        self.known.lock().dormant()
    }

    /// Returns the bucket.
    #[must_use]
    pub const fn bucket(&self) -> &Bucket {
        &self.bucket
    }

    /// Returns whether the tenants are known, from the bucket or from an earlier process.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.listed.is_some() || self.known.lock().has_all_tenants()
    }

    /// Returns whether the versions of all shared folders are known to be the newest, as far as any poll has told.
    #[must_use]
    pub fn has_shared(&self) -> bool {
        let known = self.known.lock();
        SHARED
            .iter()
            .all(|name| known.index.current.contains(*name))
    }

    /// Returns the folder that is published under a name in [`SHARED`].
    #[must_use]
    pub fn shared(&self, name: &str) -> SharedFolder {
        let known = self.known.lock();
        let cached = known.index.tenants.get(name);
        let folder = cached.map(|cached| self.cache.folder(&cached.folder));
        match (known.index.current.contains(name), folder) {
            (true, Some(folder)) => SharedFolder::Current(folder),
            (true, None) => SharedFolder::Absent,
            (false, folder) => SharedFolder::Unknown(folder),
        }
    }

    /// Returns the sequence number of the head that was followed last.
    #[must_use]
    pub const fn sequence(&self) -> u64 {
        match self.head {
            SeenHead::Present(_, sequence) => sequence,
            SeenHead::Unknown | SeenHead::Missing => 0,
        }
    }

    /// Returns the awake tenants with the folders of their content. A tenant whose first version cannot be used has no folder.
    #[must_use]
    pub fn tenants(&self) -> BTreeMap<String, Option<PathBuf>> {
        let known = self.known.lock();
        let with_folder = known.index.tenants.iter();
        let with_folder =
            with_folder.map(|(name, tenant)| (name, Some(self.cache.folder(&tenant.folder))));
        let without = known.problems.keys().map(|name| (name, None));
        // A later entry replaces an earlier entry.
        let all = without.chain(with_folder);
        all.filter(|(name, _)| !is_shared(name))
            .map(|(name, folder)| (name.clone(), folder))
            .collect()
    }

    /// Returns when the versions of the awake tenants were made, by their publishers' clocks.
    #[must_use]
    pub fn published(&self) -> BTreeMap<String, SystemTime> {
        let known = self.known.lock();
        let awake = known.index.tenants.iter();
        let awake = awake.filter(|(name, _)| !is_shared(name));
        awake
            .map(|(name, version)| (name.clone(), version.published()))
            .collect()
    }

    /// Returns the tenants whose newest versions cannot be used, with the reasons.
    #[must_use]
    pub fn problems(&self) -> BTreeMap<String, String> {
        self.known.lock().problems.clone()
    }

    /// Returns the alarms: pointers that are missing, and versions that cannot be used.
    #[must_use]
    pub fn alarms(&self) -> Vec<String> {
        let known = self.known.lock();
        let missing = known.missing.first().map(|first| {
            let others = match known.missing.len() - 1 {
                0 => String::new(),
                count => format!(" and {count} more tenants"),
            };
            let bucket = self.bucket.address();
            format!("the bucket `{bucket}` no longer has the pointer of `{first}`{others}; serving the last versions")
        });
        let problems = known.problems.iter();
        let problems = problems.map(|(name, problem)| match known.index.tenants.get(name) {
            Some(tenant) => format!("{name}: {problem}; serving version {}", tenant.version),
            None => format!("{name}: {problem}"),
        });
        missing.into_iter().chain(problems).collect()
    }

    /// Asks the bucket for changes, and downloads the changed content. Adds the tenants that have changed on the disk to `changed`, also if the store fails later.
    ///
    /// # Errors
    /// Returns an error if the store did not answer. The next call goes on.
    pub async fn poll(&mut self, changed: &mut BTreeSet<String>) -> Result<(), StoreError> {
        let polled = self.poll_all(changed).await;
        self.known.lock().end_arrivals();
        save(&self.known, &mut self.cache, 0);
        changed.retain(|name| !is_shared(name));
        polled
    }

    async fn poll_all(&mut self, changed: &mut BTreeSet<String>) -> Result<(), StoreError> {
        let known = match &self.head {
            SeenHead::Present(tag, _) => Some(tag),
            SeenHead::Unknown | SeenHead::Missing => None,
        };
        let seen = match self.bucket.get(&ObjectKey::head(), known).await? {
            Change::None => self.head.clone(),
            Change::Missing => SeenHead::Missing,
            Change::Object(object) => {
                let head = Head::of_bytes(&object.body).unwrap_or_default();
                self.read_changed(&head, changed).await?;
                SeenHead::Present(object.tag, head.sequence)
            }
        };
        let is_due = self.listed.is_none_or(|at| at.elapsed() > LIST_INTERVAL);
        let has_missed = match (&self.head, &seen) {
            (SeenHead::Present(..), SeenHead::Present(..)) => false,
            (before, now) => before != now,
        };
        if is_due || has_missed {
            self.read_all(changed).await?;
        }
        // From here on, the changes that this head names are pending.
        self.head = seen;
        self.download(changed).await?;
        if is_due || has_missed {
            self.listed = Some(Instant::now());
            self.known.lock().set_listed();
        }
        Ok(())
    }

    /// Reads the pointers that the head names.
    async fn read_changed(
        &mut self,
        head: &Head,
        changed: &mut BTreeSet<String>,
    ) -> Result<(), StoreError> {
        let SeenHead::Present(_, sequence) = self.head else {
            // The list of all pointers follows.
            return Ok(());
        };
        match head.changed_since(sequence) {
            ChangedPointers::Of(tenants) => self.read_pointers(tenants, changed).await,
            ChangedPointers::All => self.read_all(changed).await,
        }
    }

    /// Lists all pointers, and reads those whose tags are not known.
    async fn read_all(&mut self, changed: &mut BTreeSet<String>) -> Result<(), StoreError> {
        let listed = self.bucket.list_tagged(POINTERS).await?;
        let unknown = self.known.lock().compare(listed, changed);
        self.read_pointers(unknown, changed).await
    }

    /// Reads the pointers of tenants, and those of the shared folders.
    async fn read_pointers(
        &mut self,
        mut tenants: Vec<String>,
        changed: &mut BTreeSet<String>,
    ) -> Result<(), StoreError> {
        tenants.retain(|name| !is_shared(name));
        self.read_each(tenants, changed).await?;
        // A publisher writes the rules for a tenant before the tenant. A replica that reads them last, whatever the head names, never has a tenant without its rules.
        let shared = SHARED.map(ToOwned::to_owned).to_vec();
        self.read_each(shared, changed).await?;
        let mut known = self.known.lock();
        for name in SHARED {
            let is_late = known.pending.contains_key(name) || known.problems.contains_key(name);
            known.set_current(name, !is_late);
        }
        Ok(())
    }

    async fn read_each(
        &mut self,
        names: Vec<String>,
        changed: &mut BTreeSet<String>,
    ) -> Result<(), StoreError> {
        let has_failed = Cell::new(false);
        let (bucket, known, is_ok) = (&self.bucket, &self.known, || ready(!has_failed.get()));
        let reads = stream::iter(names)
            .take_while(|_| is_ok())
            .map(async |name| {
                let tag = known.lock().tag(&name);
                let key = ObjectKey::pointer(&name);
                let change = bucket.get(&key, tag.as_ref()).await;
                (name, change)
            });
        let mut reads = pin!(reads.buffer_unordered(MAX_REQUESTS));
        let mut result = Ok(());
        while let Some((name, change)) = reads.next().await {
            match change {
                Ok(change) => {
                    known.lock().apply(name, change, changed);
                    // The index of a million tenants is not held in memory twice.
                    save(known, &mut self.cache, MAX_UNSAVED);
                }
                Err(error) => {
                    // A store that is down fails for each of the others, too.
                    has_failed.set(true);
                    result = Err(error);
                }
            }
        }
        result
    }

    /// Downloads the pending content, and persists the index.
    async fn download(&mut self, changed: &mut BTreeSet<String>) -> Result<(), StoreError> {
        // New content of a tenant may rely on new rules.
        let mut result = self.download_pending(is_shared, changed).await;
        if result.is_ok() {
            result = self
                .download_pending(|name| !is_shared(name), changed)
                .await;
        }
        let known = self.known.lock();
        // A folder that stays costs only space, and is removed at a later call.
        let _ = self.cache.remove_unused(&known.used_folders());
        result
    }

    /// Returns the pending versions to download now.
    fn due(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<(String, PendingVersion)> {
        let is_due = |version: &PendingVersion| {
            let failed = version.failed;
            failed.is_none_or(|at| at.elapsed() > RETRY_INTERVAL)
        };
        let known = self.known.lock();
        let due = known.pending.iter();
        let due = due.filter(|(name, version)| is_wanted(name) && is_due(version));
        due.map(|(name, pending)| (name.clone(), pending.clone()))
            .collect()
    }

    async fn download_pending(
        &self,
        is_wanted: impl Fn(&str) -> bool,
        changed: &mut BTreeSet<String>,
    ) -> Result<(), StoreError> {
        let due = self.due(is_wanted);
        let (bucket, cache) = (&self.bucket, &self.cache);
        let downloads = due.into_iter().map(async |(name, pending)| {
            let version = pending.version.version;
            let fetched = fetch(bucket, cache, (&name, version), &pending.content).await;
            (name, fetched)
        });
        let downloads: Vec<_> = stream::iter(downloads)
            .buffer_unordered(MAX_DOWNLOADS)
            .collect()
            .await;
        let mut result = Ok(());
        let mut known = self.known.lock();
        for (name, fetched) in downloads {
            match fetched {
                Ok(()) => known.complete(name, changed),
                Err(FetchError::Store(error)) => result = Err(error),
                Err(problem) => {
                    if let Some(version) = known.pending.get_mut(&name) {
                        version.failed = Some(Instant::now());
                    }
                    known.set_problem(name, &problem, changed);
                }
            }
        }
        result
    }
}

/// Persists the changes of the index, if they are more than `most`.
fn save(known: &SharedKnown, cache: &mut ContentCache, most: usize) {
    let mut changes = known.lock();
    if changes.unsaved() <= most {
        return;
    }
    let (lines, tenants) = (changes.take_unsaved(), changes.lines());
    drop(changes);
    // Without the index, a start while the store is down has an older version.
    if cache.append(&lines).is_err() {
        known.lock().restore_unsaved(lines);
    } else if cache.is_bloated(tenants) {
        let known = known.lock();
        let (index, rows) = (known.index.clone(), known.rows.clone());
        drop(known);
        // The longer index stays, which costs only space.
        let _ = cache.write_index(&index, &rows);
    }
}

#[cfg(test)]
mod tests;
