//! Tenants from the bucket of a fleet.
//!
//! A follower on its own thread keeps the content of all tenants in folders on the disk, and tells the reload loop which tenants have changed. The jobs of the loop read these folders, so that no job waits for the store.
//!
//! The published themes and `deployment.yaml` come the same way. As long as the newest `deployment.yaml` is not on the disk, the file counts as unreadable, which closes tenants and never opens one.

mod housekeeping;
mod jitter;
mod view;
mod wake;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use tokio::runtime::Runtime;
use tokio::time::timeout;
use tracing::{error, info, warn};

use bucket::download::cache::ContentCache;
use bucket::follow::rows::SharedRows;
use bucket::follow::{Follower, SharedFolder};
use bucket::store::probe::{ProbeError, probe};
use bucket::store::{AddressError, Bucket, Change, StoreError, random_nonce, with_causes};
use content::address::deployment::FILE;
use content::name::TenantId;
use content::report::{Code, Diagnostic};
use content::source::{self, Activity, FolderLimits, FolderTree, SourceError};
use fleet::key::{DEPLOYMENT, ObjectKey, THEMES};
use server::admin::status::{BucketStatus, BucketTraffic, StatusBoard};

use crate::jobs::shared_release::SharedReleases;
use crate::model::agenda::{MIN_RETRY_DELAY, ReloadScope};
use crate::runner::reload_queue::ReloadSender;
use crate::source::TenantSource;
use crate::source::bucket_releases::BucketReleases;
use crate::source::dormant::DormantTenants;
use crate::source::folders::FolderSource;
use crate::source::theme_folders::ThemesLocation;

use self::housekeeping::{Housekeeping, ReplicaIdentity, SharedCollection};
use self::jitter::with_jitter;
use self::view::{SharedView, View};
use self::wake::{BucketTenants, WakeQueue, WakeThread};

/// The name of the folder in the state.
const FOLDER: &str = "bucket";

/// The longest wait for the store at the start of a replica without content.
const COLD_START_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest wait for the store at the start of a replica with content.
const WARM_START_TIMEOUT: Duration = Duration::from_secs(5);

/// The memory of an awake tenant without its pages, in bytes: twice what an evicted tenant was measured to take, so that half of `--memory` stays for pages.
const AWAKE_TENANT_BYTES: usize = 64 << 10;

/// The least limit on awake tenants.
const MIN_AWAKE: usize = 16;

/// The limit on the exponent by which the interval grows while the store does not answer: 16 times.
const MAX_BACKOFF: u32 = 4;

/// A bucket that cannot be used. The program does not start.
#[derive(Debug, thiserror::Error)]
pub enum BucketError {
    /// The address is wrong.
    #[error("{0}; {hint}", hint = .0.hint())]
    Address(#[from] AddressError),
    /// The store does not do what the protocol needs.
    #[error("cannot use the bucket `{address}`: {problem}; choose a store with conditional writes")]
    Unfit {
        /// The address of the bucket.
        address: String,
        /// The result of the probe.
        problem: ProbeError,
    },
    /// The folder for content cannot be used.
    #[error("cannot use the folder `{}`: {error}; correct the folder of `--state`", folder.display())]
    Disk {
        /// The folder.
        folder: PathBuf,
        /// The system error.
        error: io::Error,
    },
}

/// Reads tenants from the folders that a follower keeps.
#[derive(Debug)]
pub(crate) struct BucketSource {
    view: SharedView,
    address: PathBuf,
    /// The folder of themes on this machine that replaces the published themes.
    themes: Option<PathBuf>,
    /// The file on this machine that replaces the published `deployment.yaml`.
    deployment: Option<PathBuf>,
    rows: SharedRows,
}

impl TenantSource for BucketSource {
    fn list(&self) -> Result<BTreeMap<String, PathBuf>, SourceError> {
        let view = self.view.lock();
        let Some(tenants) = &view.tenants else {
            return Err(SourceError::Unanswered {
                what: "tenants",
                address: self.address.display().to_string(),
                problem: view.silence.clone(),
            });
        };
        let names = tenants.keys();
        Ok(names
            .map(|name| (name.clone(), self.address.join(name)))
            .collect())
    }

    fn deployment(&self) -> Result<Option<String>, Diagnostic> {
        if let Some(file) = &self.deployment {
            return FolderSource::new(PathBuf::new(), file.clone(), None).deployment();
        }
        let view = self.view.lock();
        let reason = match view.deployment.clone() {
            SharedFolder::Absent => return Ok(None),
            SharedFolder::Unknown(_) => view.reason(DEPLOYMENT),
            SharedFolder::Current(folder) => {
                drop(view);
                let file = FolderSource::new(PathBuf::new(), folder.join(FILE), None);
                match file.deployment()? {
                    Some(text) => return Ok(Some(text)),
                    None => "the published content does not have the file".to_owned(),
                }
            }
        };
        let label = self.address.join(FILE).display().to_string();
        let message = format!("the newest published `{FILE}` cannot be read: {reason}");
        let hint = format!("wait for the store, or publish `{DEPLOYMENT}` again");
        Err(Diagnostic::error(Code::Unreadable, label, message).hint(hint))
    }

    fn themes(&self) -> Option<ThemesLocation> {
        if let Some(folder) = &self.themes {
            return FolderSource::new(PathBuf::new(), PathBuf::new(), Some(folder.clone()))
                .themes();
        }
        let view = self.view.lock();
        let folder = match view.themes.clone() {
            SharedFolder::Absent => return None,
            SharedFolder::Current(folder) | SharedFolder::Unknown(Some(folder)) => Ok(folder),
            SharedFolder::Unknown(None) => Err(SourceError::Unanswered {
                what: "themes",
                address: self.address.display().to_string(),
                problem: view.reason(THEMES),
            }),
        };
        Some(ThemesLocation {
            // Not below the address, which is the folder of tenants.
            label: PathBuf::from(THEMES),
            folder,
        })
    }

    fn is_dormant(&self, id: &TenantId) -> bool {
        let view = self.view.lock();
        // A tenant may have woken after the list.
        let is_awake = (view.tenants.as_ref()).is_some_and(|all| all.contains_key(id.as_str()));
        is_awake || self.rows.read().has(id.as_str())
    }

    fn published(&self, id: &TenantId) -> Option<SystemTime> {
        self.view.lock().published.get(id.as_str()).copied()
    }

    fn label(&self, id: &TenantId) -> String {
        self.address.join(id.as_str()).display().to_string()
    }

    fn tree(&self, id: &TenantId, limits: FolderLimits, activity: &Activity) -> FolderTree {
        let label = self.label(id);
        let view = self.view.lock();
        let tenants = view.tenants.as_ref();
        let folder = tenants.and_then(|tenants| tenants.get(id.as_str()).cloned());
        let problem = view.problems.get(id.as_str()).cloned();
        drop(view);
        match folder {
            Some(Some(folder)) => source::walk(&folder, &label, limits, activity),
            Some(None) => {
                let problem = problem.unwrap_or_default();
                let reason = Diagnostic::error(Code::Unreadable, label.clone(), problem);
                FolderTree::unavailable(&label, reason.hint("publish the tenant again"))
            }
            // The tenant was unpublished after the list.
            None => source::walk(Path::new(""), &label, limits, activity),
        }
    }
}

/// Follows a bucket on its own thread.
#[derive(Debug)]
pub struct BucketFollower {
    follower: Follower,
    runtime: Runtime,
    releases: Arc<BucketReleases>,
    view: SharedView,
    interval: Duration,
    /// When the store last answered; the start before that.
    answered: Instant,
    identity: ReplicaIdentity,
    collection: SharedCollection,
    /// The bucket of the thread that wakes tenants.
    of_waker: Bucket,
    queue: Arc<WakeQueue>,
}

impl BucketFollower {
    /// Opens the bucket with this address, with a cache in the folder of the state. Without content from an earlier process, waits for the tenants for a limited time.
    ///
    /// `interval` is the time between two questions for changes, and `host` the name of this machine, by which operators know the replica. `memory` is the limit on the memory of tenants in bytes, which bounds the number of tenants whose content is here.
    ///
    /// # Errors
    /// Returns an error if the address or the cache cannot be used, or if the store is not fit. A store that does not answer is not an error.
    pub fn open(
        address: &str,
        state: &Path,
        interval: Duration,
        (host, memory): (&str, usize),
        board: &StatusBoard,
    ) -> Result<Self, BucketError> {
        // Connections belong to the event loop of a thread, and each bucket has its own.
        let open = || Bucket::open(address);
        let buckets = [open()?, open()?, open()?];
        let max_awake = (memory / AWAKE_TENANT_BYTES).max(MIN_AWAKE);
        Self::follow(buckets, state, (interval, max_awake), host, board)
    }

    /// Follows a bucket, and shares releases and wakes tenants by the other ones, which have the same address. At most `max_awake` tenants have their content here. See [`Self::open`].
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn follow(
        [bucket, of_releases, of_waker]: [Bucket; 3],
        state: &Path,
        (interval, max_awake): (Duration, usize),
        host: &str,
        board: &StatusBoard,
    ) -> Result<Self, BucketError> {
        let folder = state.join(FOLDER);
        let disk = |error| BucketError::Disk {
            folder: folder.clone(),
            error,
        };
        let cache = ContentCache::open(&folder).map_err(disk)?;
        let identity = ReplicaIdentity::of_cache(&folder, host).map_err(disk)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(disk)?;
        let counts = board.shared_releases.clone();
        let releases = BucketReleases::start(of_releases, counts).map_err(disk)?;
        let mut follower = Self {
            follower: Follower::new(bucket, cache).with_limit(max_awake),
            runtime,
            releases: Arc::new(releases),
            view: SharedView::default(),
            interval,
            answered: Instant::now(),
            identity,
            collection: SharedCollection::default(),
            of_waker,
            queue: Arc::default(),
        };
        let answer = follower.start_warm_or_cold()?;
        follower.update_view(answer.err());
        // The process must not be ready before the tenants are known.
        board.set_bucket(follower.status(Vec::new()));
        Ok(follower)
    }

    /// Probes an empty store, and reads the tenants if none are known. Returns the reason if the store did not answer.
    fn start_warm_or_cold(&mut self) -> Result<Result<(), String>, BucketError> {
        let follower = &mut self.follower;
        let is_warm = follower.is_complete() && follower.has_shared();
        let limit = match is_warm {
            true => WARM_START_TIMEOUT,
            false => COLD_START_TIMEOUT,
        };
        let begin = async {
            // The publisher of the first head has probed the store.
            let head = follower.bucket().get(&ObjectKey::head(), None).await?;
            if head == Change::Missing {
                probe(follower.bucket(), &random_nonce()).await?;
            }
            if !is_warm {
                follower.poll(&mut BTreeSet::new()).await?;
            }
            Ok(())
        };
        let begun = self.runtime.block_on(async { timeout(limit, begin).await });
        match begun {
            Ok(Ok(())) => {
                self.answered = Instant::now();
                Ok(Ok(()))
            }
            Ok(Err(ProbeError::Store(error))) => Ok(Err(with_causes(&error))),
            Ok(Err(problem)) => Err(BucketError::Unfit {
                address: self.follower.bucket().address().to_owned(),
                problem,
            }),
            Err(_) => Ok(Err(format!(
                "the store did not answer within {} s",
                limit.as_secs()
            ))),
        }
    }

    /// Returns the source of the tenants. `themes` and `deployment` are on this machine, and replace what is published.
    pub(crate) fn source(
        &self,
        themes: Option<PathBuf>,
        deployment: Option<PathBuf>,
    ) -> BucketSource {
        BucketSource {
            view: self.view.clone(),
            address: PathBuf::from(self.follower.bucket().address()),
            themes,
            deployment,
            rows: self.follower.rows(),
        }
    }

    /// Returns the dormant tenants of the bucket at their addresses. `domain` is that of the origin.
    pub(crate) fn dormant(&self, domain: &str) -> Arc<dyn DormantTenants> {
        Arc::new(BucketTenants {
            rows: self.follower.rows(),
            domain: domain.to_owned(),
            queue: Arc::clone(&self.queue),
        })
    }

    /// Returns the releases that the replicas of the bucket share.
    pub(crate) fn releases(&self) -> Arc<dyn SharedReleases> {
        Arc::<BucketReleases>::clone(&self.releases)
    }

    /// Starts a thread that follows the bucket. The thread ends with the reload loop.
    pub fn start(mut self, board: Arc<StatusBoard>, reloads: ReloadSender) {
        // Connections belong to the event loop of a thread. The address was opened before.
        if let Ok(bucket) = Bucket::open(self.follower.bucket().address()) {
            let housekeeping = Housekeeping {
                bucket,
                identity: self.identity.clone(),
                view: self.view.clone(),
                collection: self.collection.clone(),
                board: Arc::clone(&board),
            };
            housekeeping.start(reloads.clone());
        }
        self.start_waker(reloads.clone());
        let run = move || {
            let mut failures = 0;
            while reloads.is_open() {
                let step = || self.step(&board, &reloads);
                match catch_unwind(AssertUnwindSafe(step)) {
                    Ok(true) => failures = 0,
                    Ok(false) => failures += 1,
                    Err(_) => {
                        error!("internal error while following the bucket; trying again");
                        thread::sleep(MIN_RETRY_DELAY);
                    }
                }
                let growth = 2_u32.pow(failures.min(MAX_BACKOFF));
                thread::sleep(with_jitter(self.interval) * growth);
            }
        };
        thread::spawn(run);
    }

    /// Starts the thread that wakes dormant tenants. The thread ends with the reload loop.
    pub fn start_waker(&self, reloads: ReloadSender) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let wake = WakeThread {
            waker: self.follower.waker(self.of_waker.clone()),
            queue: Arc::clone(&self.queue),
            view: self.view.clone(),
        };
        match runtime {
            Ok(runtime) => wake.start(runtime, reloads),
            Err(error) => error!(%error, "dormant tenants cannot be woken; restart the server"),
        }
    }

    /// Asks for changes once, and tells the reload loop. Returns whether the store has answered.
    pub fn step(&mut self, board: &StatusBoard, reloads: &ReloadSender) -> bool {
        let mut changed = BTreeSet::new();
        let polled = self.runtime.block_on(self.follower.poll(&mut changed));
        if polled.is_ok() {
            self.answered = Instant::now();
        }
        let problem = polled.as_ref().err().map(|error| with_causes(error));
        let shared = self.update_view(problem);
        self.report(board, polled.as_ref().err());
        let reads_all = shared.contains(&ReloadScope::Everything);
        let tenants = changed.into_iter().filter(|_| !reads_all);
        let tenants = tenants.map(ReloadScope::Tenant);
        for scope in shared.into_iter().chain(tenants) {
            // Sending fails if the reload loop has ended, and so does this thread.
            let _ = reloads.request(scope);
        }
        polled.is_ok()
    }

    /// Shows the state of the follower to the source. Returns the changed parts other than single tenants.
    fn update_view(&self, silence: Option<String>) -> Vec<ReloadScope> {
        let is_known = self.follower.is_complete();
        let mut shown = self.view.lock();
        // A tenant that wakes after this has the lock next.
        let view = View {
            tenants: is_known.then(|| self.follower.tenants()),
            published: self.follower.published(),
            themes: self.follower.shared(THEMES),
            deployment: self.follower.shared(DEPLOYMENT),
            problems: self.follower.problems(),
            silence: silence.unwrap_or_default(),
            sequence: self.follower.sequence(),
        };
        let changed = view.changed_since(&shown);
        *shown = view;
        changed
    }

    /// Reports the state of the bucket to operators. The log has a line for each new problem and for the end of all.
    fn report(&self, board: &StatusBoard, error: Option<&StoreError>) {
        let address = self.follower.bucket().address();
        let silence = error.map(|error| {
            let meanwhile = match error.is_permanent() {
                true => "correct the settings in the environment and restart",
                false => "trying again",
            };
            let causes = with_causes(error);
            format!(
                "the bucket `{address}` cannot be read: {causes}; serving the last versions; {meanwhile}"
            )
        });
        let overdue = self.collection.lock().alarm.clone();
        let alarms = self.follower.alarms().into_iter().chain(overdue);
        let problems: Vec<String> = silence.into_iter().chain(alarms).collect();
        let former = board.bucket();
        let former = former.as_ref().as_ref();
        let former = former.map_or(&[][..], |former| &former.problems);
        for problem in problems.iter().filter(|one| !former.contains(one)) {
            warn!("{problem}");
        }
        if problems.is_empty() && !former.is_empty() {
            info!(bucket = address, "the bucket has no more problems");
        }
        board.set_bucket(self.status(problems));
    }

    fn status(&self, problems: Vec<String>) -> BucketStatus {
        BucketStatus {
            is_known: self.follower.is_complete(),
            answered: self.answered,
            problems,
            dormant: self.follower.dormant(),
            last_collection: self.collection.lock().last,
            traffic: traffic(self.follower.bucket()),
        }
    }
}

/// Returns the requests of the process to the store so far.
fn traffic(bucket: &Bucket) -> BucketTraffic {
    let counts = bucket.metrics().counts();
    BucketTraffic {
        requests: counts.requests,
        latency: counts.latency,
        latency_micros: counts.latency_micros,
        received: counts.received,
        sent: counts.sent,
        cache_hits: counts.cache_hits,
        cache_misses: counts.cache_misses,
        leases: counts.leases,
    }
}

#[cfg(test)]
mod tests;
