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
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::time::{sleep, timeout};
use tracing::warn;

use bucket::lease::Lease;
use bucket::releases::{
    self, DOWNLOAD_TIMEOUT, LOOK_TIMEOUT, LookupError, ReleaseLookup, ReleaseState,
};
use bucket::store::{Bucket, with_causes};
use render::CacheKey;
use server::admin::status::{SharedReleaseCounts, SharedReleaseUse};

use crate::jobs::shared_encodings::{EncodingSearch, EncodingState};
use crate::jobs::shared_release::{
    ClaimState, RenderClaim, SharedLookup, SharedReleases, best_encodings,
};

/// The time without requests after a request without an answer.
const PAUSE: Duration = Duration::from_secs(10);

/// The interval at which a claim checks whether its lease must be renewed.
const RENEWAL_INTERVAL: Duration = Duration::from_millis(300);

/// The longest time for which a claim is held. Rendering that takes longer may never end.
const MAX_CLAIM_TIME: Duration = Duration::from_secs(60);

/// The longest time for which a replica makes encodings for all, or waits for another one. Compressing a thousand pages takes a few minutes.
const MAX_SEARCH_TIME: Duration = Duration::from_secs(600);

/// The interval between two looks for the encodings of another replica.
const SEARCH_INTERVAL: Duration = Duration::from_secs(2);

/// The time after which a release that is not in the bucket is no longer expected there.
const MAX_UPLOAD_WAIT: Duration = Duration::from_secs(10);

/// The limit on releases that wait to be created or completed. Each of them has its pages in memory.
const MAX_QUEUED_RELEASES: usize = 32;

/// The limit on releases that are created or completed at the same time.
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

impl BucketReleases {
    /// Creates or completes a release on the event loop. Then drops `claim`.
    fn upload(
        &self,
        inputs: &CacheKey,
        as_use: SharedReleaseUse,
        claim: impl Send + 'static,
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
                let uploaded = match as_use {
                    SharedReleaseUse::EncodingsCreated => {
                        releases::complete(&bucket, &name, &packed).await
                    }
                    _ => releases::create(&bucket, &name, &packed).await,
                };
                match uploaded {
                    Ok(true) => counts.add(as_use),
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
        self.upload(inputs, SharedReleaseUse::Created, claim, pack);
    }

    fn search_encodings(&self, inputs: &CacheKey) -> Box<dyn EncodingSearch> {
        let (changed, state) = watch::channel(EncodingState::Waiting);
        let (end, ended) = oneshot::channel();
        if self.silence.is_over() {
            let (bucket, counts) = (self.bucket.clone(), self.counts.clone());
            let (name, silence) = (hexadecimal(inputs), Arc::clone(&self.silence));
            self.runtime.spawn(async move {
                let searched = search(&bucket, &name, &changed, ended).await;
                match searched {
                    Ok(Some(result)) => counts.add(result),
                    Ok(None) => {}
                    Err(error) => {
                        counts.add(SharedReleaseUse::Failed);
                        silence.begin(&with_causes(&error));
                    }
                }
            });
        }
        Box::new(BucketSearch { state, _end: end })
    }

    fn complete(
        &self,
        inputs: &CacheKey,
        search: Box<dyn EncodingSearch>,
        pack: Box<dyn FnOnce() -> Option<Vec<u8>> + Send>,
    ) {
        self.upload(inputs, SharedReleaseUse::EncodingsCreated, search, pack);
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

/// A search for the best encodings of a release, which ends when it is dropped.
#[derive(Debug)]
struct BucketSearch {
    state: watch::Receiver<EncodingState>,
    /// Dropping it ends the task that searches.
    _end: oneshot::Sender<()>,
}

impl EncodingSearch for BucketSearch {
    fn state(&self) -> EncodingState {
        // Asked first: the last state of a search that has ended does not change.
        let has_ended = self.state.has_changed().is_err();
        match self.state.borrow().clone() {
            EncodingState::Waiting if has_ended => EncodingState::Unusable,
            state => state,
        }
    }
}

/// The next step of a search.
#[derive(Debug, PartialEq, Eq)]
enum SearchStep {
    /// Read the encodings, unless they are damaged.
    Read,
    /// Make the encodings for all replicas.
    Make,
    /// Ask for the lease, and look again later.
    Claim,
    /// Look again later.
    Wait,
    /// Make the encodings for this replica only.
    End,
}

impl SearchStep {
    /// Returns the step after a look `elapsed` after the first one. `is_holder`: this replica has held the lease before the look.
    fn after(state: ReleaseState, is_holder: bool, elapsed: Duration) -> Self {
        match state {
            ReleaseState::Complete | ReleaseState::Damaged => Self::Read,
            _ if elapsed >= MAX_SEARCH_TIME => Self::End,
            // The encodings of the former holder would have been there.
            ReleaseState::Incomplete if is_holder => Self::Make,
            ReleaseState::Incomplete => Self::Claim,
            // The upload of the release may be in flight.
            ReleaseState::Missing if elapsed < MAX_UPLOAD_WAIT => Self::Wait,
            ReleaseState::Missing => Self::End,
        }
    }
}

/// Searches for the best encodings of a release until the search is dropped. Returns the use of the release, if there is any.
///
/// # Errors
/// Returns an error if the store does not answer.
async fn search(
    bucket: &Bucket,
    name: &str,
    changed: &watch::Sender<EncodingState>,
    mut ended: oneshot::Receiver<()>,
) -> Result<Option<SharedReleaseUse>, LookupError> {
    let mut lease = releases::encodings_lease(bucket.clone(), name);
    let begin = Instant::now();
    let mut is_holder = false;
    let result = loop {
        let state = releases::state(bucket, name).await?;
        match SearchStep::after(state, is_holder, begin.elapsed()) {
            SearchStep::Read => {
                break match releases::find(bucket, name).await? {
                    ReleaseLookup::Found(release) => best_encodings(&release).map(|found| {
                        // Copied, so that the encodings do not keep the release in memory.
                        let found = EncodingState::Found(found.to_vec().into());
                        // The search may have been dropped.
                        let _ = changed.send(found);
                        SharedReleaseUse::EncodingsReused
                    }),
                    ReleaseLookup::Damaged => Some(SharedReleaseUse::Damaged),
                    ReleaseLookup::Missing => None,
                };
            }
            SearchStep::Make => {
                let _ = changed.send(EncodingState::Granted);
                renew(&mut lease, &mut ended).await;
                break None;
            }
            SearchStep::Claim => is_holder = lease.advance().await?,
            SearchStep::Wait => {}
            SearchStep::End => break None,
        }
        if !is_holder && has_ended(&mut ended, SEARCH_INTERVAL).await {
            break None;
        }
    };
    lease.end().await;
    Ok(result)
}

/// Renews a lease until the search is dropped, for at most [`MAX_SEARCH_TIME`].
async fn renew(lease: &mut Lease, ended: &mut oneshot::Receiver<()>) {
    let begin = Instant::now();
    while begin.elapsed() < MAX_SEARCH_TIME && !has_ended(ended, RENEWAL_INTERVAL).await {
        // Without an answer, two replicas may make the encodings.
        let _ = lease.advance().await;
    }
}

/// Waits, and returns early with `true` if the owner of the other half is dropped.
async fn has_ended(ended: &mut oneshot::Receiver<()>, time: Duration) -> bool {
    timeout(time, ended).await.is_ok()
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
