//! The job queue: queued and running jobs, and the order in which they start.
//!
//! **Invariant:** starts no thread and runs no job.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::LazyLock;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use crate::runner::reload_queue::ReloadSender;
use crate::runner::threads::job_pool::priority::{Priority, ThreadId, lower_priority};
use content::name::TenantId;

/// The time within which a job is expected to end. Once visitors are served, the event loop does not wait for jobs that take longer.
pub(crate) const EXPECTED_TIME: Duration = Duration::from_millis(300);

/// The time after which a job is slow, and loses its priority if many jobs are slow.
pub(super) const NORMAL_PRIORITY_TIME: Duration = Duration::from_secs(1);

/// The number of slow jobs for each processor that keep their priority.
pub(super) const MAX_SLOW_PER_PROCESSOR: usize = 4;

/// The limit on the size of an urgent batch: saved pages, and tenants that requests wait for. Urgent jobs do not wait for the threads of larger batches.
const MAX_URGENT_BATCH: usize = 4;

/// The limit on jobs in flight for one tenant. The second job lets a corrected tenant be built while its earlier job never ends.
const MAX_JOBS_PER_TENANT: usize = 2;

/// The limit on threads that abandoned readings of one tenant's folder may hold. Each of them stays until its mount responds again.
const MAX_STALLED_READINGS: usize = 8;

/// The kind of a job. A new job replaces a queued job of the same tenant and kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum JobKind {
    /// Reads and checks the folder.
    Read,
    /// Compiles the tenant.
    Compile,
    /// Reports that the reading of the folder was abandoned.
    Report,
    /// Reads a release, or writes a pin.
    Release,
}

/// The work of a job, which must not panic. The argument says whether a request waits for the job.
pub(crate) type JobWork<T> = Box<dyn FnOnce(bool) -> JobStep<T> + Send>;

/// The result of one step of a job.
pub(crate) enum JobStep<T> {
    /// The outcome of the job.
    Done(T),
    /// Further work, whose memory use is now known.
    Weighed(JobWeight<T>, JobWork<T>),
}

#[cfg(test)]
impl<T> JobStep<T> {
    /// Runs all further steps without a memory limit.
    pub(crate) fn finish(self) -> T {
        match self {
            Self::Done(done) => done,
            Self::Weighed(_, work) => work(false).finish(),
        }
    }
}

/// The memory that work needs.
pub(crate) struct JobWeight<T> {
    pub(crate) bytes: u64,
    /// Makes the outcome of work that needs more than the limit. The argument is the limit in bytes.
    pub(crate) refuse: Box<dyn FnOnce(u64) -> T + Send>,
}

/// A job for one tenant.
pub(crate) struct Job<T> {
    pub(crate) id: TenantId,
    pub(crate) kind: JobKind,
    /// Whether the job runs in the background: no request waits for it.
    pub(crate) is_background: bool,
    /// The memory that `work` needs, if that is known before it begins.
    pub(crate) weight: Option<JobWeight<T>>,
    pub(crate) work: JobWork<T>,
    pub(crate) watchdog: Option<Watchdog<T>>,
    /// Makes a second copy of a background job that a request now waits for. The first copy to finish wins.
    pub(crate) copy: Option<JobCopy<T>>,
}

impl<T> Job<T> {
    /// Returns the memory that the job needs, in bytes, or zero if that is not known yet.
    pub(super) fn bytes(&self) -> u64 {
        self.weight.as_ref().map_or(0, |weight| weight.bytes)
    }
}

/// A function that makes a second copy of a job.
pub(crate) type JobCopy<T> = Box<dyn FnOnce() -> Job<T> + Send>;

/// Polled while the job runs. Returning `Some` abandons the job and uses the value as its result.
pub(crate) type Watchdog<T> = Box<dyn FnMut() -> Option<T> + Send>;

/// All jobs, and the state of their threads.
pub(super) struct JobQueue<T> {
    /// The queued jobs, by position.
    pub(super) waiting: BTreeMap<QueuePosition, Job<T>>,
    /// Jobs held back until their tenant is requested.
    pub(super) held: BTreeMap<TenantId, Job<T>>,
    /// The tenants that were requested while they had no job to move to the front.
    pub(super) wanted: BTreeSet<String>,
    /// The positions of the queued jobs of each tenant.
    pub(super) positions: BTreeMap<TenantId, Vec<(JobKind, QueuePosition)>>,
    /// The jobs in flight, by number.
    pub(super) running: BTreeMap<u64, RunningJob<T>>,
    /// The number of background jobs that may still start.
    pub(super) background_allowance: usize,
    /// The limit on the memory of all work in progress, in bytes.
    pub(super) memory: u64,
    /// The number of threads in each [`Lane`].
    pub(super) threads: [usize; 2],
    /// How long a thread waits for a job before it ends.
    pub(super) max_idle_time: Duration,
    pub(super) next: u64,
    /// The sender of results to the event loop.
    pub(super) finish: Sender<(TenantId, T)>,
    /// The receiver of a notice for each new result.
    pub(super) owner: Option<ReloadSender>,
    /// Whether the pool was dropped, so that its threads end.
    pub(super) is_closed: bool,
}

/// The position of a job in the queue: the size of its batch, [`REQUESTED`] or [`BACKGROUND`], then its number. The lowest position starts first.
pub(super) type QueuePosition = (usize, u64);

/// The batch size in the positions of jobs that a request waits for.
pub(super) const REQUESTED: usize = 0;

/// The batch size in the positions of background jobs.
pub(super) const BACKGROUND: usize = usize::MAX;

/// A group of threads. Each job belongs to one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// For jobs outside the background.
    Front,
    /// For background jobs.
    Back,
}

impl Lane {
    pub(super) const BOTH: [Self; 2] = [Self::Front, Self::Back];

    /// Returns the range of positions of its jobs.
    pub(super) const fn positions(self) -> (Bound<QueuePosition>, Bound<QueuePosition>) {
        let first = (BACKGROUND, 0);
        match self {
            Self::Front => (Bound::Unbounded, Bound::Excluded(first)),
            Self::Back => (Bound::Included(first), Bound::Unbounded),
        }
    }
}

/// The length of a long queue. With more queued jobs, new background threads have a low priority, and more folders are read at once than there are processors.
pub(super) const LONG_QUEUE_JOBS: usize = 64;
/// The number of folders that are read at once for each processor in a long queue. Readers mostly wait for the disk, until the system has cached all files.
const READERS_PER_PROCESSOR: usize = 4;

/// A job that is in flight.
pub(super) struct RunningJob<T> {
    pub(super) id: TenantId,
    pub(super) kind: JobKind,
    pub(super) lane: Lane,
    pub(super) is_background: bool,
    pub(super) begin: Instant,
    pub(super) thread: ThreadId,
    /// Whether the priority of its thread was lowered, because the job takes long.
    pub(super) has_low_priority: bool,
    pub(super) watchdog: Option<Watchdog<T>>,
    pub(super) copy: Option<JobCopy<T>>,
    /// Whether the job was abandoned.
    pub(super) is_abandoned: bool,
    /// The memory that is reserved for the job, in bytes.
    pub(super) weight: u64,
}

/// The limit on further threads for readings that wait for slow file systems.
const MAX_SLOW_READERS: usize = 128;

/// The limit up to which work is light. Light work starts even if heavy work is in progress, so that a saved page never waits for a large tenant.
const MAX_LIGHT_BYTES: u64 = 8 << 20;

/// The time after which a background job counts as slow. Background threads may have a low priority, so that on a busy machine such a job may take many times longer.
const SLOW_TIME: Duration = Duration::from_millis(100);

impl<T> JobQueue<T> {
    /// Returns an empty queue. `finish` receives the results of jobs.
    pub(super) fn new(finish: Sender<(TenantId, T)>) -> Self {
        Self {
            waiting: BTreeMap::new(),
            held: BTreeMap::new(),
            wanted: BTreeSet::new(),
            positions: BTreeMap::new(),
            running: BTreeMap::new(),
            background_allowance: usize::MAX,
            memory: u64::MAX,
            threads: [0; 2],
            max_idle_time: Duration::from_secs(10),
            next: 0,
            finish,
            owner: None,
            is_closed: false,
        }
    }

    /// Returns the next number for a position or a job in flight.
    pub(super) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Returns the number of threads of a lane that may work at the same time.
    pub(super) fn thread_limit(&self, lane: Lane) -> usize {
        let next = self.waiting.first_key_value();
        let Some(((batch, _), job)) = next.filter(|_| lane == Lane::Front) else {
            return processors();
        };
        match (job.kind, *batch) {
            (JobKind::Read, _) if self.waiting.len() > LONG_QUEUE_JOBS => {
                processors() * READERS_PER_PROCESSOR
            }
            (_, ..=MAX_URGENT_BATCH) => processors() * 2,
            _ => processors(),
        }
    }

    /// Returns the jobs in flight of a lane.
    pub(super) fn in_lane(&self, lane: Lane) -> impl Iterator<Item = &RunningJob<T>> {
        let running = self.running.values();
        running.filter(move |running| running.lane == lane)
    }

    /// Returns the number of jobs of a lane that have been in flight for longer than [`EXPECTED_TIME`].
    pub(super) fn overdue(&self, lane: Lane) -> usize {
        let running = self.in_lane(lane);
        running
            .filter(|running| running.begin.elapsed() > EXPECTED_TIME)
            .count()
    }

    /// Lowers the priority of jobs outside the background that were abandoned, or that have been in flight for longer than [`NORMAL_PRIORITY_TIME`] with many others, so that other jobs get the processor.
    ///
    /// A few slow jobs keep their priority: on a busy machine they would not end otherwise.
    pub(super) fn lower_overdue(&mut self) {
        let is_slow = |running: &RunningJob<T>| {
            running.lane == Lane::Front && running.begin.elapsed() > NORMAL_PRIORITY_TIME
        };
        let slow = self.running.values().filter(|running| is_slow(running));
        let are_many = slow.count() > processors() * MAX_SLOW_PER_PROCESSOR;
        for running in self.running.values_mut() {
            let is_lowered = is_slow(running) && (are_many || running.is_abandoned);
            if is_lowered && !running.has_low_priority {
                running.has_low_priority = true;
                lower_priority(running.thread, Priority::Slow);
            }
        }
    }

    /// Adds a job behind the queued jobs with the same batch size.
    pub(super) fn insert(&mut self, first: usize, job: Job<T>) {
        let position = (first, self.number());
        let positions = self.positions.entry(job.id.clone()).or_default();
        positions.push((job.kind, position));
        self.waiting.insert(position, job);
    }

    /// Removes the queued jobs of a tenant that `is_meant` selects.
    pub(super) fn remove(
        &mut self,
        id: &TenantId,
        is_meant: impl Fn((JobKind, QueuePosition)) -> bool,
    ) -> Vec<Job<T>> {
        let Some(positions) = self.positions.get_mut(id) else {
            return Vec::new();
        };
        let removed: Vec<_> = positions
            .extract_if(.., |position| is_meant(*position))
            .collect();
        if positions.is_empty() {
            self.positions.remove(id);
        }
        let jobs = removed
            .iter()
            .filter_map(|(_, position)| self.waiting.remove(position));
        jobs.collect()
    }

    /// Removes the queued jobs of a tenant that are not at the front. Jobs at the front keep their positions when the tenant is requested again.
    pub(super) fn remove_unprioritised(&mut self, id: &TenantId) -> Vec<Job<T>> {
        self.remove(id, |(_, (first, _))| first != REQUESTED)
    }

    /// Returns a copy of a slow background job of a tenant, for a waiting request.
    pub(super) fn copy_slow(&mut self, id: &str) -> Option<Job<T>> {
        let running = self.running.values_mut();
        let mut slow = running.filter(|running| {
            let is_slow = running.lane == Lane::Back && running.begin.elapsed() >= SLOW_TIME;
            is_slow && !running.is_abandoned && running.id.as_str() == id
        });
        let copy = slow.find_map(|running| running.copy.take())?;
        Some(copy())
    }

    /// Returns whether a job is in flight for a tenant.
    pub(super) fn is_in_flight(&self, id: &str) -> bool {
        let mut running = self.active();
        running.any(|running| running.id.as_str() == id)
    }

    /// Returns the jobs in flight that were not abandoned.
    pub(super) fn active(&self) -> impl Iterator<Item = &RunningJob<T>> {
        let running = self.running.values();
        running.filter(|running| !running.is_abandoned)
    }

    /// Returns the number of threads that are lost or wait for a file system. These threads use little memory and no processor.
    pub(super) fn stalled_or_abandoned(&self, lane: Lane) -> usize {
        let running = self.in_lane(lane);
        let (lost, reading) = running
            .filter(|running| running.is_abandoned || running.begin.elapsed() > EXPECTED_TIME)
            .partition::<Vec<_>, _>(|running| running.is_abandoned);
        let reading = reading
            .iter()
            .filter(|running| running.kind == JobKind::Read);
        lost.len() + reading.count().min(MAX_SLOW_READERS)
    }

    /// Abandons one job whose watchdog returns a result.
    pub(super) fn abandon_stalled(&mut self) -> Option<(TenantId, T)> {
        let mut running = self.running.values_mut();
        running.find_map(|running| {
            let done = running.watchdog.as_mut()?()?;
            running.watchdog = None;
            running.is_abandoned = true;
            Some((running.id.clone(), done))
        })
    }

    /// Returns whether a job outside the background is in flight that began within `expected`, or is queued and can start. `is_meant` selects its kind.
    ///
    /// `None` sets no limit: every queued job outside the background counts, and every job in flight.
    pub(super) fn can_end_within(
        &self,
        expected: Option<Duration>,
        is_meant: impl Fn(JobKind) -> bool,
    ) -> bool {
        let mut waiting = self.waiting.range(Lane::Front.positions());
        let Some(expected) = expected else {
            let mut running = self.active();
            return running.any(|running| is_meant(running.kind))
                || waiting.any(|(_, job)| is_meant(job.kind));
        };
        let can_begin =
            waiting.any(|(_, job)| !job.is_background && is_meant(job.kind) && self.may_begin(job));
        let front = self.in_lane(Lane::Front).count();
        let mut running = self.active();
        running.any(|running| {
            let is_young = running.begin.elapsed() <= expected;
            !running.is_background && is_meant(running.kind) && is_young
        }) || (can_begin && self.threads[Lane::Front as usize] > front)
    }

    /// Returns whether the limits on jobs in flight for one tenant allow the job to start.
    pub(super) fn may_begin(&self, job: &Job<T>) -> bool {
        let own = || {
            let running = self.running.values();
            running.filter(|running| running.id == job.id)
        };
        let is_stalled =
            |running: &&RunningJob<T>| running.is_abandoned && running.kind == JobKind::Read;
        let has_thread =
            job.kind != JobKind::Read || own().filter(is_stalled).count() < MAX_STALLED_READINGS;
        let is_short = job.kind == JobKind::Release;
        is_short
            || has_thread
                && own().filter(|running| !running.is_abandoned).count() < MAX_JOBS_PER_TENANT
    }

    /// Returns whether work that needs `bytes` may reserve them now. Work that can never fit may start, because it is then refused.
    ///
    /// A job reserves memory once. Work in progress never waits for memory, so that jobs cannot block each other for ever.
    fn has_memory(&self, bytes: u64) -> bool {
        let held: u64 = self.active().map(|running| running.weight).sum();
        bytes <= MAX_LIGHT_BYTES || held == 0 || bytes > self.memory || held + bytes <= self.memory
    }

    /// Returns whether work may continue once its memory use is known. Heavy work with an earlier position continues first, so that no heavy work starves.
    pub(super) fn may_continue(&self, position: QueuePosition, bytes: u64) -> bool {
        let mut earlier = self.waiting.range(..position);
        bytes <= MAX_LIGHT_BYTES
            || (self.has_memory(bytes) && !earlier.any(|(_, job)| job.bytes() > MAX_LIGHT_BYTES))
    }

    /// Returns work to its position in the queue until enough memory is free.
    pub(super) fn postpone(
        &mut self,
        position: QueuePosition,
        number: u64,
        (id, kind): (TenantId, JobKind),
        weight: JobWeight<T>,
        work: JobWork<T>,
    ) {
        let Some(running) = self.running.remove(&number) else {
            return;
        };
        // A newer job of the same kind was queued in the meantime.
        let positions = self.positions.entry(id.clone()).or_default();
        if running.is_abandoned || positions.iter().any(|(other, _)| *other == kind) {
            return;
        }
        positions.push((kind, position));
        let job = Job {
            id,
            kind,
            is_background: running.is_background,
            weight: Some(weight),
            work,
            watchdog: running.watchdog,
            copy: running.copy,
        };
        self.waiting.insert(position, job);
    }

    /// Removes and returns the first job of a lane that may start now.
    pub(super) fn pop(&mut self, lane: Lane) -> Option<(QueuePosition, Job<T>)> {
        if lane == Lane::Back && self.background_allowance == 0 {
            return None;
        }
        // Only the first of the heavy jobs may start.
        let mut is_first_heavy = true;
        let mut waiting = self.waiting.range(lane.positions());
        let position = waiting.find_map(|(position, job)| {
            let is_heavy = job.bytes() > MAX_LIGHT_BYTES;
            let has_memory = !is_heavy || (is_first_heavy && self.has_memory(job.bytes()));
            is_first_heavy &= !is_heavy;
            (has_memory && self.may_begin(job)).then_some(*position)
        })?;
        let job = self.waiting.remove(&position)?;
        if lane == Lane::Back {
            self.background_allowance -= 1;
        }
        if let Some(positions) = self.positions.get_mut(&job.id) {
            positions.retain(|(_, own)| *own != position);
            if positions.is_empty() {
                self.positions.remove(&job.id);
            }
        }
        Some((position, job))
    }
}

/// Returns the number of processors. The number is determined once, because the call takes as long as some jobs.
pub(crate) fn processors() -> usize {
    static PROCESSORS: LazyLock<usize> =
        LazyLock::new(|| thread::available_parallelism().map_or(1, usize::from));
    *PROCESSORS
}
