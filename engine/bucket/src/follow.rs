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
//! **Invariant:** a tenant keeps its last complete version until another version is complete.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};

use fleet::exchange::{ObjectTag, StoredObject};
use fleet::head::{ChangedPointers, Head};
use fleet::key::{ContentHash, ObjectKey, POINTERS, SHARED};
use fleet::pointer::{ContentObject, Pointer};

use crate::cache::{CachedTenant, ContentCache, Index, is_hash};
use crate::packed::{self, DamagedContent, PackedFolder};
use crate::store::{Bucket, Change, ListedObject, StoreError};

/// The interval at which all pointers are listed: a publisher may fail to write the head.
pub(crate) const LIST_INTERVAL: Duration = Duration::from_secs(3_600);

/// The time after which content that could not be used is read again.
const RETRY_INTERVAL: Duration = Duration::from_secs(30);

/// The limit on requests in flight.
const MAX_REQUESTS: usize = 16;

/// The limit on tenants whose content is in memory at once.
const MAX_DOWNLOADS: usize = 4;

/// The limit on the size of an unpacked content object, in bytes.
const MAX_CONTENT_BYTES: u64 = 1 << 30;

/// A version of a tenant that this replica cannot use.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The pointer is not a pointer of this program.
    #[error("the object `{0}` is damaged: it is not a pointer")]
    Pointer(ObjectKey),
    /// An object with content does not exist.
    #[error("the object `{0}` of version {1} does not exist")]
    Missing(ObjectKey, u64),
    /// An object with content is damaged.
    #[error("the object `{object}` of version {version} is damaged: it {reason}")]
    Damaged {
        /// The object.
        object: ObjectKey,
        /// The version of the tenant.
        version: u64,
        /// The damage.
        reason: DamagedContent,
    },
    /// The content cannot be written to the disk.
    #[error("version {1} cannot be written to the disk: {0}")]
    Disk(io::Error, u64),
}

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

/// A version that is not on the disk yet.
#[derive(Debug)]
struct PendingVersion {
    pointer: Pointer,
    tag: ObjectTag,
    /// When the version could last not be used.
    failed: Option<Instant>,
}

/// How far the replica knows the version of a pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PointerState {
    /// The pointer was read, and its content is not on the disk.
    Pending,
    /// The replica has the content, or there is none.
    Known,
}

/// The replica's side of the protocol.
#[derive(Debug)]
pub struct Follower {
    bucket: Bucket,
    cache: ContentCache,
    index: Index,
    head: SeenHead,
    listed: Option<Instant>,
    pending: BTreeMap<String, PendingVersion>,
    /// The reasons that the newest versions of tenants cannot be used.
    problems: BTreeMap<String, String>,
    /// The known tenants without a pointer.
    missing: BTreeSet<String>,
    /// The tags of the pointers without content.
    withdrawn: BTreeMap<String, ObjectTag>,
    /// Whether the index on the disk lacks a change.
    has_new_index: bool,
}

impl Follower {
    /// Returns a follower that has the content of an earlier process. Sends no request.
    #[must_use]
    pub fn new(bucket: Bucket, cache: ContentCache) -> Self {
        Self {
            index: cache.index(),
            bucket,
            cache,
            head: SeenHead::Unknown,
            listed: None,
            pending: BTreeMap::new(),
            problems: BTreeMap::new(),
            missing: BTreeSet::new(),
            withdrawn: BTreeMap::new(),
            has_new_index: false,
        }
    }

    /// Returns the bucket.
    #[must_use]
    pub const fn bucket(&self) -> &Bucket {
        &self.bucket
    }

    /// Returns whether the tenants are known, from the bucket or from an earlier process.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let is_tenant = |name: &String| !is_shared(name);
        self.listed.is_some() || self.index.tenants.keys().any(is_tenant)
    }

    /// Returns whether the versions of all shared folders are known to be the newest, as far as any poll has told.
    #[must_use]
    pub fn has_shared(&self) -> bool {
        SHARED.iter().all(|name| self.index.current.contains(*name))
    }

    /// Returns the folder that is published under a name in [`SHARED`].
    #[must_use]
    pub fn shared(&self, name: &str) -> SharedFolder {
        let cached = self.index.tenants.get(name);
        let folder = cached.map(|cached| self.cache.folder(&cached.folder));
        match (self.index.current.contains(name), folder) {
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

    /// Returns the tenants with the folders of their content. A tenant whose first version cannot be used has no folder.
    #[must_use]
    pub fn tenants(&self) -> BTreeMap<String, Option<PathBuf>> {
        let with_folder = self.index.tenants.iter();
        let with_folder =
            with_folder.map(|(name, tenant)| (name, Some(self.cache.folder(&tenant.folder))));
        let without = self.problems.keys().map(|name| (name, None));
        // A later entry replaces an earlier entry.
        let all = without.chain(with_folder);
        all.filter(|(name, _)| !is_shared(name))
            .map(|(name, folder)| (name.clone(), folder))
            .collect()
    }

    /// Returns the tenants whose newest versions cannot be used, with the reasons.
    #[must_use]
    pub const fn problems(&self) -> &BTreeMap<String, String> {
        &self.problems
    }

    /// Returns the alarms: pointers that are missing, and versions that cannot be used.
    #[must_use]
    pub fn alarms(&self) -> Vec<String> {
        let missing = self.missing.first().map(|first| {
            let others = match self.missing.len() - 1 {
                0 => String::new(),
                count => format!(" and {count} more tenants"),
            };
            let bucket = self.bucket.address();
            format!("the bucket `{bucket}` no longer has the pointer of `{first}`{others}; serving the last versions")
        });
        let problems = self.problems.iter();
        let problems = problems.map(|(name, problem)| match self.index.tenants.get(name) {
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
        let is_missing = |name: &&String| {
            let found = listed.binary_search_by(|object| object.name.as_str().cmp(name));
            found.is_err()
        };
        let known = self.index.tenants.keys();
        self.missing = known.filter(is_missing).cloned().collect();
        let mut unknown = Vec::new();
        for ListedObject { name, tag } in listed {
            match tag.and_then(|tag| self.known_state(&name, &tag)) {
                Some(PointerState::Pending) => {}
                Some(PointerState::Known) => self.apply(name, Change::None, changed),
                None => unknown.push(name),
            }
        }
        self.read_pointers(unknown, changed).await
    }

    /// Returns how far the replica knows the version of a pointer with this tag.
    fn known_state(&self, name: &str, tag: &ObjectTag) -> Option<PointerState> {
        if let Some(pending) = self.pending.get(name) {
            let is_same = pending.tag.opaque() == tag.opaque();
            return is_same.then_some(PointerState::Pending);
        }
        let cached = self.index.tenants.get(name);
        let cached = cached.is_some_and(|cached| tag_of(cached).opaque() == tag.opaque());
        let withdrawn = self.withdrawn.get(name);
        let withdrawn = withdrawn.is_some_and(|withdrawn| withdrawn.opaque() == tag.opaque());
        (cached || withdrawn).then_some(PointerState::Known)
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
        for name in SHARED {
            let is_late = self.pending.contains_key(name) || self.problems.contains_key(name);
            self.set_current(name, !is_late);
        }
        Ok(())
    }

    /// Records whether the index has the newest version of a shared folder.
    fn set_current(&mut self, name: &str, is_current: bool) {
        self.has_new_index |= match is_current {
            true => self.index.current.insert(name.to_owned()),
            false => self.index.current.remove(name),
        };
    }

    async fn read_each(
        &mut self,
        names: Vec<String>,
        changed: &mut BTreeSet<String>,
    ) -> Result<(), StoreError> {
        let bucket = &self.bucket;
        let index = &self.index;
        let reads = names.into_iter().map(async |name| {
            let known = index.tenants.get(&name).map(tag_of);
            let key = ObjectKey::pointer(&name);
            let change = bucket.get(&key, known.as_ref()).await;
            (name, change)
        });
        let reads: Vec<_> = stream::iter(reads)
            .buffer_unordered(MAX_REQUESTS)
            .collect()
            .await;
        let mut result = Ok(());
        for (name, change) in reads {
            match change {
                Ok(change) => self.apply(name, change, changed),
                Err(error) => result = Err(error),
            }
        }
        result
    }

    /// Applies the state of a pointer.
    fn apply(&mut self, name: String, change: Change, changed: &mut BTreeSet<String>) {
        let object = match change {
            Change::Missing => {
                if self.index.tenants.contains_key(&name) {
                    self.missing.insert(name);
                }
                return;
            }
            Change::None => {
                self.missing.remove(&name);
                // A version that could not be used was followed by the known version.
                self.pending.remove(&name);
                if self.problems.remove(&name).is_some() {
                    changed.insert(name);
                }
                return;
            }
            Change::Object(object) => object,
        };
        self.missing.remove(&name);
        let StoredObject { body, tag, .. } = object;
        // No command withdraws a shared folder. Without the rules in `deployment.yaml`, protected tenants would be open.
        let is_fit = |pointer: &Pointer| !is_shared(&name) || !pointer.content.is_empty();
        let Some(pointer) = Pointer::of_bytes(&body).filter(is_fit) else {
            let problem = FetchError::Pointer(ObjectKey::pointer(&name));
            self.set_problem(name, &problem, changed);
            return;
        };
        self.withdrawn.remove(&name);
        if pointer.content.is_empty() {
            self.withdrawn.insert(name.clone(), tag);
            self.pending.remove(&name);
            self.problems.remove(&name);
            if self.index.tenants.remove(&name).is_some() {
                self.has_new_index = true;
                changed.insert(name);
            }
            return;
        }
        let version = PendingVersion {
            pointer,
            tag,
            failed: None,
        };
        self.pending.insert(name, version);
    }

    fn set_problem(&mut self, name: String, problem: &FetchError, changed: &mut BTreeSet<String>) {
        let problem = problem.to_string();
        if self.problems.get(&name) != Some(&problem) {
            self.problems.insert(name.clone(), problem);
            changed.insert(name);
        }
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
        if self.has_new_index {
            // Without the index, a start while the store is down has an older version.
            let written = self.cache.write_index(&self.index);
            self.has_new_index = written.is_err();
        }
        // A folder that stays costs only space, and is removed at a later call.
        let _ = self.cache.remove_unused(&self.index);
        result
    }

    async fn download_pending(
        &mut self,
        is_wanted: impl Fn(&str) -> bool,
        changed: &mut BTreeSet<String>,
    ) -> Result<(), StoreError> {
        let is_due = |version: &PendingVersion| {
            let failed = version.failed;
            failed.is_none_or(|at| at.elapsed() > RETRY_INTERVAL)
        };
        let due = self.pending.iter();
        let due = due.filter(|(name, version)| is_wanted(name) && is_due(version));
        let (bucket, cache) = (&self.bucket, &self.cache);
        let downloads = due.map(async |(name, version)| {
            let fetched = fetch(bucket, cache, name, &version.pointer).await;
            (name.clone(), fetched)
        });
        let downloads: Vec<_> = stream::iter(downloads)
            .buffer_unordered(MAX_DOWNLOADS)
            .collect()
            .await;
        let mut result = Ok(());
        for (name, fetched) in downloads {
            match fetched {
                Ok(folder) => self.complete(name, folder, changed),
                Err(FetchError::Store(error)) => result = Err(error),
                Err(problem) => {
                    if let Some(version) = self.pending.get_mut(&name) {
                        version.failed = Some(Instant::now());
                    }
                    self.set_problem(name, &problem, changed);
                }
            }
        }
        result
    }

    /// Records that the content of a pending version is on the disk.
    fn complete(&mut self, name: String, folder: ContentHash, changed: &mut BTreeSet<String>) {
        let Some(version) = self.pending.remove(&name) else {
            return;
        };
        if is_shared(&name) {
            self.set_current(&name, true);
        }
        let tenant = CachedTenant {
            version: version.pointer.version(),
            folder,
            tag: version.tag.0,
        };
        let had_problem = self.problems.remove(&name).is_some();
        let former = self.index.tenants.insert(name.clone(), tenant.clone());
        self.has_new_index = true;
        if had_problem || former.is_none_or(|former| former.folder != tenant.folder) {
            changed.insert(name);
        }
    }
}

fn tag_of(tenant: &CachedTenant) -> ObjectTag {
    ObjectTag(tenant.tag.clone())
}

fn is_shared(name: &str) -> bool {
    SHARED.contains(&name)
}

/// Downloads the content of a pointer, unless it is on the disk. Returns the hash of the packed folder, which is the first content of a pointer.
async fn fetch(
    bucket: &Bucket,
    cache: &ContentCache,
    tenant: &str,
    pointer: &Pointer,
) -> Result<ContentHash, FetchError> {
    let version = pointer.version();
    let mut content = pointer.content.iter();
    let Some(packed) = content.next().filter(|packed| is_hash(&packed.hash)) else {
        return Err(FetchError::Pointer(ObjectKey::pointer(tenant)));
    };
    let is_cached = cache.has(&packed.hash);
    bucket.metrics().record_cache(is_cached);
    if is_cached {
        return Ok(packed.hash.clone());
    }
    let bytes = read(bucket, packed, version).await?;
    let folder = PackedFolder::of_bytes(&bytes).map_err(|reason| FetchError::Damaged {
        object: packed.object.clone(),
        version,
        reason,
    })?;
    let objects: BTreeMap<&ContentHash, &ContentObject> =
        content.map(|object| (&object.hash, object)).collect();
    let mut large = BTreeMap::new();
    for hash in folder.large.values() {
        let object = objects.get(hash).ok_or_else(|| FetchError::Damaged {
            object: packed.object.clone(),
            version,
            reason: DamagedContent::Format,
        })?;
        large.insert(hash.clone(), read(bucket, object, version).await?);
    }
    let written = cache.write(&packed.hash, &folder, &large);
    written.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => FetchError::Damaged {
            object: packed.object.clone(),
            version,
            reason: DamagedContent::Format,
        },
        _ => FetchError::Disk(error, version),
    })?;
    Ok(packed.hash.clone())
}

/// Reads a content object, and verifies its hash.
pub(crate) async fn read(
    bucket: &Bucket,
    object: &ContentObject,
    version: u64,
) -> Result<Bytes, FetchError> {
    let stored = match bucket.get(&object.object, None).await? {
        Change::Object(stored) => stored.body,
        Change::None | Change::Missing => {
            return Err(FetchError::Missing(object.object.clone(), version));
        }
    };
    let content = packed::decompress(&stored, &object.hash, MAX_CONTENT_BYTES);
    content.map_err(|reason| FetchError::Damaged {
        object: object.object.clone(),
        version,
        reason,
    })
}

#[cfg(test)]
mod tests;
