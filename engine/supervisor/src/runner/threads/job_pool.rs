//! The job pool: threads that read, check and compile tenants, so that a slow tenant does not delay other tenants.
//!
//! The event loop hands over every changed tenant as a [`Job`]. The loop waits for the jobs that end soon, and receives the results of longer jobs later.
//!
//! - **Threads.** One thread for each processor works on jobs that began within [`EXPECTED_TIME`], or four for each processor while many folders are read. A job that takes longer keeps its thread, and a further thread starts for queued jobs. While many jobs take long, their threads have a low priority. Slow and endless tenants therefore do not delay other tenants.
//! - **Idle threads.** A thread without a job for ten seconds ends, since it holds a JavaScript engine and freed memory.
//! - **Watchdog.** A job may have a [`Watchdog`](queue::Watchdog), which abandons the job and supplies a result in its place. The thread is lost if the work never ends, and a late result is dropped.
//! - **Order.** Jobs of the smallest batch start first: a saved page does not wait for a new theme of a thousand tenants.
//! - **Memory.** All work in progress shares one memory limit. Work that does not fit is queued without a thread, and light work overtakes it. Work that can never fit is refused.
//! - **Background.** Background jobs have their own threads, which have a low priority if the queue is long. A request for a tenant moves its background job to the front ([`JobPool::prioritise`]).

pub(crate) mod priority;
mod queue;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tracing::error;

use self::priority::{Priority, current_thread, lower_priority};
use self::queue::{BACKGROUND, JobQueue, LONG_QUEUE_JOBS, Lane, REQUESTED, RunningJob};
pub(crate) use self::queue::{
    EXPECTED_TIME, Job, JobCopy, JobKind, JobStep, JobWeight, JobWork, processors,
};
use crate::runner::reload_queue::ReloadSender;
use content::name::TenantId;

/// The limit on threads beyond the number of processors, for tenants that take long at the same time.
const MAX_EXTRA_THREADS: usize = 64;

/// The job pool. Its threads end after it is dropped.
pub(crate) struct JobPool<T> {
    shared: Arc<PoolState<T>>,
    done: Receiver<(TenantId, T)>,
}

/// The memory of work in progress, in bytes, and the length of the queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WorkMemory {
    pub(crate) held: u64,
    pub(crate) limit: u64,
    pub(crate) jobs: usize,
}

impl<T> fmt::Debug for JobPool<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Workers").finish_non_exhaustive()
    }
}

/// The state that all threads of a pool share.
struct PoolState<T> {
    queue: Mutex<JobQueue<T>>,
    changed: Condvar,
    /// The number of results that were not received yet.
    unreceived: AtomicUsize,
}

impl<T: Send + 'static> JobPool<T> {
    /// Returns a pool without threads. Threads start with the first jobs.
    pub(crate) fn new() -> Self {
        // Unbounded: at most one result for each job. The event loop, which hands jobs over, also receives their results.
        let (finish, done) = channel();
        let shared = Arc::new(PoolState {
            queue: Mutex::new(JobQueue::new(finish)),
            changed: Condvar::new(),
            unreceived: AtomicUsize::new(0),
        });
        Self { shared, done }
    }

    /// Notifies `owner` of every new result from now on, and once at the start for earlier results.
    pub(crate) fn notify(&self, owner: ReloadSender) {
        let mut queue = self.shared.lock();
        // The receiver is gone during shutdown.
        let _ = owner.wake();
        queue.owner = Some(owner);
    }

    /// Queues jobs as one batch. A job replaces a queued job of the same tenant and kind.
    pub(crate) fn hand_over(&self, jobs: Vec<Job<T>>) {
        let together = jobs.len();
        let mut queue = self.shared.lock();
        for job in jobs {
            queue.remove(&job.id, |(kind, _)| kind == job.kind);
            let first = if job.is_background {
                BACKGROUND
            } else {
                together
            };
            queue.insert(first, job);
        }
        self.shared.staff(&mut queue);
        self.shared.changed.notify_all();
    }

    /// Holds a job back until its tenant is requested, or queues the job if a request waits already. Returns whether the job is held back.
    pub(crate) fn hold(&self, job: Job<T>) -> bool {
        let mut queue = self.shared.lock();
        let is_wanted = queue.wanted.remove(job.id.as_str());
        if is_wanted {
            queue.insert(REQUESTED, job);
            self.shared.staff(&mut queue);
            self.shared.changed.notify_all();
        } else {
            queue.held.insert(job.id.clone(), job);
        }
        !is_wanted
    }

    /// Limits the memory of all work in progress, in bytes.
    pub(crate) fn limit_memory(&self, bytes: u64) {
        self.shared.lock().memory = bytes;
    }

    /// Returns the memory that work in progress has reserved, its limit, and the number of queued jobs.
    pub(crate) fn memory(&self) -> WorkMemory {
        let queue = self.shared.lock();
        WorkMemory {
            held: queue.active().map(|running| running.weight).sum(),
            limit: queue.memory,
            jobs: queue.waiting.len(),
        }
    }

    /// Drops the job that is held back for a tenant, and forgets requests for the tenant.
    pub(crate) fn forget(&self, id: &TenantId) {
        let mut queue = self.shared.lock();
        queue.held.remove(id);
        queue.wanted.remove(id.as_str());
    }

    /// Returns a function that moves the jobs of a tenant to the front of the queue: background jobs, and the job that is held back. Its argument is the tenant's id.
    pub(crate) fn prioritise(&self) -> impl Fn(&str) + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        move |id| {
            let mut queue = shared.lock();
            let held = queue.held.remove(id);
            let known = queue.positions.get_key_value(id).map(|(id, _)| id.clone());
            let Some(id) = known.or_else(|| Some(held.as_ref()?.id.clone())) else {
                queue.wanted.insert(id.to_owned());
                if let Some(job) = queue.copy_slow(id) {
                    queue.insert(REQUESTED, job);
                    shared.staff(&mut queue);
                    shared.changed.notify_all();
                } else if !queue.is_in_flight(id)
                    && let Some(owner) = &queue.owner
                {
                    // No job is left: the pages are built, and the request waits for the next snapshot.
                    let _ = owner.wake();
                }
                return;
            };
            let waiting = queue.remove_unprioritised(&id);
            for job in held.into_iter().chain(waiting) {
                queue.insert(REQUESTED, job);
            }
            shared.staff(&mut queue);
            shared.changed.notify_all();
        }
    }

    /// Forgets the requests for tenants that `is_there` selects, because their pages are built. Returns whether there were any: these requests wait for the next snapshot.
    pub(crate) fn forget_built(&self, is_there: impl Fn(&str) -> bool) -> bool {
        let mut queue = self.shared.lock();
        let waiting = queue.wanted.len();
        queue.wanted.retain(|id| !is_there(id));
        queue.wanted.len() < waiting
    }

    /// Sets the number of background jobs that may start until the next call. There is no limit before the first call.
    pub(crate) fn allow_background(&self, jobs: usize) {
        self.shared.lock().background_allowance = jobs;
        self.shared.changed.notify_all();
    }

    /// Returns whether background jobs are queued and none of them may start.
    pub(crate) fn is_background_held(&self) -> bool {
        let queue = self.shared.lock();
        queue.background_allowance == 0
            && queue.waiting.range(Lane::Back.positions()).next().is_some()
    }

    /// Returns a function that notifies the owner, so that the owner checks for work.
    pub(crate) fn waker(&self) -> impl Fn() + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        move || {
            if let Some(owner) = &shared.lock().owner {
                // The receiver is gone during shutdown.
                let _ = owner.wake();
            }
        }
    }

    /// Returns whether background jobs are queued or in flight.
    pub(crate) fn has_background(&self) -> bool {
        let queue = self.shared.lock();
        let mut running = queue.running.values();
        let last = queue.waiting.last_key_value();
        last.is_some_and(|((first, _), _)| *first == BACKGROUND)
            || running.any(|running| running.is_background && !running.is_abandoned)
    }

    /// Returns the tenants that requests wait for and that have no job at the front.
    pub(crate) fn wanted(&self) -> BTreeSet<TenantId> {
        let queue = self.shared.lock();
        let wanted = queue.wanted.iter();
        wanted.filter_map(|id| TenantId::new(id).ok()).collect()
    }

    /// Returns whether a request waits for a tenant that has no job at the front.
    pub(crate) fn is_wanted(&self, id: &TenantId) -> bool {
        self.shared.lock().wanted.contains(id.as_str())
    }

    /// Returns whether readings are queued or in flight that are likely to end within `expected` of their start. `None` sets no limit.
    pub(crate) fn has_readings(&self, expected: Option<Duration>) -> bool {
        let is_reading = |kind: JobKind| matches!(kind, JobKind::Read | JobKind::Report);
        self.shared.lock().can_end_within(expected, is_reading)
    }

    /// Returns whether jobs of any kind are queued or in flight that are likely to end within `expected` of their start. `None` sets no limit.
    pub(crate) fn has_work(&self, expected: Option<Duration>) -> bool {
        self.shared.lock().can_end_within(expected, |_| true)
    }

    /// Returns whether a job is queued or in flight, or has a result that was not received yet.
    pub(crate) fn is_busy(&self) -> bool {
        let queue = self.shared.lock();
        !queue.waiting.is_empty()
            || queue.active().next().is_some()
            || self.shared.unreceived.load(Relaxed) > 0
    }

    /// Returns the next result, if there is one.
    pub(crate) fn poll(&self) -> Option<(TenantId, T)> {
        if let Ok(done) = self.done.try_recv() {
            self.shared.unreceived.fetch_sub(1, Relaxed);
            return Some(done);
        }
        let mut queue = self.shared.lock();
        let abandoned = queue.abandon_stalled();
        queue.lower_overdue();
        self.shared.staff(&mut queue);
        let (id, abandoned) = abandoned?;
        error!(tenant = %id, "job does not end; abandoned with its thread");
        Some((id, abandoned))
    }

    /// Waits for the next result, for at most `time`.
    pub(crate) fn wait(&self, time: Duration) -> Option<(TenantId, T)> {
        self.poll().or_else(|| {
            let done = self.done.recv_timeout(time).ok()?;
            self.shared.unreceived.fetch_sub(1, Relaxed);
            Some(done)
        })
    }
}

impl<T> Drop for JobPool<T> {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.changed.notify_all();
    }
}

impl<T> PoolState<T> {
    fn lock(&self) -> MutexGuard<'_, JobQueue<T>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Send + 'static> PoolState<T> {
    /// Starts threads for queued jobs, unless enough threads work on jobs that began within [`EXPECTED_TIME`].
    fn staff(self: &Arc<Self>, queue: &mut JobQueue<T>) {
        for lane in Lane::BOTH {
            loop {
                let limit = queue.thread_limit(lane);
                let (threads, old) = (queue.threads[lane as usize], queue.overdue(lane));
                let waiting = queue.waiting.range(lane.positions()).take(limit).count();
                let wanted = limit.min(waiting + queue.in_lane(lane).count() - old);
                if threads - old >= wanted
                    || threads >= limit + MAX_EXTRA_THREADS + queue.stalled_or_abandoned(lane)
                {
                    break;
                }
                let shared = Arc::clone(self);
                let is_low_priority = lane == Lane::Back && queue.waiting.len() > LONG_QUEUE_JOBS;
                let started = thread::Builder::new()
                    .name("tenants".to_owned())
                    .spawn(move || {
                        if is_low_priority {
                            lower_priority(current_thread(), Priority::Background);
                        }
                        shared.work(lane);
                    });
                // If the system refuses a thread, the present threads do the work.
                if started.is_err() {
                    return;
                }
                queue.threads[lane as usize] += 1;
            }
        }
    }

    /// Runs jobs of a lane until the pool is dropped, or the thread is no longer needed or has been idle for too long.
    fn work(self: &Arc<Self>, lane: Lane) {
        let mut queue = self.lock();
        let mut idle_since = Instant::now();
        loop {
            let is_spare =
                queue.threads[lane as usize] > queue.thread_limit(lane) + queue.overdue(lane);
            // A queued job that may not start yet needs its thread later.
            let is_unused = idle_since.elapsed() >= queue.max_idle_time
                && queue.waiting.range(lane.positions()).next().is_none();
            if queue.is_closed || is_spare || is_unused {
                queue.threads[lane as usize] -= 1;
                return;
            }
            let Some((position, mut job)) = queue.pop(lane) else {
                let time = queue.max_idle_time;
                let waited = self.changed.wait_timeout(queue, time);
                queue = waited.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            };
            let (number, weight) = (queue.number(), job.bytes());
            let running = RunningJob {
                id: job.id.clone(),
                kind: job.kind,
                lane,
                is_background: job.is_background,
                begin: Instant::now(),
                thread: current_thread(),
                has_low_priority: false,
                watchdog: job.watchdog,
                copy: job.copy,
                is_abandoned: false,
                weight,
            };
            queue.running.insert(number, running);
            let finish = queue.finish.clone();
            let name = job.id.clone();
            let memory = queue.memory;
            drop(queue);
            let mut step = match job.weight.take() {
                Some(weight) if weight.bytes > memory => JobStep::Done((weight.refuse)(memory)),
                _ => (job.work)(position.0 == REQUESTED),
            };
            queue = self.lock();
            let done = loop {
                match step {
                    JobStep::Done(done) => break Some(done),
                    JobStep::Weighed(weight, work)
                        if queue.may_continue(position, weight.bytes) =>
                    {
                        if let Some(running) = queue.running.get_mut(&number) {
                            running.weight = weight.bytes;
                        }
                        drop(queue);
                        step = match weight.bytes > memory {
                            true => JobStep::Done((weight.refuse)(memory)),
                            false => work(position.0 == REQUESTED),
                        };
                        queue = self.lock();
                    }
                    JobStep::Weighed(weight, work) => {
                        queue.postpone(position, number, (job.id.clone(), job.kind), weight, work);
                        break None;
                    }
                }
            };
            idle_since = Instant::now();
            let Some(done) = done else {
                continue;
            };
            let running = queue.running.remove(&number);
            let was_slow = running
                .as_ref()
                .is_some_and(|running| running.has_low_priority);
            if running.is_some_and(|running| !running.is_abandoned) {
                self.unreceived.fetch_add(1, Relaxed);
                // The receiver is gone during shutdown.
                let _ = finish.send((job.id, done));
            }
            self.changed.notify_all();
            // Background results need one notice only: once the queue is empty or no further background job may start.
            let is_wanted = queue.wanted.contains(name.as_str());
            let is_over = queue.waiting.is_empty() || queue.background_allowance == 0;
            let is_awaited = lane == Lane::Front || is_wanted || is_over;
            // Read now, not when the job began: the owner registers after its first jobs are in flight.
            if let Some(owner) = queue.owner.as_ref().filter(|_| is_awaited) {
                let _ = owner.wake();
            }
            if was_slow {
                // A process without privileges cannot raise a priority again, so another thread takes over.
                queue.threads[lane as usize] -= 1;
                self.staff(&mut queue);
                return;
            }
        }
    }
}
