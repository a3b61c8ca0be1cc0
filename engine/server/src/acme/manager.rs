//! Manages all certificates that the CA issues: follows the hosts of the snapshot, starts orders and handles their results.
//!
//! The manager runs on a thread of its own. The order of one host never delays the order of another host.
//!
//! **Invariant:** the [plan](super::plan) decides when to order which certificate.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use instant_acme::{Account, CertificateIdentifier, Error};
use release::snapshot::preview::tenant_of_preview;
use release::snapshot::{HostEntry, HostKind, Snapshot};
use thiserror::Error as ThisError;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinError;
use tracing::{debug, info, warn};

use super::AcmeSettings;
use super::account::AccountOwner;
use super::client::AuthorityClient;
use super::issued_certificate::IssuedCertificate;
use super::order::{is_unknown_account, order};
use super::plan::{AuthorityPlan, ChallengeMethod, Lifetime, NamePlan, OrderFailure};
use super::quota::{DueOrder, OrderQuota, Purpose, QuotaRefusal};
use super::renewal::{RenewalAnswer, RenewalRefusal, RenewalRequest, RenewalRequests};
use super::shared::SharedCertificates;
use super::tasks::JobSet;
use crate::acme::certificate_folder::{AcmeFolder, FileStamp};
use crate::snapshot_store::SnapshotStore;
use crate::tls::Tls;
use crate::tls::certificate::Certificate;
use crate::tls::certificate_store::CertificateStore;
use crate::tls::order_status::{FailureKind, OrderBoard, OrderWait};
use crate::tls::provider::provider;

/// Look-ups in the shared store in flight at once.
const MAX_LOOK_UPS: usize = 16;
/// Renewal queries in flight at once.
const MAX_RENEWAL_QUERIES: usize = 4;
/// Maximum pause between two checks. A clock may be set, a machine may be suspended, and files may change.
const MAX_PAUSE: Duration = Duration::from_secs(10);
/// Minimum interval between two checks of the certificate files.
const FILE_CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// Time since the last change after which a file counts as completely written.
const SETTLE_TIME: Duration = Duration::from_secs(2);
/// Minimum pause, so that due orders that cannot begin do not keep a CPU busy.
const MIN_PAUSE: Duration = Duration::from_millis(100);
/// Pause before another attempt for a host that waits for its tenant's share.
const WAITING_PAUSE: Duration = Duration::from_secs(1);
/// Time until a renewal query is repeated if the CA gave no usable answer (RFC 9773, section 4.3.3).
const QUERY_RETRY_PAUSE: Duration = Duration::from_secs(6 * 60 * 60);

/// Error of starting the certificate manager.
#[derive(Debug, ThisError)]
pub enum AcmeError {
    /// The roots cannot be used.
    #[error("cannot use the roots of `--acme-root`: {0}")]
    Roots(rustls::Error),
    /// The operating system cannot create the thread or the event loop.
    #[error("cannot start the thread for certificates")]
    Thread(#[source] io::Error),
}

/// Loads the persisted certificates, and orders missing certificates from now on.
///
/// # Errors
/// When the settings cannot work. Later errors are reported on the board.
pub fn start(
    settings: AcmeSettings,
    snapshots: Arc<SnapshotStore>,
    tls: &Tls,
    renewals: &RenewalRequests,
) -> Result<(), AcmeError> {
    let client = AuthorityClient::new(settings.roots.as_deref()).map_err(AcmeError::Roots)?;
    let folder = AcmeFolder::new(&settings.folder, &settings.directory);
    // A full or broken disk takes no site down: persisted certificates are used, and missing ones are ordered.
    if let Err(error) = folder.check() {
        warn!(
            folder = %settings.folder.display(),
            %error,
            "cannot write to the folder for certificates; new certificates are lost when the process ends, and CAs limit how often they issue the same certificate"
        );
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(AcmeError::Thread)?;
    let methods = match settings.http {
        true => vec![ChallengeMethod::Http, ChallengeMethod::TlsAlpn],
        false => vec![ChallengeMethod::TlsAlpn],
    };
    let now = SystemTime::now();
    let shared = settings.shared.clone();
    let shared = shared.map(|store| SharedCertificates::new(store, &folder.authority()));
    let mut manager = Manager {
        methods,
        includes_previews: settings.includes_previews,
        account: Arc::new(AccountOwner::new(
            settings,
            client,
            folder.clone(),
            shared.clone(),
        )),
        folder,
        shared,
        names: BTreeMap::new(),
        former_names: BTreeMap::new(),
        authority: AuthorityPlan::default(),
        quota: OrderQuota::new(now),
        tenants_waiting: BTreeSet::new(),
        jobs: JobSet::new(),
        files_checked: Instant::now(),
        requests: renewals.receiver(),
        changes: snapshots.changes(),
        snapshots,
        certificates: Arc::clone(&tls.certificates),
        board: Arc::clone(&tls.attempts),
    };
    manager.update_hosts(now);
    thread::Builder::new()
        .name("acme".to_owned())
        .spawn(move || runtime.block_on(manager.run()))
        .map_err(AcmeError::Thread)?;
    Ok(())
}

/// The state of a host that needs a certificate.
#[derive(Debug)]
struct NameState {
    plan: NamePlan,
    certificate: Option<Arc<Certificate>>,
    /// A certificate that is in use but not on disk yet.
    unsaved: Option<IssuedCertificate>,
    /// The file of the certificate when it was last read or written.
    stamp: Option<FileStamp>,
    /// Whether the shared store had no newer certificate since the last order.
    is_looked_up: bool,
}

impl NameState {
    /// Returns the state to remember in case the host is served again. A certificate on disk is read again then.
    fn remember(&mut self) -> Self {
        let unsaved = self.unsaved.take();
        Self {
            plan: self.plan.clone().without_order(),
            certificate: unsaved.as_ref().and_then(|_| self.certificate.clone()),
            unsaved,
            stamp: None,
            is_looked_up: false,
        }
    }
}

/// A job in flight.
#[derive(Debug)]
enum CertificateJob {
    /// An order for a host, counted for a tenant.
    Order { host: Box<str>, tenant: Box<str> },
    /// A renewal query for a host's certificate.
    RenewalQuery { host: Box<str> },
    /// A look-up of a host's certificate in the shared store.
    LookUp { host: Box<str> },
}

/// The result of a job.
enum JobResult {
    Order(Result<IssuedCertificate, OrderFailure>),
    RenewalQuery(Option<RenewalWindow>),
    LookUp(Result<Option<IssuedCertificate>, OrderFailure>),
}

/// The window in which the CA wants a renewal, and the time until the next query.
type RenewalWindow = ((SystemTime, SystemTime), Duration);

/// The waiting hosts of one tenant.
struct WaitingHosts {
    /// The first waiting host.
    host: Box<str>,
    reason: OrderWait,
    hosts: usize,
}

impl WaitingHosts {
    fn log(&self, tenant: &str) {
        let (host, hosts) = (&*self.host, self.hosts);
        match self.reason {
            OrderWait::Share => warn!(
                tenant,
                host,
                hosts,
                "hosts wait for a certificate; the tenant has used its share of the orders"
            ),
            OrderWait::Total => warn!(
                tenant,
                host,
                hosts,
                "hosts wait for a certificate; all tenants together have used the orders that the CA allows"
            ),
        }
    }
}

struct Manager {
    methods: Vec<ChallengeMethod>,
    includes_previews: bool,
    account: Arc<AccountOwner>,
    folder: AcmeFolder,
    shared: Option<SharedCertificates>,
    /// By host.
    names: BTreeMap<Box<str>, NameState>,
    /// Hosts that are no longer served, with their failures and unsaved certificates. A host that disappears and returns is therefore not ordered again each time.
    former_names: BTreeMap<Box<str>, NameState>,
    authority: AuthorityPlan,
    quota: OrderQuota,
    /// Tenants whose wait for their share was logged.
    tenants_waiting: BTreeSet<Box<str>>,
    jobs: JobSet<CertificateJob, JobResult>,
    files_checked: Instant,
    requests: mpsc::Receiver<RenewalRequest>,
    changes: watch::Receiver<()>,
    snapshots: Arc<SnapshotStore>,
    certificates: Arc<CertificateStore>,
    board: Arc<OrderBoard>,
}

impl Manager {
    async fn run(mut self) {
        let mut accepted: Option<RenewalAnswer> = None;
        loop {
            let now = SystemTime::now();
            self.save();
            self.check_files(now);
            self.begin_look_ups(now);
            self.begin_orders(now);
            self.begin_renewal_queries(now);
            self.report(now);
            if let Some(answer) = accepted.take() {
                // The request may have timed out; the order begins nevertheless.
                let _ = answer.send(Ok(()));
            }
            let pause = self.pause(now);
            tokio::select! {
                Some((job, done)) = self.jobs.next() => self.handle_result(job, done, SystemTime::now()).await,
                Some(request) = self.requests.recv() => accepted = self.accept(request, SystemTime::now()),
                // The store lives as long as the process.
                _ = self.changes.changed() => self.update_hosts(SystemTime::now()),
                () = tokio::time::sleep(pause) => self.update_hosts(SystemTime::now()),
            }
        }
    }

    /// Makes the order of a request due. Returns the channel for the answer, which follows once the order has begun or waits for the CA; refuses the request otherwise.
    fn accept(&mut self, request: RenewalRequest, now: SystemTime) -> Option<RenewalAnswer> {
        self.update_hosts(now);
        let RenewalRequest { host, answer } = request;
        let result = match self.names.get_mut(&host) {
            Some(name) if name.plan.attempts().is_in_flight => Ok(()),
            Some(name) => name
                .plan
                .request(now)
                .map_err(|until| RenewalRefusal::Limited {
                    host: host.clone(),
                    until,
                }),
            None => Err(self.why_not_ordered(&host)),
        };
        match result {
            Ok(()) => {
                info!(host = &*host, "operator requested a new certificate");
                Some(answer)
            }
            Err(refusal) => {
                // The request may have timed out.
                let _ = answer.send(Err(refusal));
                None
            }
        }
    }

    /// Returns the reason why this program orders no certificate for a host.
    fn why_not_ordered(&self, host: &str) -> RenewalRefusal {
        if !self.snapshots.current().hosts.contains_key(host) {
            RenewalRefusal::UnknownHost(host.into())
        } else if self.certificates.find_file(host).is_some() {
            RenewalRefusal::FromFile(host.into())
        } else {
            RenewalRefusal::NotOrderable(host.into())
        }
    }

    /// Reads the certificate files that have changed. A valid file is used. A lost or damaged file makes an order due, and its certificate stays in use until the order succeeds.
    fn check_files(&mut self, now: SystemTime) {
        if self.files_checked.elapsed() < FILE_CHECK_INTERVAL {
            return;
        }
        self.files_checked = Instant::now();
        for (host, name) in &mut self.names {
            if name.unsaved.is_some() || name.plan.attempts().is_in_flight {
                continue;
            }
            // An unreadable folder is a problem of the disk, and not of each file.
            let Ok(stamp) = self.folder.stamp(host) else {
                continue;
            };
            let is_settled = |stamp: FileStamp| {
                let age = now.duration_since(stamp.modified);
                age.is_ok_and(|age| age >= SETTLE_TIME)
            };
            if stamp == name.stamp || !stamp.is_none_or(is_settled) {
                continue;
            }
            name.stamp = stamp;
            let read = stamp.and_then(|_| self.folder.certificate(host));
            match read.filter(|read| (read.not_before..=read.not_after).contains(&now)) {
                Some(read) => {
                    let plan = &mut name.plan;
                    plan.use_file(lifetime(&read), now, random_fraction());
                    let before = name.certificate.as_ref();
                    if before.is_none_or(|before| before.key.cert != read.key.cert) {
                        info!(
                            host = &**host,
                            "certificate file changed; serving the new certificate"
                        );
                        let certificate = Arc::new(read);
                        self.certificates.set_issued(host, &certificate);
                        name.certificate = Some(certificate);
                    }
                }
                None if name.certificate.is_some() => {
                    warn!(
                        host = &**host,
                        "certificate file is missing or damaged; ordering a new certificate, and serving the old one until then"
                    );
                    name.plan.lose_file(now);
                }
                None => {}
            }
        }
    }

    /// Updates the list of hosts from the current snapshot.
    fn update_hosts(&mut self, now: SystemTime) {
        let snapshot = Arc::clone(&self.snapshots.current());
        let includes_previews = self.includes_previews;
        let is_needed = |host: &str| {
            is_orderable(host)
                && gets_certificate(&snapshot, host, includes_previews)
                && self.certificates.find_file(host).is_none()
        };
        let needed: Vec<&str> = snapshot
            .hosts
            .keys()
            .map(|host| &**host)
            .filter(|host| is_needed(host))
            .collect();
        let is_new = |host: &&&str| !self.names.contains_key(**host);
        let new: Vec<Box<str>> = needed
            .iter()
            .filter(is_new)
            .map(|host| (**host).into())
            .collect();
        let count = self.names.len();
        let mut left = Vec::new();
        self.names.retain(|host, name| {
            let stays = snapshot.hosts.contains_key(&**host) && is_needed(host);
            if !stays && !name.plan.is_quiet() {
                left.push((host.clone(), name.remember()));
            }
            stays
        });
        self.former_names.extend(left);
        // Bounds the memory for hosts that appear and disappear.
        self.former_names
            .retain(|_, name| name.unsaved.is_some() || !name.plan.is_outdated(now));
        if new.is_empty() && self.names.len() == count {
            return;
        }
        for host in new {
            let name = match self.former_names.remove(&host) {
                Some(before) if before.unsaved.is_some() => before,
                before => {
                    let certificate = self.folder.certificate(&host).map(Arc::new);
                    let lifetime = certificate.as_deref().map(lifetime);
                    let failed = before.filter(|_| lifetime.is_none());
                    let plan = failed.map(|name| name.plan.without_certificate());
                    NameState {
                        plan: plan
                            .unwrap_or_else(|| NamePlan::new(lifetime, now, random_fraction())),
                        stamp: self.folder.stamp(&host).ok().flatten(),
                        certificate,
                        unsaved: None,
                        is_looked_up: false,
                    }
                }
            };
            self.names.insert(host, name);
        }
        let shown = self.names.iter().filter_map(|(host, name)| {
            Some((host.clone(), Arc::clone(name.certificate.as_ref()?)))
        });
        self.certificates.set_all_issued(shown);
    }

    /// Looks for certificates of other replicas before orders begin. A look-up counts for no share, so a new replica takes thousands of certificates at once.
    fn begin_look_ups(&mut self, now: SystemTime) {
        let Some(shared) = &self.shared else {
            return;
        };
        let in_flight = self.jobs.iter().filter_map(|job| match job {
            CertificateJob::LookUp { host } => Some(host.clone()),
            _ => None,
        });
        let in_flight: BTreeSet<Box<str>> = in_flight.collect();
        let free = MAX_LOOK_UPS.saturating_sub(in_flight.len());
        let names = self.names.iter();
        let due = names.filter(|(host, name)| {
            !name.is_looked_up && name.plan.is_due(now) && !in_flight.contains(*host)
        });
        for (host, name) in due.take(free) {
            let (shared, host, used) = (shared.clone(), host.clone(), name.certificate.clone());
            let job = CertificateJob::LookUp { host: host.clone() };
            self.jobs.spawn(job, async move {
                JobResult::LookUp(shared.newer_certificate(&host, used.as_deref()).await)
            });
        }
    }

    fn begin_orders(&mut self, now: SystemTime) {
        if !self.authority.is_open(now) {
            return;
        }
        let mut waiting: BTreeMap<Box<str>, WaitingHosts> = BTreeMap::new();
        for order in self.due_orders(now) {
            let DueOrder {
                purpose,
                tenant,
                host,
            } = order;
            let begun = self.quota.begin(&tenant, purpose, now);
            let Some(name) = self.names.get_mut(&host) else {
                continue;
            };
            let reason = match begun {
                Ok(()) => {
                    self.begin_order(host, tenant, now);
                    continue;
                }
                Err(QuotaRefusal::InFlight) => None,
                Err(QuotaRefusal::Share) => Some(OrderWait::Share),
                Err(QuotaRefusal::Total) => Some(OrderWait::Total),
            };
            // A host that waited for its share still waits while other orders of its tenant are in flight.
            let reason = reason.or(name.plan.attempts().order_wait);
            name.plan.set_order_wait(reason);
            if let Some(reason) = reason {
                let first = || WaitingHosts {
                    host,
                    reason,
                    hosts: 0,
                };
                waiting.entry(tenant).or_insert_with(first).hosts += 1;
            }
        }
        for (tenant, waiting) in &waiting {
            if !self.tenants_waiting.contains(tenant) {
                waiting.log(tenant);
            }
        }
        self.tenants_waiting = waiting.into_keys().collect();
    }

    /// Returns the orders that are due, in the order in which they may begin.
    fn due_orders(&self, now: SystemTime) -> Vec<DueOrder> {
        let snapshot = self.snapshots.current();
        let names = self.names.iter();
        let is_alone = self.shared.is_none();
        let due =
            names.filter(|(_, name)| (is_alone || name.is_looked_up) && name.plan.is_due(now));
        let due = due.map(|(host, name)| DueOrder {
            purpose: match name.certificate {
                Some(_) => Purpose::Renewal,
                None => Purpose::First,
            },
            tenant: tenant(&snapshot, host).into(),
            host: host.clone(),
        });
        let mut due: Vec<DueOrder> = due.collect();
        self.quota.sort(&mut due);
        due
    }

    fn begin_order(&mut self, host: Box<str>, tenant: Box<str>, now: SystemTime) {
        let Some(name) = self.names.get_mut(&host) else {
            return;
        };
        let method = name.plan.method(&self.methods);
        name.plan.begin(now);
        name.is_looked_up = false;
        let used = name.certificate.clone();
        let replaces = name.certificate.as_deref().and_then(identifier);
        info!(
            host = &*host,
            challenge = ?method,
            renewal = name.certificate.is_some(),
            "ordering a certificate"
        );
        let (account, certificates) = (Arc::clone(&self.account), Arc::clone(&self.certificates));
        let shared = self.shared.clone();
        let job = CertificateJob::Order {
            host: host.clone(),
            tenant,
        };
        self.jobs.spawn(job, async move {
            let order = async {
                let account = account.get().await?;
                let shared = shared.as_ref();
                order(&account, &host, method, replaces, &certificates, shared).await
            };
            JobResult::Order(match &shared {
                Some(shared) => shared.order_once(&host, used.as_deref(), order).await,
                None => order.await,
            })
        });
    }

    fn begin_renewal_queries(&mut self, now: SystemTime) {
        let in_flight = self.jobs.iter();
        let in_flight = in_flight.filter(|job| matches!(job, CertificateJob::RenewalQuery { .. }));
        let free = MAX_RENEWAL_QUERIES.saturating_sub(in_flight.count());
        if !self.authority.is_open(now) {
            return;
        }
        let names = self.names.iter_mut();
        let due = names.filter(|(_, name)| name.plan.is_query_due(now));
        for (host, name) in due.take(free) {
            // Prevents a second query before the answer to this one.
            name.plan.schedule_query(QUERY_RETRY_PAUSE, now);
            let Some(identifier) = name.certificate.as_deref().and_then(identifier) else {
                continue;
            };
            let (account, host) = (Arc::clone(&self.account), host.clone());
            let job = CertificateJob::RenewalQuery { host: host.clone() };
            self.jobs.spawn(job, async move {
                let answer = match account.get().await {
                    Ok(account) => renewal_window(&account, &host, &identifier).await,
                    Err(_) => None,
                };
                JobResult::RenewalQuery(answer)
            });
        }
    }

    /// Handles the result of a job. A job that panicked affects no other job, and its host waits as after a refused order.
    async fn handle_result(
        &mut self,
        job: CertificateJob,
        done: Result<JobResult, JoinError>,
        now: SystemTime,
    ) {
        match job {
            CertificateJob::Order { host, tenant } => {
                self.quota.finish(&tenant);
                let result = match done {
                    Ok(JobResult::Order(result)) => result,
                    Ok(_) => return,
                    Err(error) => Err(OrderFailure::new(FailureKind::Program, error.to_string())),
                };
                self.handle_order(&host, result, now).await;
            }
            CertificateJob::RenewalQuery { host } => match done {
                Ok(JobResult::RenewalQuery(answer)) => {
                    self.handle_renewal_query(&host, answer, now)
                }
                Ok(_) => {}
                Err(error) => warn!(host = &*host, %error, "renewal query failed"),
            },
            CertificateJob::LookUp { host } => {
                let result = match done {
                    Ok(JobResult::LookUp(result)) => result,
                    Ok(_) => return,
                    Err(error) => Err(OrderFailure::new(FailureKind::Program, error.to_string())),
                };
                self.handle_look_up(&host, result, now).await;
            }
        }
    }

    /// Uses the certificate of another replica as if this replica had ordered it. Without one, the host's order may begin.
    async fn handle_look_up(
        &mut self,
        host: &str,
        result: Result<Option<IssuedCertificate>, OrderFailure>,
        now: SystemTime,
    ) {
        if let Ok(Some(found)) = result {
            return self.handle_order(host, Ok(found), now).await;
        }
        let Some(name) = self.names.get_mut(host) else {
            return;
        };
        match result {
            Ok(_) => name.is_looked_up = true,
            Err(failure) => {
                warn!(
                    host,
                    detail = failure.detail,
                    "looking for a certificate of another replica failed; retrying later"
                );
                let methods = self.methods.len();
                name.plan.fail(failure, now, random_fraction(), methods);
            }
        }
    }

    async fn handle_order(
        &mut self,
        host: &str,
        result: Result<IssuedCertificate, OrderFailure>,
        now: SystemTime,
    ) {
        let result = result.and_then(|issued| {
            let read = Certificate::from_pem(issued.chain.as_bytes(), issued.key.as_bytes());
            match read {
                Ok(certificate) if certificate.covers(host) => Ok((issued, certificate)),
                Ok(_) => Err("the certificate is for another host".to_owned()),
                Err(error) => Err(error.to_string()),
            }
            .map_err(|error| OrderFailure::new(FailureKind::Authority, error))
        });
        match &result {
            // The CA has not responded to this replica.
            Ok((issued, _)) if issued.is_shared => {}
            Ok(_) => self.authority.succeed(),
            Err(failure) => {
                warn!(
                    host,
                    kind = failure.kind.name(),
                    detail = failure.detail,
                    "certificate order failed; retrying later"
                );
                self.authority.fail(failure, now, random_fraction());
                if is_unknown_account(failure) {
                    self.account.forget().await;
                }
            }
        }
        // The host may no longer be served; its certificate is persisted nevertheless.
        let name = self.names.get_mut(host);
        match (result, name) {
            (Ok((issued, certificate)), Some(name)) => {
                let certificate = Arc::new(certificate);
                let days = certificate
                    .not_after
                    .duration_since(now)
                    .unwrap_or_default();
                let hours = days.as_secs() / 3600;
                match issued.is_shared {
                    true => info!(host, hours, "certificate taken from another replica"),
                    false => info!(host, hours, "certificate issued"),
                }
                name.plan
                    .succeed(lifetime(&certificate), now, random_fraction());
                name.certificate = Some(Arc::clone(&certificate));
                name.unsaved = Some(issued);
                // Persists before use, so that a certificate in use outlives the process, or the log says why not.
                self.save_one(host);
                self.certificates.set_issued(host, &certificate);
            }
            (Ok((issued, _)), None) => {
                let kept = self
                    .folder
                    .persist_certificate(host, &issued.chain, &issued.key);
                if let Err(error) = kept {
                    warn!(host, %error, "writing a certificate to disk failed; the certificate is lost");
                }
            }
            (Err(failure), Some(name)) => {
                let methods = self.methods.len();
                name.plan.fail(failure, now, random_fraction(), methods);
            }
            (Err(_), None) => {}
        }
    }

    fn handle_renewal_query(&mut self, host: &str, answer: Option<RenewalWindow>, now: SystemTime) {
        if let (Some(name), Some((window, again))) = (self.names.get_mut(host), answer) {
            name.plan.suggest(window, again, now, random_fraction());
        }
    }

    /// Retries writing certificates that are not on disk yet.
    fn save(&mut self) {
        let unsaved = self.names.iter().filter(|(_, name)| name.unsaved.is_some());
        let unsaved: Vec<Box<str>> = unsaved.map(|(host, _)| host.clone()).collect();
        for host in unsaved {
            self.save_one(&host);
        }
    }

    fn save_one(&mut self, host: &str) {
        let Some(name) = self.names.get_mut(host) else {
            return;
        };
        let Some(issued) = name.unsaved.take() else {
            return;
        };
        match self
            .folder
            .persist_certificate(host, &issued.chain, &issued.key)
        {
            Ok(()) => {
                name.plan.mark_stored();
                name.stamp = self.folder.stamp(host).ok().flatten();
            }
            Err(error) => {
                let failure = OrderFailure::new(FailureKind::Storage, error.to_string());
                let is_known = name.plan.attempts().failure.is_some();
                if !is_known {
                    warn!(host, %error, "writing a certificate to disk failed; using the certificate until the process ends");
                }
                name.plan.mark_unstored(failure);
                name.unsaved = Some(issued);
            }
        }
    }

    fn report(&self, now: SystemTime) {
        let opens = self
            .authority
            .opens()
            .filter(|_| !self.authority.is_open(now));
        let all: HashMap<Box<str>, _> = self
            .names
            .iter()
            .filter(|(_, name)| !name.plan.is_quiet())
            .map(|(host, name)| {
                let mut attempts = name.plan.attempts();
                // No order begins while the CA may not be contacted.
                attempts.next = attempts.next.max(opens);
                (host.clone(), attempts)
            })
            .collect();
        self.board.replace(all);
    }

    /// Returns the pause until the next check.
    fn pause(&self, now: SystemTime) -> Duration {
        if !self.authority.is_open(now) {
            let opens = self.authority.opens().unwrap_or(now);
            let opens = opens.duration_since(now).unwrap_or_default();
            return opens.clamp(MIN_PAUSE, MAX_PAUSE);
        }
        let names = self.names.values();
        let names = names.filter(|name| !name.plan.attempts().is_in_flight);
        let until = |name: &NameState| {
            if name.plan.attempts().order_wait.is_some() {
                return WAITING_PAUSE;
            }
            let next = name.plan.next().unwrap_or(now);
            next.duration_since(now).unwrap_or_default()
        };
        let soonest = names.map(until).min().unwrap_or(MAX_PAUSE);
        soonest.clamp(MIN_PAUSE, MAX_PAUSE)
    }
}

/// Returns the window in which the CA wants a renewal, and the time until the next query.
async fn renewal_window(
    account: &Account,
    host: &str,
    identifier: &CertificateIdentifier<'_>,
) -> Option<RenewalWindow> {
    match account.renewal_info(identifier).await {
        Ok((info, again)) => {
            let window = info.suggested_window;
            Some(((window.start.into(), window.end.into()), again))
        }
        Err(Error::Unsupported(_)) => None,
        Err(error) => {
            debug!(host, %error, "renewal query failed; keeping the planned renewal");
            None
        }
    }
}

fn lifetime(certificate: &Certificate) -> Lifetime {
    Lifetime {
        not_before: certificate.not_before,
        not_after: certificate.not_after,
    }
}

/// Returns the CA's identifier of a certificate (RFC 9773, section 4.1).
fn identifier(certificate: &Certificate) -> Option<CertificateIdentifier<'static>> {
    let own = certificate.key.end_entity_cert().ok()?;
    CertificateIdentifier::try_from(own)
        .ok()
        .map(CertificateIdentifier::into_owned)
}

/// Returns whether CAs issue certificates for such a name: it has more than one label and is not an IP address.
fn is_orderable(host: &str) -> bool {
    host.contains('.') && host.parse::<IpAddr>().is_err()
}

/// Returns the tenant whose share an order for the host uses. A preview uses its tenant's share. Empty for a host of the deployment.
fn tenant<'s>(snapshot: &'s Snapshot, host: &str) -> &'s str {
    let Some(HostEntry::Site(routes)) = snapshot.hosts.get(host) else {
        return "";
    };
    let id = routes.root.as_deref().map_or("", |mount| &*mount.tenant);
    tenant_of_preview(id).unwrap_or(id)
}

/// Returns whether the server orders certificates for hosts of this kind.
fn gets_certificate(snapshot: &Snapshot, host: &str, includes_previews: bool) -> bool {
    match snapshot.hosts.get(host) {
        Some(HostEntry::Site(routes)) => match routes.kind {
            HostKind::Tenants => true,
            HostKind::Preview => includes_previews,
            HostKind::ExpiredPreview => false,
        },
        Some(HostEntry::Redirect(_)) | None => true,
    }
}

/// Returns a random number from 0 up to, but not including, 1.
fn random_fraction() -> f64 {
    let mut bytes = [0; 4];
    // Without random numbers there is no TLS either.
    let _ = provider().secure_random.fill(&mut bytes);
    f64::from(u32::from_ne_bytes(bytes)) / (f64::from(u32::MAX) + 1.0)
}

#[cfg(test)]
mod tests {
    use release::snapshot::HostRoutes;

    use super::*;

    #[test]
    fn preview_gets_a_certificate_while_it_is_served_and_allowed() {
        for (kind, expected) in [
            (HostKind::Tenants, [true, true]),
            (HostKind::Preview, [false, true]),
            (HostKind::ExpiredPreview, [false, false]),
        ] {
            let routes = HostRoutes {
                kind,
                ..HostRoutes::default()
            };
            let mut snapshot = Snapshot::default();
            let entry = HostEntry::Site(Arc::new(routes));
            snapshot.hosts.insert("a.example".into(), entry);
            let gets = [false, true].map(|flag| gets_certificate(&snapshot, "a.example", flag));
            assert_eq!(gets, expected, "{kind:?}");
        }
    }
}
