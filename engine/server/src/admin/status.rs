//! Holds the status of the tenants, as the reload loop last reported it.
//!
//! The reload loop stores a new [`DeploymentStatus`] on the board after each change. The process sets the draining flag once. The admin listener shows both.
//!
//! **Invariant:** knows the state of tenants, not its cause.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

use arc_swap::{ArcSwap, Guard};
use imbl::OrdMap;
use prometheus_client::metrics::histogram::Histogram;
use serde::Serialize;
use tokio::sync::watch;

use super::replicas::ReplicaBoard;

/// The time for which operators see that a tenant was removed.
pub const REMOVAL_SHOWN: Duration = Duration::from_secs(24 * 60 * 60);

/// The status of all tenants at one moment.
#[derive(Debug, Clone, Default)]
pub struct DeploymentStatus {
    /// Whether the first snapshot is complete: every tenant has been tried once.
    pub complete: bool,
    /// Whether changes are found by polling, although notifications were requested.
    pub polling: bool,
    /// The tenants by id. A copy shares all entries with the original until one of them changes.
    pub tenants: OrdMap<Arc<str>, Arc<TenantStatus>>,
    /// The tenants whose folders were removed and whose history is kept, by id. Restored tenants are in `tenants`.
    pub removed: Arc<[RemovedTenant]>,
    /// The error of the last attempt to read the folders, if it failed. The current snapshot is then older than the folders.
    pub alarm: Option<String>,
}

impl DeploymentStatus {
    /// Returns the status of all tenants, ordered by id.
    pub fn tenants(&self) -> impl Iterator<Item = &TenantStatus> {
        self.tenants.values().map(AsRef::as_ref)
    }

    /// Returns the tenants that were removed within [`REMOVAL_SHOWN`] before `now`.
    pub fn recently_removed(&self, now: SystemTime) -> impl Iterator<Item = &RemovedTenant> {
        let is_recent = move |removed: &&RemovedTenant| {
            let age = now.duration_since(removed.at).unwrap_or_default();
            age < REMOVAL_SHOWN
        };
        self.removed.iter().filter(is_recent)
    }

    /// Returns whether a tenant was removed and its history is kept.
    #[must_use]
    pub fn is_removed(&self, tenant: &str) -> bool {
        self.removed.iter().any(|removed| *removed.id == *tenant)
    }
}

/// A tenant whose folder was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedTenant {
    /// The tenant's id.
    pub id: Arc<str>,
    /// When the removal was noticed.
    pub at: SystemTime,
    /// Whether the state has its last valid folder, so that the tenant can be restored.
    pub is_persisted: bool,
    /// Whether its folder was valid at any time. Always true for a server without a state, which cannot know.
    pub was_valid: bool,
}

/// Collects the status of tenants by id.
pub fn by_id(
    tenants: impl IntoIterator<Item = TenantStatus>,
) -> OrdMap<Arc<str>, Arc<TenantStatus>> {
    let tenants = tenants.into_iter();
    let by_id = tenants.map(|tenant| (Arc::clone(&tenant.id), Arc::new(tenant)));
    by_id.collect()
}

/// The status of one tenant.
#[derive(Debug, Clone)]
pub struct TenantStatus {
    /// The tenant's id.
    pub id: Arc<str>,
    /// The state that visitors see.
    pub state: Availability,
    /// When the tenant entered the state.
    pub since: SystemTime,
    /// The number of pages.
    pub pages: usize,
    /// The tenant's hosts, sorted.
    pub hosts: Arc<[String]>,
    /// Duration of the last compilation.
    pub compiled_in: Duration,
    /// Whether the tenant is being read or rendered, so that its release is about to change.
    pub is_in_flight: bool,
    /// The errors in the tenant's folder, one line each.
    pub errors: Vec<String>,
    /// The number of the pinned release.
    pub pinned: Option<u64>,
    /// The number of the pinned release that cannot be served; 0 if the number is not known. Visitors get 503.
    pub unreadable_pin: Option<u64>,
    /// The files whose upload has not ended, one line each, if the tenant waits for them.
    pub receiving: Vec<String>,
    /// The tenant that a preview shows, and its age. `None` for other tenants.
    pub preview: Option<PreviewStatus>,
}

/// The tenant that a preview shows, and its age.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviewStatus {
    /// The id of the tenant.
    pub tenant: String,
    /// When the folder last changed, if known.
    pub changed: Option<SystemTime>,
    /// When the preview is no longer served, unless its folder changes before.
    pub ends: Option<SystemTime>,
    /// Whether the end is near.
    pub is_ending: bool,
}

impl TenantStatus {
    /// Returns the alarm of a pinned release that cannot be served, with the commands that end it.
    #[must_use]
    pub fn pin_alarm(&self) -> Option<String> {
        let id = &self.id;
        let release = match self.unreadable_pin? {
            0 => "the pinned release".to_owned(),
            number => format!("the pinned release {number}"),
        };
        Some(format!(
            "{release} of {id} cannot be served, and visitors of {id} get 503; run `rowhouse rollback {id} NUMBER` with another release, or `rowhouse resume {id}` to serve the folder"
        ))
    }
}

/// The state of a tenant, as visitors see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Availability {
    /// The current release matches the folder.
    Live,
    /// The folder has errors; visitors get the last valid release.
    Degraded,
    /// Files are being uploaded; visitors get the last valid release until the upload ends.
    Receiving,
    /// The tenant is queued and not rendered yet. A request moves it to the front of the queue.
    Pending,
    /// There is no release, since the folder was never valid.
    Absent,
    /// The preview is too old; visitors get 410 until its folder changes.
    Expired,
    /// The folder was removed within the last day. The tenant is not served.
    Removed,
}

impl Availability {
    /// All states.
    pub const ALL: [Self; 7] = [
        Self::Live,
        Self::Degraded,
        Self::Receiving,
        Self::Pending,
        Self::Absent,
        Self::Expired,
        Self::Removed,
    ];

    /// Returns the state's name in `/tenants` and `/metrics`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Degraded => "degraded",
            Self::Receiving => "receiving",
            Self::Pending => "pending",
            Self::Absent => "absent",
            Self::Expired => "expired",
            Self::Removed => "removed",
        }
    }
}

/// The content and the counters of the release store.
#[derive(Debug, Clone, Default)]
pub struct StoreStatus {
    /// Bytes of pages and images in memory.
    pub memory_bytes: u64,
    /// Maximum bytes of pages and images in memory, if there is a limit.
    pub memory_limit: Option<u64>,
    /// Tenants whose pages are in memory.
    pub tenants: u64,
    /// Number of evictions.
    pub evictions: u64,
    /// Number of times that a tenant was restored from the state instead of being rendered.
    pub recalls: u64,
    /// Blobs on disk.
    pub disk_blobs: u64,
    /// Bytes of the blobs on disk.
    pub disk_bytes: u64,
    /// Releases that are not written to disk yet.
    pub queued: u64,
    /// Whether the state can be written; `None` without `--state`.
    pub state: Option<StateStatus>,
    /// Panics of the thread that writes the state.
    pub panics: u64,
    /// Whether a job of that thread failed for a reason of its own and has not succeeded since.
    pub is_failing: bool,
}

/// Whether the state (`--state`) can be written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StateStatus {
    /// The reason that nothing can be written.
    pub problem: Option<String>,
    /// The number of failed writes.
    pub failures: u64,
    /// Bytes of releases that are not written to disk yet.
    pub queued_bytes: u64,
}

impl StoreStatus {
    /// Returns the alarm of a state that cannot be written, with its consequence.
    #[must_use]
    pub fn state_alarm(&self) -> Option<String> {
        let problem = self.state.as_ref()?.problem.as_ref()?;
        Some(format!(
            "the state cannot be written: {problem}; a restart loses new releases, and rollbacks fail"
        ))
    }
}

/// The delivery of alerts to the receiver of `--alert-webhook`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AlertStatus {
    /// The scheme and the host of the receiver.
    pub receiver: String,
    /// The number of alerts and of their ends that the receiver got.
    pub sent: u64,
    /// The number of failed messages.
    pub failures: u64,
    /// The number of alerts that the receiver must get and does not have.
    pub unsent: u64,
    /// Why the last message failed.
    pub problem: Option<String>,
}

/// The bucket that a replica follows (`--store`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketStatus {
    /// Whether the tenants are known, from the bucket or from the state.
    pub is_known: bool,
    /// When the store last answered; the start of the process before that.
    pub answered: Instant,
    /// The alarms: a store that does not answer, objects that are missing or damaged.
    pub problems: Vec<String>,
    /// The tenants whose content the replica does not have.
    pub dormant: usize,
    /// When the bucket was last collected, since 1970, if known.
    pub last_collection: Option<Duration>,
    /// The requests so far.
    pub traffic: BucketTraffic,
}

/// The requests to the bucket so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BucketTraffic {
    /// The requests by [`BucketTraffic::KINDS`] and [`BucketTraffic::RESULTS`].
    pub requests: [[u64; 6]; 4],
    /// The requests by time: up to each of [`BucketTraffic::LATENCY_BOUNDS`], and beyond.
    pub latency: [u64; 11],
    /// The time of all requests together, in microseconds.
    pub latency_micros: u64,
    /// The bytes of all objects that were read.
    pub received: u64,
    /// The bytes of all objects that were written.
    pub sent: u64,
    /// The versions whose content was on the disk.
    pub cache_hits: u64,
    /// The versions whose content had to be read.
    pub cache_misses: u64,
    /// The leases that are held.
    pub leases: u64,
}

impl BucketTraffic {
    /// The kinds of requests.
    pub const KINDS: [&str; 4] = ["read", "list", "write", "delete"];

    /// The results of requests.
    pub const RESULTS: [&str; 6] = [
        "done",
        "unchanged",
        "missing",
        "refused",
        "denied",
        "failed",
    ];

    /// Upper bounds of the time of a request, in milliseconds.
    pub const LATENCY_BOUNDS: [u64; 10] = [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 10_000];
}

/// The memory of the parts of the program that grow with the sites, in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryStatus {
    /// Pages and files in memory.
    pub pages: u64,
    /// Images in memory.
    pub images: u64,
    /// The data of all tenants beside their pages: addresses, manifests, titles, diagnostics. An estimate.
    pub tenant_data: u64,
    /// The memory that reading and rendering have reserved.
    pub work: u64,
    /// The limit of `work`.
    pub work_limit: u64,
    /// The number of jobs that wait for a thread or for memory.
    pub queued_jobs: u64,
    /// The tenants that use the most memory with their bytes, the largest first.
    pub largest: Vec<(Arc<str>, u64)>,
}

/// The histogram of render durations. Copies share the histogram.
#[derive(Debug, Clone)]
pub struct RenderTimes(pub(crate) Histogram);

impl Default for RenderTimes {
    fn default() -> Self {
        Self(Histogram::new(RELOAD_BOUNDS))
    }
}

impl RenderTimes {
    /// Records how long a tenant took to render, successfully or not.
    pub fn observe(&self, took: Duration) {
        self.0.observe(took.as_secs_f64());
    }
}

/// The numbers of releases that replicas of a fleet rendered for each other. Copies share the numbers.
#[derive(Debug, Clone, Default)]
pub struct SharedReleaseCounts(Arc<[AtomicU64; SharedReleaseUse::ALL.len()]>);

/// The use of a release that replicas share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedReleaseUse {
    /// Another replica had rendered the release: this one did not.
    Reused,
    /// This replica rendered the release, and the others can use it.
    Created,
    /// The object of the release was damaged, and this replica rendered or compressed.
    Damaged,
    /// The store did not answer, and this replica rendered or compressed.
    Failed,
    /// Another replica had made the best content encodings: this one did not.
    EncodingsReused,
    /// This replica made the best content encodings, and the others can use them.
    EncodingsCreated,
}

impl SharedReleaseUse {
    /// Every use, in the order of the metric.
    pub(crate) const ALL: [Self; 6] = [
        Self::Reused,
        Self::Created,
        Self::Damaged,
        Self::Failed,
        Self::EncodingsReused,
        Self::EncodingsCreated,
    ];

    /// Returns the value of the metric's label.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Reused => "reused",
            Self::Created => "created",
            Self::Damaged => "damaged",
            Self::Failed => "failed",
            Self::EncodingsReused => "encodings_reused",
            Self::EncodingsCreated => "encodings_created",
        }
    }
}

impl SharedReleaseCounts {
    /// Counts a use.
    pub fn add(&self, of: SharedReleaseUse) {
        self.0[of as usize].fetch_add(1, Relaxed);
    }

    /// Returns the number of uses of this kind.
    #[must_use]
    pub fn get(&self, of: SharedReleaseUse) -> u64 {
        self.0[of as usize].load(Relaxed)
    }
}

/// The board on which the reload loop reports the status of the tenants.
#[derive(Debug)]
pub struct StatusBoard {
    current: ArcSwap<DeploymentStatus>,
    /// Separate from the status, so that a reload does not reset it.
    draining: AtomicBool,
    /// Whether another process is taking over, so that this process sends no alerts.
    handing_over: AtomicBool,
    /// When the process started.
    started: SystemTime,
    /// Seconds that reloads took.
    pub(crate) reloads: Histogram,
    /// Durations of rendering tenants.
    pub renders: RenderTimes,
    /// Releases that replicas of a fleet rendered for each other.
    pub shared_releases: SharedReleaseCounts,
    store: ArcSwap<StoreStatus>,
    memory: ArcSwap<MemoryStatus>,
    alerts: ArcSwap<Option<AlertStatus>>,
    bucket: ArcSwap<Option<BucketStatus>>,
    /// The replicas that follow the bucket.
    pub replicas: ReplicaBoard,
    /// The number of reports.
    changes: watch::Sender<u64>,
    attempts: watch::Sender<u64>,
    /// The last heartbeat of the reload loop.
    beat: ArcSwap<Instant>,
    /// How often the reload loop panicked and was restarted.
    restarts: AtomicU64,
}

/// Upper bounds of the reload histogram, in seconds. The target for a saved page is 0.3 s.
const RELOAD_BOUNDS: [f64; 9] = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0];

impl Default for StatusBoard {
    fn default() -> Self {
        Self {
            current: ArcSwap::default(),
            draining: AtomicBool::new(false),
            handing_over: AtomicBool::new(false),
            started: SystemTime::now(),
            reloads: Histogram::new(RELOAD_BOUNDS),
            renders: RenderTimes::default(),
            shared_releases: SharedReleaseCounts::default(),
            store: ArcSwap::default(),
            memory: ArcSwap::default(),
            alerts: ArcSwap::default(),
            bucket: ArcSwap::default(),
            replicas: ReplicaBoard::default(),
            changes: watch::Sender::default(),
            attempts: watch::Sender::default(),
            beat: ArcSwap::from_pointee(Instant::now()),
            restarts: AtomicU64::new(0),
        }
    }
}

impl StatusBoard {
    /// Returns the last reported status. Before the first report it is incomplete and has no tenants.
    #[must_use]
    pub fn current(&self) -> Guard<Arc<DeploymentStatus>> {
        self.current.load()
    }

    /// Reports the status of the tenants.
    pub fn replace(&self, status: DeploymentStatus) {
        self.current.store(Arc::new(status));
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Returns a receiver of the number of reports.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Returns when the process started.
    #[must_use]
    pub const fn started(&self) -> SystemTime {
        self.started
    }

    /// Returns whether the process is ready: the tenants are known, every folder has been read, or has taken ten seconds, and the process does not drain.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let bucket = self.bucket();
        let is_known = bucket
            .as_ref()
            .as_ref()
            .is_none_or(|bucket| bucket.is_known);
        is_known && self.current().complete && !self.draining.load(Relaxed)
    }

    /// Records that the process drains. This cannot be undone.
    pub fn drain(&self) {
        self.draining.store(true, Relaxed);
    }

    /// Returns whether the process drains.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.draining.load(Relaxed)
    }

    /// Sets whether this process and another process both serve. Only the newer process sends alerts, and not before it serves alone.
    pub fn set_handing_over(&self, is_handing_over: bool) {
        self.handing_over.store(is_handing_over, Relaxed);
    }

    /// Returns whether this process and another process both serve.
    pub(super) fn is_handing_over(&self) -> bool {
        self.handing_over.load(Relaxed)
    }

    /// Records a reload: its duration, or the error that prevented it.
    pub fn reloaded(&self, took: Duration, problem: Option<String>) {
        if problem.is_none() {
            self.reloads.observe(took.as_secs_f64());
        }
        if self.current().alarm != problem {
            self.current.rcu(|status| DeploymentStatus {
                alarm: problem.clone(),
                ..DeploymentStatus::clone(status)
            });
            self.changes.send_modify(|changes| *changes += 1);
        }
        self.attempts.send_modify(|attempts| *attempts += 1);
    }

    /// Reports the status of the release store.
    pub fn set_store(&self, store: StoreStatus) {
        let former = self.store.swap(Arc::new(store));
        // The console shows an alarm at once.
        if former.state_alarm() != self.store().state_alarm() {
            self.changes.send_modify(|changes| *changes += 1);
        }
    }

    /// Reports the status of the bucket that this replica follows.
    pub fn set_bucket(&self, bucket: BucketStatus) {
        let former = self.bucket.swap(Arc::new(Some(bucket)));
        let problems = |bucket: &Option<BucketStatus>| {
            let bucket = bucket.as_ref();
            bucket.map(|bucket| bucket.problems.clone())
        };
        // The console shows an alarm at once.
        if problems(&former) != problems(&self.bucket()) {
            self.changes.send_modify(|changes| *changes += 1);
        }
    }

    /// Returns the last reported status of the bucket; `None` if the tenants are in folders.
    #[must_use]
    pub fn bucket(&self) -> Arc<Option<BucketStatus>> {
        self.bucket.load_full()
    }

    /// Returns the last reported status of the release store.
    #[must_use]
    pub fn store(&self) -> Arc<StoreStatus> {
        self.store.load_full()
    }

    /// Reports the memory of the parts of the program.
    pub fn set_memory(&self, memory: MemoryStatus) {
        self.memory.store(Arc::new(memory));
    }

    /// Returns the last reported memory of the parts of the program.
    #[must_use]
    pub fn memory(&self) -> Arc<MemoryStatus> {
        self.memory.load_full()
    }

    /// Reports the delivery of alerts.
    pub fn set_alerts(&self, alerts: AlertStatus) {
        self.alerts.store(Arc::new(Some(alerts)));
    }

    /// Returns the last reported delivery of alerts; `None` without `--alert-webhook`.
    #[must_use]
    pub fn alerts(&self) -> Arc<Option<AlertStatus>> {
        self.alerts.load_full()
    }

    /// Records a heartbeat of the reload loop.
    pub fn beat(&self) {
        self.beat.store(Arc::new(Instant::now()));
    }

    /// Returns the time since the last heartbeat. The reload loop beats every second, unless it is busy with a change or hangs.
    #[must_use]
    pub fn silence(&self) -> Duration {
        self.beat.load().elapsed()
    }

    /// Records that the reload loop panicked and is being restarted.
    pub fn restarted(&self) {
        self.restarts.fetch_add(1, Relaxed);
    }

    /// Returns how often the reload loop was restarted.
    #[must_use]
    pub fn restarts(&self) -> u64 {
        self.restarts.load(Relaxed)
    }

    /// Returns a receiver of the number of reload attempts.
    #[must_use]
    pub fn attempts(&self) -> watch::Receiver<u64> {
        self.attempts.subscribe()
    }
}
