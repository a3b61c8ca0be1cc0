//! Reads the tenants' folders, and checks those that changed.
//!
//! Each folder is read and checked by itself on the [`super::workers`], so that a huge one holds up nobody.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;

use crate::jobs::packed::Content;
use crate::jobs::work::{Done, Read, ToRead};
use crate::runner::registry::{Registry, ReloadError};
use crate::runner::tenant::{Tenant, is_unread};
use crate::runner::workers::{Job, Kind, Step};
use crate::snapshot::replaced::ReplacedFiles;
use crate::state::persisted::{PersistedCache, kept_replaced};
use content::name::{TenantId, TenantIdError};
use content::report::guard::guard;
use content::report::{Code, Diagnostic, Report, Severity};
use content::source::{Activity, SourceError};
use content::tenant::conform::conform;

/// With more tenants than this, the content of those that are not at work is kept packed.
const OPEN: usize = 256;

/// The time within which each call to the file system has to return.
const FILE_SYSTEM_TIMEOUT: Duration = Duration::from_secs(10);

impl Registry {
    /// Checks the tenants' folders that were listed. A folder of tenants that has become empty is an error: an unmounted volume is more likely than the removal of all tenants.
    pub(crate) fn listed(
        &self,
        folders: Result<BTreeMap<String, PathBuf>, SourceError>,
    ) -> Result<BTreeMap<String, PathBuf>, ReloadError> {
        let folders = folders?;
        let persisted = self
            .persisted
            .as_ref()
            .and_then(|persisted| persisted.tenants().next());
        if folders.is_empty() && (!self.tenants.is_empty() || persisted.is_some()) {
            return Err(ReloadError::Emptied(self.places.tenants.clone()));
        }
        Ok(folders)
    }

    /// Takes all tenants from what was kept, at a start that finds no folders.
    pub(crate) fn restore(&mut self, now: Timestamp) -> bool {
        let Some(persisted) = self.persisted.as_ref().filter(|_| self.tenants.is_empty()) else {
            return false;
        };
        for name in persisted.tenants() {
            let label = self.places.tenants.join(name).display().to_string();
            let Ok(id) = TenantId::new(name) else {
                continue;
            };
            let find = || persisted.site(&id, &label);
            if let Ok(Some(site)) = guard("kept", name, &label, find) {
                let secure = self.places.origin.is_secure();
                let replaced = kept_replaced(persisted.store(), &id, false, secure);
                let mut tenant =
                    Tenant::new(PersistedCache::of_tenant(persisted.store(), &id), replaced);
                tenant.take(site, now, self.islands.dev.is_some());
                let message = "the folder is gone; its last good copy is served";
                let error = Diagnostic::error(Code::Unreadable, label, message);
                tenant.content.push(error);
                self.tenants.insert(id, tenant);
            }
        }
        !self.tenants.is_empty()
    }

    /// Hands over the folders of `only` (all without them) and of tenants that are new, to be read and checked.
    pub(crate) fn read_tenants(
        &mut self,
        folders: BTreeMap<String, PathBuf>,
        only: Option<&BTreeSet<String>>,
    ) {
        let mut folders = self.named(folders);
        self.keep_only(&folders);
        folders.retain(|id, _| {
            let is_wanted = only.is_none_or(|only| only.contains(id.as_str()));
            let known = self.tenants.get(id);
            is_wanted || known.is_none_or(|tenant| tenant.is_folder_gone)
        });
        self.read_known(folders);
    }

    /// Hands over these folders, to be read and checked.
    pub(crate) fn read_known(&mut self, folders: impl IntoIterator<Item = (TenantId, PathBuf)>) {
        let folders = folders.into_iter();
        let jobs = folders.map(|(id, path)| self.reading(id, path)).collect();
        self.workers.hand_over(jobs);
    }

    /// The folders whose names are tenants'. What is to say of the others is noted.
    fn named(&mut self, folders: BTreeMap<String, PathBuf>) -> BTreeMap<TenantId, PathBuf> {
        self.notes = Report::default();
        self.packs = self.memory.is_some() && folders.len() > OPEN;
        let mut named = BTreeMap::new();
        for (name, path) in folders {
            match TenantId::new(&name) {
                Ok(id) => drop(named.insert(id, path)),
                Err(error) => {
                    let severity = match error {
                        TenantIdError::NotAHostLabel(_) => Severity::Note,
                        TenantIdError::Reserved(_) => Severity::Error,
                    };
                    let label = path.display().to_string();
                    let message = error.to_string();
                    let diagnostic = Diagnostic::error(Code::BadFolderName, label, message)
                        .hint("rename the folder: its name is the tenant's host and path");
                    self.notes.push(Diagnostic {
                        severity,
                        ..diagnostic
                    });
                }
            }
        }
        named
    }

    /// Lets tenants go whose folders are gone.
    fn keep_only(&mut self, present: &BTreeMap<TenantId, PathBuf>) {
        self.tenants.retain(|id, _| {
            let is_present = present.contains_key(id);
            if !is_present {
                self.workers.forget(id);
            }
            is_present
        });
        if let Some(persisted) = &mut self.persisted {
            persisted.keep_only(present);
        }
    }

    /// Where files go that are too large for memory: beside what is kept, else where temporary files go.
    fn place_of_large(&self) -> PathBuf {
        let kept = self.store().map(|store| store.folder().to_owned());
        kept.filter(|folder| folder.is_dir())
            .unwrap_or_else(std::env::temp_dir)
    }

    /// A job that reads a folder and checks what is in it.
    fn reading(&mut self, id: TenantId, path: PathBuf) -> Job<Done> {
        let (store, large) = (self.store().cloned(), self.place_of_large());
        let is_new = !self.tenants.contains_key(&id);
        let entry = self.tenants.entry(id.clone());
        let tenant = entry
            .or_insert_with(|| Tenant::new(PersistedCache::default(), ReplacedFiles::default()));
        self.readings += 1;
        // What a reading under way brings is another folder than the one known now.
        let known = tenant
            .fingerprint
            .filter(|_| !tenant.lifecycle.is_reading());
        tenant.lifecycle.request(self.readings);
        tenant.is_folder_gone = false;
        let folder = ToRead {
            id: id.clone(),
            label: path.display().to_string(),
            path,
            known: known.map(|known| (known, tenant.reading.clone())),
            large,
            known_large: tenant.large.clone(),
            store,
            is_new,
            packs: self.packs,
            now: SystemTime::now(),
            activity: Activity::default(),
            upload_pause: self.upload_pause,
        };
        let (number, secure) = (self.readings, self.places.origin.is_secure());
        let watched = Arc::new(folder.clone());
        let watchdog = move || {
            let is_stalled = watched.activity.is_stalled(FILE_SYSTEM_TIMEOUT);
            is_stalled.then(|| Done::Unresponsive(number, Arc::clone(&watched)))
        };
        Job {
            id,
            kind: Kind::Read,
            is_background: false,
            watchdog: Some(Box::new(watchdog)),
            again: None,
            weight: None,
            work: Box::new(move |_| {
                folder.read(secure, number, move |read| {
                    Done::Read(number, read.map(Box::new))
                })
            }),
        }
    }

    /// Hands over a job that reports a folder whose file system does not respond, with what was persisted of its tenant.
    pub(crate) fn report_unresponsive(&self, id: TenantId, number: u64, folder: Arc<ToRead>) {
        let secure = self.places.origin.is_secure();
        let work = move |_| {
            let read = folder.unresponsive(FILE_SYSTEM_TIMEOUT, secure);
            Step::Done(Done::Read(number, Some(Box::new(read))))
        };
        self.workers.hand_over(vec![Job {
            id,
            kind: Kind::Report,
            is_background: false,
            watchdog: None,
            again: None,
            weight: None,
            work: Box::new(work),
        }]);
    }

    /// Takes what a folder holds, unless something newer was taken before.
    pub(crate) fn take_reading(
        &mut self,
        id: &TenantId,
        number: u64,
        read: Option<Box<Read>>,
        now: Timestamp,
    ) {
        let (drafts, secure) = (self.is_dev(), self.places.origin.is_secure());
        let Some(tenant) = self.tenants.get_mut(id) else {
            return;
        };
        if !tenant.lifecycle.take(number) {
            return;
        }
        let Some(mut read) = read else {
            return;
        };
        if let Some(cache) = read.cache {
            tenant.persisted = cache;
        }
        if let Some(replaced) = read.replaced {
            tenant.replaced = replaced;
        }
        tenant.large = read.content.large().clone();
        if read.report.is_servable()
            && let Some(site) = read.site
        {
            tenant.remember_files(secure);
            if self.persisted.is_some() {
                if let Some(before) = &tenant.files {
                    let changed = read.files.changed_since(before).cloned();
                    tenant.recorded.changed.extend(changed);
                }
                tenant.files = Some(read.files);
            }
            tenant.packed = match &read.content {
                Content::Packed(packed) => Some(Arc::clone(packed)),
                Content::Open(_) => None,
            };
            tenant.take(site, now, drafts);
            tenant.content_folder = read.fingerprint;
            tenant.unkept = read.mark;
            tenant.persisted.is_good = read.is_kept;
            let is_pending = self.persisted.is_some() && !read.is_kept;
            tenant.pending = is_pending.then_some(read.content);
        } else if tenant.site.is_none()
            && let Some(site) = read.last_good.take()
        {
            tenant.take(site, now, drafts);
        }
        let theme = read.written.as_ref();
        let theme = theme.and_then(|written| Some((written, self.themes.get(&written.theme)?)));
        if let Some((written, templates)) = theme {
            read.report.extend(conform(written, &templates.theme).1);
        }
        tenant.content = read.report;
        tenant.reading = read.reading;
        tenant.fingerprint = read.fingerprint;
    }

    /// Notes that a tenant has no folder any longer, which a survey has to confirm.
    pub(crate) fn note_gone(&mut self, id: &TenantId, number: u64) {
        if let Some(tenant) = self.tenants.get_mut(id) {
            tenant.is_folder_gone |= tenant.lifecycle.take(number);
        }
    }

    /// Returns whether folders have gone since the last survey, which succeeded.
    pub(crate) fn has_gone(&self) -> bool {
        self.alarm.is_none() && self.tenants.values().any(|tenant| tenant.is_folder_gone)
    }

    /// The tenants that the system would not give all files of. It may do so the next time.
    pub(crate) fn unread(&self) -> BTreeSet<String> {
        let tenants = self.tenants.iter();
        tenants
            .filter(|(_, tenant)| is_unread(&tenant.reading))
            .map(|(id, _)| id.to_string())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;
    use crate::places::Places;

    fn registry(place: &TempDir) -> Registry {
        let places = Places {
            tenants: place.path().join("tenants"),
            themes: None,
            deployment: None,
            origin: "https://studio.example".parse().expect("an origin"),
            hsts: None,
            caching: render::policy::Caching::default(),
        };
        let bundle = rowhouse_ui::Bundle::embedded().expect("the islands");
        Registry::new(places, Arc::new(render::Islands::new(bundle, true)))
    }

    #[test]
    fn what_is_taken_back_while_it_is_read_is_read_once_more() {
        let place = TempDir::new().expect("a folder");
        let path = place.path().join("tenants/corner");
        fs::create_dir_all(path.join("pages")).expect("a folder");
        let page = "---\ntitle: Corner\n---\nWelcome.\n";
        fs::write(path.join("pages/index.md"), page).expect("a file");
        let save = |text: &str| fs::write(path.join("tenant.yaml"), text).expect("a file");
        let id = TenantId::new("corner").expect("an id");
        let now = Timestamp::UNIX_EPOCH;
        let mut registry = registry(&place);
        let order = |registry: &mut Registry| registry.reading(id.clone(), path.clone());
        let take = |registry: &mut Registry, done: Done| match done {
            Done::Read(number, read) => registry.take_reading(&id, number, read, now),
            other => panic!("{other:?} is no reading"),
        };
        let run = |job: Job<Done>| (job.work)(false).finish();
        save("name: Corner\n");
        let first = order(&mut registry);
        take(&mut registry, run(first));

        save("name: Korner\n");
        let second = order(&mut registry);
        let read = run(second);
        save("name: Corner\n");
        // The second is under way still.
        let third = order(&mut registry);
        take(&mut registry, read);
        take(&mut registry, run(third));

        let site = registry.tenants[&id].site.as_ref().expect("a site");
        assert_eq!(site.manifest.name, "Corner");
    }
}
