//! Publishes a tenant: uploads its content, then swaps its pointer.
//!
//! ```text
//! pointer ──> history ──> content: find or upload ──> garbage: rescue ──> content: verify ──> swap
//!    ▲                                                                                         │
//!    └────────────────────────────── refused or unknown: read back ◄───────────────────────────┘
//! ```
//!
//! A killed publisher leaves the former version or the new version, never a part. Publishing again reports [`Outcome::Unchanged`] or finishes the work.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::exchange::{Answer, ObjectTag, Request};
use crate::garbage::Garbage;
use crate::key::{ContentHash, Nonce, ObjectKey};
use crate::pointer::{ContentObject, Pointer};

/// The longest time between the look at the garbage and the swap. Beyond the limit, the publisher looks again.
pub const MAX_PUBLISH: Duration = Duration::from_secs(4 * 3_600);

/// The number of requests without a known answer in a row after which the publisher gives up.
const MAX_UNKNOWN: u32 = 12;

/// A tenant to publish.
#[derive(Debug, Clone)]
pub struct Publication {
    /// The name of the tenant.
    pub tenant: String,
    /// The hashes of its content. Empty: the tenant is unpublished.
    pub content: Vec<ContentHash>,
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
    /// All replicas will serve the content as this version.
    Published(u64),
    /// This version has the same content already.
    Unchanged(u64),
    /// Another publisher was first with this version. Nothing was changed.
    Conflict(Box<Pointer>),
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
    History,
    /// Objects with the content of this hash.
    Find(ContentHash),
    Upload(ContentObject),
    Garbage,
    Rescue,
    /// Whether the object with the content of this hash exists.
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
    /// The objects with the content.
    objects: BTreeMap<ContentHash, ObjectKey>,
    /// When the garbage was last looked at.
    checked: Duration,
    /// The content whose objects existed after the look.
    verified: BTreeSet<ContentHash>,
    /// Whether a swap was sent, which may have had its effect.
    has_swapped: bool,
}

impl Publisher {
    /// Returns a publisher, and its first request. `nonce` identifies this publication.
    #[must_use]
    pub fn new(publication: Publication, nonce: Nonce) -> (Self, Request) {
        let request = Request::Get(ObjectKey::pointer(&publication.tenant));
        let publisher = Self {
            publication,
            nonce,
            writes: 0,
            stage: Stage::Pointer,
            request: request.clone(),
            unknown: 0,
            before: None,
            objects: BTreeMap::new(),
            checked: Duration::ZERO,
            verified: BTreeSet::new(),
            has_swapped: false,
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
            // Deleted between the search and the look at the garbage.
            (Stage::Verify(hash), _) => {
                self.objects.remove(&hash);
                self.upload(hash)
            }
            (Stage::Swap, Answer::Done) => Step::End(Outcome::Published(self.version())),
            (Stage::Swap, _) => self.read_back(),
        }
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
        if let Some(version) = pointer.version_of(&self.nonce) {
            return Step::End(Outcome::Published(version));
        }
        if self.has_swapped {
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
        if self
            .publication
            .expected
            .is_some_and(|expected| expected != version)
        {
            return Step::End(Outcome::Conflict(Box::new(pointer)));
        }
        let hashes = pointer.content.iter().map(|content| &content.hash);
        if hashes.eq(&self.publication.content) {
            return Step::End(Outcome::Unchanged(version));
        }
        for content in &pointer.content {
            if self.publication.content.contains(&content.hash) {
                self.objects
                    .insert(content.hash.clone(), content.object.clone());
            }
        }
        let history = ObjectKey::history(&self.publication.tenant, version);
        let body = pointer.to_bytes();
        self.before = Some((pointer, tag));
        self.ask(Stage::History, Request::Create(history, body))
    }

    /// Starts the first publication of the tenant.
    fn start_first(&mut self) -> Step {
        if self
            .publication
            .expected
            .is_some_and(|expected| expected != 0)
        {
            let none = Pointer::next(None, self.nonce.clone(), Vec::new(), 0, String::new());
            let none = Pointer {
                swaps: Vec::new(),
                ..none
            };
            return Step::End(Outcome::Conflict(Box::new(none)));
        }
        if self.has_swapped {
            return self.look_at_garbage();
        }
        self.next_content()
    }

    /// Finds the next content without an object.
    fn next_content(&mut self) -> Step {
        let mut hashes = self.publication.content.iter();
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

    fn upload(&mut self, hash: ContentHash) -> Step {
        // An object that is being deleted is replaced by one with a new name.
        self.writes += 1;
        let nonce = Nonce(format!("{}-{}", self.nonce.0, self.writes));
        let object = ObjectKey::content(&hash, &nonce);
        let content = ContentObject {
            hash: hash.clone(),
            object: object.clone(),
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
            self.objects.remove(&hash);
            return self.upload(hash);
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

    /// Verifies that the next object exists: a collector may have deleted the object, and removed it from the list, before the look.
    fn verify_next(&mut self, now: Duration) -> Step {
        let mut objects = self.objects.iter();
        let next = objects.find(|(hash, _)| !self.verified.contains(*hash));
        match next.map(|(hash, object)| (hash.clone(), object.clone())) {
            Some((hash, object)) => self.ask(Stage::Verify(hash), Request::Head(object)),
            None => self.swap(now),
        }
    }

    /// Swaps the pointer, unless the look at the garbage is too old.
    fn swap(&mut self, now: Duration) -> Step {
        if now.saturating_sub(self.checked) > MAX_PUBLISH {
            return self.look_at_garbage();
        }
        self.has_swapped = true;
        let content = self.publication.content.iter();
        let content = content.filter_map(|hash| {
            let object = self.objects.get(hash)?.clone();
            let hash = hash.clone();
            Some(ContentObject { hash, object })
        });
        let before = self.before.as_ref();
        let pointer = Pointer::next(
            before.map(|(pointer, _)| pointer),
            self.nonce.clone(),
            content.collect(),
            self.publication.at,
            self.publication.author.clone(),
        );
        let key = ObjectKey::pointer(&self.publication.tenant);
        let body = pointer.to_bytes();
        let request = match before {
            Some((_, tag)) => Request::Swap(key, tag.clone(), body),
            None => Request::Create(key, body),
        };
        self.ask(Stage::Swap, request)
    }
}
