//! The duties of a replica beside following: it tells the fleet that it runs and that it stops, and collects garbage once a day.
//!
//! Both run on a thread of their own, with their own connections: a collection of a large bucket takes hours.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::runtime::Builder;
use tokio::time::sleep;
use tracing::{error, info};

use bucket::lease::Lease;
use bucket::replicas::{self, Heartbeat};
use bucket::run;
use bucket::store::{Bucket, StoreError, random_nonce, with_causes};
use fleet::collect::Outcome;
use fleet::schedule::{self, COLLECTION_JITTER};
use server::admin::replicas::ReplicaStatus;
use server::admin::status::StatusBoard;

use crate::runner::reload_queue::ReloadSender;
use crate::source::bucket::jitter::{random, with_jitter};
use crate::source::bucket::view::SharedView;

/// The interval of heartbeats.
const BEAT_INTERVAL: Duration = Duration::from_secs(30);

/// The interval at which the thread looks for work.
const TICK: Duration = Duration::from_millis(200);

/// The duration of the lease of collecting. Much shorter than the time between two looks, so that a replica takes over from an ended one at its second look.
const LEASE: Duration = Duration::from_secs(10 * 60);

/// The facts by which operators tell replicas apart.
#[derive(Debug, Clone)]
pub(super) struct ReplicaIdentity {
    pub(super) id: String,
    /// The name of the machine.
    pub(super) host: String,
}

impl ReplicaIdentity {
    /// Returns the identity of the replica with this cache. It survives restarts.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be written.
    pub(super) fn of_cache(folder: &Path, host: &str) -> io::Result<Self> {
        let file = folder.join("replica");
        let is_id = |id: &String| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let id = match fs::read_to_string(&file).ok().filter(is_id) {
            Some(id) => id,
            None => {
                let id = random_nonce().0;
                fs::write(&file, &id)?;
                id
            }
        };
        Ok(Self {
            id,
            host: host.to_owned(),
        })
    }
}

/// The last collection of the bucket, as far as this replica knows.
#[derive(Debug, Clone, Default)]
pub(super) struct Collection {
    /// The time since 1970.
    pub(super) last: Option<Duration>,
    /// The alarm that the last collection is days ago.
    pub(super) alarm: Option<String>,
}

/// The collection that the duties write and the follower reports.
#[derive(Debug, Clone, Default)]
pub(super) struct SharedCollection(Arc<Mutex<Collection>>);

impl SharedCollection {
    pub(super) fn lock(&self) -> MutexGuard<'_, Collection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The duties of a replica.
#[derive(Debug, Clone)]
pub(super) struct Housekeeping {
    pub(super) bucket: Bucket,
    pub(super) identity: ReplicaIdentity,
    pub(super) view: SharedView,
    pub(super) collection: SharedCollection,
    pub(super) board: Arc<StatusBoard>,
}

impl Housekeeping {
    /// Starts the thread, which ends with the reload loop.
    pub(super) fn start(self, reloads: ReloadSender) {
        let run = move || match Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime.block_on(self.run(&reloads)),
            Err(error) => error!(%error, "cannot start the heartbeat and the collection"),
        };
        thread::spawn(run);
    }

    async fn run(self, reloads: &ReloadSender) {
        let replicas = &self.board.replicas;
        replicas.join();
        tokio::spawn(self.clone().collect_daily());
        let is_leaving = tokio::select! {
            biased;
            () = replicas.leaving() => true,
            // After a takeover, the other process has the same entry in the list.
            () = self.beat(reloads) => false,
        };
        // A store that does not answer would delay the end of the process.
        if is_leaving && self.view.lock().silence.is_empty() {
            // Without this, operators see a silent replica for a day.
            let _ = replicas::leave(&self.bucket, &self.identity.id).await;
        }
        replicas.set_absent();
    }

    /// Writes heartbeats, and lists the replicas on request, until the process drains.
    async fn beat(&self, reloads: &ReloadSender) {
        let mut due = Instant::now();
        while reloads.is_open() && !self.board.is_draining() {
            if self.board.replicas.is_requested() {
                let listed = self.list().await;
                self.board.replicas.set(listed.ok());
                due = Instant::now() + with_jitter(BEAT_INTERVAL);
            } else if due <= Instant::now() {
                // The follower reports a store that does not answer.
                let _ = replicas::beat(&self.bucket, &self.identity.id, &self.heartbeat()).await;
                due = Instant::now() + with_jitter(BEAT_INTERVAL);
            }
            sleep(TICK).await;
        }
    }

    fn heartbeat(&self) -> Heartbeat {
        let seconds = |time: SystemTime| {
            let since = time.duration_since(UNIX_EPOCH);
            since.map_or(0, |since| since.as_secs())
        };
        let view = self.view.lock();
        let tenants = view.tenants.as_ref().map_or(0, |tenants| tenants.len());
        let bucket = self.board.bucket();
        let bucket = bucket.as_ref().as_ref();
        let problems = bucket.map_or(0, |bucket| bucket.problems.len());
        let dormant = bucket.map_or(0, |bucket| bucket.dormant);
        Heartbeat {
            host: self.identity.host.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: seconds(self.board.started()),
            at: seconds(SystemTime::now()),
            sequence: view.sequence,
            tenants: u64::try_from(tenants).unwrap_or(u64::MAX),
            dormant: u64::try_from(dormant).unwrap_or(u64::MAX),
            problems: u64::try_from(problems).unwrap_or(u64::MAX),
        }
    }

    /// Returns the replicas of the fleet.
    async fn list(&self) -> Result<Vec<ReplicaStatus>, StoreError> {
        let id = &self.identity.id;
        let listed = replicas::list(&self.bucket, id, &self.heartbeat()).await?;
        let head = listed.iter().map(|replica| replica.heartbeat.sequence);
        let head = head.max().unwrap_or_default();
        let status = |replica: replicas::Replica| ReplicaStatus {
            is_this: replica.id == *id,
            id: replica.id,
            host: replica.heartbeat.host,
            version: replica.heartbeat.version,
            started: UNIX_EPOCH + Duration::from_secs(replica.heartbeat.started),
            silence: replica.silence,
            lag: head.saturating_sub(replica.heartbeat.sequence),
            tenants: replica.heartbeat.tenants,
            dormant: replica.heartbeat.dormant,
            problems: replica.heartbeat.problems,
        };
        Ok(listed.into_iter().map(status).collect())
    }

    /// Collects when the fleet was not collected for a day.
    async fn collect_daily(self) {
        let since = now();
        let mut lease = Lease::new(self.bucket.clone(), "collect", LEASE);
        sleep(jitter()).await;
        loop {
            let looked = self.collect_if_due(&mut lease).await;
            let mut collection = self.collection.lock().clone();
            let problem = match looked {
                Ok(last) => {
                    collection.last = last;
                    None
                }
                Err(problem) => Some(problem),
            };
            let is_overdue = schedule::is_overdue(collection.last, since, now());
            collection.alarm = is_overdue.then(|| {
                let address = self.bucket.address();
                let reason = problem.unwrap_or_else(|| "another replica has the lease".to_owned());
                format!("garbage of the bucket `{address}` was not collected for three days: {reason}; run `rowhouse store collect`")
            });
            let wait = schedule::next_look(schedule::until_due(collection.last, now()), jitter());
            *self.collection.lock() = collection;
            sleep(wait).await;
        }
    }

    /// Collects if that is due and no other replica does. Returns the time of the last collection.
    async fn collect_if_due(&self, lease: &mut Lease) -> Result<Option<Duration>, String> {
        let failed = |error: StoreError| with_causes(&error);
        let last = run::last_collection(&self.bucket).await.map_err(failed)?;
        let is_due = schedule::until_due(last, now()).is_zero();
        if !is_due || !lease.advance().await.map_err(failed)? {
            return Ok(last);
        }
        let collected = run::collect(&self.bucket, random_nonce()).await;
        match collected.map_err(failed)? {
            Outcome::Deleted(objects) => {
                info!(
                    bucket = self.bucket.address(),
                    objects, "collected the bucket"
                );
                run::last_collection(&self.bucket).await.map_err(failed)
            }
            Outcome::Interrupted => Err("another machine collected at the same time".to_owned()),
            Outcome::Damaged => {
                Err("an object cannot be read, which `rowhouse store check` names".to_owned())
            }
        }
    }
}

/// Returns the time since 1970.
fn now() -> Duration {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default()
}

/// Returns a random time of at most [`COLLECTION_JITTER`].
fn jitter() -> Duration {
    let thousandths = u32::try_from(random() % 1_000).unwrap_or_default();
    COLLECTION_JITTER * thousandths / 1_000
}

#[cfg(test)]
mod tests {
    use bucket::store::Uploads;
    use fleet::exchange::{Answer, Request};
    use fleet::key::REPLICAS;
    use tempfile::TempDir;

    use super::*;
    use crate::runner::reload_queue::ReloadQueue;

    fn replica(bucket: &Bucket, host: &str, folder: &TempDir) -> Housekeeping {
        Housekeeping {
            bucket: bucket.clone(),
            identity: ReplicaIdentity::of_cache(folder.path(), host).unwrap(),
            view: SharedView::default(),
            collection: SharedCollection::default(),
            board: Arc::default(),
        }
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let runtime = Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(future)
    }

    #[test]
    fn replicas_see_each_other_and_a_restart_keeps_the_id() {
        let bucket = Bucket::in_memory();
        let folders = [(); 2].map(|()| TempDir::new().unwrap());
        let one = replica(&bucket, "one", &folders[0]);
        one.view.lock().sequence = 7;
        block_on(one.list()).unwrap();
        let two = replica(&bucket, "two", &folders[1]);
        two.view.lock().sequence = 5;
        let listed = block_on(two.list()).unwrap();
        let lines = listed.iter().map(|one| (&*one.host, one.lag, one.is_this));
        let lines: Vec<_> = lines.collect();
        assert_eq!(lines, [("one", 0, false), ("two", 2, true)]);
        let restarted = replica(&bucket, "two", &folders[1]);
        assert_eq!(block_on(restarted.list()).unwrap().len(), 2);
    }

    /// Lets a replica write its heartbeat and then end by `end`, and returns the number of listed replicas.
    fn listed_after(end: impl FnOnce(&Housekeeping)) -> usize {
        let bucket = Bucket::in_memory();
        let folder = TempDir::new().unwrap();
        let replica = replica(&bucket, "one", &folder);
        let queue = ReloadQueue::default();
        let (running, reloads) = (replica.clone(), queue.sender());
        let thread = thread::spawn(move || block_on(running.run(&reloads)));
        let listed = || {
            let list = Request::List(REPLICAS.to_owned());
            match block_on(bucket.send(&list, &Uploads::new())).unwrap() {
                Answer::Listed(keys) => keys.len(),
                answer => panic!("{answer:?}"),
            }
        };
        let begin = Instant::now();
        while listed() == 0 {
            assert!(begin.elapsed() < Duration::from_secs(60), "no heartbeat");
            thread::sleep(TICK / 10);
        }
        end(&replica);
        thread.join().unwrap();
        listed()
    }

    #[test]
    fn replica_that_stops_leaves_the_list_at_once() {
        let stop = |replica: &Housekeeping| {
            replica.board.replicas.leave();
            replica.board.drain();
        };
        assert_eq!(listed_after(stop), 0);
    }

    #[test]
    fn replica_stays_listed_after_a_takeover_or_while_the_store_is_silent() {
        let take_over = |replica: &Housekeeping| replica.board.drain();
        assert_eq!(listed_after(take_over), 1);
        let stop_without_store = |replica: &Housekeeping| {
            "the store did not answer".clone_into(&mut replica.view.lock().silence);
            replica.board.replicas.leave();
        };
        assert_eq!(listed_after(stop_without_store), 1);
    }

    #[test]
    fn one_of_two_replicas_collects_and_the_other_sees_that_it_did() {
        let bucket = Bucket::in_memory();
        let folders = [(); 2].map(|()| TempDir::new().unwrap());
        let replicas = [0, 1].map(|number| replica(&bucket, "one", &folders[number]));
        let [mut first, mut second] =
            [(); 2].map(|()| Lease::new(bucket.clone(), "collect", LEASE));
        let writes = |bucket: &Bucket| bucket.metrics().counts().requests[2][0];
        let last = block_on(replicas[0].collect_if_due(&mut first)).unwrap();
        assert!(last.is_some_and(|last| now() - last < Duration::from_secs(60)));
        let before = writes(&bucket);
        assert_eq!(block_on(replicas[1].collect_if_due(&mut second)), Ok(last));
        assert_eq!(block_on(replicas[0].collect_if_due(&mut first)), Ok(last));
        assert_eq!(writes(&bucket), before, "nothing was due");
    }
}
