//! Threads that read, check and compile tenants, so that nobody waits for the slowest.
//!
//! Every changed tenant is handed over as a [`Job`]. Whoever handed it over waits for those that are done soon and takes the others when they are.
//! As many threads as there are processors work on jobs that began within [`EXPECTED_TIME`], and four times as many where a great number of folders is to be read. A job that takes longer keeps its thread, and another thread is started for what waits: a tenant that takes long, or for ever, holds up nobody else.
//! A job may have a [`Watchdog`](queue::Watchdog), which gives it up and says what comes of it instead. Its thread is lost if the work never ends; what it brings later is dropped.
//! Of what waits, what came with the fewest others goes first: a saved page is not kept waiting by a new theme for a thousand tenants.
//! Work in progress holds a share of one memory limit. What does not fit waits in the queue and holds no thread, and light work passes it by. What can never fit is refused.
//! What is done in the background has threads of its own, which step back where there is much to do, and nobody waits for it; a request for its tenant brings it to the front ([`Workers::hurry`]).

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

use self::queue::{BACKGROUND, JobQueue, LONG_QUEUE, Lane, REQUESTED, RunningJob};
pub(crate) use self::queue::{
    EXPECTED_TIME, Job, JobCopy, JobKind, JobStep, JobWeight, JobWork, processors,
};
use crate::source::watch::{Notice, NoticeSender};
use content::name::TenantId;

/// Threads beyond the number of processors, at most: so many tenants may take long side by side.
const MAX_EXTRA_THREADS: usize = 16;

/// The threads, for as long as this lives.
pub(crate) struct Workers<T> {
    shared: Arc<PoolState<T>>,
    done: Receiver<(TenantId, T)>,
}

impl<T> fmt::Debug for Workers<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Workers").finish_non_exhaustive()
    }
}

struct PoolState<T> {
    queue: Mutex<JobQueue<T>>,
    changed: Condvar,
    /// The number of results that nobody has taken yet.
    untaken: AtomicUsize,
}

impl<T: Send + 'static> Workers<T> {
    pub(crate) fn new() -> Self {
        // Holds one result a job that was handed over. Whoever hands jobs over takes their results, so that no result is older than the jobs of one turn.
        let (finish, done) = channel();
        let shared = Arc::new(PoolState {
            queue: Mutex::new(JobQueue::new(finish)),
            changed: Condvar::new(),
            untaken: AtomicUsize::new(0),
        });
        Self { shared, done }
    }

    /// Tells `owner` from now on whenever something is done, and at once of what was done before.
    pub(crate) fn notify(&self, owner: NoticeSender) {
        let mut queue = self.shared.lock();
        // Nobody asks any longer when everything ends.
        let _ = owner.send(Notice::Ready);
        queue.owner = Some(owner);
    }

    /// Hands over jobs that belong together.
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

    /// Hands over a job that is begun only when somebody asks for its tenant, or at once where somebody has. Whether nobody has.
    pub(crate) fn sleep(&self, job: Job<T>) -> bool {
        let mut queue = self.shared.lock();
        let is_wanted = queue.wanted.remove(job.id.as_str());
        if is_wanted {
            queue.insert(REQUESTED, job);
            self.shared.staff(&mut queue);
            self.shared.changed.notify_all();
        } else {
            queue.asleep.insert(job.id.clone(), job);
        }
        !is_wanted
    }

    /// Limits the memory of all work in progress, in bytes.
    pub(crate) fn limit_memory(&self, bytes: u64) {
        self.shared.lock().memory = bytes;
    }

    /// Drops what is to be done for a tenant when somebody asks.
    pub(crate) fn forget(&self, id: &TenantId) {
        let mut queue = self.shared.lock();
        queue.asleep.remove(id);
        queue.wanted.remove(id.as_str());
    }

    /// Brings what is to be done in the background for a tenant, or when somebody asks, to the front, for whoever calls the result with its id.
    pub(crate) fn hurry(&self) -> impl Fn(&str) + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        move |id| {
            let mut queue = shared.lock();
            let asleep = queue.asleep.remove(id);
            let known = queue.turns.get_key_value(id).map(|(id, _)| id.clone());
            let Some(id) = known.or_else(|| Some(asleep.as_ref()?.id.clone())) else {
                queue.wanted.insert(id.to_owned());
                if let Some(job) = queue.again(id) {
                    queue.insert(REQUESTED, job);
                    shared.staff(&mut queue);
                    shared.changed.notify_all();
                } else if !queue.is_under_way(id)
                    && let Some(owner) = &queue.owner
                {
                    // Nothing is left to be done: what it waits for is there, and only in no snapshot yet.
                    let _ = owner.send(Notice::Ready);
                }
                return;
            };
            let waiting = queue.unhurried(&id);
            for job in asleep.into_iter().chain(waiting) {
                queue.insert(REQUESTED, job);
            }
            shared.staff(&mut queue);
            shared.changed.notify_all();
        }
    }

    /// Forgets that requests wait for those tenants that are there. Whether there are such: they wait at what was served before.
    pub(crate) fn wait_in_vain(&self, is_there: impl Fn(&str) -> bool) -> bool {
        let mut queue = self.shared.lock();
        let waiting = queue.wanted.len();
        queue.wanted.retain(|id| !is_there(id));
        queue.wanted.len() < waiting
    }

    /// Lets no more than so many jobs of the background begin, until this is called again. At first there is no limit.
    pub(crate) fn allow(&self, jobs: usize) {
        self.shared.lock().allowed = jobs;
        self.shared.changed.notify_all();
    }

    /// Whether what waits in the background may not begin.
    pub(crate) fn is_held(&self) -> bool {
        let queue = self.shared.lock();
        queue.allowed == 0 && queue.waiting.range(Lane::Back.turns()).next().is_some()
    }

    /// Lets the owner look what there is to do, for whoever calls the result.
    pub(crate) fn wake(&self) -> impl Fn() + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        move || {
            if let Some(owner) = &shared.lock().owner {
                // Nobody listens any longer when everything ends.
                let _ = owner.send(Notice::Ready);
            }
        }
    }

    /// Whether something is still to be done in the background.
    pub(crate) fn has_background(&self) -> bool {
        let queue = self.shared.lock();
        let mut running = queue.running.values();
        let last = queue.waiting.last_key_value();
        last.is_some_and(|((first, _), _)| *first == BACKGROUND)
            || running.any(|running| running.is_background && !running.is_given_up)
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

    /// Returns whether readings are queued or in flight that are likely to end within `expected` of their start; without a limit, whether any are.
    pub(crate) fn has_readings(&self, expected: Option<Duration>) -> bool {
        let is_reading = |kind: JobKind| matches!(kind, JobKind::Read | JobKind::Report);
        self.shared.lock().has_younger(expected, is_reading)
    }

    /// Returns the same of all jobs that are not in the background.
    pub(crate) fn has_work(&self, expected: Option<Duration>) -> bool {
        self.shared.lock().has_younger(expected, |_| true)
    }

    /// Returns whether a job is queued or in flight, or has a result that was not taken yet.
    pub(crate) fn is_busy(&self) -> bool {
        let queue = self.shared.lock();
        !queue.waiting.is_empty()
            || queue.not_given_up().next().is_some()
            || self.shared.untaken.load(Relaxed) > 0
    }

    /// Returns the next result, if there is one.
    pub(crate) fn poll(&self) -> Option<(TenantId, T)> {
        if let Ok(done) = self.done.try_recv() {
            self.shared.untaken.fetch_sub(1, Relaxed);
            return Some(done);
        }
        let mut queue = self.shared.lock();
        let given_up = queue.give_up();
        self.shared.staff(&mut queue);
        let (id, given_up) = given_up?;
        error!(tenant = %id, "a tenant's work does not end; it is given up with its thread");
        Some((id, given_up))
    }

    /// Waits for a result for this time at most.
    pub(crate) fn wait(&self, time: Duration) -> Option<(TenantId, T)> {
        self.poll().or_else(|| {
            let done = self.done.recv_timeout(time).ok()?;
            self.shared.untaken.fetch_sub(1, Relaxed);
            Some(done)
        })
    }
}

impl<T> Drop for Workers<T> {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.changed.notify_all();
    }
}

impl<T> PoolState<T> {
    fn lock(&self) -> MutexGuard<'_, JobQueue<T>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Send + 'static> PoolState<T> {
    /// Starts threads for what waits, unless enough of them are at work on what has just begun.
    fn staff(self: &Arc<Self>, queue: &mut JobQueue<T>) {
        for lane in Lane::BOTH {
            loop {
                let most = queue.most(lane);
                let (threads, old) = (queue.threads[lane as usize], queue.old(lane));
                let waiting = queue.waiting.range(lane.turns()).take(most).count();
                let wanted = most.min(waiting + queue.in_lane(lane).count() - old);
                if threads - old >= wanted
                    || threads >= most + MAX_EXTRA_THREADS + queue.stalled_or_given_up(lane)
                {
                    break;
                }
                let shared = Arc::clone(self);
                let steps_back = lane == Lane::Back && queue.waiting.len() > LONG_QUEUE;
                let started = thread::Builder::new()
                    .name("tenants".to_owned())
                    .spawn(move || {
                        if steps_back {
                            step_back();
                        }
                        shared.work(lane);
                    });
                // Without another thread, those that are there go on.
                if started.is_err() {
                    return;
                }
                queue.threads[lane as usize] += 1;
            }
        }
    }

    fn work(&self, lane: Lane) {
        let mut queue = self.lock();
        loop {
            let is_spare = queue.threads[lane as usize] > queue.most(lane) + queue.old(lane);
            if queue.is_over || is_spare {
                queue.threads[lane as usize] -= 1;
                return;
            }
            let Some((turn, mut job)) = queue.take(lane) else {
                queue = self
                    .changed
                    .wait(queue)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let (number, weight) = (queue.number(), job.bytes());
            let running = RunningJob {
                id: job.id.clone(),
                kind: job.kind,
                lane,
                is_background: job.is_background,
                begin: Instant::now(),
                watchdog: job.watchdog,
                again: job.again,
                is_given_up: false,
                weight,
            };
            queue.running.insert(number, running);
            let finish = queue.finish.clone();
            let name = job.id.clone();
            let memory = queue.memory;
            drop(queue);
            let mut step = match job.weight.take() {
                Some(weight) if weight.bytes > memory => JobStep::Done((weight.refuse)(memory)),
                _ => (job.work)(turn.0 == REQUESTED),
            };
            queue = self.lock();
            let done = loop {
                match step {
                    JobStep::Done(done) => break Some(done),
                    JobStep::Weighed(weight, work) if queue.may_go_on(turn, weight.bytes) => {
                        if let Some(running) = queue.running.get_mut(&number) {
                            running.weight = weight.bytes;
                        }
                        drop(queue);
                        step = match weight.bytes > memory {
                            true => JobStep::Done((weight.refuse)(memory)),
                            false => work(turn.0 == REQUESTED),
                        };
                        queue = self.lock();
                    }
                    JobStep::Weighed(weight, work) => {
                        queue.postpone(turn, number, (job.id.clone(), job.kind), weight, work);
                        break None;
                    }
                }
            };
            let Some(done) = done else {
                continue;
            };
            let running = queue.running.remove(&number);
            if running.is_some_and(|running| !running.is_given_up) {
                self.untaken.fetch_add(1, Relaxed);
                // Nobody asks any longer when everything ends.
                let _ = finish.send((job.id, done));
            }
            self.changed.notify_all();
            // Of what nobody waits for, the owner hears when all is done that may be.
            let is_wanted = queue.wanted.contains(name.as_str());
            let is_over = queue.waiting.is_empty() || queue.allowed == 0;
            let is_awaited = lane == Lane::Front || is_wanted || is_over;
            // Whoever it is by now: the owner listens only once what it begins with is in flight.
            if let Some(owner) = queue.owner.as_ref().filter(|_| is_awaited) {
                let _ = owner.send(Notice::Ready);
            }
        }
    }
}

/// Lets everything else go before this thread, as far as the system has that (`setpriority(2)`: on Linux each thread has a priority of its own).
pub(crate) fn step_back() {
    #[cfg(target_os = "linux")]
    // Without it the work is done all the same.
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), 10);
}
