//! The releases that the replicas of a bucket share.
//!
//! Requests run on an event loop of their own, so that jobs can wait for a limited time. After a request without an answer, jobs do not ask for [`PAUSE`]: a store that is down or slow delays few tenants.

use std::fmt::Write as _;
use std::future::pending;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::sleep;
use tracing::warn;

use bucket::lease::Lease;
use bucket::releases::{self, DOWNLOAD_TIMEOUT, LOOK_TIMEOUT, ReleaseLookup};
use bucket::store::{Bucket, with_causes};
use render::CacheKey;
use server::admin::status::{SharedReleaseCounts, SharedReleaseUse};

use crate::jobs::shared_release::{ClaimState, RenderClaim, SharedLookup, SharedReleases};

/// The time without requests after a request without an answer.
const PAUSE: Duration = Duration::from_secs(10);

/// The interval at which a claim checks whether its lease must be renewed.
const RENEWAL_INTERVAL: Duration = Duration::from_millis(300);

/// The longest time for which a claim is held. Rendering that takes longer may never end.
const MAX_CLAIM_TIME: Duration = Duration::from_secs(60);

/// The limit on releases that wait to be created. Each of them has its pages in memory.
const MAX_QUEUED_RELEASES: usize = 32;

/// The limit on releases that are created at the same time.
const MAX_UPLOADS: usize = 2;

/// The releases in a bucket.
#[derive(Debug)]
pub(crate) struct BucketReleases {
    bucket: Bucket,
    runtime: Handle,
    silence: Arc<Silence>,
    counts: SharedReleaseCounts,
    queued: Arc<AtomicUsize>,
    uploads: Arc<Semaphore>,
}

/// Whether the store has left a request without an answer.
#[derive(Debug, Default)]
struct Silence {
    until: Mutex<Option<Instant>>,
    /// Whether the log has a line about it.
    is_reported: AtomicBool,
}

impl Silence {
    fn is_over(&self) -> bool {
        let until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_none_or(|until| until <= Instant::now())
    }

    /// Notes an answer.
    fn end(&self) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.is_reported.store(false, Relaxed);
    }

    /// Notes a request without an answer. The log has one line until the next answer.
    fn begin(&self, problem: &str) {
        let until = Instant::now() + PAUSE;
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
        if !self.is_reported.swap(true, Relaxed) {
            warn!(
                problem,
                "releases of the bucket cannot be used; this replica renders by itself"
            );
        }
    }
}

impl BucketReleases {
    /// Starts the event loop of the requests on a thread of its own.
    ///
    /// # Errors
    /// Returns an error if the operating system has no thread or event loop left.
    pub(crate) fn start(bucket: Bucket, counts: SharedReleaseCounts) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        thread::Builder::new()
            .name("shared releases".to_owned())
            .spawn(move || runtime.block_on(pending::<()>()))?;
        Ok(Self {
            bucket,
            runtime: handle,
            silence: Arc::default(),
            counts,
            queued: Arc::default(),
            uploads: Arc::new(Semaphore::new(MAX_UPLOADS)),
        })
    }
}

impl SharedReleases for BucketReleases {
    fn find(&self, inputs: &CacheKey, limit: Option<Duration>) -> SharedLookup {
        if !self.silence.is_over() {
            self.counts.add(SharedReleaseUse::Failed);
            return SharedLookup::Unusable;
        }
        let (done, found) = channel();
        let (bucket, name) = (self.bucket.clone(), hexadecimal(inputs));
        let silence = Arc::clone(&self.silence);
        self.runtime.spawn(async move {
            let found = releases::find(&bucket, &name).await;
            match &found {
                Ok(_) => silence.end(),
                Err(error) => silence.begin(&with_causes(error)),
            }
            // The job may have given up.
            let _ = done.send(found);
        });
        let limit = limit.unwrap_or(LOOK_TIMEOUT + 2 * DOWNLOAD_TIMEOUT);
        match found.recv_timeout(limit) {
            Ok(Ok(ReleaseLookup::Found(bytes))) => SharedLookup::Found(bytes),
            Ok(Ok(ReleaseLookup::Missing)) => SharedLookup::Missing,
            Ok(Ok(ReleaseLookup::Damaged)) => {
                self.report_damage(inputs);
                SharedLookup::Unusable
            }
            Ok(Err(_)) | Err(_) => {
                self.counts.add(SharedReleaseUse::Failed);
                SharedLookup::Unusable
            }
        }
    }

    fn claim(&self, inputs: &CacheKey) -> Box<dyn RenderClaim> {
        let lease = releases::render_lease(self.bucket.clone(), &hexadecimal(inputs));
        let (changed, changes) = channel();
        let (end, ended) = oneshot::channel();
        let silence = Arc::clone(&self.silence);
        self.runtime.spawn(hold(lease, changed, ended, silence));
        Box::new(BucketClaim {
            state: ClaimState::Unanswered,
            changes,
            _end: end,
        })
    }

    fn create(
        &self,
        inputs: &CacheKey,
        claim: Option<Box<dyn RenderClaim>>,
        pack: Box<dyn FnOnce() -> Option<Vec<u8>> + Send>,
    ) {
        let queued = QueuedRelease::new(&self.queued);
        // Without this limit, a store that is slow would fill the memory.
        if self.queued.load(Relaxed) > MAX_QUEUED_RELEASES || !self.silence.is_over() {
            return;
        }
        let (bucket, name) = (self.bucket.clone(), hexadecimal(inputs));
        let (uploads, silence) = (Arc::clone(&self.uploads), Arc::clone(&self.silence));
        let (counts, runtime) = (self.counts.clone(), self.runtime.clone());
        self.runtime.spawn(async move {
            // The semaphore is never closed.
            let _permit = uploads.acquire().await;
            let packed = runtime.spawn_blocking(pack).await;
            if let Ok(Some(packed)) = packed {
                match releases::create(&bucket, &name, &packed).await {
                    Ok(true) => counts.add(SharedReleaseUse::Created),
                    // Another replica was first.
                    Ok(false) => {}
                    Err(error) => {
                        counts.add(SharedReleaseUse::Failed);
                        silence.begin(&with_causes(&error));
                    }
                }
            }
            // Other replicas that get the claim now find the release.
            drop((claim, queued));
        });
    }

    fn report_reuse(&self) {
        self.counts.add(SharedReleaseUse::Reused);
    }

    fn report_damage(&self, inputs: &CacheKey) {
        self.counts.add(SharedReleaseUse::Damaged);
        let release = hexadecimal(inputs);
        warn!(
            release,
            "release in the bucket is damaged; this replica renders by itself"
        );
    }
}

/// Counts a release that waits to be created.
struct QueuedRelease(Arc<AtomicUsize>);

impl QueuedRelease {
    fn new(queued: &Arc<AtomicUsize>) -> Self {
        queued.fetch_add(1, Relaxed);
        Self(Arc::clone(queued))
    }
}

impl Drop for QueuedRelease {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// The lease to render a release, which ends when it is dropped.
#[derive(Debug)]
struct BucketClaim {
    state: ClaimState,
    changes: Receiver<ClaimState>,
    /// Dropping it ends the task that holds the lease.
    _end: oneshot::Sender<()>,
}

impl RenderClaim for BucketClaim {
    fn wait(&mut self, limit: Duration) -> ClaimState {
        match self.changes.recv_timeout(limit) {
            Ok(state) => self.state = state,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => self.state = ClaimState::Failed,
        }
        self.state
    }
}

/// Acquires and renews a lease until its claim ends, and reports each change.
async fn hold(
    mut lease: Lease,
    changed: Sender<ClaimState>,
    mut ended: oneshot::Receiver<()>,
    silence: Arc<Silence>,
) {
    let begin = Instant::now();
    let mut known = ClaimState::Unanswered;
    while begin.elapsed() < MAX_CLAIM_TIME {
        let state = match lease.advance().await {
            Ok(true) => ClaimState::Granted,
            Ok(false) => ClaimState::Waiting,
            Err(error) => {
                silence.begin(&with_causes(&error));
                ClaimState::Failed
            }
        };
        if state != known {
            known = state;
            // The claim may have ended.
            let _ = changed.send(state);
        }
        tokio::select! {
            _ = &mut ended => break,
            () = sleep(RENEWAL_INTERVAL) => {}
        }
    }
    lease.end().await;
}

/// Returns a digest in hexadecimal.
fn hexadecimal(digest: &CacheKey) -> String {
    digest.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests;
