//! What the owner keeps for the next start: the last good copy of each folder, and what was costly to work out.
//!
//! | table | what |
//! |---|---|
//! | `good.tenant.<id>` | a tenant's folder when it was last without an error |
//! | `good.theme.<name>` | a theme's folder when every page could last be rendered with it |
//! | `read.tenant.<id>` | what was read of a tenant's folder ([`PersistedReading`]), marked with what tells the folder without reading it |
//! | `made.tenant.<id>` | a tenant's [`Cache`] |
//! | `rendered.tenant.<id>` | what its newest release was made from, and what is known of it beside its pages |
//! | `addresses` | who has which address, so that nobody takes one over a restart |
//! | `good.deployment` | `deployment.yaml` when it was last without an error |
//! | `made.themes` | the [`Cache`] of what all tenants share |
//! | `old.tenant.<id>` | a tenant's files that were replaced within a day, for pages that still name them |
//! | `old.shared` | the same of what all tenants share, and what they share now |
//!
//! A copy is only requested while the folder itself is of no use. Nothing is ever served for a tenant whose folder is gone, unless the whole folder of tenants is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::jobs::packed_folder::{FolderContent, folder_of, rows_of};
use crate::jobs::persisted_reading::PersistedReading;
use crate::places::Places;
use crate::snapshot::replaced::ReplacedFiles;
use content::address::{Assignment, Owners};
use content::name::TenantId;
use content::source::Folder;
use content::tenant::{self, Site};
use release::payload::Payload;
use release::snapshot::ResourceTable;
use release::store::{Keep, Mark, Rows, Store, rows_in_memory};
use render::Whose;
use render::{Cache, Key};

const VALID_TENANT: &str = "good.tenant.";
const VALID_THEME: &str = "good.theme.";
const READ_TENANT: &str = "read.tenant.";
const TENANT_CACHE: &str = "made.tenant.";
const RENDERED_TENANT: &str = "rendered.tenant.";
const SHARED_CACHE: &str = "made.themes";
const ADDRESSES: &str = "addresses";
const VALID_DEPLOYMENT: &str = "good.deployment";
const REPLACED_TENANT: &str = "old.tenant.";
const REPLACED_SHARED: &str = "old.shared";
/// The key of the one value of a table.
const ONLY_KEY: &str = "";

/// The state of one deployment, as its owner uses it.
#[derive(Debug)]
pub struct Persisted {
    store: Arc<Store>,
    /// The tenants with a good copy.
    tenants: BTreeSet<String>,
    /// The themes whose copy this process wrote, by what they were made from.
    themes: BTreeMap<String, [u8; 32]>,
    /// The addresses and the deployment as this process wrote them.
    addresses: Option<(Arc<Assignment>, Option<String>)>,
}

/// The folder of a theme without errors.
pub(crate) struct ValidThemeFolder<'t> {
    pub(crate) name: &'t str,
    pub(crate) folder: &'t Folder,
    /// Of what the theme was made from.
    pub(crate) fingerprint: [u8; 32],
}

/// A cache with what tells whether it has changed since it was written.
#[derive(Debug, Default)]
pub(crate) struct PersistedCache {
    pub(crate) cache: Arc<Cache>,
    /// Whether the good copy of its tenant is the folder as it is.
    pub(crate) is_good: bool,
    /// Whether it was written before this process.
    is_on_disk: bool,
    written: Option<Key>,
}

impl PersistedCache {
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

    /// What was worked out for a tenant, read when it is needed.
    pub(crate) fn of_tenant(store: &Arc<Store>, id: &TenantId) -> Self {
        Self::of(store, format!("{TENANT_CACHE}{id}"))
    }

    /// Forgets what is in memory. What is on disk is read again when it is needed.
    pub(crate) fn forget(&mut self, store: Option<&Arc<Store>>, id: &TenantId) {
        let fresh = store.map(|store| Self::of_tenant(store, id));
        self.cache = fresh.unwrap_or_default().cache;
    }

    /// Forgets what was not used, while nothing can be written. It is all written once something can.
    pub(crate) fn put_off(&mut self) {
        self.cache.used();
        self.is_on_disk = false;
        self.written = None;
    }

    /// Writes what was used, if that is something else than what is there. `has_grown`: whether work was done for it.
    fn keep(&mut self, store: &Store, name: &str, has_grown: bool) {
        let is_same = self.is_on_disk && !has_grown && self.cache.is_used_up();
        let used = self.cache.used();
        let now = digest(used.iter().map(|(key, _)| key.as_slice()));
        if self.written.replace(now) == Some(now) || is_same {
            return;
        }
        store.write_table(name.to_owned(), None, move || rows_of_cache(used));
    }
}

fn rows_of_cache(used: Vec<(Key, Bytes)>) -> Rows {
    let used = used.into_iter();
    used.map(|(key, bytes)| (Bytes::copy_from_slice(&key), bytes.into()))
        .collect()
}

fn digest<'a>(keys: impl Iterator<Item = &'a [u8]>) -> Key {
    let mut hash = Sha256::new();
    keys.for_each(|key| hash.update(key));
    hash.finalize().into()
}

impl Persisted {
    /// Opens what was kept in `directory` for these places.
    #[must_use]
    pub fn open(directory: &Path, places: &Places, keep: Keep) -> Self {
        let store = Store::of_deployment(directory, &Self::name(places), keep);
        Self {
            tenants: store.tables(VALID_TENANT).into_iter().collect(),
            themes: BTreeMap::new(),
            addresses: None,
            store: Arc::new(store),
        }
    }

    /// What was kept in `directory` for these places, to be read. Nothing is made or changed there.
    #[must_use]
    pub fn reader(directory: &Path, places: &Places) -> Store {
        Store::reader(Store::place(directory, &Self::name(places)))
    }

    /// What tells a deployment from others.
    fn name(places: &Places) -> String {
        // Not resolved: a link that is flipped to another release stays the same deployment.
        let absolute = |path: &Path| {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
            path.display().to_string()
        };
        let themes = places.themes.as_deref().map(absolute);
        format!(
            "{}\n{}\n",
            absolute(&places.tenants),
            themes.unwrap_or_default()
        )
    }

    /// What was worked out for the files that all tenants share.
    pub(crate) fn shared_cache(&self) -> PersistedCache {
        PersistedCache::of(&self.store, SHARED_CACHE.to_owned())
    }

    /// Where it all lies.
    pub(crate) const fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// The shared files that pages of before may still ask for.
    pub(crate) fn shared_replaced(&self, secure: bool) -> ReplacedFiles {
        let rows = self.store.table(REPLACED_SHARED).unwrap_or_default();
        ReplacedFiles::of_rows(rows, Whose::Shared, secure)
    }

    /// The tenants that have a good copy.
    pub(crate) fn tenants(&self) -> impl Iterator<Item = &str> {
        self.tenants.iter().map(String::as_str)
    }

    /// Forgets tenants whose folders are gone: they are not to come back.
    pub(crate) fn keep_only(&mut self, present: &BTreeMap<TenantId, PathBuf>) {
        let store = &self.store;
        store.set_tenants(present.keys().map(ToString::to_string));
        self.tenants.retain(|name| {
            let is_present = present.contains_key(name.as_str());
            if !is_present {
                store.remove_table(format!("{VALID_TENANT}{name}"));
                store.remove_table(format!("{READ_TENANT}{name}"));
                store.remove_table(format!("{TENANT_CACHE}{name}"));
                store.remove_table(format!("{RENDERED_TENANT}{name}"));
                store.remove_table(format!("{REPLACED_TENANT}{name}"));
            }
            is_present
        });
    }

    /// Who had which address.
    pub(crate) fn owners(&self) -> Owners {
        let rows = in_memory(&self.store, ADDRESSES).unwrap_or_default();
        let text = |bytes: Bytes| String::from_utf8(bytes.to_vec()).ok();
        rows.into_iter()
            .filter_map(|(address, owner)| {
                Some((text(address)?, TenantId::new(&text(owner)?).ok()?))
            })
            .collect()
    }

    /// What `deployment.yaml` last said.
    pub(crate) fn deployment(&self) -> Option<String> {
        let rows = in_memory(&self.store, VALID_DEPLOYMENT)?;
        let (_, text) = rows.into_iter().next()?;
        String::from_utf8(text.to_vec()).ok()
    }

    /// Keeps who has which address, and what `deployment.yaml` says.
    pub(crate) fn keep_addresses(
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
            let row = |(address, owner): (&String, &TenantId)| {
                (address.clone().into(), owner.as_str().to_owned().into())
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

    /// Keeps what was worked out for a tenant, and its folder with its fingerprint, if it has just been without an error.
    pub(crate) fn keep_tenant(
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
            self.tenants.insert(id.to_string());
            self.keep_folder(format!("{VALID_TENANT}{id}"), content, fingerprint);
        }
        cache.keep(&self.store, &format!("{TENANT_CACHE}{id}"), has_grown);
    }

    /// Keeps what was read of the folder of a tenant that has a good copy. Whether it has one.
    pub(crate) fn keep_reading(
        &self,
        id: &TenantId,
        mark: Mark,
        reading: PersistedReading,
    ) -> bool {
        let is_known = self.tenants.contains(id.as_str());
        if is_known {
            write_reading(&self.store, id, mark, reading);
        }
        is_known
    }

    /// Keeps a theme's folder, with which every page could be rendered.
    pub(crate) fn keep_theme(&mut self, theme: &ValidThemeFolder<'_>) {
        if !self.has_theme(theme) {
            let name = theme.name.to_owned();
            let table = format!("{VALID_THEME}{name}");
            self.themes.insert(name, theme.fingerprint);
            let fingerprint = theme.folder.fingerprint();
            let content = FolderContent::Open(theme.folder.clone());
            self.keep_folder(table, content, Some(fingerprint));
        }
    }

    /// Returns whether this process wrote the copy of a theme.
    pub(crate) fn has_theme(&self, theme: &ValidThemeFolder<'_>) -> bool {
        self.themes.get(theme.name) == Some(&theme.fingerprint)
    }

    /// Keeps the files of a tenant that were replaced.
    pub(crate) fn keep_replaced(&self, id: &TenantId, replaced: &ReplacedFiles) {
        let rows = replaced.rows(&ResourceTable::default());
        self.store
            .write_table(format!("{REPLACED_TENANT}{id}"), None, move || rows);
    }

    /// Keeps what was worked out for the files that all share and, if they are new, those of now and of before.
    pub(crate) fn keep_shared(
        &self,
        cache: &mut PersistedCache,
        new: Option<(&ReplacedFiles, &ResourceTable)>,
    ) {
        let has_grown = cache.cache.has_grown();
        cache.keep(&self.store, SHARED_CACHE, has_grown);
        if let Some((replaced, files)) = new {
            let rows = replaced.rows(files);
            self.store
                .write_table(REPLACED_SHARED.to_owned(), None, move || rows);
        }
    }

    /// Keeps a folder, marked with its fingerprint where that is known.
    fn keep_folder(&self, name: String, content: FolderContent, fingerprint: Option<[u8; 32]>) {
        self.store.write_table(name, fingerprint, move || {
            let folder = content.folder().unwrap_or_default();
            rows_of(&folder)
        });
    }
}

/// The rows of a table, all of them in memory.
fn in_memory(store: &Store, name: &str) -> Option<Vec<(Bytes, Bytes)>> {
    rows_in_memory(store.table(name)?)
}

/// Whether the good copy of a tenant is the folder with this fingerprint.
pub(crate) fn is_kept(store: &Store, id: &TenantId, fingerprint: &[u8; 32]) -> bool {
    store.mark(&format!("{VALID_TENANT}{id}")).as_ref() == Some(fingerprint)
}

/// Writes what was read of a tenant's folder that has this mark.
pub(crate) fn write_reading(store: &Store, id: &TenantId, mark: Mark, reading: PersistedReading) {
    let rows = move || reading.rows().unwrap_or_default();
    store.write_table(format!("{READ_TENANT}{id}"), Some(mark), rows);
}

/// What was read of a tenant's folder that has this mark.
pub(crate) fn kept_reading(store: &Store, id: &TenantId, mark: &Mark) -> Option<Rows> {
    store.marked_table(&format!("{READ_TENANT}{id}"), mark)
}

/// The last good content of a tenant, if one was kept.
pub(crate) fn kept_site(store: &Store, id: &TenantId, label: &str) -> Option<Site> {
    let folder = kept_folder(store, &format!("{VALID_TENANT}{id}"), label)?;
    tenant::read(id, &folder).0
}

/// What is kept of a tenant's newest release beside its pages.
#[derive(Debug)]
pub(crate) struct PersistedRelease {
    /// A digest of what it was made from.
    pub(crate) key: Key,
    /// A digest of what it answers, which is the key of the release in the store.
    pub(crate) answers: Key,
    /// What is known of it ([`render::Outcome`]).
    pub(crate) outcome: [Bytes; 2],
}

impl PersistedRelease {
    /// Keeps it; `make` is called on the thread that writes.
    pub(crate) fn write(
        store: &Store,
        id: &TenantId,
        make: impl FnOnce() -> Option<Self> + Send + 'static,
    ) {
        let rows = |kept: Self| {
            let digests = [kept.key, kept.answers].map(|digest| digest.to_vec().into());
            let values = digests.into_iter().chain(kept.outcome.map(Payload::from));
            KEYS.into_iter().map(Bytes::from).zip(values).collect()
        };
        let name = format!("{RENDERED_TENANT}{id}");
        store.write_table(name, None, move || make().map(rows).unwrap_or_default());
    }

    /// What was kept, if that is whole.
    pub(crate) fn read(store: &Store, id: &TenantId) -> Option<Self> {
        let rows = in_memory(store, &format!("{RENDERED_TENANT}{id}"))?;
        let rows: [(Bytes, Bytes); 4] = rows.try_into().ok()?;
        let [key, answers, known, materials] = rows.map(|(_, value)| value);
        Some(Self {
            key: key.as_ref().try_into().ok()?,
            answers: answers.as_ref().try_into().ok()?,
            outcome: [known, materials],
        })
    }
}

/// The rows of such a table, in their order.
const KEYS: [&str; 4] = ["key", "answers", "known", "materials"];

/// The files of a tenant that pages of before may still ask for. Unless the folder is the same as the good copy, those of the good copy were served until now.
pub(crate) fn kept_replaced(
    store: &Store,
    id: &TenantId,
    is_same: bool,
    secure: bool,
) -> ReplacedFiles {
    let rows = store.table(&format!("{REPLACED_TENANT}{id}"));
    let mut replaced = ReplacedFiles::of_rows(rows.unwrap_or_default(), Whose::Tenant, secure);
    if !is_same && let Some(good) = kept_folder(store, &format!("{VALID_TENANT}{id}"), id.as_str())
    {
        replaced.follow(render::replaced_files(&good, secure));
    }
    replaced
}

/// The last good copies of themes, by their names.
pub(crate) fn kept_themes(store: &Store, directory: &Path) -> BTreeMap<String, Folder> {
    let names = store.tables(VALID_THEME).into_iter();
    names
        .filter_map(|name| {
            let label = directory.join(&name).display().to_string();
            let folder = kept_folder(store, &format!("{VALID_THEME}{name}"), &label)?;
            Some((name, folder))
        })
        .collect()
}

fn kept_folder(store: &Store, name: &str, label: &str) -> Option<Folder> {
    folder_of(label, store.table(name)?)
}
