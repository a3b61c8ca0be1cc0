//! The owners of addresses, and the limits that `deployment.yaml` sets.
//!
//! - A file that cannot be read or has errors changes nothing: the limits in force stay. With persisted data they also stay after a restart.
//! - A file with errors closes the deployment at a startup without an earlier state: each tenant has only the host and path of its id.
//! - The limits of a removed file stay in force until the process starts again without the file.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tracing::warn;

use crate::deployment_config::DeploymentConfig;
use crate::runner::catalog::tenant::{TenantData, one_line};
use crate::state::tables::PersistedState;
use content::address::deployment::DeploymentFile;
use content::address::{self, AddressRules, Assignment, Origin};
use content::name::TenantId;
use content::report::{Code, Diagnostic, Report, Severity};
use content::tenant::Site;

/// The assigned addresses, and the `deployment.yaml` in force.
#[derive(Debug, Default)]
pub(crate) struct AssignedAddresses {
    /// The last assignment.
    assignment: Arc<Assignment>,
    /// The tenants of the last assignment, with their content.
    assigned_to: BTreeMap<TenantId, Option<Arc<Site>>>,
    deployment: Option<DeploymentFile>,
    /// Whether the file in force has changed since the last assignment.
    is_new: bool,
    /// The diagnostics of the file.
    report: Report,
    /// The alarm for operators while the file has errors.
    alarm: Option<String>,
}

impl AssignedAddresses {
    /// Restores the persisted owners of addresses.
    pub(crate) fn restore(&mut self, persisted: &PersistedState) {
        let assignment = Assignment {
            owners: persisted.owners(),
            ..Assignment::default()
        };
        self.assignment = Arc::new(assignment);
    }

    /// Applies the text of the file, or the reason that it cannot be read.
    pub(crate) fn read(
        &mut self,
        config: &DeploymentConfig,
        text: Result<Option<String>, Diagnostic>,
        persisted: Option<&PersistedState>,
    ) {
        self.alarm = self.apply_file(config, text, persisted);
    }

    /// Returns the alarm for operators, if the file has errors.
    pub(crate) fn alarm(&self) -> Option<&str> {
        self.alarm.as_deref()
    }

    /// Returns whether the file could not be read. A later attempt may succeed.
    pub(crate) fn is_unreadable(&self) -> bool {
        let mut report = self.report.iter();
        report.any(|diagnostic| diagnostic.code == Code::Unreadable)
    }

    fn apply_file(
        &mut self,
        config: &DeploymentConfig,
        text: Result<Option<String>, Diagnostic>,
        persisted: Option<&PersistedState>,
    ) -> Option<String> {
        let label = config.deployment_file().display().to_string();
        let is_wanted = config.deployment.is_some() || self.deployment.is_some();
        let (read, report) = match text {
            Ok(Some(text)) => DeploymentFile::read(&label, &text),
            Ok(None) if !is_wanted => {
                self.report = Report::default();
                return None;
            }
            Ok(None) => (None, report_of_one(missing_file(&label))),
            Err(diagnostic) => (None, report_of_one(diagnostic)),
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
        let is_error = |diagnostic: &&Diagnostic| diagnostic.severity == Severity::Error;
        let first = self.report.iter().find(is_error)?;
        let meanwhile = match &self.deployment {
            Some(file) if file.is_valid() => "the last valid file stays in force",
            Some(_) => {
                "until the file is valid, each tenant has only the host and path of its id, and the domain has no root tenant"
            }
            None => "until the file is valid, manifests may claim any free address, as before",
        };
        let alarm = format!("{}; {meanwhile}", one_line(first));
        if is_new {
            warn!(file = label, code = first.code.as_str(), "{alarm}");
        }
        Some(alarm)
    }

    /// Assigns all addresses again, and records the conflicts of each tenant. Returns the previous `Arc` if no tenant of `only` (of all tenants if `None`) claims other addresses.
    pub(crate) fn assign(
        &mut self,
        origin: &Origin,
        tenants: &mut BTreeMap<TenantId, Box<TenantData>>,
        only: Option<&BTreeSet<TenantId>>,
    ) -> Arc<Assignment> {
        if self.is_same(tenants, only) {
            let known = only.map_or_else(|| tenants.keys().collect(), |only| only.iter().collect());
            let known: Vec<&TenantId> = known;
            for id in known {
                if let Some(tenant) = tenants.get(id) {
                    self.assigned_to
                        .insert(id.clone(), tenant.content.site.clone());
                }
            }
            return Arc::clone(&self.assignment);
        }
        let rules = AddressRules {
            origin,
            deployment: self.deployment.as_ref(),
            before: &self.assignment.owners,
        };
        let sites = tenants.iter();
        let sites = sites.map(|(id, tenant)| (id, tenant.content.site.as_deref()));
        let mut assignment = address::assign(rules, sites);
        for (id, tenant) in tenants.iter_mut() {
            tenant.reports.conflicts = assignment.conflicts.remove(id).unwrap_or_default();
        }
        let sites = tenants.iter();
        self.assigned_to = sites
            .map(|(id, tenant)| (id.clone(), tenant.content.site.clone()))
            .collect();
        self.is_new = false;
        self.assignment = Arc::new(assignment);
        Arc::clone(&self.assignment)
    }

    /// Returns whether another assignment would change nothing: the tenants and their claims are the same.
    ///
    /// Returns `false` if a tenant with new content is the root tenant or has conflicts, since its diagnostics may change.
    fn is_same(
        &self,
        tenants: &BTreeMap<TenantId, Box<TenantData>>,
        only: Option<&BTreeSet<TenantId>>,
    ) -> bool {
        let root = self.assignment.root.as_ref();
        let is_same = |id: &TenantId| {
            let Some((before, tenant)) = self.assigned_to.get(id).zip(tenants.get(id)) else {
                return false;
            };
            match (before, &tenant.content.site) {
                (None, None) => true,
                (Some(before), Some(now)) => {
                    Arc::ptr_eq(before, now)
                        || (Some(id) != root
                            && tenant.reports.conflicts.is_empty()
                            && has_same_claims(before, now))
                }
                _ => false,
            }
        };
        !self.is_new
            && self.assigned_to.len() == tenants.len()
            && match only {
                Some(only) => only.iter().all(is_same),
                None => tenants.keys().all(is_same),
            }
    }

    /// Returns the diagnostics of the file. `known`: the ids of all tenants, since the file may list other ids.
    pub(crate) fn report<'a>(
        &'a self,
        known: impl Iterator<Item = &'a str> + Clone,
    ) -> Vec<Diagnostic> {
        let unknown_tenants = self
            .deployment
            .iter()
            .map(|file| file.unknown_tenants(known.clone()));
        self.report
            .iter()
            .cloned()
            .chain(unknown_tenants.flatten())
            .collect()
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
