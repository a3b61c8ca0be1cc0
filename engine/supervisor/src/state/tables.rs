//! The tables that are persisted for the next startup: the last valid copy of each folder, and the results of costly work.
//!
//! | table | contents |
//! |---|---|
//! | `good.tenant.<id>` | the last version of a tenant's folder without errors |
//! | `good.theme.<name>` | the last version of a theme's folder with which every page could be rendered |
//! | `read.tenant.<id>` | the reading of a tenant's folder ([`PersistedReading`]), marked with a digest of the folder's label and file metadata |
//! | `made.tenant.<id>` | a tenant's [`Cache`] |
//! | `rendered.tenant.<id>` | the digests and the facts of a tenant's newest release ([`PersistedRelease`]) |
//! | `addresses` | the owner of each address, so that addresses keep their owners over a restart |
//! | `good.deployment` | the last version of `deployment.yaml` without errors |
//! | `access` | the tenants that the last valid `deployment.yaml` protects, and those that were added while the file was not valid |
//! | `made.themes` | the [`Cache`] of shared files |
//! | `old.tenant.<id>` | a tenant's files that were replaced within a day, for older pages that still name them |
//! | `old.shared` | shared files that were replaced within a day, and the current shared files |
//! | `not-found` | the requested paths without a page of the last day, with their counts |
//! | `visits.<day>` | the visits of all tenants on a day |
//! | `removed` | the tenants whose folders were removed, with the time, and whether an operator has restored them |
//!
//! A valid copy is used only while the folder itself is unusable. A tenant whose folder was removed is not served, unless an operator restores the tenant, or the folder of tenants itself is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use jiff::civil::Date;
use sha2::{Digest, Sha256};
use tracing::warn;

use crate::deployment_config::DeploymentConfig;
use crate::jobs::packed_folder::{FolderContent, folder_of, rows_of};
use crate::jobs::persisted_reading::PersistedReading;
use crate::model::removal::removed_tenants::{RemovedTenant, RemovedTenants};
use crate::runner::catalog::access::PersistedAccess;
use crate::snapshot::replaced::ReplacedFiles;
use crate::state::deployment::locate;
use content::address::{AddressOwners, Assignment};
use content::name::TenantId;
use content::source::Folder;
use content::tenant::{self, Site};
use release::payload::Payload;
use release::snapshot::ResourceTable;
use release::store::{AccessError, RetentionLimits, Rows, Store, TableMark, rows_in_memory};
use render::FileOwner;
use render::{Cache, CacheKey};

const VALID_TENANT: &str = "good.tenant.";
const VALID_THEME: &str = "good.theme.";
const READ_TENANT: &str = "read.tenant.";
const TENANT_CACHE: &str = "made.tenant.";
const RENDERED_TENANT: &str = "rendered.tenant.";
const SHARED_CACHE: &str = "made.themes";
const ADDRESSES: &str = "addresses";
const VALID_DEPLOYMENT: &str = "good.deployment";
const ACCESS: &str = "access";
const PROTECTED: &[u8] = b"protected";
const FOUND: &[u8] = b"found";
const CLOSED: &[u8] = b"closed";
const REPLACED_TENANT: &str = "old.tenant.";
const REPLACED_SHARED: &str = "old.shared";
const REMOVED: &str = "removed";
const NOT_FOUND: &str = "not-found";
const VISITS: &str = "visits.";
/// The key of the only row of a table that has a single row.
const ONLY_KEY: &str = "";

/// The persisted state of one deployment.
#[derive(Debug)]
pub struct PersistedState {
    store: Arc<Store>,
    /// The tenants with a persisted valid folder, including removed tenants.
    tenants: BTreeSet<TenantId>,
    /// The tenants without a valid folder that an earlier process has read. Their folders may be gone.
    only_read: BTreeSet<TenantId>,
    /// The tenants whose data was removed, and whose visits are still persisted.
    forgotten: Vec<TenantId>,
    /// The fingerprints of the themes that this process wrote, by name.
    themes: BTreeMap<String, [u8; 32]>,
    /// The addresses and the text of `deployment.yaml` that this process wrote last.
    addresses: Option<(Arc<Assignment>, Option<String>)>,
    /// The facts about access that the state has.
    access: PersistedAccess,
}

/// The folder of a theme without errors.
pub(crate) struct ValidThemeFolder<'t> {
    pub(crate) name: &'t str,
    pub(crate) folder: &'t Folder,
    /// A digest of the inputs of the theme.
    pub(crate) fingerprint: [u8; 32],
}

/// A cache, and the facts that show whether the cache has changed since it was written.
#[derive(Debug, Default)]
pub(crate) struct PersistedCache {
    pub(crate) cache: Arc<Cache>,
    /// Whether the persisted valid folder of its tenant equals the current folder.
    pub(crate) is_good: bool,
    /// Whether the table of the cache existed when the cache was opened.
    is_on_disk: bool,
    /// A digest of the keys that were written last.
    written: Option<CacheKey>,
}

impl PersistedCache {
    /// Returns the cache in the table `name`, which is read on first use.
    fn of(store: &Arc<Store>, name: String) -> Self {
        let is_on_disk = store.has_table(&name);
        let store = Arc::clone(store);
        let load = move || in_memory(&store, &name).unwrap_or_default();
        Self {
            cache: Arc::new(Cache::unread(load)),
            is_on_disk,
            ..Self::default()
        }
    }

    /// Returns the cache of a tenant, whose table is read on first use.
    pub(crate) fn of_tenant(store: &Arc<Store>, id: &TenantId) -> Self {
        Self::of(store, format!("{TENANT_CACHE}{id}"))
    }

    /// Drops all cached results from memory. The table is read again on first use.
    pub(crate) fn forget(&mut self, store: Option<&Arc<Store>>, id: &TenantId) {
        let fresh = store.map(|store| Self::of_tenant(store, id));
        self.cache = fresh.unwrap_or_default().cache;
    }

    /// Drops unused results while the store is not writable. The first write after that writes all results.
    pub(crate) fn trim(&mut self) {
        self.cache.used();
        self.is_on_disk = false;
        self.written = None;
    }

    /// Writes the results that were used, if they differ from the table. `has_grown`: whether results were added.
    fn write_if_changed(&mut self, store: &Store, name: &str, has_grown: bool) {
        let is_same = self.is_on_disk && !has_grown && self.cache.is_used_up();
        let used = self.cache.used();
        let now = digest(used.iter().map(|(key, _)| key.as_slice()));
        if self.written.replace(now) == Some(now) || is_same {
            return;
        }
        store.write_table(name.to_owned(), None, move || rows_of_cache(used));
    }
}

fn rows_of_cache(used: Vec<(CacheKey, Bytes)>) -> Rows {
    let used = used.into_iter();
    used.map(|(key, bytes)| (Bytes::copy_from_slice(&key), bytes.into()))
        .collect()
}

fn digest<'a>(keys: impl Iterator<Item = &'a [u8]>) -> CacheKey {
    let mut hash = Sha256::new();
    keys.for_each(|key| hash.update(key));
    hash.finalize().into()
}

impl PersistedState {
    /// Opens the state of a deployment in `directory`.
    #[must_use]
    pub fn open(directory: &Path, config: &DeploymentConfig, keep: RetentionLimits) -> Self {
        let location = locate(directory, config);
        location.log(config);
        let store = Store::of_deployment(directory, &location.name, location.label, keep);
        let ids = |prefix| -> BTreeSet<TenantId> {
            let names = store.tables(prefix);
            let ids = names.iter().filter_map(|name| TenantId::new(name).ok());
            ids.collect()
        };
        let tenants = ids(VALID_TENANT);
        Self {
            only_read: ids(READ_TENANT).difference(&tenants).cloned().collect(),
            tenants,
            forgotten: Vec::new(),
            themes: BTreeMap::new(),
            addresses: None,
            access: load_access(&store),
            store: Arc::new(store),
        }
    }

    /// Returns this state, unless nothing can be written to it until an operator removes the cause.
    ///
    /// # Errors
    /// Returns the cause.
    pub fn writable(self) -> Result<Self, AccessError> {
        match self.store.claim() {
            Err(error) if error.is_permanent() => Err(error),
            _ => Ok(self),
        }
    }

    /// Opens the state of a deployment in `directory` for reading. Does not create or change any file.
    #[must_use]
    pub fn reader(directory: &Path, config: &DeploymentConfig) -> Store {
        Store::reader(directory.join(locate(directory, config).name))
    }

    /// Returns the cache of shared files.
    pub(crate) fn shared_cache(&self) -> PersistedCache {
        PersistedCache::of(&self.store, SHARED_CACHE.to_owned())
    }

    /// Returns the store of all tables and releases.
    pub(crate) const fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Returns the replaced shared files, which older pages may still request.
    pub(crate) fn shared_replaced(&self, is_secure: bool) -> ReplacedFiles {
        let rows = self.store.table(REPLACED_SHARED).unwrap_or_default();
        ReplacedFiles::of_rows(rows, FileOwner::Shared, is_secure)
    }

    /// Returns the tenants with a persisted valid folder, including removed tenants.
    pub(crate) fn tenants(&self) -> impl Iterator<Item = &TenantId> {
        self.tenants.iter()
    }

    /// Returns whether a tenant has a persisted valid folder.
    pub(crate) fn has_tenant(&self, id: &TenantId) -> bool {
        self.tenants.contains(id)
    }

    /// Returns the persisted removed tenants.
    pub(crate) fn removed(&self) -> RemovedTenants {
        let rows = in_memory(&self.store, REMOVED).unwrap_or_default();
        let removed = |(id, value): (Bytes, Bytes)| {
            let id = TenantId::new(std::str::from_utf8(&id).ok()?).ok()?;
            let (is_restored, seconds) = value.split_first()?;
            let seconds = u64::from_le_bytes(seconds.try_into().ok()?);
            let removed = RemovedTenant {
                at: UNIX_EPOCH.checked_add(Duration::from_secs(seconds))?,
                is_restored: *is_restored != 0,
            };
            Some((id, removed))
        };
        rows.into_iter().filter_map(removed).collect()
    }

    /// Persists the removed tenants.
    pub(crate) fn persist_removed(&self, removed: &RemovedTenants) {
        let row = |(id, removed): (&TenantId, &RemovedTenant)| {
            let seconds = removed.at.duration_since(UNIX_EPOCH).unwrap_or_default();
            let seconds = seconds.as_secs().to_le_bytes();
            let value = [&[u8::from(removed.is_restored)][..], &seconds].concat();
            (id.to_string().into(), value.into())
        };
        let rows: Rows = removed.iter().map(row).collect();
        self.store
            .write_table(REMOVED.to_owned(), None, move || rows);
    }

    /// Sets the tenants whose newest releases stay: those with a folder, and removed ones. Removes the readings of folders that were removed while no process ran, and that have no valid copy.
    pub(crate) fn retain<'t>(
        &mut self,
        listed: &'t BTreeSet<TenantId>,
        removed: impl Iterator<Item = &'t TenantId>,
    ) {
        if self.store.claim().is_ok() {
            for id in std::mem::take(&mut self.only_read).difference(listed) {
                self.remove_results(id);
            }
        }
        let tenants = listed.iter().chain(removed);
        self.store.set_tenants(tenants.map(ToString::to_string));
    }

    /// Removes the results of work for a tenant whose folder was removed. The valid folder and the releases stay.
    pub(crate) fn remove_results(&self, id: &TenantId) {
        for table in [READ_TENANT, TENANT_CACHE, RENDERED_TENANT] {
            self.store.remove_table(format!("{table}{id}"));
        }
    }

    /// Removes all data of a tenant, including its releases.
    pub(crate) fn forget(&mut self, id: &TenantId) {
        self.remove_results(id);
        for table in [VALID_TENANT, REPLACED_TENANT] {
            self.store.remove_table(format!("{table}{id}"));
        }
        self.tenants.remove(id);
        self.forgotten.push(id.clone());
        if !self.store.forget(id.as_str()) {
            warn!(tenant = %id, "too much is queued for the disk; releases of the removed tenant stay until the state needs their space");
        }
    }

    /// Returns the tenants whose data was removed since the last call.
    pub(crate) fn take_forgotten(&mut self) -> Vec<TenantId> {
        std::mem::take(&mut self.forgotten)
    }

    /// Returns the persisted owner of each address.
    pub(crate) fn owners(&self) -> AddressOwners {
        let rows = in_memory(&self.store, ADDRESSES).unwrap_or_default();
        let text = |bytes: Bytes| String::from_utf8(bytes.to_vec()).ok();
        rows.into_iter()
            .filter_map(|(address, owner)| {
                let address: Arc<str> = text(address)?.into();
                Some((address, TenantId::new(&text(owner)?).ok()?))
            })
            .collect()
    }

    /// Returns the text of the last valid `deployment.yaml`.
    pub(crate) fn deployment(&self) -> Option<String> {
        let rows = in_memory(&self.store, VALID_DEPLOYMENT)?;
        let (_, text) = rows.into_iter().next()?;
        String::from_utf8(text.to_vec()).ok()
    }

    /// Returns the persisted facts about access.
    pub(crate) fn access(&self) -> PersistedAccess {
        self.access.clone()
    }

    /// Persists the facts about access.
    pub(crate) fn persist_access(&mut self, access: PersistedAccess) {
        if self.access == access {
            return;
        }
        self.access = access.clone();
        self.store.write_table(ACCESS.to_owned(), None, move || {
            let rows = |ids: BTreeSet<Box<str>>, kind: &'static [u8]| {
                let row = move |id: Box<str>| (String::from(id).into(), kind.into());
                ids.into_iter().map(row)
            };
            let not_found = access.protected.difference(&access.found).cloned();
            let not_found = rows(not_found.collect(), PROTECTED);
            let found = rows(access.found, FOUND);
            let protected = not_found.chain(found);
            protected.chain(rows(access.closed, CLOSED)).collect()
        });
    }

    /// Persists the owner of each address, and the text of `deployment.yaml`.
    pub(crate) fn persist_addresses(
        &mut self,
        assignment: &Arc<Assignment>,
        deployment: Option<&str>,
    ) {
        let same = self.addresses.as_ref().is_some_and(|(known, said)| {
            let is_same = Arc::ptr_eq(known, assignment) || known.owners == assignment.owners;
            is_same && said.as_deref() == deployment
        });
        let said = deployment.map(ToOwned::to_owned);
        self.addresses = Some((Arc::clone(assignment), said));
        if same {
            return;
        }
        let assignment = Arc::clone(assignment);
        self.store.write_table(ADDRESSES.to_owned(), None, move || {
            let owners = assignment.owners.iter();
            let row = |(address, owner): (&Arc<str>, &TenantId)| {
                (address.to_string().into(), owner.as_str().to_owned().into())
            };
            owners.map(row).collect()
        });
        match deployment.map(ToOwned::to_owned) {
            Some(text) => {
                let rows = move || vec![(ONLY_KEY.into(), text.into())];
                self.store
                    .write_table(VALID_DEPLOYMENT.to_owned(), None, rows);
            }
            None => self.store.remove_table(VALID_DEPLOYMENT.to_owned()),
        }
    }

    /// Persists the cache of a tenant and, if `good` is given, its valid folder with the fingerprint of the folder.
    pub(crate) fn persist_tenant(
        &mut self,
        id: &TenantId,
        cache: &mut PersistedCache,
        has_grown: bool,
        good: Option<(FolderContent, Option<[u8; 32]>)>,
    ) {
        if let Some((content, fingerprint)) = good
            && (!self.tenants.contains(id.as_str()) || !cache.is_good)
        {
            cache.is_good = true;
            self.tenants.insert(id.clone());
            self.persist_folder(format!("{VALID_TENANT}{id}"), content, fingerprint);
        }
        cache.write_if_changed(&self.store, &format!("{TENANT_CACHE}{id}"), has_grown);
    }

    /// Persists a theme's folder with which every page could be rendered.
    pub(crate) fn persist_theme(&mut self, theme: &ValidThemeFolder<'_>) {
        if !self.has_theme(theme) {
            let name = theme.name.to_owned();
            let table = format!("{VALID_THEME}{name}");
            self.themes.insert(name, theme.fingerprint);
            let fingerprint = theme.folder.fingerprint();
            let content = FolderContent::Open(theme.folder.clone());
            self.persist_folder(table, content, Some(fingerprint));
        }
    }

    /// Returns whether this process wrote this version of a theme.
    pub(crate) fn has_theme(&self, theme: &ValidThemeFolder<'_>) -> bool {
        self.themes.get(theme.name) == Some(&theme.fingerprint)
    }

    /// Persists the replaced files of a tenant.
    pub(crate) fn persist_replaced(&self, id: &TenantId, replaced: &ReplacedFiles) {
        let rows = replaced.rows(&ResourceTable::default());
        self.store
            .write_table(format!("{REPLACED_TENANT}{id}"), None, move || rows);
    }

    /// Persists the cache of shared files and, if `new` is given, the replaced and the current shared files.
    pub(crate) fn persist_shared(
        &self,
        cache: &mut PersistedCache,
        new: Option<(&ReplacedFiles, &ResourceTable)>,
    ) {
        let has_grown = cache.cache.has_grown();
        cache.write_if_changed(&self.store, SHARED_CACHE, has_grown);
        if let Some((replaced, files)) = new {
            let rows = replaced.rows(files);
            self.store
                .write_table(REPLACED_SHARED.to_owned(), None, move || rows);
        }
    }

    /// Persists a folder, marked with its fingerprint if that is known.
    fn persist_folder(&self, name: String, content: FolderContent, fingerprint: Option<[u8; 32]>) {
        self.store.write_table(name, fingerprint, move || {
            let folder = content.folder().unwrap_or_default();
            rows_of(&folder)
        });
    }
}

/// Reads the persisted facts about access. A tenant with an unknown value counts as protected.
fn load_access(store: &Store) -> PersistedAccess {
    let mut access = PersistedAccess::default();
    for (id, kind) in in_memory(store, ACCESS).unwrap_or_default() {
        let id: Box<str> = String::from_utf8_lossy(&id).into();
        if *kind == *FOUND {
            access.found.insert(id.clone());
        }
        match &*kind {
            CLOSED => access.closed.insert(id),
            _ => access.protected.insert(id),
        };
    }
    access
}

/// Reads all rows of a table into memory. Returns `None` if any of them cannot be read.
fn in_memory(store: &Store, name: &str) -> Option<Vec<(Bytes, Bytes)>> {
    rows_in_memory(store.table(name)?)
}

/// Returns whether the persisted valid folder of a tenant has this fingerprint.
pub(crate) fn is_persisted(store: &Store, id: &TenantId, fingerprint: &[u8; 32]) -> bool {
    store.mark(&format!("{VALID_TENANT}{id}")).as_ref() == Some(fingerprint)
}

/// Writes the reading of a tenant's folder with this mark.
pub(crate) fn write_reading(
    store: &Store,
    id: &TenantId,
    mark: TableMark,
    reading: PersistedReading,
) {
    let rows = move || reading.rows().unwrap_or_default();
    store.write_table(format!("{READ_TENANT}{id}"), Some(mark), rows);
}

/// Returns the rows of the persisted reading of a tenant's folder, if it has this mark.
pub(crate) fn load_reading(store: &Store, id: &TenantId, mark: &TableMark) -> Option<Rows> {
    store.marked_table(&format!("{READ_TENANT}{id}"), mark)
}

/// Returns the last valid content of a tenant, if it was persisted.
pub(crate) fn load_site(store: &Store, id: &TenantId, label: &str) -> Option<Site> {
    let folder = load_folder(store, &format!("{VALID_TENANT}{id}"), label)?;
    tenant::read(id, &folder).0
}

/// Writes the requested paths without a page. `save` is called on the writer thread.
pub(crate) fn write_not_found(store: &Store, save: impl FnOnce() -> Vec<u8> + Send + 'static) {
    let rows = move || vec![(ONLY_KEY.into(), Bytes::from(save()).into())];
    store.write_table(NOT_FOUND.to_owned(), None, rows);
}

/// Returns the persisted requested paths without a page.
pub(crate) fn load_not_found(store: &Store) -> Option<Bytes> {
    let (_, saved) = in_memory(store, NOT_FOUND)?.into_iter().next()?;
    Some(saved)
}

/// Writes the visits of a day. `save` is called on the writer thread.
pub(crate) fn write_visits(
    store: &Store,
    date: Date,
    save: impl FnOnce() -> Option<Vec<u8>> + Send + 'static,
) {
    let rows = move || {
        let saved = save().into_iter();
        saved
            .map(|saved| (ONLY_KEY.into(), Bytes::from(saved).into()))
            .collect()
    };
    store.write_table(format!("{VISITS}{date}"), None, rows);
}

/// Removes the visits of a day.
pub(crate) fn remove_visits(store: &Store, date: Date) {
    store.remove_table(format!("{VISITS}{date}"));
}

/// Returns the persisted visits, oldest day first. A damaged day has no bytes.
pub(crate) fn load_visits(store: &Store) -> Vec<(Date, Vec<u8>)> {
    let days = store.tables(VISITS).into_iter();
    let days = days.filter_map(|day| {
        let rows = in_memory(store, &format!("{VISITS}{day}"));
        let saved = rows.and_then(|rows| rows.into_iter().next());
        let saved = saved.map(|(_, saved)| saved.to_vec());
        Some((day.parse().ok()?, saved.unwrap_or_default()))
    });
    let mut days: Vec<(Date, Vec<u8>)> = days.collect();
    days.sort();
    days
}

/// Returns the last valid folder of a tenant, if it was persisted.
#[must_use]
pub fn valid_folder(store: &Store, id: &TenantId) -> Option<Folder> {
    load_folder(store, &format!("{VALID_TENANT}{id}"), id.as_str())
}

/// The persisted data of a tenant's newest release, without its pages.
#[derive(Debug)]
pub(crate) struct PersistedRelease {
    /// A digest of the inputs of the release.
    pub(crate) key: CacheKey,
    /// A digest of all responses, which is the key of the release in the store.
    pub(crate) response_key: CacheKey,
    /// The serialised [`render::PersistedTenant`].
    pub(crate) outcome: [Bytes; 2],
}

impl PersistedRelease {
    /// Writes the data that `make` returns. `make` is called on the writer thread.
    pub(crate) fn write(
        store: &Store,
        id: &TenantId,
        make: impl FnOnce() -> Option<Self> + Send + 'static,
    ) {
        let rows = |kept: Self| {
            let digests = [kept.key, kept.response_key].map(|digest| digest.to_vec().into());
            let values = digests.into_iter().chain(kept.outcome.map(Payload::from));
            KEYS.into_iter().map(Bytes::from).zip(values).collect()
        };
        let name = format!("{RENDERED_TENANT}{id}");
        store.write_table(name, None, move || make().map(rows).unwrap_or_default());
    }

    /// Reads the persisted data. Returns `None` if it is missing or incomplete.
    pub(crate) fn read(store: &Store, id: &TenantId) -> Option<Self> {
        let rows = in_memory(store, &format!("{RENDERED_TENANT}{id}"))?;
        let rows: [(Bytes, Bytes); 4] = rows.try_into().ok()?;
        let [key, response_key, known, materials] = rows.map(|(_, value)| value);
        Some(Self {
            key: key.as_ref().try_into().ok()?,
            response_key: response_key.as_ref().try_into().ok()?,
            outcome: [known, materials],
        })
    }
}

/// The keys of the rows of a [`PersistedRelease`], in order.
const KEYS: [&str; 4] = ["key", "answers", "known", "materials"];

/// Returns the replaced files of a tenant, which older pages may still request.
///
/// Unless `is_same` (the folder equals its persisted copy), the files of that copy are among them, because they were served until now.
pub(crate) fn load_replaced(
    store: &Store,
    id: &TenantId,
    is_same: bool,
    is_secure: bool,
) -> ReplacedFiles {
    let rows = store.table(&format!("{REPLACED_TENANT}{id}"));
    let mut replaced =
        ReplacedFiles::of_rows(rows.unwrap_or_default(), FileOwner::Tenant, is_secure);
    if !is_same && let Some(good) = load_folder(store, &format!("{VALID_TENANT}{id}"), id.as_str())
    {
        replaced.set_served_before(render::replaced_files(&good, is_secure));
    }
    replaced
}

/// Returns the persisted valid folders of themes, by name.
pub(crate) fn load_themes(store: &Store, directory: &Path) -> BTreeMap<String, Folder> {
    let names = store.tables(VALID_THEME).into_iter();
    names
        .filter_map(|name| {
            let label = directory.join(&name).display().to_string();
            let folder = load_folder(store, &format!("{VALID_THEME}{name}"), &label)?;
            Some((name, folder))
        })
        .collect()
}

/// Returns the folder in the table `name`.
fn load_folder(store: &Store, name: &str, label: &str) -> Option<Folder> {
    folder_of(label, store.table(name)?)
}
