//! What the owner keeps for the next start: the last good copy of each folder, and what was costly to work out.
//!
//! | entry | what |
//! |---|---|
//! | `good.tenant.<id>` | a tenant's folder when it was last without an error |
//! | `good.theme.<name>` | a theme's folder when every page could last be rendered with it |
//! | `made.tenant.<id>` | a tenant's [`Cache`], and the fingerprint of its good copy |
//! | `addresses` | who has which address, so that nobody takes one over a restart |
//! | `good.deployment` | `deployment.yaml` when it was last without an error |
//! | `made.themes`, `made.islands` | the memos of what all tenants share |
//! | `old.tenant.<id>` | a tenant's files that were replaced within a day, for pages that still name them |
//! | `old.shared` | the same of what all tenants share, and what they share now |
//!
//! A copy is only asked for while the folder itself is of no use. Nothing is ever served for a tenant whose folder is gone, unless the whole folder of tenants is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::places::Places;
use super::replaced::ReplacedFiles;
use content::address::Owners;
use content::name::TenantId;
use content::source::Folder;
use content::tenant::{self, Site};
use release::snapshot::ResourceTable;
use release::state::{State, pack, unpack};
use render::Whose;
use render::cache::{Cache, Key};

const GOOD_TENANT: &str = "good.tenant.";
const GOOD_THEME: &str = "good.theme.";
const MADE_TENANT: &str = "made.tenant.";
const MADE_THEMES: &str = "made.themes";
const ADDRESSES: &str = "addresses";
const GOOD_DEPLOYMENT: &str = "good.deployment";
const MADE_ISLANDS: &str = "made.islands";
const OLD_TENANT: &str = "old.tenant.";
const OLD_SHARED: &str = "old.shared";

/// The name of the fingerprint among a cache's keys, which are longer.
const FINGERPRINT: &[u8] = b"folder";

/// The state of one deployment, as its owner uses it.
#[derive(Debug)]
pub struct Persisted {
    state: Arc<State>,
    /// The tenants with a good copy.
    tenants: BTreeSet<String>,
    /// The themes whose copy this process wrote, by what was written.
    themes: BTreeMap<String, [u8; 32]>,
    /// The addresses and the deployment as this process wrote them.
    addresses: Option<(Owners, Option<String>)>,
}

/// A cache with what tells whether it has changed since it was written.
#[derive(Debug, Default)]
pub(super) struct PersistedCache {
    pub(super) cache: Arc<Cache>,
    written: Option<Key>,
    /// The fingerprint of the good copy.
    good: Option<Bytes>,
}

impl PersistedCache {
    fn of(state: &State, name: &str) -> Self {
        let packed = state.read(name);
        let Some(entries) = packed.as_ref().and_then(unpack) else {
            return Self::default();
        };
        let good = entries.iter().find(|(key, _)| key == FINGERPRINT);
        Self {
            written: Some(digest(entries.iter().map(|(key, _)| key.as_ref()))),
            good: good.map(|(_, fingerprint)| fingerprint.clone()),
            cache: Arc::new(Cache::of(entries)),
        }
    }

    /// What was worked out for a tenant.
    pub(super) fn of_tenant(state: &State, id: &TenantId) -> Self {
        Self::of(state, &format!("{MADE_TENANT}{id}"))
    }

    /// Whether the good copy is of this folder.
    pub(super) fn is_good(&self, fingerprint: &[u8; 32]) -> bool {
        self.good.as_deref() == Some(fingerprint.as_slice())
    }

    /// Writes what was used, if that is something else than what is there.
    fn keep(&mut self, state: &State, name: &str) {
        let used = self.cache.used();
        let good = self.good.clone();
        let names = good.iter().map(|_| FINGERPRINT);
        let now = digest(names.chain(used.iter().map(|(key, _)| key.as_slice())));
        if self.written.replace(now) == Some(now) {
            return;
        }
        state.write(name.to_owned(), move || {
            let good = good.iter().map(|good| (FINGERPRINT, good.as_ref()));
            let used = used
                .iter()
                .map(|(key, bytes)| (key.as_slice(), bytes.as_ref()));
            pack(good.chain(used))
        });
    }
}

fn digest<'a>(keys: impl Iterator<Item = &'a [u8]>) -> Key {
    let mut hash = Sha256::new();
    keys.for_each(|key| hash.update(key));
    hash.finalize().into()
}

impl Persisted {
    /// Opens what was kept in `directory` for these places.
    #[must_use]
    pub fn open(directory: &Path, places: &Places) -> Self {
        // Not resolved: a link that is flipped to another release stays the same deployment.
        let absolute = |path: &Path| {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
            path.display().to_string()
        };
        let themes = places.themes.as_deref().map(absolute);
        let name = format!(
            "{}\n{}\n",
            absolute(&places.tenants),
            themes.unwrap_or_default()
        );
        let state = State::open(directory, &name);
        Self {
            tenants: state
                .names(GOOD_TENANT)
                .into_iter()
                .filter(|name| is_whole(name))
                .collect(),
            themes: BTreeMap::new(),
            addresses: None,
            state: Arc::new(state),
        }
    }

    /// What was worked out for the islands.
    #[must_use]
    pub fn islands_cache(&self) -> Cache {
        let packed = self.state.read(MADE_ISLANDS);
        Cache::of(packed.as_ref().and_then(unpack).unwrap_or_default())
    }

    /// Keeps what was worked out for the islands, once.
    pub fn keep_islands(&self, cache: &Cache) {
        let used = cache.used();
        let known = self.islands_cache();
        if used.iter().all(|(key, _)| known.has(key)) {
            return;
        }
        self.state.write(MADE_ISLANDS.to_owned(), move || {
            pack(
                used.iter()
                    .map(|(key, bytes)| (key.as_slice(), bytes.as_ref())),
            )
        });
    }

    /// What was worked out for the files that all tenants share.
    pub(super) fn shared_cache(&self) -> PersistedCache {
        PersistedCache::of(&self.state, MADE_THEMES)
    }

    /// Where it all lies.
    pub(super) const fn state(&self) -> &Arc<State> {
        &self.state
    }

    /// The shared files that pages of before may still ask for.
    pub(super) fn shared_replaced(&self, secure: bool) -> ReplacedFiles {
        let packed = self.state.read(OLD_SHARED);
        packed.map_or_else(ReplacedFiles::default, |packed| {
            ReplacedFiles::unpacked(&packed, Whose::Shared, secure)
        })
    }

    /// The last good content of a tenant.
    pub(super) fn site(&self, id: &TenantId, label: &str) -> Option<Site> {
        if !self.tenants.contains(id.as_str()) {
            return None;
        }
        kept_site(&self.state, id, label)
    }

    /// The tenants that have a good copy.
    pub(super) fn tenants(&self) -> impl Iterator<Item = &str> {
        self.tenants.iter().map(String::as_str)
    }

    /// Forgets tenants whose folders are gone: they are not to come back.
    pub(super) fn keep_only(&mut self, present: &BTreeSet<TenantId>) {
        let state = &self.state;
        self.tenants.retain(|name| {
            let is_present = present.contains(name.as_str());
            if !is_present {
                state.remove(format!("{GOOD_TENANT}{name}"));
                state.remove(format!("{MADE_TENANT}{name}"));
                state.remove(format!("{OLD_TENANT}{name}"));
            }
            is_present
        });
    }

    /// Who had which address.
    pub(super) fn owners(&self) -> Owners {
        let packed = self.state.read(ADDRESSES);
        let entries = packed.as_ref().and_then(unpack).unwrap_or_default();
        let text = |bytes: Bytes| String::from_utf8(bytes.to_vec()).ok();
        entries
            .into_iter()
            .filter_map(|(address, owner)| {
                Some((text(address)?, TenantId::new(&text(owner)?).ok()?))
            })
            .collect()
    }

    /// What `deployment.yaml` last said.
    pub(super) fn deployment(&self) -> Option<String> {
        String::from_utf8(self.state.read(GOOD_DEPLOYMENT)?.to_vec()).ok()
    }

    /// Keeps who has which address, and what `deployment.yaml` says.
    pub(super) fn keep_addresses(&mut self, owners: &Owners, deployment: Option<&str>) {
        let same = self
            .addresses
            .as_ref()
            .is_some_and(|(known, said)| known == owners && said.as_deref() == deployment);
        if same {
            return;
        }
        self.addresses = Some((owners.clone(), deployment.map(ToOwned::to_owned)));
        let owners = owners.clone();
        self.state.write(ADDRESSES.to_owned(), move || {
            let owners = owners.iter();
            pack(owners.map(|(address, owner)| (address.as_bytes(), owner.as_str().as_bytes())))
        });
        match deployment.map(ToOwned::to_owned) {
            Some(text) => {
                let write = move || text.into_bytes();
                self.state.write(GOOD_DEPLOYMENT.to_owned(), write);
            }
            None => self.state.remove(GOOD_DEPLOYMENT.to_owned()),
        }
    }

    /// Keeps what was worked out for a tenant, and its folder, if it has just been without an error.
    pub(super) fn keep_tenant(
        &mut self,
        id: &TenantId,
        cache: &mut PersistedCache,
        good: Option<([u8; 32], Folder)>,
    ) {
        if let Some((fingerprint, folder)) = good
            && (!self.tenants.contains(id.as_str()) || !cache.is_good(&fingerprint))
        {
            cache.good = Some(Bytes::copy_from_slice(&fingerprint));
            cache.written = None;
            self.tenants.insert(id.to_string());
            self.keep_folder(format!("{GOOD_TENANT}{id}"), folder);
        }
        cache.keep(&self.state, &format!("{MADE_TENANT}{id}"));
    }

    /// Keeps a theme's folder, with which every page could be rendered.
    pub(super) fn keep_theme(&mut self, name: &str, folder: &Folder) {
        let fingerprint = folder.fingerprint();
        if self.themes.get(name) != Some(&fingerprint) {
            self.themes.insert(name.to_owned(), fingerprint);
            self.keep_folder(format!("{GOOD_THEME}{name}"), folder.clone());
        }
    }

    /// Keeps the files of a tenant that were replaced.
    pub(super) fn keep_replaced(&self, id: &TenantId, replaced: &ReplacedFiles) {
        let packed = replaced.packed(&ResourceTable::default());
        self.state.write(format!("{OLD_TENANT}{id}"), packed);
    }

    /// Keeps what was worked out for the files that all share and, if they are new, those of now and of before.
    pub(super) fn keep_shared(
        &self,
        cache: &mut PersistedCache,
        new: Option<(&ReplacedFiles, &ResourceTable)>,
    ) {
        cache.keep(&self.state, MADE_THEMES);
        if let Some((replaced, files)) = new {
            self.state
                .write(OLD_SHARED.to_owned(), replaced.packed(files));
        }
    }

    fn keep_folder(&self, name: String, folder: Folder) {
        self.state.write(name, move || {
            let files = folder.files.iter();
            pack(files.map(|(path, bytes)| (path.as_bytes(), bytes.as_ref())))
        });
    }
}

/// The last good content of a tenant, if one was kept.
pub(super) fn kept_site(state: &State, id: &TenantId, label: &str) -> Option<Site> {
    let folder = kept_folder(state, &format!("{GOOD_TENANT}{id}"), label)?;
    tenant::read(id, &folder).0
}

/// The files of a tenant that pages of before may still ask for. Unless the folder is the same as the good copy, those of the good copy were served until now.
pub(super) fn kept_replaced(
    state: &State,
    id: &TenantId,
    is_same: bool,
    secure: bool,
) -> ReplacedFiles {
    let packed = state.read(&format!("{OLD_TENANT}{id}"));
    let mut replaced = packed.map_or_else(ReplacedFiles::default, |packed| {
        ReplacedFiles::unpacked(&packed, Whose::Tenant, secure)
    });
    if !is_same && let Some(good) = kept_folder(state, &format!("{GOOD_TENANT}{id}"), id.as_str()) {
        replaced.follow(render::former_files(&good, secure));
    }
    replaced
}

/// The last good copies of themes, by their names.
pub(super) fn kept_themes(state: &State, directory: &Path) -> BTreeMap<String, Folder> {
    let names = state.names(GOOD_THEME).into_iter();
    names
        .filter(|name| is_whole(name))
        .filter_map(|name| {
            let label = directory.join(&name).display().to_string();
            let folder = kept_folder(state, &format!("{GOOD_THEME}{name}"), &label)?;
            Some((name, folder))
        })
        .collect()
}

fn kept_folder(state: &State, name: &str, label: &str) -> Option<Folder> {
    let files = unpack(&state.read(name)?)?;
    let files = files.into_iter().map(|(path, bytes)| {
        let path = String::from_utf8(path.to_vec()).ok()?;
        Some((path, bytes))
    });
    Some(Folder {
        label: label.to_owned(),
        files: files.collect::<Option<_>>()?,
    })
}

/// Whether an entry's name is one, and not that of a file that is being written.
fn is_whole(name: &str) -> bool {
    !name.ends_with(".half")
}
