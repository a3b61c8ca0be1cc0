//! Deletes the content that neither a pointer nor a recent version in the history names. A pointer names its pinned content, however old it is, and the newest content.
//!
//! The run then deletes old releases and the leases of replicas that rendered. Nothing names a release: it is a cache, and a replica that misses one renders it again.
//!
//! A run adds such objects to the list of [`garbage`](crate::garbage). A later run, at least a grace period later, deletes them if nothing names them still. Several collectors may run at once: all but one end at a refused write.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::exchange::{Answer, ObjectTag, Request, StoreTime};
use crate::garbage::Garbage;
use crate::key::{CONTENT, HISTORY, Nonce, ObjectKey, POINTERS, RELEASES, RENDER_LEASES};
use crate::pointer::Pointer;

/// The time after which garbage is deleted. It is longer than [`MAX_PUBLISH`](crate::publish::MAX_PUBLISH) and the longest flight of a request together.
pub const GRACE: Duration = Duration::from_secs(24 * 3_600);

/// The number of versions of a tenant, besides the current one, whose content stays. The short histories of the simulation keep fewer, so that operators meet collected versions.
pub const KEPT_VERSIONS: u64 = if cfg!(test) { 2 } else { 10 };

/// The time after its last write at which a release is deleted. Replicas have the releases that they serve on their own disks.
pub const RELEASE_TIME: Duration = Duration::from_secs(30 * 24 * 3_600);

/// The time after its last renewal at which the lease of a replica that rendered is deleted. It is much longer than any such lease.
pub const RENDER_LEASE_TIME: Duration = Duration::from_secs(3_600);

/// The request in flight.
#[derive(Debug, Clone)]
enum Stage {
    Garbage,
    Claim,
    Claimed,
    Pointers,
    Pointer(String),
    History,
    Version,
    Content,
    Mark,
    Delete,
    OldReleases,
    OldLeases,
    DeleteOld,
}

/// The next thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Send this request.
    Ask(Request),
    /// The run has ended.
    End(Outcome),
}

/// The end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// This many objects were deleted.
    Deleted(usize),
    /// Another machine has written the list of garbage, or the store did not answer. A later run goes on.
    Interrupted,
    /// An object cannot be read. Nothing is deleted, because the object may name content.
    Damaged,
}

/// One run of a collector.
#[derive(Debug, Clone)]
pub struct Collector {
    nonce: Nonce,
    stage: Stage,
    garbage: Garbage,
    tag: Option<ObjectTag>,
    /// The time of the store's clock at the start of the run.
    now: StoreTime,
    /// The objects to read or delete next.
    queue: Vec<ObjectKey>,
    /// The current version of each tenant.
    versions: BTreeMap<String, u64>,
    referenced: BTreeSet<ObjectKey>,
    deleted: usize,
}

impl Collector {
    /// Returns a run, and its first request. `nonce` identifies the run.
    #[must_use]
    pub fn new(nonce: Nonce) -> (Self, Request) {
        let collector = Self {
            nonce,
            stage: Stage::Garbage,
            garbage: Garbage::default(),
            tag: None,
            now: 0,
            queue: Vec::new(),
            versions: BTreeMap::new(),
            referenced: BTreeSet::new(),
            deleted: 0,
        };
        (collector, Request::Get(ObjectKey::garbage()))
    }

    /// Handles the answer to the last request.
    pub fn step(&mut self, answer: Answer) -> Step {
        match (self.stage.clone(), answer) {
            (Stage::Garbage, Answer::Missing) => {
                let body = Garbage::default().to_bytes(self.writer("claim"));
                self.ask(Stage::Claim, Request::Create(ObjectKey::garbage(), body))
            }
            (Stage::Garbage, Answer::Object(object)) => {
                let Some(mut garbage) = Garbage::of_bytes(&object.body) else {
                    return Step::End(Outcome::Damaged);
                };
                for since in garbage.candidates.values_mut() {
                    since.get_or_insert(object.modified);
                }
                let body = garbage.to_bytes(self.writer("claim"));
                let request = Request::Swap(ObjectKey::garbage(), object.tag, body);
                self.ask(Stage::Claim, request)
            }
            // The time of this write is the store's current time.
            (Stage::Claim, Answer::Done) => {
                self.ask(Stage::Claimed, Request::Get(ObjectKey::garbage()))
            }
            (Stage::Claimed, Answer::Object(object)) => match Garbage::of_bytes(&object.body) {
                Some(garbage) if garbage.writer == Some(self.writer("claim")) => {
                    self.garbage = garbage;
                    self.tag = Some(object.tag);
                    self.now = object.modified;
                    self.ask(Stage::Pointers, Request::List(POINTERS.to_owned()))
                }
                _ => Step::End(Outcome::Interrupted),
            },
            (Stage::Pointers, Answer::Listed(pointers)) => {
                self.queue = pointers;
                self.next_pointer()
            }
            (Stage::Pointer(tenant), Answer::Object(object)) => {
                let Some(pointer) = self.note(&object.body) else {
                    return Step::End(Outcome::Damaged);
                };
                self.versions.insert(tenant, pointer.version());
                self.next_pointer()
            }
            (Stage::History, Answer::Listed(history)) => {
                let is_kept = |key: &ObjectKey| {
                    let (tenant, version) = key.version()?;
                    let current = self.versions.get(tenant)?;
                    (version + KEPT_VERSIONS >= *current).then_some(())
                };
                let kept = history.into_iter().filter(|key| is_kept(key).is_some());
                self.queue = kept.collect();
                self.next_version()
            }
            (Stage::Version, Answer::Object(object)) => match self.note(&object.body) {
                Some(_) => self.next_version(),
                None => Step::End(Outcome::Damaged),
            },
            (Stage::Content, Answer::Listed(content)) => self.mark(content),
            (Stage::Mark, Answer::Done) => self.next_delete(),
            (Stage::Delete, answer) => {
                self.deleted += usize::from(answer == Answer::Done);
                self.next_delete()
            }
            (Stage::OldReleases, Answer::Listed(old)) => {
                self.queue = old;
                self.list_old(Stage::OldLeases, RENDER_LEASES, RENDER_LEASE_TIME)
            }
            (Stage::OldLeases, Answer::Listed(old)) => {
                self.queue.extend(old);
                self.next_old()
            }
            (Stage::DeleteOld, answer) => {
                self.deleted += usize::from(answer == Answer::Done);
                self.next_old()
            }
            _ => Step::End(Outcome::Interrupted),
        }
    }

    /// Returns the nonce of one of the two writes of the run.
    fn writer(&self, write: &str) -> Nonce {
        Nonce(format!("{}-{write}", self.nonce.0))
    }

    fn ask(&mut self, stage: Stage, request: Request) -> Step {
        self.stage = stage;
        Step::Ask(request)
    }

    /// Notes the content of a pointer or of a version in the history.
    fn note(&mut self, body: &bytes::Bytes) -> Option<Pointer> {
        let pointer = Pointer::of_bytes(body)?;
        let objects = pointer.named().map(|content| content.object.clone());
        self.referenced.extend(objects);
        Some(pointer)
    }

    fn next_pointer(&mut self) -> Step {
        match self.queue.pop() {
            Some(key) => {
                let tenant = key.as_str().trim_start_matches(POINTERS).to_owned();
                self.ask(Stage::Pointer(tenant), Request::Get(key))
            }
            // After the pointers: a publisher writes the history of a version before it replaces the version.
            None => self.ask(Stage::History, Request::List(HISTORY.to_owned())),
        }
    }

    fn next_version(&mut self) -> Step {
        match self.queue.pop() {
            Some(key) => self.ask(Stage::Version, Request::Get(key)),
            None => self.ask(Stage::Content, Request::List(CONTENT.to_owned())),
        }
    }

    /// Adds objects that nothing names to the list, and moves those whose grace period is over.
    fn mark(&mut self, content: Vec<ObjectKey>) -> Step {
        let Some(tag) = self.tag.take() else {
            return Step::End(Outcome::Interrupted);
        };
        let grace = u64::try_from(GRACE.as_millis()).unwrap_or(u64::MAX);
        let content: BTreeSet<ObjectKey> = content.into_iter().collect();
        let mut next = Garbage::default();
        for key in content {
            let since = self.garbage.candidates.get(&key).copied().flatten();
            let is_over = since.is_some_and(|since| since.saturating_add(grace) <= self.now);
            match self.referenced.contains(&key) {
                _ if self.garbage.deleting.contains(&key) => drop(next.deleting.insert(key)),
                true => {}
                false if is_over => drop(next.deleting.insert(key)),
                false => drop(next.candidates.insert(key, since)),
            }
        }
        self.queue = next.deleting.iter().cloned().collect();
        let body = next.to_bytes(self.writer("mark"));
        self.ask(Stage::Mark, Request::Swap(ObjectKey::garbage(), tag, body))
    }

    fn next_delete(&mut self) -> Step {
        match self.queue.pop() {
            Some(key) => self.ask(Stage::Delete, Request::Delete(key)),
            None => self.list_old(Stage::OldReleases, RELEASES, RELEASE_TIME),
        }
    }

    /// Lists the objects that were last written longer than `age` ago.
    fn list_old(&mut self, stage: Stage, prefix: &str, age: Duration) -> Step {
        let age = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        let before = self.now.saturating_sub(age);
        self.ask(stage, Request::ListBefore(prefix.to_owned(), before))
    }

    fn next_old(&mut self) -> Step {
        match self.queue.pop() {
            Some(key) => self.ask(Stage::DeleteOld, Request::Delete(key)),
            None => Step::End(Outcome::Deleted(self.deleted)),
        }
    }
}
