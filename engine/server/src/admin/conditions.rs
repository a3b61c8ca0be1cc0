//! The conditions that need an operator, in one list for `/readyz`, the console and [alerts](super::alerts).
//!
//! **Invariant:** plain values, computed only on request.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::status::{Availability, DeploymentStatus, RemovedTenant, StatusBoard, TenantStatus};
use crate::metrics::process_memory::MemoryUse;
use crate::tls::overview::{CertificateLine, CertificateState};
use release::snapshot::preview::tenant_of_preview;

/// Time without a heartbeat of the reload loop after which the loop counts as silent. The loop beats every second.
pub const MAX_HEARTBEAT_INTERVAL: Duration = Duration::from_secs(30);

/// The remaining lifetime below which a certificate is about to expire. Renewal is due a month before the end.
const MIN_CERTIFICATE_LIFETIME: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// The kind of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConditionKind {
    /// The folders of tenants or themes, or the deployment, cannot be read.
    FoldersUnreadable,
    /// The bucket with the tenants does not answer, or its objects are missing or damaged.
    BucketUnreadable,
    /// The state cannot be written.
    StateNotWritable,
    /// Part of the state is not written or not read.
    StateIncomplete,
    /// A pinned release cannot be served.
    PinUnreadable,
    /// The process is near its memory limit.
    MemoryNearLimit,
    /// The reload loop does not respond.
    ReloadLoopSilent,
    /// Notifications of changes do not work, and folders are polled.
    WatchPolling,
    /// The receiver of alerts cannot be reached.
    AlertsNotSent,
    /// A host has no valid certificate.
    CertificateMissing,
    /// A certificate expires soon.
    CertificateEnds,
    /// The last order of a certificate failed. The current certificate is valid for longer.
    CertificateFailing,
    /// A tenant has errors, and its last valid pages are served.
    TenantDegraded,
    /// A tenant was never valid.
    TenantAbsent,
    /// The folder of a tenant was removed.
    TenantRemoved,
}

/// How urgent a condition is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The condition can wait until the morning.
    Warning,
    /// Visitors are affected, or soon will be.
    Critical,
}

impl Severity {
    /// Returns the name in alerts. The rules for Prometheus have the same names.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

impl ConditionKind {
    /// All kinds.
    pub const ALL: [Self; 15] = [
        Self::FoldersUnreadable,
        Self::BucketUnreadable,
        Self::StateNotWritable,
        Self::StateIncomplete,
        Self::PinUnreadable,
        Self::MemoryNearLimit,
        Self::ReloadLoopSilent,
        Self::WatchPolling,
        Self::AlertsNotSent,
        Self::CertificateMissing,
        Self::CertificateEnds,
        Self::CertificateFailing,
        Self::TenantDegraded,
        Self::TenantAbsent,
        Self::TenantRemoved,
    ];

    /// Returns the name of the alert. The rules for Prometheus have the same names.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FoldersUnreadable => "RowhouseFoldersUnreadable",
            Self::BucketUnreadable => "RowhouseBucketUnreadable",
            Self::StateNotWritable => "RowhouseStateNotWritable",
            Self::StateIncomplete => "RowhouseStateIncomplete",
            Self::PinUnreadable => "RowhousePinUnreadable",
            Self::MemoryNearLimit => "RowhouseMemoryNearLimit",
            Self::ReloadLoopSilent => "RowhouseReloadLoopSilent",
            Self::WatchPolling => "RowhouseWatchPolling",
            Self::AlertsNotSent => "RowhouseAlertsNotSent",
            Self::CertificateMissing => "RowhouseCertificateMissing",
            Self::CertificateEnds => "RowhouseCertificateEnds",
            Self::CertificateFailing => "RowhouseCertificateFailing",
            Self::TenantDegraded => "RowhouseTenantDegraded",
            Self::TenantAbsent => "RowhouseTenantAbsent",
            Self::TenantRemoved => "RowhouseTenantRemoved",
        }
    }

    /// Returns how urgent the condition is.
    #[must_use]
    pub const fn severity(self) -> Severity {
        match self {
            Self::FoldersUnreadable
            | Self::StateNotWritable
            | Self::PinUnreadable
            | Self::MemoryNearLimit
            | Self::ReloadLoopSilent => Severity::Critical,
            _ => Severity::Warning,
        }
    }

    /// Returns the name of the field that holds the subject: a tenant or a host.
    #[must_use]
    pub const fn subject_name(self) -> &'static str {
        match self {
            Self::CertificateMissing | Self::CertificateEnds | Self::CertificateFailing => "host",
            _ => "tenant",
        }
    }

    /// Returns the text for further subjects of the same kind.
    fn further(self, count: usize) -> String {
        match self {
            Self::CertificateMissing => {
                format!(
                    "{count} more hosts have no valid certificate: `rowhouse certificates` lists all"
                )
            }
            Self::CertificateEnds => {
                format!("{count} more certificates expire soon: `rowhouse certificates` lists all")
            }
            Self::CertificateFailing => {
                format!(
                    "{count} more orders of certificates failed: `rowhouse certificates` lists all"
                )
            }
            Self::TenantDegraded => {
                format!("{count} more tenants have errors: `/tenants` lists all")
            }
            Self::TenantAbsent => {
                format!("{count} more tenants were never valid: `/tenants` lists all")
            }
            Self::TenantRemoved => {
                format!("{count} more folders of tenants were removed: `/tenants` lists all")
            }
            _ => format!("{count} more: `/readyz` lists all"),
        }
    }
}

/// A condition that needs an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// The kind.
    pub kind: ConditionKind,
    /// The affected tenant or host; `None` for the server, and for a number of subjects together.
    pub subject: Option<Arc<str>>,
    /// The problem and its consequence in a sentence, without a full stop.
    pub message: String,
}

/// Returns the conditions of the server itself, and the pinned releases that cannot be served.
#[must_use]
pub fn server_conditions(board: &StatusBoard, memory: Option<MemoryUse>) -> Vec<Condition> {
    let status = board.current();
    let store = board.store();
    let of_server = |kind, message: String| Condition {
        kind,
        subject: None,
        message,
    };
    let mut all = Vec::new();
    all.extend(
        (status.alarm.clone()).map(|alarm| of_server(ConditionKind::FoldersUnreadable, alarm)),
    );
    let bucket = board.bucket();
    let problems = bucket.iter().flat_map(|bucket| &bucket.problems);
    all.extend(problems.map(|problem| of_server(ConditionKind::BucketUnreadable, problem.clone())));
    all.extend(
        (store.state_alarm()).map(|alarm| of_server(ConditionKind::StateNotWritable, alarm)),
    );
    if store.is_failing {
        all.push(of_server(
            ConditionKind::StateIncomplete,
            "part of the state is not written or not read; see the log for the cause".to_owned(),
        ));
    }
    all.extend(status.tenants().filter_map(|tenant| {
        Some(Condition {
            kind: ConditionKind::PinUnreadable,
            subject: Some(Arc::clone(&tenant.id)),
            message: tenant.pin_alarm()?,
        })
    }));
    if let Some(used) = memory.filter(MemoryUse::is_near_limit) {
        let percent = used.percent().unwrap_or_default();
        all.push(of_server(
            ConditionKind::MemoryNearLimit,
            format!("the process uses {percent} % of its memory limit; the system ends the process at the limit"),
        ));
    }
    let silence = board.silence();
    if silence > MAX_HEARTBEAT_INTERVAL {
        let seconds = silence.as_secs();
        all.push(of_server(
            ConditionKind::ReloadLoopSilent,
            format!("the reload loop has not responded for {seconds} s"),
        ));
    }
    if status.polling {
        all.push(of_server(
            ConditionKind::WatchPolling,
            "changes are found by polling once a second, because the system sends no notifications, or its limit of watches is reached".to_owned(),
        ));
    }
    let alerts = board.alerts();
    let problem = alerts
        .iter()
        .find_map(|alerts| Some((&alerts.receiver, alerts.problem.as_ref()?)));
    all.extend(problem.map(|(receiver, problem)| {
        let message = format!("alerts cannot be sent to {receiver}: {problem}");
        of_server(ConditionKind::AlertsNotSent, message)
    }));
    all
}

/// Returns the conditions of certificates. A certificate file has one condition for all its hosts.
#[must_use]
pub fn certificate_conditions(lines: &[CertificateLine], now: SystemTime) -> Vec<Condition> {
    let mut hosts_by_file: HashMap<&[Box<str>], usize> = HashMap::new();
    for line in lines.iter().filter(|line| !line.file_names.is_empty()) {
        *hosts_by_file.entry(&line.file_names).or_default() += 1;
    }
    lines
        .iter()
        .filter_map(|line| {
            let (kind, problem) = certificate_problem(line, now)?;
            let reason = line.problem(now);
            let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
            let (subject, users) = match line.file_names.first() {
                None => (line.host.as_str(), String::new()),
                // The first host of the file removes its number of hosts.
                Some(name) => match hosts_by_file.remove(line.file_names.as_slice())? {
                    1 => (line.host.as_str(), String::new()),
                    hosts => (&**name, format!("; {hosts} hosts use this file")),
                },
            };
            Some(Condition {
                kind,
                subject: Some(subject.into()),
                message: format!("{subject} {problem}{users}{reason}"),
            })
        })
        .collect()
}

/// Returns the problem of a host's certificate, if it has one.
fn certificate_problem(line: &CertificateLine, now: SystemTime) -> Option<(ConditionKind, String)> {
    let end = line.not_after;
    let end = end.map(|end| UNIX_EPOCH + Duration::from_secs(end));
    let is_ending = end.is_some_and(|end| end < now + MIN_CERTIFICATE_LIFETIME);
    let expiry = line.expiry(now).unwrap_or_default();
    let (kind, problem) = match line.state {
        CertificateState::Missing => (
            ConditionKind::CertificateMissing,
            "has no certificate".to_owned(),
        ),
        CertificateState::Expired => (
            ConditionKind::CertificateMissing,
            "has an expired certificate".to_owned(),
        ),
        CertificateState::Valid if is_ending => (
            ConditionKind::CertificateEnds,
            format!("has a certificate that {expiry}"),
        ),
        CertificateState::Valid if line.error.is_some() => (
            ConditionKind::CertificateFailing,
            format!("gets no new certificate, and the current certificate {expiry}"),
        ),
        CertificateState::Valid => return None,
    };
    Some((kind, problem))
}

/// Returns the conditions of tenants: errors and removed folders. A preview has none, since only its author waits for it.
#[must_use]
pub fn tenant_conditions(status: &DeploymentStatus, now: SystemTime) -> Vec<Condition> {
    let live = status.tenants().filter(|tenant| tenant.preview.is_none());
    let broken = live.filter_map(|tenant| {
        let id = &tenant.id;
        let (kind, problem) = match tenant.state {
            Availability::Degraded => (
                ConditionKind::TenantDegraded,
                format!("{id} has errors, and visitors get its last valid pages"),
            ),
            // A new folder has no pages until its first rendering ends.
            Availability::Absent if tenant.is_in_flight && tenant.errors.is_empty() => return None,
            Availability::Absent => (
                ConditionKind::TenantAbsent,
                format!("{id} has errors, and has no pages, since its folder was never valid"),
            ),
            Availability::Live
            | Availability::Pending
            | Availability::Receiving
            | Availability::Expired
            | Availability::Removed => return None,
        };
        Some(Condition {
            kind,
            subject: Some(Arc::clone(id)),
            message: format!("{problem}{}", first_error(tenant)),
        })
    });
    let removed = status.recently_removed(now);
    // Visitors do not miss a folder that was never valid.
    let is_missed =
        |removed: &&RemovedTenant| removed.was_valid && tenant_of_preview(&removed.id).is_none();
    let removed = removed.filter(is_missed).map(|removed| {
        let id = &removed.id;
        let help = match removed.is_persisted {
            true => format!("; `rowhouse restore {id}` serves its last valid folder again"),
            false => String::new(),
        };
        Condition {
            kind: ConditionKind::TenantRemoved,
            subject: Some(Arc::clone(id)),
            message: format!("the folder of {id} was removed, and {id} is not served{help}"),
        }
    });
    broken.chain(removed).collect()
}

/// Returns the first error of a tenant with a colon before it, and the number of further errors.
fn first_error(tenant: &TenantStatus) -> String {
    match tenant.errors.as_slice() {
        [] => String::new(),
        [error] => format!(": {error}"),
        [error, more @ ..] => format!(": {error} (and {} more)", more.len()),
    }
}

/// Replaces all conditions of a kind beyond the first `max` by one condition that counts the others.
#[must_use]
pub fn limited(conditions: Vec<Condition>, max: usize) -> Vec<Condition> {
    let mut counts = [0_usize; ConditionKind::ALL.len()];
    let mut kept: Vec<Condition> = Vec::new();
    for condition in conditions {
        let count = &mut counts[condition.kind as usize];
        *count += 1;
        if *count <= max {
            kept.push(condition);
        }
    }
    let further = ConditionKind::ALL.into_iter().filter_map(|kind| {
        let count = counts[kind as usize].checked_sub(max)?;
        (count > 0).then(|| Condition {
            kind,
            subject: None,
            message: kind.further(count),
        })
    });
    kept.extend(further);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::status::{AlertStatus, RemovedTenant, StateStatus, StoreStatus, by_id};
    use crate::tls::order_status::FailureKind;
    use crate::tls::overview::CertificateProblem;

    const NOW: u64 = 1_000_000_000;
    const DAY: u64 = 86_400;

    fn certificate(host: &str, state: CertificateState, days: u64) -> CertificateLine {
        CertificateLine {
            host: host.to_owned(),
            state,
            source: None,
            file_names: Vec::new(),
            not_after: Some(NOW + days * DAY),
            ordering: false,
            waiting: None,
            last_try: None,
            next_try: None,
            error: None,
        }
    }

    #[test]
    fn certificates_need_an_operator_when_missing_ending_or_failing() {
        let now = UNIX_EPOCH + Duration::from_secs(NOW);
        let failing = CertificateLine {
            error: Some(CertificateProblem {
                kind: FailureKind::Dns,
                detail: "no address".to_owned(),
            }),
            ..certificate("failing.example", CertificateState::Valid, 60)
        };
        let lines = [
            certificate("valid.example", CertificateState::Valid, 60),
            certificate("ending.example", CertificateState::Valid, 10),
            certificate("none.example", CertificateState::Missing, 0),
            failing,
        ];
        let found = certificate_conditions(&lines, now);
        let texts: Vec<(&str, &str)> = found
            .iter()
            .map(|one| (one.kind.name(), one.message.as_str()))
            .collect();
        assert_eq!(
            texts,
            [
                (
                    "RowhouseCertificateEnds",
                    "ending.example has a certificate that expires in 10 days"
                ),
                (
                    "RowhouseCertificateMissing",
                    "none.example has no certificate"
                ),
                (
                    "RowhouseCertificateFailing",
                    "failing.example gets no new certificate, and the current certificate expires in 60 days: dns: no address"
                ),
            ]
        );
    }

    #[test]
    fn certificate_file_of_many_hosts_has_one_condition() {
        let now = UNIX_EPOCH + Duration::from_secs(NOW);
        let in_file = |host: &str, names: &[&str]| CertificateLine {
            file_names: names.iter().map(|name| Box::from(*name)).collect(),
            ..certificate(host, CertificateState::Valid, 10)
        };
        let wildcard = ["*.many.example", "many.example"];
        let lines = [
            in_file("a.many.example", &wildcard),
            in_file("alone.example", &["alone.example"]),
            in_file("b.many.example", &wildcard),
            in_file("many.example", &wildcard),
        ];
        let found = certificate_conditions(&lines, now);
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|one| {
                (
                    one.subject.as_deref().unwrap_or_default(),
                    one.message.as_str(),
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                (
                    "*.many.example",
                    "*.many.example has a certificate that expires in 10 days; 3 hosts use this file"
                ),
                (
                    "alone.example",
                    "alone.example has a certificate that expires in 10 days"
                ),
            ]
        );
    }

    fn tenant(id: &str, state: Availability) -> TenantStatus {
        TenantStatus {
            id: id.into(),
            state,
            since: UNIX_EPOCH,
            pages: 0,
            hosts: Arc::default(),
            compiled_in: Duration::ZERO,
            is_in_flight: false,
            errors: vec!["pages/index.md:1: wrong".to_owned(), "more".to_owned()],
            pinned: None,
            unreadable_pin: None,
            receiving: Vec::new(),
            preview: None,
        }
    }

    fn names(conditions: &[Condition]) -> Vec<&str> {
        conditions.iter().map(|one| one.kind.name()).collect()
    }

    #[test]
    fn every_failure_of_the_server_is_a_condition() {
        let board = StatusBoard::default();
        assert_eq!(names(&server_conditions(&board, None)), [""; 0]);
        let pinned = TenantStatus {
            unreadable_pin: Some(3),
            ..tenant("corner", Availability::Live)
        };
        board.replace(DeploymentStatus {
            polling: true,
            alarm: Some("cannot read the folder `tenants`".to_owned()),
            tenants: by_id([pinned]),
            ..DeploymentStatus::default()
        });
        board.set_store(StoreStatus {
            state: Some(StateStatus {
                problem: Some("the disk is full".to_owned()),
                ..StateStatus::default()
            }),
            is_failing: true,
            ..StoreStatus::default()
        });
        board.set_alerts(AlertStatus {
            receiver: "https://hooks.example".to_owned(),
            problem: Some("status 500".to_owned()),
            ..AlertStatus::default()
        });
        let memory = MemoryUse {
            resident: 90,
            allocated: None,
            limit: Some(100),
        };
        let found = server_conditions(&board, Some(memory));
        assert_eq!(
            names(&found),
            [
                "RowhouseFoldersUnreadable",
                "RowhouseStateNotWritable",
                "RowhouseStateIncomplete",
                "RowhousePinUnreadable",
                "RowhouseMemoryNearLimit",
                "RowhouseWatchPolling",
                "RowhouseAlertsNotSent",
            ]
        );
        assert_eq!(
            found[6].message,
            "alerts cannot be sent to https://hooks.example: status 500"
        );
    }

    #[test]
    fn broken_and_removed_tenants_are_conditions() {
        let now = UNIX_EPOCH + Duration::from_secs(NOW);
        let removed = |id: &str, seconds| RemovedTenant {
            id: id.into(),
            at: now - Duration::from_secs(seconds),
            is_persisted: id == "gone",
            was_valid: id != "broken",
        };
        let status = DeploymentStatus {
            tenants: by_id([
                tenant("absent", Availability::Absent),
                tenant("degraded", Availability::Degraded),
                tenant("live", Availability::Live),
                tenant("pending", Availability::Pending),
            ]),
            removed: [
                removed("gone", 60),
                removed("broken", 60),
                removed("old", 2 * DAY),
            ]
            .into(),
            ..DeploymentStatus::default()
        };
        let found = tenant_conditions(&status, now);
        let texts: Vec<&str> = found.iter().map(|one| one.message.as_str()).collect();
        assert_eq!(
            texts,
            [
                "absent has errors, and has no pages, since its folder was never valid: pages/index.md:1: wrong (and 1 more)",
                "degraded has errors, and visitors get its last valid pages: pages/index.md:1: wrong (and 1 more)",
                "the folder of gone was removed, and gone is not served; `rowhouse restore gone` serves its last valid folder again",
            ]
        );
    }

    #[test]
    fn further_subjects_are_counted() {
        let broken = |id: usize| Condition {
            kind: ConditionKind::TenantDegraded,
            subject: Some(format!("site{id}").into()),
            message: String::new(),
        };
        let some = limited((0..3).map(broken).collect(), 3);
        assert_eq!(some.len(), 3);
        let many = limited((0..5000).map(broken).collect(), 3);
        assert_eq!(many.len(), 4);
        assert_eq!(
            many[3].message,
            "4997 more tenants have errors: `/tenants` lists all"
        );
        for (index, kind) in ConditionKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, index);
        }
    }
}
