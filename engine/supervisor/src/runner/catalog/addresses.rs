//! The owners of addresses, and the limits that `deployment.yaml` sets. [`access`](super::access) has the rules of access.
//!
//! - A file that cannot be read or has errors changes nothing: the limits in force stay. With persisted data they also stay after a restart.
//! - A file with errors closes the deployment at a startup without an earlier state: each tenant has only the host and path of its id.
//! - The limits of a removed file stay in force until the process starts again without the file.
//! - A file that ends the protection of a tenant is in force once it was unchanged for [`OPENING_DELAY`]: the beginning of a file that is being written is often valid, too. At a startup with persisted data, the last valid file of the earlier process is in force until then.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::{info, warn};

use crate::deployment_config::DeploymentConfig;
use crate::runner::catalog::access::{AccessControl, FileState, PersistedAccess};
use crate::runner::catalog::tenant::{TenantData, one_line};
use crate::state::tables::PersistedState;
use content::address::deployment::{DeploymentFile, may_protect};
use content::address::{self, AddressRules, Assignment, Origin};
use content::name::TenantId;
use content::report::{Code, Diagnostic, Report, Severity};
use content::tenant::Site;
use jiff::Timestamp;
use release::snapshot::access::AccessTable;

/// The time that a file is unchanged before it ends the protection of a tenant. Longer than the pauses of a slow upload.
const OPENING_DELAY: Duration = Duration::from_secs(2);

/// The assigned addresses, and the `deployment.yaml` in force.
#[derive(Debug, Default)]
pub(crate) struct AssignedAddresses {
    /// The last assignment.
    assignment: Arc<Assignment>,
    /// The tenants of the last assignment, with their content.
    assigned_to: BTreeMap<TenantId, Option<Arc<Site>>>,
    /// The tenants that may get addresses when other tenants give them up: tenants with refused claims, and tenants without content.
    waiting: BTreeSet<TenantId>,
    deployment: Option<DeploymentFile>,
    /// A valid text of the file that ends the protection of a tenant, and the time when the text was first read.
    opening: Option<(String, Instant)>,
    access: AccessControl,
    /// Whether the file in force has changed since the last assignment.
    is_new: bool,
    /// The diagnostics of the file.
    report: Report,
    /// The alarm for operators while the file has errors.
    alarm: Option<String>,
    /// The alarm for operators while tenants are closed because the file may misspell their names.
    misspelt_alarm: Option<String>,
}

/// The tenants whose addresses an assignment has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddressChanges {
    /// No tenant has other addresses.
    None,
    /// Only the tenants that were added, changed or removed may have other addresses.
    OfChangedTenants,
    /// Any tenant may have other addresses, and the root may be another tenant.
    OfAnyTenant,
}

impl AssignedAddresses {
    /// Restores the persisted owners of addresses.
    pub(crate) fn restore(&mut self, persisted: &PersistedState) {
        let assignment = Assignment {
            owners: persisted.owners(),
            ..Assignment::default()
        };
        self.assignment = Arc::new(assignment);
        self.access.restore(persisted.access());
    }

    /// Applies the text of the file, or the reason that it cannot be read.
    pub(crate) fn read(
        &mut self,
        config: &DeploymentConfig,
        text: Result<Option<String>, Diagnostic>,
        persisted: Option<&PersistedState>,
        now: Instant,
    ) {
        if self.is_opening_early(config, &text, now) {
            if self.deployment.is_none() {
                let before = persisted.and_then(PersistedState::deployment);
                self.alarm = self.apply_file(config, Ok(before), persisted);
            }
            return;
        }
        let is_origin_confidential = config.origin.is_secure() || config.origin.is_loopback();
        let alarm = self.apply_file(config, text, persisted);
        self.alarm = alarm.or_else(|| {
            let is_unreachable = self.access.has_protected() && !is_origin_confidential;
            is_unreachable.then(|| without_https(&config.origin))
        });
    }

    /// Returns the rules of access in force.
    pub(crate) fn access(&self) -> Arc<AccessTable> {
        self.access.table()
    }

    /// Returns the tenant that the file in force puts at the root of the origin.
    pub(crate) fn named_root(&self) -> Option<&str> {
        self.deployment.as_ref()?.claims.root.as_deref()
    }

    /// Returns the alarm for operators, if the file has errors.
    pub(crate) fn alarm(&self) -> Option<&str> {
        self.alarm.as_deref()
    }

    /// Returns the alarm for operators, if tenants are closed because the file may misspell their names.
    pub(crate) fn misspelt_alarm(&self) -> Option<&str> {
        self.misspelt_alarm.as_deref()
    }

    /// Returns whether the file in force has changed since the last assignment.
    pub(crate) const fn has_new_rules(&self) -> bool {
        self.is_new || self.access.is_new()
    }

    /// Returns whether the file has to be read again: it could not be read, or it ends the protection of a tenant.
    pub(crate) fn needs_another_read(&self) -> bool {
        let mut report = self.report.iter();
        self.opening.is_some() || report.any(|diagnostic| diagnostic.code == Code::Unreadable)
    }

    /// Returns whether the text ends the protection of a tenant and was not unchanged for [`OPENING_DELAY`].
    fn is_opening_early(
        &mut self,
        config: &DeploymentConfig,
        text: &Result<Option<String>, Diagnostic>,
        now: Instant,
    ) -> bool {
        let before = self.opening.take();
        let Ok(Some(text)) = text else {
            return false;
        };
        let label = config.deployment_file().display().to_string();
        let (Some(file), _) = DeploymentFile::read(&label, text) else {
            return false;
        };
        let opened = self.access.opened_by(&file);
        if opened.is_empty() {
            return false;
        }
        let since = match before {
            Some((known, since)) if known == *text => since,
            _ => {
                info!(
                    file = label,
                    tenants = opened.join(", "),
                    wait_ms = OPENING_DELAY.as_millis(),
                    "the file ends the protection of tenants; waiting until it is unchanged"
                );
                now
            }
        };
        let is_early = now.saturating_duration_since(since) < OPENING_DELAY;
        if is_early {
            self.opening = Some((text.clone(), since));
        }
        is_early
    }

    fn apply_file(
        &mut self,
        config: &DeploymentConfig,
        text: Result<Option<String>, Diagnostic>,
        persisted: Option<&PersistedState>,
    ) -> Option<String> {
        let label = config.deployment_file().display().to_string();
        let is_wanted = config.deployment.is_some() || self.deployment.is_some();
        let mut state = FileState::Missing;
        let (read, report) = match text {
            Ok(Some(text)) => {
                let (read, report) = DeploymentFile::read(&label, &text);
                state = match read {
                    Some(_) => FileState::Valid,
                    None => FileState::Invalid {
                        may_protect: may_protect(&text),
                    },
                };
                (read, report)
            }
            Ok(None) if !is_wanted => {
                self.update_access(FileState::Absent);
                self.report = match self.access.has_protected() {
                    true => report_of_one(missing_protection(&label)),
                    false => Report::default(),
                };
                return self.access_alarm();
            }
            Ok(None) => (None, report_of_one(missing_file(&label))),
            Err(diagnostic) => {
                state = FileState::Invalid { may_protect: true };
                (None, report_of_one(diagnostic))
            }
        };
        let is_new = self.report != report;
        self.report = report;
        let text = |file: &DeploymentFile| file.text().to_owned();
        let before = self.deployment.as_ref().map(text);
        if read.is_some() {
            self.is_new |= read.as_ref().map(text) != before;
            self.deployment = read;
        } else if self.deployment.is_none() {
            let in_force = persisted.and_then(PersistedState::deployment);
            // If addresses were assigned without a file, only a valid file changes that. A deployment with `--deployment` is closed until the file is valid.
            let is_open = in_force.is_none()
                && config.deployment.is_none()
                && !self.assignment.owners.is_empty();
            if !is_open {
                self.is_new = true;
                self.deployment = in_force
                    .filter(|text| !text.is_empty())
                    .and_then(|text| DeploymentFile::read(&label, &text).0)
                    .or_else(|| Some(DeploymentFile::empty(&label)));
            }
        }
        self.update_access(state);
        let is_error = |diagnostic: &&Diagnostic| diagnostic.severity == Severity::Error;
        let first = self.report.iter().find(is_error)?;
        let meanwhile = match &self.deployment {
            Some(file) if file.is_valid() => "the last valid file stays in force",
            Some(_) => {
                "until the file is valid, each tenant has only the host and path of its id, and the domain has no root tenant"
            }
            None => "until the file is valid, manifests may claim any free address, as before",
        };
        let mut alarm = format!("{}; {meanwhile}", one_line(first));
        if let Some(closed) = self.access.closed_sentence() {
            alarm = format!("{alarm}; {closed}");
        }
        if is_new {
            warn!(file = label, code = first.code.as_str(), "{alarm}");
        }
        Some(alarm)
    }

    /// Applies the state of the file to the rules of access.
    fn update_access(&mut self, state: FileState) {
        let in_force = self.deployment.as_ref().filter(|file| file.is_valid());
        let tenants = self.assignment.owners.values().collect();
        self.access.update(state, in_force, &tenants);
        // A snapshot that is assembled before the next assignment must not open a tenant. Before the first assignment, no tenant has an address.
        let known = &self.assigned_to;
        if !known.is_empty() {
            self.access.close_misspelt(
                in_force,
                known.keys().map(TenantId::as_str),
                |id| known.contains_key(id),
                |_| false,
            );
        }
    }

    /// Returns the alarm of an absent file that protected tenants.
    fn access_alarm(&self) -> Option<String> {
        let first = self.report.iter().next()?;
        let closed = self.access.closed_sentence().unwrap_or_default();
        let alarm = format!("{}; {closed}", one_line(first));
        warn!(file = first.file, code = first.code.as_str(), "{alarm}");
        Some(alarm)
    }

    /// Assigns addresses, and records the conflicts of each tenant. `only`: the tenants that were added, changed or removed; all tenants if `None`.
    pub(crate) fn assign(
        &mut self,
        origin: &Origin,
        tenants: &mut BTreeMap<TenantId, Box<TenantData>>,
        only: Option<&BTreeSet<TenantId>>,
    ) -> AddressChanges {
        let is_listed_before = |id: &TenantId| self.assigned_to.contains_key(id);
        let is_listing_same = |only: &BTreeSet<TenantId>| {
            only.iter()
                .all(|id| is_listed_before(id) == tenants.contains_key(id))
        };
        if self.has_new_rules() || !only.is_some_and(is_listing_same) {
            self.close_misspelt(tenants);
        }
        let only = only.filter(|_| !self.has_new_rules());
        let Some(only) = only else {
            return self.assign_all(origin, tenants);
        };
        let changed = || only.iter().filter(|id| !self.is_same(id, tenants));
        if changed().next().is_none() {
            self.note_contents(only, tenants);
            return AddressChanges::None;
        }
        let Some(assignment) = self.assign_changed(origin, tenants, changed().collect()) else {
            return self.assign_all(origin, tenants);
        };
        self.apply(assignment, only, tenants);
        AddressChanges::OfChangedTenants
    }

    /// Closes the tenants whose names the file may misspell.
    fn close_misspelt(&mut self, tenants: &BTreeMap<TenantId, Box<TenantData>>) {
        let file = self.deployment.as_ref().filter(|file| file.is_valid());
        let ids = tenants.keys().map(TenantId::as_str);
        // At startup, the tenants of an earlier process are those with addresses.
        let former: BTreeSet<&str> = match self.assigned_to.is_empty() {
            true => self
                .assignment
                .owners
                .values()
                .map(TenantId::as_str)
                .collect(),
            false => BTreeSet::new(),
        };
        self.access.close_misspelt(
            file,
            ids.clone(),
            |id| tenants.contains_key(id),
            |id| !self.assigned_to.contains_key(id) && !former.contains(id),
        );
        let unknown = file.and_then(|file| {
            let unknown = file.unknown_tenants(ids, self.access.misspelt());
            let is_error = |diagnostic: &Diagnostic| diagnostic.severity == Severity::Error;
            unknown.into_iter().find(is_error)
        });
        let alarm = unknown.map(|first| {
            let hint = first.hint.as_deref().unwrap_or_default();
            format!("{}; {hint}", one_line(&first))
        });
        if let Some(alarm) = &alarm
            && self.misspelt_alarm.as_ref() != Some(alarm)
        {
            warn!(code = Code::UnknownTenant.as_str(), "{alarm}");
        }
        self.misspelt_alarm = alarm;
    }

    /// Assigns the addresses of all tenants again.
    fn assign_all(
        &mut self,
        origin: &Origin,
        tenants: &mut BTreeMap<TenantId, Box<TenantData>>,
    ) -> AddressChanges {
        let sites = tenants.iter();
        let sites = sites.map(|(id, tenant)| (id, tenant.content.site.as_deref()));
        let assignment = address::assign(self.rules(origin), sites);
        let mut all: BTreeSet<TenantId> = tenants.keys().cloned().collect();
        all.extend(self.assigned_to.keys().cloned());
        self.apply(assignment, &all, tenants);
        self.is_new = false;
        self.access.mark_applied();
        AddressChanges::OfAnyTenant
    }

    /// Assigns the addresses of these tenants. Returns `None` if the addresses of other tenants may change.
    fn assign_changed(
        &self,
        origin: &Origin,
        tenants: &BTreeMap<TenantId, Box<TenantData>>,
        changed: BTreeSet<&TenantId>,
    ) -> Option<Assignment> {
        let site_of = |id: &TenantId| tenants.get(id)?.content.site.as_deref();
        // A tenant that was never valid keeps the addresses of its former claims, which only a complete assignment finds.
        let is_unknown = |id: &&TenantId| {
            let was_unknown = self.assigned_to.get(*id).is_some_and(Option::is_none);
            was_unknown || (tenants.contains_key(*id) && site_of(id).is_none())
        };
        if changed.iter().any(is_unknown) {
            return None;
        }
        let root = self.assignment.root.as_ref().and_then(site_of);
        let has_refused = self.waiting.iter().any(|id| !changed.contains(id));
        let changed = changed.into_iter().map(|id| (id, site_of(id))).collect();
        let rules = self.rules(origin);
        address::assign_changed(rules, &self.assignment, &changed, root, has_refused)
    }

    fn rules<'a>(&'a self, origin: &'a Origin) -> AddressRules<'a> {
        AddressRules {
            origin,
            deployment: self.deployment.as_ref(),
            before: &self.assignment.owners,
        }
    }

    /// Records an assignment with the content and the conflicts of these tenants.
    fn apply(
        &mut self,
        mut assignment: Assignment,
        concerned: &BTreeSet<TenantId>,
        tenants: &mut BTreeMap<TenantId, Box<TenantData>>,
    ) {
        for id in concerned {
            let conflicts = assignment.conflicts.remove(id).unwrap_or_default();
            let mut is_waiting = false;
            if let Some(tenant) = tenants.get_mut(id) {
                is_waiting = !conflicts.is_empty() || tenant.content.site.is_none();
                tenant.reports.conflicts = conflicts;
            }
            match is_waiting {
                true => drop(self.waiting.insert(id.clone())),
                false => drop(self.waiting.remove(id)),
            }
        }
        self.note_contents(concerned, tenants);
        self.assignment = Arc::new(assignment);
    }

    /// Records the content of these tenants, to which addresses are assigned.
    fn note_contents(
        &mut self,
        concerned: &BTreeSet<TenantId>,
        tenants: &BTreeMap<TenantId, Box<TenantData>>,
    ) {
        for id in concerned {
            match tenants.get(id) {
                Some(tenant) => {
                    let content = tenant.content.site.clone();
                    self.assigned_to.insert(id.clone(), content);
                }
                None => drop(self.assigned_to.remove(id)),
            }
        }
    }

    /// Returns whether another assignment would not change the addresses and conflicts of a tenant, and of other tenants because of this tenant.
    fn is_same(&self, id: &TenantId, tenants: &BTreeMap<TenantId, Box<TenantData>>) -> bool {
        let is_root = self.assignment.root.as_ref() == Some(id);
        let before = self.assigned_to.get(id);
        let now = tenants.get(id).map(|tenant| &tenant.content.site);
        match (before, now) {
            (None, None) | (Some(None), Some(None)) => true,
            (Some(Some(before)), Some(Some(now))) => {
                // The diagnostics of refused claims have positions in the manifest, or in pages of the root tenant.
                let is_unaffected = match is_root {
                    true => self.waiting.is_empty() && address::has_same_paths(before, now),
                    false => !self.waiting.contains(id),
                };
                Arc::ptr_eq(before, now) || (is_unaffected && has_same_claims(before, now))
            }
            _ => false,
        }
    }

    /// Returns the diagnostics of the file at the time `now`. `known`: the ids of all tenants, since the file may list other ids.
    pub(crate) fn report<'a>(
        &'a self,
        known: impl Iterator<Item = &'a str> + Clone,
        now: Timestamp,
    ) -> Vec<Diagnostic> {
        let warnings = self.deployment.iter().flat_map(|file| {
            let unknown_tenants = file
                .unknown_tenants(known.clone(), self.access.misspelt())
                .into_iter();
            unknown_tenants.chain(file.expired_credentials(now))
        });
        self.report.iter().cloned().chain(warnings).collect()
    }

    /// Returns the last assignment.
    pub(crate) const fn assignment(&self) -> &Arc<Assignment> {
        &self.assignment
    }

    /// Returns the data to persist: the last assignment, and the text of the file in force. The text is empty if the file was never valid.
    pub(crate) fn persistable(&self) -> (&Arc<Assignment>, Option<&str>) {
        let in_force = self.deployment.as_ref().map(DeploymentFile::text);
        (&self.assignment, in_force)
    }

    /// Returns the facts about access to persist.
    pub(crate) fn persistable_access(&self) -> PersistedAccess {
        let tenants = self.assignment.owners.values();
        self.access.persistable(tenants)
    }
}

/// Returns whether two versions of a manifest claim the same addresses.
fn has_same_claims(before: &Site, now: &Site) -> bool {
    let (before, now) = (&before.manifest, &now.manifest);
    before.root == now.root
        && before.hosts == now.hosts
        && before.aliases == now.aliases
        && before.canonical == now.canonical
}

fn report_of_one(diagnostic: Diagnostic) -> Report {
    let mut report = Report::default();
    report.push(diagnostic);
    report
}

fn missing_file(label: &str) -> Diagnostic {
    Diagnostic::error(Code::Unreadable, label, "the file does not exist").hint(
        "restore the file, or restart without `--deployment`; without the file, manifests may claim any free address",
    )
}

fn missing_protection(label: &str) -> Diagnostic {
    let message = "the file does not exist, and it protected tenants";
    Diagnostic::error(Code::Unreadable, label, message).hint(
        "restore the file; to open the tenants, write the file without their `access`, for example `tenants: {}`",
    )
}

fn without_https(origin: &Origin) -> String {
    format!(
        "protected tenants answer 403: visitors reach {origin} without HTTPS; serve HTTPS, and start with `--origin https://...`"
    )
}
