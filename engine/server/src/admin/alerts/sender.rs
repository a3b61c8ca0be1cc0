//! The thread that compares conditions with alerts, and sends messages.
//!
//! **Invariant:** decides nothing; [`AlertPlan`] does. The reload loop and requests never wait for the receiver.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use release::store::{Store, rows_in_memory};
use thiserror::Error;
use tokio::time::sleep;
use tracing::{debug, info, warn};

use super::plan::{AlertLine, AlertPlan, Moment};
use super::webhook::{Webhook, WebhookClient};
use crate::admin::conditions::{
    Condition, ConditionKind, certificate_conditions, limited, server_conditions, tenant_conditions,
};
use crate::admin::status::{AlertStatus, Availability, StatusBoard};
use crate::metrics::process_memory::ProcessMemory;
use crate::snapshot_store::SnapshotStore;
use crate::tls::Tls;
use crate::tls::overview::overview;

/// The longest time between two comparisons. Nothing reports changes of memory and certificates.
const MAX_INTERVAL: Duration = Duration::from_secs(5);
/// The shortest time between two comparisons.
const MIN_INTERVAL: Duration = Duration::from_millis(200);
/// The conditions of one kind that are named. Further conditions are counted.
const MAX_CONDITIONS_PER_KIND: usize = 20;
/// The table of alerts in the state.
const TABLE: &str = "alerts";

/// Settings of the receiver.
#[derive(Debug)]
pub struct AlertSettings {
    /// The receiver.
    pub webhook: Webhook,
    /// Root certificates in PEM for HTTPS to the receiver. Default: those of Mozilla.
    pub roots: Option<Vec<u8>>,
    /// How long a condition lasts before its alert, and how long it is gone before the alert is resolved.
    pub delay: Duration,
    /// The name of the server in messages: the host of the sites.
    pub server: String,
}

/// The sources of the conditions.
#[derive(Debug)]
pub struct AlertSources {
    /// The status of the tenants and the state.
    pub board: Arc<StatusBoard>,
    /// The hosts that need certificates.
    pub snapshots: Arc<SnapshotStore>,
    /// The TLS configuration; `None` if HTTPS is off.
    pub tls: Option<Arc<Tls>>,
    /// The sources of the memory figures of the process.
    pub memory: ProcessMemory,
    /// The state, which remembers the sent alerts; `None` without `--state`.
    pub store: Option<Arc<Store>>,
}

/// Error of starting to send alerts.
#[derive(Debug, Error)]
pub enum AlertError {
    /// The root certificates cannot be used.
    #[error("cannot use the root certificates: {0}")]
    Roots(#[from] rustls::Error),
    /// The thread cannot be started.
    #[error("cannot start the thread for alerts: {0}")]
    Thread(#[from] io::Error),
}

/// Starts to send alerts, on a thread of its own.
///
/// # Errors
/// When the root certificates cannot be used, or the system refuses a thread.
pub fn start(settings: AlertSettings, sources: AlertSources) -> Result<(), AlertError> {
    let client = WebhookClient::new(settings.webhook.clone(), settings.roots.as_deref())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut plan = AlertPlan::new(settings.delay, settings.webhook.format().repeat());
    let saved = saved(sources.store.as_deref()).unwrap_or_default();
    plan.restore(&saved, now());
    let status = AlertStatus {
        receiver: settings.webhook.shown().to_owned(),
        ..AlertStatus::default()
    };
    sources.board.set_alerts(status.clone());
    let sender = AlertSender {
        plan,
        client,
        server: settings.server,
        sources,
        status,
        saved,
    };
    thread::Builder::new()
        .name("alerts".to_owned())
        .spawn(move || runtime.block_on(sender.run()))?;
    Ok(())
}

fn now() -> Moment {
    Moment {
        instant: Instant::now(),
        time: SystemTime::now(),
    }
}

/// Returns the alerts in the state.
fn saved(store: Option<&Store>) -> Option<Bytes> {
    let rows = rows_in_memory(store?.table(TABLE)?)?;
    rows.into_iter().next().map(|(_, saved)| saved)
}

/// The state of the thread.
#[derive(Debug)]
struct AlertSender {
    plan: AlertPlan,
    client: WebhookClient,
    server: String,
    sources: AlertSources,
    status: AlertStatus,
    /// The alerts as the state has them.
    saved: Bytes,
}

impl AlertSender {
    async fn run(mut self) {
        let mut changes = self.sources.board.changes();
        loop {
            let board = &self.sources.board;
            // Before the first reading of all folders, the conditions are not known.
            if board.current().complete && !board.is_handing_over() {
                self.observe();
                self.send_due().await;
                self.report();
            }
            let until_due = self.plan.next_due();
            let until_due = until_due.map(|due| due.saturating_duration_since(Instant::now()));
            let wait = until_due.unwrap_or(MAX_INTERVAL).min(MAX_INTERVAL);
            sleep(MIN_INTERVAL).await;
            tokio::select! {
                // The sender of changes is in the board, which `self` holds: waiting cannot fail.
                _ = changes.changed() => {}
                () = sleep(wait.saturating_sub(MIN_INTERVAL)) => {}
            }
        }
    }

    /// Passes the current conditions to the plan.
    fn observe(&mut self) {
        let AlertSources {
            board,
            snapshots,
            tls,
            memory,
            ..
        } = &self.sources;
        let now = now();
        let status = board.current();
        let mut conditions: Vec<Condition> = server_conditions(board, memory.read());
        // The receiver that cannot be reached cannot be told so.
        conditions.retain(|one| one.kind != ConditionKind::AlertsNotSent);
        if let Some(tls) = tls {
            conditions.extend(certificate_conditions(&overview(snapshots, tls), now.time));
        }
        conditions.extend(tenant_conditions(&status, now.time));
        let pending = status.tenants();
        let pending: BTreeSet<&str> = pending
            .filter(|tenant| tenant.state == Availability::Pending)
            .map(|tenant| &*tenant.id)
            .collect();
        let is_pending = |subject: &Arc<str>| pending.contains(&**subject);
        self.plan.observe(
            limited(conditions, MAX_CONDITIONS_PER_KIND),
            |(kind, subject)| {
                kind.subject_name() == "tenant" && subject.as_ref().is_some_and(is_pending)
            },
            now,
        );
    }

    /// Sends all alerts that are due, until the receiver fails.
    async fn send_due(&mut self) {
        loop {
            let lines = self.plan.next_message(now());
            if lines.is_empty() {
                return;
            }
            let result = self.client.send(&lines, &self.server).await;
            let receiver = &self.status.receiver;
            match result {
                Ok(()) => {
                    let resolved = lines.iter().filter(|line| line.ended.is_some()).count();
                    let problems = lines.len() - resolved;
                    info!(receiver, problems, resolved, "alerts sent");
                    self.record_sent(&lines);
                }
                Err(failure) => {
                    let problem = failure.reason;
                    match self.status.problem.is_none() {
                        true => warn!(
                            receiver,
                            problem, "alerts cannot be sent; trying again, later each time"
                        ),
                        false => debug!(receiver, problem, "alerts still cannot be sent"),
                    }
                    self.plan.failed(failure.retry_after, now());
                    self.status.failures += 1;
                    self.status.problem = Some(problem);
                }
            }
        }
    }

    fn record_sent(&mut self, lines: &[AlertLine]) {
        self.plan.delivered(lines, now());
        self.status.sent += lines.len() as u64;
        self.status.problem = None;
        self.persist();
    }

    /// Reports the status, and persists changed alerts.
    fn report(&mut self) {
        self.status.unsent = self.plan.unsent(now()) as u64;
        self.sources.board.set_alerts(self.status.clone());
        self.persist();
    }

    fn persist(&mut self) {
        let saved = Bytes::from(self.plan.save());
        let writable = self
            .sources
            .store
            .as_ref()
            .filter(|store| store.is_writable());
        if let Some(store) = writable.filter(|_| saved != self.saved) {
            self.saved = saved.clone();
            let rows = move || vec![(Bytes::new(), saved.into())];
            store.write_table(TABLE.to_owned(), None, rows);
        }
    }
}
