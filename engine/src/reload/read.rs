//! Reads the tenants' folders, and checks those that changed.
//!
//! Each folder is read and checked by itself, so that all processors work on a first start.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rayon::prelude::*;

use super::kept::{Kept, KeptMemo};
use super::tenant::Tenant;
use super::{Estate, ReloadError};
use crate::name::{TenantId, TenantIdError};
use crate::report::{Code, Diagnostic, Report, Severity};
use crate::source::{self, Folder, Limits};
use crate::tenant::Site;

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
            if let Some(site) = kept.site(&id, &label) {
                let mut tenant = Tenant::new(kept.tenant_memo(&id));
                tenant.take(site, now, self.islands.dev.is_some());
                let message = "the folder is gone; its last good copy is served";
                let mistake = Diagnostic::mistake(Code::Unreadable, label, message);
                tenant.content.push(mistake);
                self.tenants.insert(id, tenant);
            }
        }
        !self.tenants.is_empty()
    }

    /// Reads the folders of `only` (all without them) and of tenants that are new, and checks what changed.
    pub(super) fn read_tenants(
        &mut self,
        folders: &BTreeMap<String, PathBuf>,
        only: Option<&BTreeSet<String>>,
        now: Timestamp,
    ) {
        self.notes = Report::default();
        let mut present = BTreeSet::new();
        let mut wanted = Vec::new();
        for (name, path) in folders {
            let label = path.display().to_string();
            match TenantId::new(name) {
                Ok(id) => {
                    present.insert(id.clone());
                    let known = self.tenants.contains_key(&id);
                    if !known || only.is_none_or(|only| only.contains(name)) {
                        wanted.push((id, path, label));
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
        let (known, kept) = (&self.tenants, self.kept.as_ref());
        let read: Vec<(TenantId, Read)> = wanted
            .into_par_iter()
            .filter_map(|(id, path, label)| {
                let read = Read::of(&id, path, &label, known.get(&id), kept)?;
                Some((id, read))
            })
            .collect();
        for (id, read) in read {
            let entry = self.tenants.entry(id.clone());
            let tenant = entry.or_insert_with(|| Tenant::new(read.memo.unwrap_or_default()));
            if let (Some(site), true) = (read.site, read.report.is_servable()) {
                tenant.take(site, now, self.islands.dev.is_some());
                tenant.pending = self.kept.is_some().then_some(read.folder);
            } else if tenant.site.is_none()
                && let Some(kept) = &self.kept
                && let Some(site) = kept.site(&id, &read.folder.label)
            {
                tenant.take(site, now, self.islands.dev.is_some());
            }
            tenant.content = read.report;
            tenant.fingerprint = read.fingerprint;
        }
    }
}

/// A folder that is not as it was.
struct Read {
    folder: Folder,
    /// Nothing when something in the folder could not be read: the same files without it are another folder.
    fingerprint: Option<[u8; 32]>,
    /// Its content, when that could be made out.
    site: Option<Site>,
    report: Report,
    /// What was worked out for a tenant that is new.
    memo: Option<KeptMemo>,
}

impl Read {
    /// Reads a folder and checks it; `None` when it is as it was.
    fn of(
        id: &TenantId,
        path: &Path,
        label: &str,
        known: Option<&Tenant>,
        kept: Option<&Kept>,
    ) -> Option<Self> {
        let (folder, mut report) = source::read(path, label, Limits::default());
        let fingerprint = (report == Report::default()).then(|| folder.fingerprint());
        let before = known.and_then(|tenant| tenant.fingerprint);
        if fingerprint.is_some() && fingerprint == before {
            return None;
        }
        // Of a folder that could not be read at all, what it lacks is no news.
        let is_read = !folder.files.is_empty() || report.is_servable();
        let (site, problems) = match is_read {
            true => crate::tenant::read(id, &folder),
            false => (None, Report::default()),
        };
        report.extend(problems);
        Some(Self {
            memo: kept
                .filter(|_| known.is_none())
                .map(|kept| kept.tenant_memo(id)),
            folder,
            fingerprint,
            site,
            report,
        })
    }
}
