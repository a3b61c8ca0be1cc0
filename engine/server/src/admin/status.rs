//! How the tenants are, as the reload loop last reported.
//!
//! The reload loop puts a new [`Status`] on the board after each change, and the process says once that it drains; the admin listener shows both.
//!
//! **Invariant:** knows how tenants are, not why.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

use arc_swap::{ArcSwap, Guard};
use imbl::OrdMap;
use prometheus_client::metrics::histogram::Histogram;
use serde::Serialize;
use tokio::sync::watch;

/// How all tenants are, at one moment.
#[derive(Debug, Clone, Default)]
pub struct Status {
    /// Whether the first snapshot is complete: every tenant has been tried once.
    pub complete: bool,
    /// Whether changes are noticed by looking again and again, although notifications were wanted.
    pub polling: bool,
    /// By id. A copy shares all entries with the original until one of the two changes.
    pub tenants: OrdMap<Arc<str>, Arc<TenantStatus>>,
    /// Why the folders could not be read the last time, where that is so: what is served is older than they are.
    pub alarm: Option<String>,
}

impl Status {
    /// Returns the states of all tenants, ordered by id.
    pub fn tenants(&self) -> impl Iterator<Item = &TenantStatus> {
        self.tenants.values().map(AsRef::as_ref)
    }
}

/// Returns the states of tenants by id.
pub fn by_id(
    tenants: impl IntoIterator<Item = TenantStatus>,
) -> OrdMap<Arc<str>, Arc<TenantStatus>> {
    let tenants = tenants.into_iter();
    let by_id = tenants.map(|tenant| (Arc::clone(&tenant.id), Arc::new(tenant)));
    by_id.collect()
}

/// How one tenant is.
#[derive(Debug, Clone)]
pub struct TenantStatus {
    /// The tenant's id.
    pub id: Arc<str>,
    /// What visitors get.
    pub state: State,
    /// When it came into this state.
    pub since: SystemTime,
    /// Pages served.
    pub pages: usize,
    /// Hosts that it answers on, in order.
    pub hosts: Arc<[String]>,
    /// How long its last compilation took.
    pub compiled_in: Duration,
    /// Whether it is being read or rendered, so that what visitors get is about to change.
    pub is_under_way: bool,
    /// What its authors have to correct, one line each.
    pub errors: Vec<String>,
    /// The release that is served, whatever the folder says.
    pub pinned: Option<u64>,
}

/// What visitors of a tenant get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// What its folder says.
    Live,
    /// The last good state, since what its folder says has errors.
    Degraded,
    /// Nothing yet: it is rendered when somebody asks for it, or when its turn comes.
    Pending,
    /// Nothing, since it was never without errors.
    Absent,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 4] = [Self::Live, Self::Degraded, Self::Pending, Self::Absent];

    /// The word for it in `/tenants` and `/metrics`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Degraded => "degraded",
            Self::Pending => "pending",
            Self::Absent => "absent",
        }
    }
}

/// What the store of rendered tenants holds and has done.
#[derive(Debug, Clone, Copy, Default)]
pub struct StoreStatus {
    /// Bytes of pages and pictures in memory.
    pub memory_bytes: u64,
    /// How many of them there may be; nothing without a limit.
    pub memory_limit: Option<u64>,
    /// Tenants whose pages are in memory.
    pub tenants: u64,
    /// How often a tenant was taken out of memory.
    pub evictions: u64,
    /// How often one was not rendered but taken from the state.
    pub recalls: u64,
    /// Blobs on disk.
    pub disk_blobs: u64,
    /// Their bytes.
    pub disk_bytes: u64,
    /// Releases that are still to be written.
    pub queued: u64,
    /// How often the thread that writes the state panicked.
    pub panics: u64,
    /// Whether a job of that thread panicked and did not succeed since.
    pub is_failing: bool,
}

/// How long tenants take to be rendered. A copy counts for the same.
#[derive(Debug, Clone)]
pub struct RenderTimes(pub(crate) Histogram);

impl Default for RenderTimes {
    fn default() -> Self {
        Self(Histogram::new(RELOAD_BOUNDS))
    }
}

impl RenderTimes {
    /// A tenant was rendered, or failed to be.
    pub fn observe(&self, took: Duration) {
        self.0.observe(took.as_secs_f64());
    }
}

/// Where the reload loop leaves the tenants' status.
#[derive(Debug)]
pub struct StatusBoard {
    current: ArcSwap<Status>,
    /// Apart from the status, so that no reload takes it back.
    draining: AtomicBool,
    /// When the process began.
    started: SystemTime,
    /// Seconds that reloads took.
    pub(crate) reloads: Histogram,
    /// How long tenants took to be rendered.
    pub renders: RenderTimes,
    store: ArcSwap<StoreStatus>,
    /// How often something was reported.
    changes: watch::Sender<u64>,
    attempts: watch::Sender<u64>,
    /// The last heartbeat of the reload loop.
    beat: ArcSwap<Instant>,
    /// How often the reload loop failed and was started again.
    restarts: AtomicU64,
}

/// Upper bounds of the histogram of reloads, in seconds: around the 0.3 s that a saved page may take.
const RELOAD_BOUNDS: [f64; 9] = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0];

impl Default for StatusBoard {
    fn default() -> Self {
        Self {
            current: ArcSwap::default(),
            draining: AtomicBool::new(false),
            started: SystemTime::now(),
            reloads: Histogram::new(RELOAD_BOUNDS),
            renders: RenderTimes::default(),
            store: ArcSwap::default(),
            changes: watch::Sender::default(),
            attempts: watch::Sender::default(),
            beat: ArcSwap::from_pointee(Instant::now()),
            restarts: AtomicU64::new(0),
        }
    }
}

impl StatusBoard {
    /// What was last reported; not complete and without tenants before that.
    #[must_use]
    pub fn current(&self) -> Guard<Arc<Status>> {
        self.current.load()
    }

    /// Reports how the tenants are now.
    pub fn replace(&self, status: Status) {
        self.current.store(Arc::new(status));
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// How often something was reported, to be waited on.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// When the process began.
    #[must_use]
    pub const fn started(&self) -> SystemTime {
        self.started
    }

    /// Whether requests should be sent here: every folder has been read, or has taken ten seconds, and the process does not drain.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.current().complete && !self.draining.load(Relaxed)
    }

    /// Says that the process drains, which is never taken back.
    pub fn drain(&self) {
        self.draining.store(true, Relaxed);
    }

    /// Says that the folders were read again: how long it took, or why nothing came of it.
    pub fn reloaded(&self, took: Duration, problem: Option<String>) {
        if problem.is_none() {
            self.reloads.observe(took.as_secs_f64());
        }
        if self.current().alarm != problem {
            self.current.rcu(|status| Status {
                alarm: problem.clone(),
                ..Status::clone(status)
            });
            self.changes.send_modify(|changes| *changes += 1);
        }
        self.attempts.send_modify(|attempts| *attempts += 1);
    }

    /// Reports what the store holds.
    pub fn set_store(&self, store: StoreStatus) {
        self.store.store(Arc::new(store));
    }

    /// What the store holds, as it was last reported.
    #[must_use]
    pub fn store(&self) -> StoreStatus {
        **self.store.load()
    }

    /// The heartbeat of the reload loop: it takes changes.
    pub fn beat(&self) {
        self.beat.store(Arc::new(Instant::now()));
    }

    /// The time since the last heartbeat. There is one every second, unless the reload loop is busy with a change or hangs.
    #[must_use]
    pub fn silence(&self) -> Duration {
        self.beat.load().elapsed()
    }

    /// Says that the reload loop failed, and is started again.
    pub fn restarted(&self) {
        self.restarts.fetch_add(1, Relaxed);
    }

    /// How often the reload loop was started again.
    #[must_use]
    pub fn restarts(&self) -> u64 {
        self.restarts.load(Relaxed)
    }

    /// How often the folders were read, to be waited on.
    #[must_use]
    pub fn attempts(&self) -> watch::Receiver<u64> {
        self.attempts.subscribe()
    }
}
