//! Publishes a tenant: uploads its content, then swaps its pointer. Operators pin an earlier version, and end the pin, by the same swap.
//!
//! ```text
//! pointer ──> (rollback: earlier versions) ──> history ──> content: find or upload
//!    ▲  └──> (unchanged content: verify) ── lost ──▲                  │
//!    │                                                                ▼
//!    │                                    content: verify ◄── garbage: rescue
//!    │                                          │
//!    │                                          ▼
//!    └── refused or unknown: read back ◄────── swap
//! ```
//!
//! The objects of unchanged content are verified, too. A lost object is uploaded again under a new name, which a new version names.
//!
//! A killed publisher leaves the former version or the new version, never a part. Publishing again reports [`Outcome::Unchanged`] or finishes the work.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::collect::KEPT_VERSIONS;
use crate::exchange::{Answer, ObjectTag, Request};
use crate::garbage::Garbage;
use crate::key::{ContentHash, Nonce, ObjectKey};
use crate::pointer::{Cause, ContentObject, NextVersion, Pin, Pointer};

/// The longest time between the look at the garbage and the swap. Beyond the limit, the publisher looks again.
pub const MAX_PUBLISH: Duration = Duration::from_secs(4 * 3_600);

/// The number of requests without a known answer in a row after which the publisher gives up.
const MAX_UNKNOWN: u32 = 12;

/// The change of a tenant that a publisher makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// Publishes the content with these hashes. A pin stays.
    Publish(Vec<ContentHash>),
    /// Publishes the content with these hashes, also if it is the newest content already: the age of a preview begins with its newest version.
    Renew(Vec<ContentHash>),
    /// Withdraws the tenant, and ends a pin.
    Unpublish,
    /// Pins a version, or the newest version with other content before the one that replicas serve.
    RollBack(Option<u64>),
    /// Ends the pin, so that replicas serve the newest content.
    Resume,
}

/// A tenant to publish.
#[derive(Debug, Clone)]
pub struct Publication {
    /// The name of the tenant.
    pub tenant: String,
    /// The edit.
    pub edit: Edit,
    /// The addresses of the content that is published. See [`ContentObject::addresses`].
    pub addresses: Vec<String>,
    /// The version that the author has seen. `None` publishes over any version.
    pub expected: Option<u64>,
    /// The time by the publisher's clock, in milliseconds since 1970.
    pub at: u64,
    /// The person or machine that publishes.
    pub author: String,
}

/// The end of a publication.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The pointer that this publisher has made.
    Published(Box<Pointer>),
    /// The pointer that this publisher has made, with the content of the version before, some of whose objects were lost or damaged.
    Repaired(Box<Pointer>),
    /// The current pointer, which has the state that the edit would make.
    Unchanged(Box<Pointer>),
    /// Another publisher was first with this pointer. Nothing was changed.
    Conflict(Box<Pointer>),
    /// The tenant has no such version, or (`None`) no earlier version with other content. Nothing was changed.
    NoVersion(Option<u64>),
    /// This version has no content: it has withdrawn the tenant, or its content was collected. Nothing was changed.
    NoContent(u64),
    /// The store has an object that this program cannot read. Nothing was changed.
    Damaged(ObjectKey),
    /// The store did not answer. The content may be published or not; publishing again is safe.
    Unavailable,
}

/// The next thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Send this request.
    Ask(Request),
    /// Nothing.
    End(Outcome),
}

/// The request in flight.
#[derive(Debug, Clone)]
enum Stage {
    Pointer,
    /// Whether the object with the unchanged content of this hash is intact.
    VerifyUnchanged(ContentHash),
    /// An earlier version, to roll back to.
    Version(u64),
    History,
    /// Objects with the content of this hash.
    Find(ContentHash),
    Upload(ContentObject),
    Garbage,
    Rescue,
    /// Whether the object with the content of this hash is intact.
    Verify(ContentHash),
    Swap,
}

/// A publisher of one tenant.
#[derive(Debug, Clone)]
pub struct Publisher {
    publication: Publication,
    nonce: Nonce,
    /// The number of writes so far, which makes each nonce of the garbage list new.
    writes: u64,
    stage: Stage,
    request: Request,
    unknown: u32,
    /// The pointer to replace, as last read.
    before: Option<(Pointer, ObjectTag)>,
    /// The hashes of the content that the swap makes current or newest.
    content: Vec<ContentHash>,
    /// The addresses of the content.
    addresses: Vec<String>,
    /// Whether an object of unchanged content is lost or damaged.
    is_repair: bool,
    /// The version that a rollback pins.
    pinned: u64,
    /// The objects with the content.
    objects: BTreeMap<ContentHash, ObjectKey>,
    /// When the garbage was last looked at.
    checked: Duration,
    /// The content whose objects were intact after the look.
    verified: BTreeSet<ContentHash>,
    /// The pointer in the last swap that was sent, which may have had its effect.
    made: Option<Pointer>,
}

impl Publisher {
    /// Returns a publisher, and its first request. `nonce` identifies this publication.
    #[must_use]
    pub fn new(publication: Publication, nonce: Nonce) -> (Self, Request) {
        let request = Request::Get(ObjectKey::pointer(&publication.tenant));
        let publisher = Self {
            addresses: publication.addresses.clone(),
            publication,
            nonce,
            writes: 0,
            stage: Stage::Pointer,
            request: request.clone(),
            unknown: 0,
            before: None,
            content: Vec::new(),
            is_repair: false,
            pinned: 0,
            objects: BTreeMap::new(),
            checked: Duration::ZERO,
            verified: BTreeSet::new(),
            made: None,
        };
        (publisher, request)
    }

    /// Handles the answer to the last request. `sent` is the time at which that request was sent, and `now` the current time, both of one monotonic clock.
    pub fn step(&mut self, answer: Answer, sent: Duration, now: Duration) -> Step {
        if answer == Answer::Unknown {
            self.unknown += 1;
            if self.unknown > MAX_UNKNOWN {
                return Step::End(Outcome::Unavailable);
            }
        } else {
            self.unknown = 0;
        }
        match (self.stage.clone(), answer) {
            (Stage::Swap | Stage::Rescue, Answer::Unknown) => self.read_back(),
            (_, Answer::Unknown) => Step::Ask(self.request.clone()),
            (Stage::Pointer, Answer::Object(object)) => match Pointer::of_bytes(&object.body) {
                Some(pointer) => self.compare(pointer, object.tag),
                None => self.damaged(),
            },
            (Stage::Pointer, _) => self.start_first(),
            (Stage::VerifyUnchanged(hash), Answer::Done) => {
                self.verified.insert(hash);
                self.verify_unchanged()
            }
            (Stage::VerifyUnchanged(hash), _) => {
                self.is_repair = true;
                self.objects.remove(&hash);
                self.store_history()
            }
            (Stage::Version(version), Answer::Object(object)) => {
                match Pointer::of_bytes(&object.body) {
                    Some(found) => self.roll_back_to(version, &found),
                    None => self.damaged(),
                }
            }
            (Stage::Version(version), _) => match self.publication.edit {
                Edit::RollBack(Some(_)) => Step::End(Outcome::NoVersion(Some(version))),
                _ => self.look_before(version),
            },
            // The replaced version is in the history already, or is now.
            (Stage::History, _) => self.next_content(),
            (Stage::Find(hash), Answer::Listed(found)) => match found.into_iter().next() {
                Some(object) => {
                    self.objects.insert(hash, object);
                    self.next_content()
                }
                None => self.upload(hash),
            },
            (Stage::Find(hash), _) => self.upload(hash),
            // Refused: an earlier upload under this nonce, whose answer was lost.
            (Stage::Upload(content), _) => {
                self.objects.insert(content.hash, content.object);
                self.next_content()
            }
            (Stage::Garbage, Answer::Object(object)) => match Garbage::of_bytes(&object.body) {
                Some(garbage) => self.rescue(garbage, object.tag, (sent, now)),
                None => self.damaged(),
            },
            (Stage::Garbage, _) => {
                self.checked = sent;
                self.verify_next(now)
            }
            (Stage::Rescue, Answer::Done) => self.verify_next(now),
            (Stage::Rescue, _) => self.look_at_garbage(),
            (Stage::Verify(hash), Answer::Done) => {
                self.verified.insert(hash);
                self.verify_next(now)
            }
            // Deleted between the search and the look at the garbage, or damaged.
            (Stage::Verify(hash), _) => self.replace(hash),
            (Stage::Swap, Answer::Done) => self.end_published(),
            (Stage::Swap, _) => self.read_back(),
        }
    }

    /// Ends the publication after a swap that has had its effect.
    fn end_published(&self) -> Step {
        let made = Box::new(self.made.clone().unwrap_or_else(Pointer::none));
        Step::End(match self.is_repair {
            true => Outcome::Repaired(made),
            false => Outcome::Published(made),
        })
    }

    /// Returns the version that the swap makes.
    fn version(&self) -> u64 {
        let before = self.before.as_ref();
        before.map_or(0, |(pointer, _)| pointer.version()) + 1
    }

    fn ask(&mut self, stage: Stage, request: Request) -> Step {
        self.stage = stage;
        self.request = request.clone();
        Step::Ask(request)
    }

    fn damaged(&self) -> Step {
        let key = match &self.request {
            Request::Get(key) => key.clone(),
            _ => ObjectKey::pointer(&self.publication.tenant),
        };
        Step::End(Outcome::Damaged(key))
    }

    /// Reads the pointer or the garbage again, because a write may have had its effect.
    fn read_back(&mut self) -> Step {
        match self.stage {
            Stage::Rescue => self.look_at_garbage(),
            _ => {
                let key = ObjectKey::pointer(&self.publication.tenant);
                self.ask(Stage::Pointer, Request::Get(key))
            }
        }
    }

    /// Decides from the current pointer whether the publication is over, refused, or goes on.
    fn compare(&mut self, pointer: Pointer, tag: ObjectTag) -> Step {
        if pointer.version_of(&self.nonce).is_some() {
            return self.end_published();
        }
        if self.made.is_some() {
            let base = self.version() - 1;
            if pointer.version() == base {
                // The swap is lost or still in flight. The same swap again can only succeed once.
                return self.look_at_garbage();
            }
            return match pointer.excludes(&self.nonce, base) {
                true => Step::End(Outcome::Conflict(Box::new(pointer))),
                // Too many versions have followed.
                false => Step::End(Outcome::Unavailable),
            };
        }
        let version = pointer.version();
        let expected = self.publication.expected;
        if expected.is_some_and(|expected| expected != version) {
            return Step::End(Outcome::Conflict(Box::new(pointer)));
        }
        self.before = Some((pointer.clone(), tag));
        match self.publication.edit.clone() {
            Edit::Publish(hashes) if is_newest(&pointer, &hashes, &self.addresses) => {
                self.use_content(pointer.newest());
                self.verify_unchanged()
            }
            Edit::Publish(hashes) | Edit::Renew(hashes) => {
                let is_same = |content: &&ContentObject| hashes.contains(&content.hash);
                let same = pointer.named().filter(is_same);
                self.objects = objects(same);
                self.content = hashes;
                self.store_history()
            }
            Edit::Unpublish if pointer.content.is_empty() => {
                Step::End(Outcome::Unchanged(Box::new(pointer)))
            }
            Edit::Unpublish => self.store_history(),
            Edit::Resume if pointer.pin.is_none() => {
                Step::End(Outcome::Unchanged(Box::new(pointer)))
            }
            Edit::Resume => {
                self.use_content(pointer.newest());
                self.store_history()
            }
            Edit::RollBack(Some(target)) if target == version => {
                self.roll_back_to(target, &pointer)
            }
            Edit::RollBack(Some(target)) => self.look_at_version(target),
            Edit::RollBack(None) => self.look_before(pointer.pinned().unwrap_or(version)),
        }
    }

    /// Verifies the next object of unchanged content.
    fn verify_unchanged(&mut self) -> Step {
        match self.next_unverified() {
            Some((hash, object)) => {
                let request = Request::Verify(object, hash.clone());
                self.ask(Stage::VerifyUnchanged(hash), request)
            }
            None => {
                let current = self.before.as_ref().map(|(pointer, _)| pointer.clone());
                let current = current.unwrap_or_else(Pointer::none);
                Step::End(Outcome::Unchanged(Box::new(current)))
            }
        }
    }

    /// Returns the next content whose object was not verified.
    fn next_unverified(&self) -> Option<(ContentHash, ObjectKey)> {
        let mut objects = self.objects.iter();
        let next = objects.find(|(hash, _)| !self.verified.contains(*hash));
        next.map(|(hash, object)| (hash.clone(), object.clone()))
    }

    /// Stores the version that is replaced in the history.
    fn store_history(&mut self) -> Step {
        let Some((pointer, _)) = &self.before else {
            return self.next_content();
        };
        let history = ObjectKey::history(&self.publication.tenant, pointer.version());
        let body = pointer.to_bytes();
        self.ask(Stage::History, Request::Create(history, body))
    }

    /// Uses content that is in the store.
    fn use_content(&mut self, content: &[ContentObject]) {
        self.objects = objects(content.iter());
        self.content = content.iter().map(|content| content.hash.clone()).collect();
        let packed = content.first();
        self.addresses = packed.map_or_else(Vec::new, |packed| packed.addresses.clone());
    }

    fn look_at_version(&mut self, version: u64) -> Step {
        let history = ObjectKey::history(&self.publication.tenant, version);
        self.ask(Stage::Version(version), Request::Get(history))
    }

    /// Looks at the version before this one, unless its content may have been collected.
    fn look_before(&mut self, version: u64) -> Step {
        match version.checked_sub(1) {
            Some(before) if before > 0 && before + KEPT_VERSIONS >= self.version() - 1 => {
                self.look_at_version(before)
            }
            _ => Step::End(Outcome::NoVersion(None)),
        }
    }

    /// Pins a version, or looks at an earlier one if no version is named and this one does not differ from the served content.
    fn roll_back_to(&mut self, version: u64, found: &Pointer) -> Step {
        let (pinned, content) = found.brought();
        let current = self.before.as_ref().map(|(pointer, _)| pointer);
        let served = current.map_or(&[][..], |current| &current.content);
        let hashes = |content: &[ContentObject]| -> Vec<ContentHash> {
            content.iter().map(|content| content.hash.clone()).collect()
        };
        let is_served = hashes(content) == hashes(served);
        let is_named = self.publication.edit != Edit::RollBack(None);
        if !is_named && (is_served || content.is_empty()) {
            return self.look_before(version);
        }
        if content.is_empty() {
            return Step::End(Outcome::NoContent(version));
        }
        if let Some(current) = current
            && is_served
            && current.pinned() == Some(pinned)
        {
            return Step::End(Outcome::Unchanged(Box::new(current.clone())));
        }
        self.pinned = pinned;
        self.use_content(content);
        self.store_history()
    }

    /// Starts the first publication of the tenant.
    fn start_first(&mut self) -> Step {
        let is_expected = self.publication.expected.is_none_or(|version| version == 0);
        match self.publication.edit.clone() {
            // The pointer was deleted, which no publisher does.
            _ if self.before.is_some() => Step::End(Outcome::Unavailable),
            _ if !is_expected => Step::End(Outcome::Conflict(Box::new(Pointer::none()))),
            Edit::RollBack(version) => Step::End(Outcome::NoVersion(version)),
            Edit::Unpublish | Edit::Resume => {
                Step::End(Outcome::Unchanged(Box::new(Pointer::none())))
            }
            Edit::Publish(_) | Edit::Renew(_) if self.made.is_some() => self.look_at_garbage(),
            Edit::Publish(hashes) | Edit::Renew(hashes) => {
                self.content = hashes;
                self.next_content()
            }
        }
    }

    /// Finds the next content without an object.
    fn next_content(&mut self) -> Step {
        let mut hashes = self.content.iter();
        match hashes
            .find(|hash| !self.objects.contains_key(*hash))
            .cloned()
        {
            Some(hash) => {
                let prefix = ObjectKey::contents(&hash);
                self.ask(Stage::Find(hash), Request::List(prefix))
            }
            None => self.look_at_garbage(),
        }
    }

    /// Replaces an object that is gone or going. Only a publisher of content has the bytes.
    fn replace(&mut self, hash: ContentHash) -> Step {
        self.objects.remove(&hash);
        match self.publication.edit {
            Edit::Publish(_) | Edit::Renew(_) => self.upload(hash),
            // The swap may still have its effect.
            _ if self.made.is_some() => Step::End(Outcome::Unavailable),
            Edit::RollBack(_) => Step::End(Outcome::NoContent(self.pinned)),
            Edit::Unpublish | Edit::Resume => Step::End(Outcome::NoContent(self.version() - 1)),
        }
    }

    fn upload(&mut self, hash: ContentHash) -> Step {
        // An object that is being deleted is replaced by one with a new name.
        self.writes += 1;
        let nonce = Nonce(format!("{}-{}", self.nonce.0, self.writes));
        let object = ObjectKey::content(&hash, &nonce);
        let content = ContentObject {
            hash: hash.clone(),
            object: object.clone(),
            addresses: Vec::new(),
        };
        self.ask(Stage::Upload(content), Request::Upload(object, hash))
    }

    fn look_at_garbage(&mut self) -> Step {
        self.verified.clear();
        self.ask(Stage::Garbage, Request::Get(ObjectKey::garbage()))
    }

    /// Removes the used objects from the candidates, and uploads objects that are being deleted again.
    fn rescue(
        &mut self,
        mut garbage: Garbage,
        tag: ObjectTag,
        (sent, now): (Duration, Duration),
    ) -> Step {
        self.checked = sent;
        let deleting = &garbage.deleting;
        let lost = |object: &ObjectKey| deleting.contains(object);
        let lost = self.objects.iter().find(|(_, object)| lost(object));
        if let Some(hash) = lost.map(|(hash, _)| hash.clone()) {
            return self.replace(hash);
        }
        if garbage.rescue(self.objects.values()) {
            self.writes += 1;
            let writer = Nonce(format!("{}-{}", self.nonce.0, self.writes));
            let body = garbage.to_bytes(writer);
            return self.ask(
                Stage::Rescue,
                Request::Swap(ObjectKey::garbage(), tag, body),
            );
        }
        self.verify_next(now)
    }

    /// Verifies the next object: a collector may have deleted the object, and removed it from the list, before the look.
    fn verify_next(&mut self, now: Duration) -> Step {
        match self.next_unverified() {
            Some((hash, object)) => {
                let request = Request::Verify(object, hash.clone());
                self.ask(Stage::Verify(hash), request)
            }
            None => self.swap(now),
        }
    }

    /// Swaps the pointer, unless the look at the garbage is too old.
    fn swap(&mut self, now: Duration) -> Step {
        if now.saturating_sub(self.checked) > MAX_PUBLISH {
            return self.look_at_garbage();
        }
        let pointer = self.next_pointer();
        self.made = Some(pointer.clone());
        let key = ObjectKey::pointer(&self.publication.tenant);
        let body = pointer.to_bytes();
        let request = match &self.before {
            Some((_, tag)) => Request::Swap(key, tag.clone(), body),
            None => Request::Create(key, body),
        };
        self.ask(Stage::Swap, request)
    }

    /// Returns the pointer that the swap writes.
    fn next_pointer(&self) -> Pointer {
        let before = self.before.as_ref().map(|(pointer, _)| pointer);
        let verified = |hash: &ContentHash, addresses: &[String]| {
            Some(ContentObject {
                hash: hash.clone(),
                object: self.objects.get(hash)?.clone(),
                addresses: addresses.to_vec(),
            })
        };
        let content = self.content.iter().enumerate();
        let content = content.filter_map(|(index, hash)| match index {
            0 => verified(hash, &self.addresses),
            _ => verified(hash, &[]),
        });
        let content: Vec<ContentObject> = content.collect();
        let former = before.and_then(|before| Some((&before.content, before.pin.as_ref()?)));
        let (content, pin, cause) = match (&self.publication.edit, former) {
            (Edit::Publish(_) | Edit::Renew(_), Some((served, pin))) => {
                let pin = Pin {
                    version: pin.version,
                    newest: content,
                };
                // The pinned version may have the same content, whose object was lost, too.
                let served = served.iter().map(|served| {
                    let found = verified(&served.hash, &served.addresses);
                    found.unwrap_or_else(|| served.clone())
                });
                (served.collect(), Some(pin), Cause::Publish)
            }
            (Edit::Publish(_) | Edit::Renew(_) | Edit::Unpublish, _) => {
                (content, None, Cause::Publish)
            }
            (Edit::Resume, _) => (content, None, Cause::Resume),
            (Edit::RollBack(_), _) => {
                let pin = Pin {
                    version: self.pinned,
                    newest: before.map_or_else(Vec::new, |before| before.newest().to_vec()),
                };
                (content, Some(pin), Cause::Rollback)
            }
        };
        let next = NextVersion {
            nonce: self.nonce.clone(),
            content,
            pin,
            at: self.publication.at,
            author: self.publication.author.clone(),
            cause,
        };
        Pointer::next(before, next)
    }
}

/// Returns whether the newest content of a pointer has these hashes and addresses.
fn is_newest(pointer: &Pointer, hashes: &[ContentHash], addresses: &[String]) -> bool {
    let newest = pointer.newest().iter().map(|content| &content.hash);
    newest.eq(hashes) && pointer.newest_addresses() == addresses
}

/// Returns the objects of content by hash.
fn objects<'c>(
    content: impl Iterator<Item = &'c ContentObject>,
) -> BTreeMap<ContentHash, ObjectKey> {
    let objects = content.map(|content| (content.hash.clone(), content.object.clone()));
    objects.collect()
}
