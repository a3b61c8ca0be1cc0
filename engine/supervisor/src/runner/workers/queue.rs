//! What waits, what is in flight, and whose turn it is.
//!
//! **Invariant:** starts no thread and does no job.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::LazyLock;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use crate::source::watch::NoticeSender;
use content::name::TenantId;

/// How long a job may take to be waited for, once visitors are served.
pub(crate) const EXPECTED_TIME: Duration = Duration::from_millis(300);
/// How often a tenant may be worked on at once: what never ends must not keep its own correction waiting.
const MAX_JOBS_PER_TENANT: usize = 2;

/// The limit on threads that readings of one tenant's folder may hold that were given up: on a mount that does not respond, each of them stays until it does.
const MAX_STALLED_READINGS: usize = 8;

/// What is done for a tenant. Of one kind, only what was handed over last is begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum JobKind {
    /// Its folder is read and checked.
    Read,
    /// It is compiled.
    Compile,
    /// It is reported that reading its folder was given up.
    Report,
    /// A release is read, or a pin is written.
    Release,
}

/// Work, which is told whether a request waits for it, and does not panic.
pub(crate) type JobWork<T> = Box<dyn FnOnce(bool) -> JobStep<T> + Send>;

/// What work comes to.
pub(crate) enum JobStep<T> {
    /// Its result.
    Done(T),
    /// More work, which takes memory.
    Weighed(JobWeight<T>, JobWork<T>),
}

#[cfg(test)]
impl<T> JobStep<T> {
    /// Does all of it, whatever memory it takes.
    pub(crate) fn finish(self) -> T {
        match self {
            Self::Done(done) => done,
            Self::Weighed(_, work) => work(false).finish(),
        }
    }
}

/// The memory that work takes.
pub(crate) struct JobWeight<T> {
    pub(crate) bytes: u64,
    /// Makes the result of work that takes more than the limit, which it is told.
    pub(crate) refuse: Box<dyn FnOnce(u64) -> T + Send>,
}

/// Work for one tenant.
pub(crate) struct Job<T> {
    pub(crate) id: TenantId,
    pub(crate) kind: JobKind,
    /// Whether nobody waits for it.
    pub(crate) is_background: bool,
    /// The memory that `work` takes, where that is known before it begins.
    pub(crate) weight: Option<JobWeight<T>>,
    pub(crate) work: JobWork<T>,
    pub(crate) watchdog: Option<Watchdog<T>>,
    /// The same job once more, for who cannot wait for the background: the first of the two that ends counts.
    pub(crate) again: Option<JobCopy<T>>,
}

impl<T> Job<T> {
    /// The memory that it takes, as far as that is known.
    pub(super) fn bytes(&self) -> u64 {
        self.weight.as_ref().map_or(0, |weight| weight.bytes)
    }
}

/// Makes a job once more.
pub(crate) type JobCopy<T> = Box<dyn FnOnce() -> Job<T> + Send>;

/// Asked now and then while a job is in flight. What it returns is the result of a job that is given up.
pub(crate) type Watchdog<T> = Box<dyn FnMut() -> Option<T> + Send>;

/// All jobs, and what is known of their threads.
pub(super) struct JobQueue<T> {
    /// By the number of jobs that came together, [`BACKGROUND`] for what nobody waits for, then in their order.
    pub(super) waiting: BTreeMap<QueuePosition, Job<T>>,
    /// What is begun only when somebody asks.
    pub(super) asleep: BTreeMap<TenantId, Job<T>>,
    /// The tenants that somebody requested while nothing of theirs could be brought to the front.
    pub(super) wanted: BTreeSet<String>,
    /// When each of those that wait has its turn.
    pub(super) turns: BTreeMap<TenantId, Vec<(JobKind, QueuePosition)>>,
    /// What is in flight, by its number.
    pub(super) running: BTreeMap<u64, RunningJob<T>>,
    /// How many jobs of the background may still be begun.
    pub(super) allowed: usize,
    /// The limit on the memory of all work in progress, in bytes.
    pub(super) memory: u64,
    /// By [`Lane`].
    pub(super) threads: [usize; 2],
    pub(super) next: u64,
    pub(super) finish: Sender<(TenantId, T)>,
    /// Who is told whenever something is done.
    pub(super) owner: Option<NoticeSender>,
    pub(super) is_over: bool,
}

/// When a job has its turn: the least comes first.
pub(super) type QueuePosition = (usize, u64);

/// The turns of what a request waits for.
pub(super) const REQUESTED: usize = 0;

/// The turns of what nobody waits for.
pub(super) const BACKGROUND: usize = usize::MAX;

/// Which of the two kinds of threads does a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// What somebody waits for.
    Front,
    /// What nobody waits for.
    Back,
}

impl Lane {
    pub(super) const BOTH: [Self; 2] = [Self::Front, Self::Back];

    /// The turns of its jobs.
    pub(super) const fn turns(self) -> (Bound<QueuePosition>, Bound<QueuePosition>) {
        let first = (BACKGROUND, 0);
        match self {
            Self::Front => (Bound::Unbounded, Bound::Excluded(first)),
            Self::Back => (Bound::Included(first), Bound::Unbounded),
        }
    }
}

/// With more jobs than this in the background, their threads leave the processors to everything else; and with more folders than this to be read, more of them are read at once than there are processors.
pub(super) const LONG_QUEUE: usize = 64;
/// So many folders for each processor: those who read wait for the disk most of the time, until the system has it all in memory.
const READERS_PER_PROCESSOR: usize = 4;

/// A job that is in flight.
pub(super) struct RunningJob<T> {
    pub(super) id: TenantId,
    pub(super) kind: JobKind,
    pub(super) lane: Lane,
    pub(super) is_background: bool,
    pub(super) begin: Instant,
    pub(super) watchdog: Option<Watchdog<T>>,
    pub(super) again: Option<JobCopy<T>>,
    pub(super) is_given_up: bool,
    /// The memory that it holds a share of, in bytes.
    pub(super) weight: u64,
}

/// The limit on readings beyond the usual number of threads that wait for slow file systems.
const MAX_SLOW_READERS: usize = 128;

/// Work that takes no more than this is begun whatever else is in progress: a saved page never waits for a large tenant.
const MAX_LIGHT_BYTES: u64 = 8 << 20;

/// The background steps back for everything else. A job that has been in flight there for so long may go on for many times as long, on a busy machine.
const SLOW_TIME: Duration = Duration::from_millis(100);

impl<T> JobQueue<T> {
    /// Nothing to do yet; `finish` gets what is done.
    pub(super) fn new(finish: Sender<(TenantId, T)>) -> Self {
        Self {
            waiting: BTreeMap::new(),
            asleep: BTreeMap::new(),
            wanted: BTreeSet::new(),
            turns: BTreeMap::new(),
            running: BTreeMap::new(),
            allowed: usize::MAX,
            memory: u64::MAX,
            threads: [0; 2],
            next: 0,
            finish,
            owner: None,
            is_over: false,
        }
    }

    pub(super) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// How many threads work side by side.
    pub(super) fn most(&self, lane: Lane) -> usize {
        let next = self.waiting.first_key_value();
        let is_reading = next.is_some_and(|(_, job)| job.kind == JobKind::Read);
        match lane == Lane::Front && is_reading && self.waiting.len() > LONG_QUEUE {
            true => processors() * READERS_PER_PROCESSOR,
            false => processors(),
        }
    }

    /// What is in flight on threads of a kind.
    pub(super) fn in_lane(&self, lane: Lane) -> impl Iterator<Item = &RunningJob<T>> {
        let running = self.running.values();
        running.filter(move |running| running.lane == lane)
    }

    /// How many of them have been in flight for longer than [`EXPECTED_TIME`].
    pub(super) fn old(&self, lane: Lane) -> usize {
        let running = self.in_lane(lane);
        running
            .filter(|running| running.begin.elapsed() > EXPECTED_TIME)
            .count()
    }

    /// Adds a job behind those that have as few others with them.
    pub(super) fn insert(&mut self, first: usize, job: Job<T>) {
        let turn = (first, self.number());
        let turns = self.turns.entry(job.id.clone()).or_default();
        turns.push((job.kind, turn));
        self.waiting.insert(turn, job);
    }

    /// Takes those jobs of a tenant out that are meant.
    pub(super) fn remove(
        &mut self,
        id: &TenantId,
        is_meant: impl Fn((JobKind, QueuePosition)) -> bool,
    ) -> Vec<Job<T>> {
        let Some(turns) = self.turns.get_mut(id) else {
            return Vec::new();
        };
        let removed: Vec<_> = turns.extract_if(.., |turn| is_meant(*turn)).collect();
        if turns.is_empty() {
            self.turns.remove(id);
        }
        let jobs = removed
            .iter()
            .filter_map(|(_, turn)| self.waiting.remove(turn));
        jobs.collect()
    }

    /// Takes those jobs of a tenant out that are not at the front. Whoever asks again does not lose the place of what is.
    pub(super) fn unhurried(&mut self, id: &TenantId) -> Vec<Job<T>> {
        self.remove(id, |(_, (first, _))| first != REQUESTED)
    }

    /// What the background is slow with for a tenant, to be done by somebody else.
    pub(super) fn again(&mut self, id: &str) -> Option<Job<T>> {
        let running = self.running.values_mut();
        let mut slow = running.filter(|running| {
            let is_slow = running.lane == Lane::Back && running.begin.elapsed() >= SLOW_TIME;
            is_slow && !running.is_given_up && running.id.as_str() == id
        });
        let again = slow.find_map(|running| running.again.take())?;
        Some(again())
    }

    /// Whether something is in flight for a tenant.
    pub(super) fn is_under_way(&self, id: &str) -> bool {
        let mut running = self.not_given_up();
        running.any(|running| running.id.as_str() == id)
    }

    /// What is in flight and not given up.
    pub(super) fn not_given_up(&self) -> impl Iterator<Item = &RunningJob<T>> {
        let running = self.running.values();
        running.filter(|running| !running.is_given_up)
    }

    /// Returns how many threads are lost, or wait for a file system: these take little memory and no processor.
    pub(super) fn stalled_or_given_up(&self, lane: Lane) -> usize {
        let running = self.in_lane(lane);
        let (lost, reading) = running
            .filter(|running| running.is_given_up || running.begin.elapsed() > EXPECTED_TIME)
            .partition::<Vec<_>, _>(|running| running.is_given_up);
        let reading = reading
            .iter()
            .filter(|running| running.kind == JobKind::Read);
        lost.len() + reading.count().min(MAX_SLOW_READERS)
    }

    /// Gives up a job whose watchdog says so.
    pub(super) fn give_up(&mut self) -> Option<(TenantId, T)> {
        let mut running = self.running.values_mut();
        running.find_map(|running| {
            let done = running.watchdog.as_mut()?()?;
            running.watchdog = None;
            running.is_given_up = true;
            Some((running.id.clone(), done))
        })
    }

    /// Returns whether a job of a kind is in flight that began within `expected`, or can begin; without a limit, whether any is queued or in flight. Jobs in the background do not count.
    pub(super) fn has_younger(
        &self,
        expected: Option<Duration>,
        is_meant: impl Fn(JobKind) -> bool,
    ) -> bool {
        let mut waiting = self.waiting.range(Lane::Front.turns());
        let Some(expected) = expected else {
            let mut running = self.not_given_up();
            return running.any(|running| is_meant(running.kind))
                || waiting.any(|(_, job)| is_meant(job.kind));
        };
        let can_begin =
            waiting.any(|(_, job)| !job.is_background && is_meant(job.kind) && self.may_begin(job));
        let front = self.in_lane(Lane::Front).count();
        let mut running = self.not_given_up();
        running.any(|running| {
            let is_young = running.begin.elapsed() <= expected;
            !running.is_background && is_meant(running.kind) && is_young
        }) || (can_begin && self.threads[Lane::Front as usize] > front)
    }

    pub(super) fn may_begin(&self, job: &Job<T>) -> bool {
        let own = || {
            let running = self.running.values();
            running.filter(|running| running.id == job.id)
        };
        let is_stalled =
            |running: &&RunningJob<T>| running.is_given_up && running.kind == JobKind::Read;
        let has_thread =
            job.kind != JobKind::Read || own().filter(is_stalled).count() < MAX_STALLED_READINGS;
        let is_short = job.kind == JobKind::Release;
        is_short
            || has_thread
                && own().filter(|running| !running.is_given_up).count() < MAX_JOBS_PER_TENANT
    }

    /// Whether work that takes `bytes` may hold its share of the memory from now on. Work that can never fit may begin, to be refused.
    ///
    /// A job takes its share before it begins, and never a second one: nothing in progress waits for memory, so that nothing waits for ever.
    fn has_memory(&self, bytes: u64) -> bool {
        let held: u64 = self.not_given_up().map(|running| running.weight).sum();
        bytes <= MAX_LIGHT_BYTES || held == 0 || bytes > self.memory || held + bytes <= self.memory
    }

    /// Whether work that was just weighed may go on. Heavy work with an earlier turn goes first, so that it is not passed by for ever.
    pub(super) fn may_go_on(&self, turn: QueuePosition, bytes: u64) -> bool {
        let mut earlier = self.waiting.range(..turn);
        bytes <= MAX_LIGHT_BYTES
            || (self.has_memory(bytes) && !earlier.any(|(_, job)| job.bytes() > MAX_LIGHT_BYTES))
    }

    /// Puts work back into the queue, at its turn, until there is memory for it.
    pub(super) fn postpone(
        &mut self,
        turn: QueuePosition,
        number: u64,
        (id, kind): (TenantId, JobKind),
        weight: JobWeight<T>,
        work: JobWork<T>,
    ) {
        let Some(running) = self.running.remove(&number) else {
            return;
        };
        // The same work was handed over anew in the meantime.
        let turns = self.turns.entry(id.clone()).or_default();
        if running.is_given_up || turns.iter().any(|(other, _)| *other == kind) {
            return;
        }
        turns.push((kind, turn));
        let job = Job {
            id,
            kind,
            is_background: running.is_background,
            weight: Some(weight),
            work,
            watchdog: running.watchdog,
            again: running.again,
        };
        self.waiting.insert(turn, job);
    }

    pub(super) fn take(&mut self, lane: Lane) -> Option<(QueuePosition, Job<T>)> {
        if lane == Lane::Back && self.allowed == 0 {
            return None;
        }
        // Of heavy jobs only the first may begin.
        let mut is_first_heavy = true;
        let mut waiting = self.waiting.range(lane.turns());
        let turn = waiting.find_map(|(turn, job)| {
            let is_heavy = job.bytes() > MAX_LIGHT_BYTES;
            let has_memory = !is_heavy || (is_first_heavy && self.has_memory(job.bytes()));
            is_first_heavy &= !is_heavy;
            (has_memory && self.may_begin(job)).then_some(*turn)
        })?;
        let job = self.waiting.remove(&turn)?;
        if lane == Lane::Back {
            self.allowed -= 1;
        }
        if let Some(turns) = self.turns.get_mut(&job.id) {
            turns.retain(|(_, own)| *own != turn);
            if turns.is_empty() {
                self.turns.remove(&job.id);
            }
        }
        Some((turn, job))
    }
}

/// How many threads work side by side. To find that out takes as long as some jobs do, so it is asked once.
pub(crate) fn processors() -> usize {
    static PROCESSORS: LazyLock<usize> =
        LazyLock::new(|| thread::available_parallelism().map_or(1, usize::from));
    *PROCESSORS
}
