//! Who has which address, and what `deployment.yaml` says of it.
//!
//! A file that cannot be read or has an error changes nothing: what it last said stays in force, over a restart, too, where there is a state. Where it never said anything good, tenants have their names and nothing else.
//! A file that goes away does not open what it closed, either, unless the process is started anew without it.

use std::collections::BTreeMap;

use tracing::warn;

use super::persisted::Persisted;
use super::places::Places;
use super::tenant::{Tenant, one_line};
use content::address::deployment::{DeploymentFile, FILE};
use content::address::{self, Assignment, Origin, Owners, Rules};
use content::name::TenantId;
use content::report::{Code, Diagnostic, Report, Severity};
use content::source;

/// The most bytes of the file.
const MOST: u64 = 1 << 20;

/// The addresses as their owner keeps them.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    owners: Owners,
    deployment: Option<DeploymentFile>,
    /// What is wrong with the file.
    report: Report,
    /// What operators have to be told of it.
    alarm: Option<String>,
}

impl Addresses {
    /// Takes up who had what.
    pub(super) fn kept(persisted: &Persisted) -> Self {
        Self {
            owners: persisted.owners(),
            ..Self::default()
        }
    }

    /// Reads the file again.
    pub(super) fn read(&mut self, places: &Places, persisted: Option<&Persisted>) {
        self.alarm = self.read_file(places, persisted);
    }

    /// What operators have to be told of the file.
    pub(super) fn alarm(&self) -> Option<&str> {
        self.alarm.as_deref()
    }

    /// Whether the system would not give the file the last time. It may do so the next time.
    pub(super) fn is_unread(&self) -> bool {
        let mut report = self.report.iter();
        report.any(|diagnostic| diagnostic.code == Code::Unreadable)
    }

    fn read_file(&mut self, places: &Places, persisted: Option<&Persisted>) -> Option<String> {
        let path = match &places.deployment {
            Some(path) => path.clone(),
            None => places.tenants.join(FILE),
        };
        let label = path.display().to_string();
        let is_wanted = places.deployment.is_some() || self.deployment.is_some();
        let (read, report) = match source::text(&path, MOST) {
            Ok(Some(text)) => DeploymentFile::read(&label, &text),
            Ok(None) if !is_wanted => {
                self.report = Report::default();
                return None;
            }
            Ok(None) => (None, alone(gone(&label))),
            Err(diagnostic) => (None, alone(diagnostic)),
        };
        let is_new = self.report != report;
        self.report = report;
        if read.is_some() {
            self.deployment = read;
        } else if self.deployment.is_none() {
            let good = persisted.and_then(Persisted::deployment);
            self.deployment = good
                .and_then(|text| DeploymentFile::read(&label, &text).0)
                .or_else(|| Some(DeploymentFile::nothing(&label)));
        }
        let is_error = |one: &&Diagnostic| one.severity == Severity::Error;
        let first = self.report.iter().find(is_error)?;
        let meanwhile = match self
            .deployment
            .as_ref()
            .is_some_and(DeploymentFile::is_good)
        {
            true => "what it last said stays in force",
            false => {
                "until it is good, tenants have their names only, and nobody the domain's root"
            }
        };
        let alarm = format!("{}; {meanwhile}", one_line(first));
        if is_new {
            warn!(file = label, code = first.code.as_str(), "{alarm}");
        }
        Some(alarm)
    }

    /// Gives the addresses out anew, and tells every tenant what it did not get.
    pub(super) fn assign(
        &mut self,
        origin: &Origin,
        tenants: &mut BTreeMap<TenantId, Tenant>,
    ) -> Assignment {
        let rules = Rules {
            origin,
            deployment: self.deployment.as_ref(),
            before: &self.owners,
        };
        let sites = tenants.iter();
        let sites = sites.map(|(id, tenant)| (id, tenant.site.as_deref()));
        let mut assignment = address::assign(rules, sites);
        for (id, tenant) in tenants {
            tenant.conflicts = assignment.conflicts.remove(id).unwrap_or_default();
        }
        self.owners.clone_from(&assignment.owners);
        assignment
    }

    /// Everything that is to say about the file.
    pub(super) fn report<'a>(
        &'a self,
        known: impl Iterator<Item = &'a str> + Clone,
    ) -> Vec<Diagnostic> {
        let strangers = self
            .deployment
            .iter()
            .map(|one| one.strangers(known.clone()));
        self.report
            .iter()
            .cloned()
            .chain(strangers.flatten())
            .collect()
    }

    pub(super) fn owners(&self) -> &Owners {
        &self.owners
    }

    /// What is to be kept for the next start: who has what, and what the file last said.
    pub(super) fn to_keep(&self) -> (&Owners, Option<&str>) {
        let good = self.deployment.as_ref().filter(|one| one.is_good());
        (&self.owners, good.map(DeploymentFile::text))
    }
}

fn alone(diagnostic: Diagnostic) -> Report {
    let mut report = Report::default();
    report.push(diagnostic);
    report
}

fn gone(label: &str) -> Diagnostic {
    Diagnostic::error(Code::Unreadable, label, "the file is not there").hint(
        "put it back; to go without it, start the program anew, without `--deployment`: then every manifest is believed",
    )
}
