//! Reads the tenants' folders, and checks those that changed.
//!
//! Each folder is read and checked by itself on the [`super::workers`], so that a huge one holds up nobody.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;

use super::compile::Done;
use super::kept::{KeptMemo, kept_retired, kept_site};
use super::retired::Retired;
use super::tenant::{Tenant, failure, is_unread};
use super::workers::{Job, Kind};
use super::{Estate, ReloadError};
use content::name::{TenantId, TenantIdError};
use content::report::guard::guard;
use content::report::{Code, Diagnostic, Report, Severity};
use content::source::{self, Folder, Limits};
use content::tenant::Site;
use release::state::State;

impl Estate {
    /// The tenants' folders. None at all, where there were some, is more likely an unmounted volume than a wish.
    pub(super) fn list(&self) -> Result<BTreeMap<String, PathBuf>, ReloadError> {
        let folders = source::list(&self.places.tenants)?;
        let kept = self.kept.as_ref().and_then(|kept| kept.tenants().next());
        if folders.is_empty() && (!self.tenants.is_empty() || kept.is_some()) {
            return Err(ReloadError::Emptied(self.places.tenants.clone()));
        }
        Ok(folders)
    }

    /// Takes all tenants from what was kept, at a start that finds no folders.
    pub(super) fn restore(&mut self, now: Timestamp) -> bool {
        let Some(kept) = self.kept.as_ref().filter(|_| self.tenants.is_empty()) else {
            return false;
        };
        for name in kept.tenants() {
            let label = self.places.tenants.join(name).display().to_string();
            let Ok(id) = TenantId::new(name) else {
                continue;
            };
            let find = || kept.site(&id, &label);
            if let Ok(Some(site)) = guard("kept", name, &label, find) {
                let secure = self.places.origin.is_secure();
                let retired = kept_retired(kept.state(), &id, false, secure);
                let mut tenant = Tenant::new(KeptMemo::of_tenant(kept.state(), &id), retired);
                tenant.take(site, now, self.islands.dev.is_some());
                let message = "the folder is gone; its last good copy is served";
                let mistake = Diagnostic::mistake(Code::Unreadable, label, message);
                tenant.content.push(mistake);
                self.tenants.insert(id, tenant);
            }
        }
        !self.tenants.is_empty()
    }

    /// Hands over the folders of `only` (all without them) and of tenants that are new, to be read and checked.
    pub(super) fn read_tenants(
        &mut self,
        folders: BTreeMap<String, PathBuf>,
        only: Option<&BTreeSet<String>>,
    ) {
        self.notes = Report::default();
        let mut present = BTreeSet::new();
        let mut jobs = Vec::new();
        for (name, path) in folders {
            let label = path.display().to_string();
            match TenantId::new(&name) {
                Ok(id) => {
                    present.insert(id.clone());
                    let known = self.tenants.contains_key(&id);
                    if !known || only.is_none_or(|only| only.contains(&name)) {
                        jobs.push(self.reading(id, path, label));
                    }
                }
                Err(error) => {
                    let severity = match error {
                        TenantIdError::NotAHostLabel(_) => Severity::Note,
                        TenantIdError::Reserved(_) => Severity::Mistake,
                    };
                    let message = error.to_string();
                    let diagnostic = Diagnostic::mistake(Code::BadFolderName, label, message)
                        .hint("rename the folder: its name is the tenant's host and path");
                    self.notes.push(Diagnostic {
                        severity,
                        ..diagnostic
                    });
                }
            }
        }
        self.tenants.retain(|id, _| present.contains(id));
        if let Some(kept) = &mut self.kept {
            kept.keep_only(&present);
        }
        self.workers.hand_over(jobs);
    }

    /// A job that reads a folder and checks what is in it.
    fn reading(&mut self, id: TenantId, path: PathBuf, label: String) -> Job<Done> {
        let state = self.kept.as_ref().map(|kept| Arc::clone(kept.state()));
        let is_new = !self.tenants.contains_key(&id);
        let entry = self.tenants.entry(id.clone());
        let tenant = entry.or_insert_with(|| Tenant::new(KeptMemo::default(), Retired::default()));
        self.readings += 1;
        tenant.asked = self.readings;
        let (number, state) = (self.readings, state.filter(|_| is_new));
        let secure = self.places.origin.is_secure();
        let known = tenant
            .fingerprint
            .map(|known| (known, tenant.reading.clone()));
        Job {
            id: id.clone(),
            kind: Kind::Read,
            work: Box::new(move || {
                let work = || Read::of(&id, &path, &label, known, state.as_deref());
                let read = guard("read", id.as_str(), &label, work);
                let mut read =
                    read.unwrap_or_else(|diagnostic| Some(Read::failed(&label, diagnostic)));
                if let (Some(read), Some(state)) = (&mut read, &state) {
                    let is_same = read.is_kept();
                    read.retired = Some(kept_retired(state, &id, is_same, secure));
                }
                if let (Some(read), Some(state)) = (&mut read, &state)
                    && read.good_site().is_none()
                {
                    let kept = || kept_site(state, &id, &label);
                    read.last_good = guard("kept", id.as_str(), &label, kept).ok().flatten();
                }
                Done::Read(number, read.map(Box::new))
            }),
        }
    }

    /// Takes what a folder holds, unless something newer was taken before.
    pub(super) fn take_reading(
        &mut self,
        id: &TenantId,
        number: u64,
        read: Option<Box<Read>>,
        now: Timestamp,
    ) {
        let drafts = self.is_dev();
        let Some(tenant) = self
            .tenants
            .get_mut(id)
            .filter(|tenant| tenant.taken < number)
        else {
            return;
        };
        tenant.taken = number;
        let Some(mut read) = read else {
            return;
        };
        if let Some(memo) = read.memo {
            tenant.kept = memo;
        }
        if let Some(retired) = read.retired {
            tenant.retired = retired;
        }
        if read.report.is_servable()
            && let Some(site) = read.site
        {
            tenant.take(site, now, drafts);
            tenant.pending = self.kept.is_some().then_some(read.folder);
        } else if tenant.site.is_none()
            && let Some(site) = read.last_good.take()
        {
            tenant.take(site, now, drafts);
        }
        tenant.content = read.report;
        tenant.reading = read.reading;
        tenant.fingerprint = read.fingerprint;
    }

    /// The tenants that the system would not give all files of. It may do so the next time.
    pub(super) fn unread(&self) -> BTreeSet<String> {
        let tenants = self.tenants.iter();
        tenants
            .filter(|(_, tenant)| is_unread(&tenant.reading))
            .map(|(id, _)| id.to_string())
            .collect()
    }
}

/// A folder that is not as it was.
#[derive(Debug)]
pub(super) struct Read {
    folder: Folder,
    /// Not known where reading failed, so that it is read whatever it holds the next time.
    fingerprint: Option<[u8; 32]>,
    /// What reading said, apart from what the content is.
    reading: Report,
    /// Its content, when that could be made out.
    site: Option<Site>,
    report: Report,
    /// What was kept of a tenant that is new, where its folder is of no use.
    last_good: Option<Site>,
    /// What was worked out for a tenant that is new.
    memo: Option<KeptMemo>,
    /// The files that such a tenant had before.
    retired: Option<Retired>,
}

impl Read {
    /// Reads a folder and checks it; `None` when it is as it was. `state`: where a tenant that is new may have been kept.
    fn of(
        id: &TenantId,
        path: &Path,
        label: &str,
        known: Option<([u8; 32], Report)>,
        state: Option<&State>,
    ) -> Option<Self> {
        let (folder, reading) = source::read(path, label, Limits::default());
        let fingerprint = folder.fingerprint();
        if known.is_some_and(|known| known == (fingerprint, reading.clone())) {
            return None;
        }
        // Of a folder that could not be read at all, what it lacks is no news.
        let is_read = !folder.files.is_empty() || reading.is_servable();
        let check = || match is_read {
            true => content::tenant::read(id, &folder),
            false => (None, Report::default()),
        };
        let (site, problems) = guard("check", id.as_str(), label, check)
            .unwrap_or_else(|diagnostic| (None, failure(diagnostic)));
        let mut report = reading.clone();
        report.extend(problems);
        Some(Self {
            memo: state.map(|state| KeptMemo::of_tenant(state, id)),
            retired: None,
            folder,
            fingerprint: Some(fingerprint),
            reading,
            site,
            report,
            last_good: None,
        })
    }

    /// Whether the folder is the one that was kept.
    fn is_kept(&self) -> bool {
        let memo = self.memo.as_ref().zip(self.fingerprint.as_ref());
        memo.is_some_and(|(memo, fingerprint)| memo.is_good(fingerprint))
    }

    fn good_site(&self) -> Option<&Site> {
        self.site.as_ref().filter(|_| self.report.is_servable())
    }

    fn failed(label: &str, diagnostic: Diagnostic) -> Self {
        Self {
            folder: Folder {
                label: label.to_owned(),
                ..Folder::default()
            },
            fingerprint: None,
            reading: Report::default(),
            site: None,
            report: failure(diagnostic),
            last_good: None,
            memo: None,
            retired: None,
        }
    }
}
