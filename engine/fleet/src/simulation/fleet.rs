//! Publishers, operators who pin and resume, collectors and lease seekers on one model store, over a network that drops, delays and repeats requests.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fastrand::Rng;

use crate::collect::{self, Collector, KEPT_VERSIONS};
use crate::exchange::{Answer, Request};
use crate::key::{CONTENT, ContentHash, Nonce, ObjectKey, POINTERS};
use crate::lease::LeaseSeeker;
use crate::pointer::{ContentObject, Pointer};
use crate::publish::{self, Edit, Publication, Publisher};
use crate::simulation::store::ModelStore;

const TENANTS: [&str; 3] = ["corner", "mill", "quay"];
const CONTENTS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
const PUBLISHERS: usize = 3;
const COLLECTORS: usize = 2;
const SEEKERS: usize = 3;

/// The longest time for which a request is in flight, including a repeated or delayed effect.
const MAX_FLIGHT: Duration = Duration::from_secs(3_600);

/// The duration of the lease.
const LEASE: Duration = Duration::from_secs(60);

/// A machine that waits for the answer to a request, which was sent at this time.
struct Waiting<M> {
    machine: M,
    request: Request,
    sent: Duration,
}

/// A publisher, and the tenant and nonce of its publication.
struct RunningPublisher {
    publisher: Publisher,
    tenant: &'static str,
    nonce: Nonce,
}

/// The simulated fleet.
pub(super) struct SimulatedFleet {
    random: Rng,
    store: ModelStore,
    now: Duration,
    nonces: u64,
    is_reliable: bool,
    /// One of this many requests fails or comes twice.
    faults_per: u8,
    publishers: Vec<Option<Waiting<RunningPublisher>>>,
    collectors: Vec<Option<Waiting<Collector>>>,
    seekers: Vec<(LeaseSeeker, Option<(Request, Duration)>)>,
    /// The requests whose effect comes later, or a second time, at the latest at this time.
    late: Vec<(Request, Duration)>,
    /// The nonce of each version of each tenant.
    versions: BTreeMap<(String, u64), Nonce>,
    /// The edit of each publication.
    edits: BTreeMap<Nonce, Edit>,
    /// The version and the content that a rollback to a version of a tenant pins.
    brought: BTreeMap<(String, u64), (u64, Vec<ContentHash>)>,
    /// The publications that were reported as not published.
    refused: BTreeSet<Nonce>,
    pub(super) published: u64,
    pub(super) pinned: u64,
    pub(super) deleted: usize,
    pub(super) faults: u64,
    /// The first broken invariant.
    pub(super) broken: Option<String>,
}

impl SimulatedFleet {
    pub(super) fn new(seed: u64) -> Self {
        let seeker = |number: usize| {
            let nonce = Nonce(format!("seeker{number}"));
            (
                LeaseSeeker::new(ObjectKey::lease("collect"), nonce, LEASE),
                None,
            )
        };
        let mut random = Rng::with_seed(seed);
        let faults_per = random.u8(3..40);
        Self {
            random,
            store: ModelStore::default(),
            now: Duration::ZERO,
            nonces: 0,
            is_reliable: false,
            faults_per,
            publishers: (0..PUBLISHERS).map(|_| None).collect(),
            collectors: (0..COLLECTORS).map(|_| None).collect(),
            seekers: (0..SEEKERS).map(seeker).collect(),
            late: Vec::new(),
            versions: BTreeMap::new(),
            edits: BTreeMap::new(),
            brought: BTreeMap::new(),
            refused: BTreeSet::new(),
            published: 0,
            pinned: 0,
            deleted: 0,
            faults: 0,
            broken: None,
        }
    }

    fn check(&mut self, holds: bool, invariant: impl FnOnce() -> String) {
        if !holds && self.broken.is_none() {
            self.broken = Some(invariant());
        }
    }

    fn nonce(&mut self) -> Nonce {
        self.nonces += 1;
        Nonce(format!("n{}", self.nonces))
    }

    /// Lets one random thing happen.
    pub(super) fn act(&mut self) {
        match self.random.u8(..20) {
            0..9 => self.advance_publisher(),
            9..13 => self.advance_collector(),
            13..16 => self.advance_seeker(),
            16 if self.random.u8(..4) == 0 => self.crash(),
            16..18 => self.execute_late(),
            _ => self.pass(),
        }
    }

    /// Sends a request over the network.
    fn send(&mut self, request: &Request) -> Answer {
        let is_faulty = !self.is_reliable && self.random.u8(..self.faults_per) == 0;
        if !is_faulty {
            return self.execute(request);
        }
        self.faults += 1;
        let end = self.now + MAX_FLIGHT / 2;
        match self.random.u8(..4) {
            // The request is lost.
            0 => Answer::Unknown,
            // The answer is lost.
            1 => {
                self.execute(request);
                Answer::Unknown
            }
            // The request has its effect later.
            2 => {
                self.late.push((request.clone(), end));
                Answer::Unknown
            }
            // The request has its effect twice.
            _ => {
                self.late.push((request.clone(), end));
                self.execute(request)
            }
        }
    }

    fn execute(&mut self, request: &Request) -> Answer {
        self.store.now = u64::try_from(self.now.as_millis()).expect("a short time");
        let before = match request {
            Request::Create(key, _) | Request::Swap(key, ..) => self.pointer(key),
            _ => None,
        };
        let answer = self.store.execute(request);
        if let (Request::Create(key, body) | Request::Swap(key, _, body), Answer::Done) =
            (request, &answer)
            && let Some(tenant) = key.as_str().strip_prefix(POINTERS)
        {
            let pointer = Pointer::of_bytes(body).expect("a pointer");
            self.check_swap(tenant, before.as_ref(), &pointer);
        }
        let is_write = !matches!(
            request,
            Request::Get(_)
                | Request::Verify(..)
                | Request::List(_)
                | Request::ListBefore(..)
                | Request::Upload(..)
        );
        if is_write {
            self.check_content();
        }
        answer
    }

    fn pointer(&self, key: &ObjectKey) -> Option<Pointer> {
        Pointer::of_bytes(&self.store.objects.get(key)?.body)
    }

    fn check_swap(&mut self, tenant: &str, before: Option<&Pointer>, pointer: &Pointer) {
        let version = pointer.version();
        let former = before.map_or(0, Pointer::version);
        self.check(version == former + 1, || {
            format!("{tenant}: version {version} follows version {former}")
        });
        let nonce = pointer.swaps[0].nonce.clone();
        let is_new = self.versions.values().all(|other| *other != nonce);
        self.check(is_new, || format!("{tenant}: {nonce:?} made two versions"));
        let is_refused = self.refused.contains(&nonce);
        self.check(!is_refused, || {
            format!("{tenant}: {nonce:?} was reported as not published, and is version {version}")
        });
        self.check_edit(tenant, before, pointer, &nonce);
        self.versions.insert((tenant.to_owned(), version), nonce);
    }

    /// Checks that a version has the content and the pin that its edit asks for.
    fn check_edit(
        &mut self,
        tenant: &str,
        before: Option<&Pointer>,
        pointer: &Pointer,
        nonce: &Nonce,
    ) {
        let none = Pointer::none();
        let before = before.unwrap_or(&none);
        let version = pointer.version();
        let served = hashes(&pointer.content);
        let newest = hashes(pointer.newest());
        let former = hashes(before.newest());
        let edit = self.edits[nonce].clone();
        let is_rollback = matches!(edit, Edit::RollBack(_));
        let is_right = match &edit {
            Edit::Publish(content) | Edit::Renew(content) => {
                let is_served = match before.pin {
                    Some(_) => served == hashes(&before.content),
                    None => served == *content,
                };
                is_served && newest == *content && pointer.pinned() == before.pinned()
            }
            Edit::Unpublish => served.is_empty() && pointer.pin.is_none(),
            Edit::Resume => before.pin.is_some() && served == former && pointer.pin.is_none(),
            Edit::RollBack(target) => {
                let pinned = pointer.pinned().unwrap_or_default();
                let is_target = |version: u64| {
                    let brought = self.brought.get(&(tenant.to_owned(), version));
                    brought.is_some_and(|brought| *brought == (pinned, served.clone()))
                };
                let is_pinned = match target {
                    Some(target) => is_target(*target),
                    None => {
                        let limit = before.pinned().unwrap_or_else(|| before.version());
                        served != hashes(&before.content) && (1..limit).any(is_target)
                    }
                };
                is_pinned && newest == former && !served.is_empty()
            }
        };
        self.pinned += u64::from(is_rollback);
        let brought = match is_rollback {
            true => (pointer.pinned().unwrap_or_default(), served),
            false => (version, newest),
        };
        self.brought.insert((tenant.to_owned(), version), brought);
        self.check(is_right, || {
            format!("{tenant}: {edit:?} made of {before:?} the pointer {pointer:?}")
        });
    }

    /// Returns the objects that the pointers and the recent versions name.
    fn referenced(&self) -> BTreeSet<ObjectKey> {
        let mut referenced = BTreeSet::new();
        for (key, object) in &self.store.objects {
            let is_named = key.as_str().starts_with(POINTERS)
                || key.version().is_some_and(|(tenant, version)| {
                    let pointer = self.pointer(&ObjectKey::pointer(tenant));
                    let current = pointer.as_ref().map_or(0, Pointer::version);
                    version + KEPT_VERSIONS >= current
                });
            if is_named {
                let pointer = Pointer::of_bytes(&object.body).expect("a pointer");
                let named = pointer.named();
                referenced.extend(named.map(|content| content.object.clone()));
            }
        }
        referenced
    }

    fn check_content(&mut self) {
        let referenced = self.referenced();
        let missing = referenced
            .iter()
            .find(|key| !self.store.objects.contains_key(*key));
        let missing = missing.cloned();
        self.check(missing.is_none(), || format!("{missing:?} is missing"));
    }

    fn advance_publisher(&mut self) {
        let place = self.random.usize(..PUBLISHERS);
        let Some(mut waiting) = self.publishers[place].take() else {
            let tenant = TENANTS[self.random.usize(..TENANTS.len())];
            self.publishers[place] = Some(self.start_publisher(tenant));
            return;
        };
        let answer = self.send(&waiting.request);
        let step = waiting
            .machine
            .publisher
            .step(answer, waiting.sent, self.now);
        match step {
            publish::Step::Ask(request) => {
                waiting.request = request;
                waiting.sent = self.now;
                self.publishers[place] = Some(waiting);
            }
            publish::Step::End(outcome) => self.end(&waiting.machine, outcome),
        }
    }

    fn version(&self, tenant: &str) -> u64 {
        let current = self.pointer(&ObjectKey::pointer(tenant));
        current.as_ref().map_or(0, Pointer::version)
    }

    fn start_publisher(&mut self, tenant: &'static str) -> Waiting<RunningPublisher> {
        let edit = self.edit(self.version(tenant));
        self.start(tenant, edit)
    }

    fn start(&mut self, tenant: &'static str, edit: Edit) -> Waiting<RunningPublisher> {
        let nonce = self.nonce();
        let current = self.version(tenant);
        self.edits.insert(nonce.clone(), edit.clone());
        let publication = Publication {
            tenant: tenant.to_owned(),
            edit,
            addresses: Vec::new(),
            expected: self.random.bool().then_some(current),
            at: 0,
            author: String::new(),
        };
        let (publisher, request) = Publisher::new(publication, nonce.clone());
        Waiting {
            machine: RunningPublisher {
                publisher,
                tenant,
                nonce,
            },
            request,
            sent: self.now,
        }
    }

    fn edit(&mut self, current: u64) -> Edit {
        match self.random.u8(..16) {
            0 => Edit::Unpublish,
            1..3 => Edit::Resume,
            3..5 => Edit::RollBack(None),
            5..9 => Edit::RollBack(Some(self.random.u64(..current + 2))),
            kind => {
                let count = self.random.usize(1..4);
                let chosen = self.random.choose_multiple(CONTENTS, count);
                let mut content: Vec<ContentHash> = chosen
                    .into_iter()
                    .map(|hash| ContentHash(hash.to_owned()))
                    .collect();
                content.sort();
                match kind {
                    9..11 => Edit::Renew(content),
                    _ => Edit::Publish(content),
                }
            }
        }
    }

    fn end(&mut self, publisher: &RunningPublisher, outcome: publish::Outcome) {
        let RunningPublisher { tenant, nonce, .. } = publisher;
        let made = self.versions.iter().find(|(_, made)| *made == nonce);
        let made = made.map(|((_, version), _)| *version);
        match outcome {
            publish::Outcome::Published(pointer) | publish::Outcome::Repaired(pointer) => {
                self.published += 1;
                let version = pointer.version();
                self.check(made == Some(version), || {
                    format!("{tenant}: {nonce:?} reports version {version}, and made {made:?}")
                });
            }
            publish::Outcome::Conflict(_)
            | publish::Outcome::Unchanged(_)
            | publish::Outcome::NoVersion(_)
            | publish::Outcome::NoContent(_) => {
                self.check(made.is_none(), || {
                    format!("{tenant}: {nonce:?} reports {outcome:?}, and made {made:?}")
                });
                self.refused.insert(nonce.clone());
            }
            publish::Outcome::Unavailable => {
                let is_reliable = self.is_reliable;
                self.check(!is_reliable, || format!("{tenant}: the store is available"));
            }
            publish::Outcome::Damaged(key) => self.check(false, || format!("{key} is damaged")),
        }
    }

    /// Lets a collector make some steps: a run has many, and ends at the first lost answer.
    fn advance_collector(&mut self) {
        let place = self.random.usize(..COLLECTORS);
        for _ in 0..self.random.u8(1..24) {
            self.step_collector(place);
        }
    }

    fn step_collector(&mut self, place: usize) {
        let Some(mut waiting) = self.collectors[place].take() else {
            let (machine, request) = Collector::new(self.nonce());
            let sent = self.now;
            self.collectors[place] = Some(Waiting {
                machine,
                request,
                sent,
            });
            return;
        };
        let answer = self.send(&waiting.request);
        match waiting.machine.step(answer) {
            collect::Step::Ask(request) => {
                waiting.request = request;
                waiting.sent = self.now;
                self.collectors[place] = Some(waiting);
            }
            collect::Step::End(collect::Outcome::Deleted(count)) => self.deleted += count,
            collect::Step::End(collect::Outcome::Interrupted) => {}
            collect::Step::End(collect::Outcome::Damaged) => {
                self.check(false, || "a collector cannot read an object".to_owned());
            }
        }
    }

    fn advance_seeker(&mut self) {
        let place = self.random.usize(..SEEKERS);
        let waiting = self.seekers[place].1.take();
        let request = match waiting {
            Some((request, _)) => request,
            None => match self.seekers[place].0.request(self.now) {
                Some(request) => request,
                None => return,
            },
        };
        let answer = self.send(&request);
        let next = self.seekers[place].0.step(answer, self.now);
        self.seekers[place].1 = next.map(|request| (request, self.now));
        self.check_holders();
    }

    fn check_holders(&mut self) {
        let now = self.now;
        let holders = self
            .seekers
            .iter()
            .filter(|(seeker, _)| seeker.is_holder(now));
        let holders = holders.count();
        self.check(holders <= 1, || {
            format!("{holders} replicas hold the lease")
        });
    }

    /// Ends a machine, with its request in flight.
    fn crash(&mut self) {
        self.faults += 1;
        let late = match self.random.bool() {
            true => {
                let place = self.random.usize(..PUBLISHERS);
                self.publishers[place].take().map(|waiting| waiting.request)
            }
            false => {
                let place = self.random.usize(..COLLECTORS);
                self.collectors[place].take().map(|waiting| waiting.request)
            }
        };
        let end = self.now + MAX_FLIGHT / 2;
        self.late.extend(late.map(|request| (request, end)));
    }

    fn execute_late(&mut self) {
        if !self.late.is_empty() {
            let place = self.random.usize(..self.late.len());
            let (request, _) = self.late.swap_remove(place);
            self.execute(&request);
        }
    }

    /// Lets time pass. Requests that would be in flight for too long are executed before.
    fn pass(&mut self) {
        let seconds = match self.random.u8(..10) {
            0..6 => self.random.u64(..20),
            6..9 => self.random.u64(..1_800),
            _ => self.random.u64(..40_000),
        };
        let next = self.now + Duration::from_secs(seconds);
        self.settle_flights(next);
        self.now = next;
        self.check_holders();
    }

    fn settle_flights(&mut self, next: Duration) {
        while let Some(place) = self.late.iter().position(|(_, end)| *end < next) {
            let (request, _) = self.late.swap_remove(place);
            self.execute(&request);
        }
        let limit = MAX_FLIGHT / 2;
        for place in 0..PUBLISHERS {
            let waiting = self.publishers[place].as_ref();
            if waiting.is_some_and(|waiting| waiting.sent + limit < next) {
                // A machine whose request takes too long was killed.
                let waiting = self.publishers[place].take();
                let request = waiting.map(|waiting| waiting.request);
                request
                    .iter()
                    .for_each(|request| drop(self.execute(request)));
            }
        }
        for (_, waiting) in &mut self.seekers {
            if waiting
                .as_ref()
                .is_some_and(|(_, sent)| *sent + limit < next)
            {
                *waiting = None;
            }
        }
    }

    /// Ends all machines, and checks that publishing works, that all garbage is deleted, and that operators can roll back to what is left.
    pub(super) fn settle(&mut self) {
        self.is_reliable = true;
        self.publishers
            .iter_mut()
            .for_each(|publisher| *publisher = None);
        self.collectors
            .iter_mut()
            .for_each(|collector| *collector = None);
        while let Some((request, _)) = self.late.pop() {
            self.execute(&request);
        }
        for tenant in TENANTS {
            let waiting = self.start_publisher(tenant);
            self.run(waiting);
        }
        for _ in 0..3 {
            self.now += collect::GRACE;
            let (mut collector, mut request) = Collector::new(self.nonce());
            loop {
                let answer = self.send(&request);
                match collector.step(answer) {
                    collect::Step::Ask(next) => request = next,
                    collect::Step::End(outcome) => {
                        let is_whole = matches!(outcome, collect::Outcome::Deleted(_));
                        break self
                            .check(is_whole, || format!("a collector ends with {outcome:?}"));
                    }
                }
            }
        }
        let referenced = self.referenced();
        let keys = self.store.objects.keys();
        let content = keys.filter(|key| key.as_str().starts_with(CONTENT));
        let garbage = content.filter(|key| !referenced.contains(*key)).count();
        self.check(garbage == 0, || {
            format!("{garbage} objects are never deleted")
        });
        // The content of most versions is collected by now.
        for tenant in TENANTS {
            for version in 1..=self.version(tenant) {
                let waiting = self.start(tenant, Edit::RollBack(Some(version)));
                self.run(waiting);
            }
        }
    }

    /// Runs a publisher to its end.
    fn run(&mut self, mut waiting: Waiting<RunningPublisher>) {
        loop {
            let answer = self.send(&waiting.request);
            match waiting.machine.publisher.step(answer, self.now, self.now) {
                publish::Step::Ask(request) => waiting.request = request,
                publish::Step::End(outcome) => break self.end(&waiting.machine, outcome),
            }
        }
    }
}

fn hashes(content: &[ContentObject]) -> Vec<ContentHash> {
    content.iter().map(|content| content.hash.clone()).collect()
}
