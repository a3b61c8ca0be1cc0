//! Threads that read, check and compile tenants, so that nobody waits for the slowest.
//!
//! Every changed tenant is handed over as a [`Job`]. Whoever handed it over waits for those that are done soon and takes the others when they are.
//! As many threads as there are processors work on jobs that began within [`SOON`]. A job that takes longer keeps its thread, and another thread is started for what waits: a tenant that takes long, or for ever, holds up nobody else.
//! A job may have a [`Watchdog`], which gives it up and says what comes of it instead. Its thread is lost if the work never ends; what it brings later is dropped.
//! Of what waits, what came with the fewest others goes first: a saved page is not kept waiting by a new theme for a thousand tenants.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tracing::error;

use crate::watch::Notice;
use content::name::TenantId;

/// How long a job may take to be waited for, once visitors are served.
pub(super) const SOON: Duration = Duration::from_millis(300);
/// Threads beyond the number of processors, at most: so many tenants may take long side by side.
const ASIDE: usize = 16;
/// How often a tenant may be worked on at once: what never ends must not keep its own correction waiting.
const OF_ONE_TENANT: usize = 2;

/// What is done for a tenant. Of one kind, only what was handed over last is begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Its folder is read and checked.
    Read,
    /// It is compiled.
    Compile,
}

/// Work for one tenant; it does not panic.
pub(super) struct Job<T> {
    pub(super) id: TenantId,
    pub(super) kind: Kind,
    pub(super) work: Box<dyn FnOnce() -> T + Send>,
    pub(super) watchdog: Option<Watchdog<T>>,
}

/// Asked now and then while a job is under way. What it returns is the result of a job that is given up.
pub(super) type Watchdog<T> = Box<dyn FnMut() -> Option<T> + Send>;

/// What is waited for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wait {
    /// Everything.
    All,
    /// Everything that is done within this time of its beginning.
    Each(Duration),
    /// Everything that is done [`SOON`] after its beginning, and nothing after this moment.
    Until(Instant),
}

/// The threads, for as long as this lives.
pub(super) struct Workers<T> {
    shared: Arc<Shared<T>>,
    done: Receiver<(TenantId, T)>,
}

impl<T> fmt::Debug for Workers<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Workers").finish_non_exhaustive()
    }
}

struct Shared<T> {
    queue: Mutex<Queue<T>>,
    changed: Condvar,
}

struct Queue<T> {
    /// By the number of jobs that came together, then in their order.
    waiting: BTreeMap<(usize, u64), Job<T>>,
    /// What is under way, by its number.
    running: BTreeMap<u64, Running<T>>,
    threads: usize,
    next: u64,
    finish: Sender<(TenantId, T)>,
    /// Who is told whenever something is done.
    owner: Option<Sender<Notice>>,
    is_over: bool,
}

struct Running<T> {
    id: TenantId,
    begin: Instant,
    watchdog: Option<Watchdog<T>>,
    is_given_up: bool,
}

impl<T: Send + 'static> Workers<T> {
    pub(super) fn new() -> Self {
        let (finish, done) = channel();
        let queue = Queue {
            waiting: BTreeMap::new(),
            running: BTreeMap::new(),
            threads: 0,
            next: 0,
            finish,
            owner: None,
            is_over: false,
        };
        let shared = Arc::new(Shared {
            queue: Mutex::new(queue),
            changed: Condvar::new(),
        });
        Self { shared, done }
    }

    /// Tells `owner` from now on whenever something is done.
    pub(super) fn notify(&self, owner: Sender<Notice>) {
        self.shared.lock().owner = Some(owner);
    }

    /// Hands over jobs that belong together.
    pub(super) fn hand_over(&self, jobs: Vec<Job<T>>) {
        let together = jobs.len();
        let mut queue = self.shared.lock();
        for job in jobs {
            queue
                .waiting
                .retain(|_, old| (&old.id, old.kind) != (&job.id, job.kind));
            let number = queue.number();
            queue.waiting.insert((together, number), job);
        }
        self.shared.staff(&mut queue);
        self.shared.changed.notify_all();
    }

    /// What is done next; `None` when there is nothing to wait for.
    pub(super) fn next(&self, wait: Wait) -> Option<(TenantId, T)> {
        loop {
            if let Ok(done) = self.done.try_recv() {
                return Some(done);
            }
            let (is_worth_it, given_up) = {
                let mut queue = self.shared.lock();
                let given_up = queue.give_up();
                self.shared.staff(&mut queue);
                let is_worth_it = match wait {
                    Wait::All => !queue.waiting.is_empty() || queue.waited_for().next().is_some(),
                    Wait::Each(time) => queue.has_younger(time),
                    Wait::Until(end) => Instant::now() < end && queue.has_younger(SOON),
                };
                (is_worth_it, given_up)
            };
            if let Some((id, given_up)) = given_up {
                error!(tenant = %id, "a tenant's work does not end; it is given up with its thread");
                return Some((id, given_up));
            }
            if !is_worth_it {
                // Something may have come between the two looks.
                return self.done.try_recv().ok();
            }
            match self.done.recv_timeout(SOON / 10) {
                Ok(done) => return Some(done),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }
}

impl<T> Drop for Workers<T> {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.changed.notify_all();
    }
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, Queue<T>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Send + 'static> Shared<T> {
    /// Starts threads for what waits, unless enough of them are at work on what has just begun.
    fn staff(self: &Arc<Self>, queue: &mut Queue<T>) {
        let most = processors();
        while queue.threads - queue.old()
            < most.min(queue.waiting.len() + queue.running.len() - queue.old())
            && queue.threads < most + ASIDE + queue.given_up()
        {
            let shared = Arc::clone(self);
            let started = thread::Builder::new()
                .name("tenants".to_owned())
                .spawn(move || shared.work());
            // Without another thread, those that are there go on.
            if started.is_err() {
                return;
            }
            queue.threads += 1;
        }
    }

    fn work(&self) {
        let mut queue = self.lock();
        loop {
            let is_spare = queue.threads > processors() + queue.old();
            if queue.is_over || is_spare {
                queue.threads -= 1;
                return;
            }
            let Some(job) = queue.take() else {
                queue = self
                    .changed
                    .wait(queue)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let number = queue.number();
            let running = Running {
                id: job.id.clone(),
                begin: Instant::now(),
                watchdog: job.watchdog,
                is_given_up: false,
            };
            queue.running.insert(number, running);
            let (finish, owner) = (queue.finish.clone(), queue.owner.clone());
            drop(queue);
            let done = (job.work)();
            queue = self.lock();
            let running = queue.running.remove(&number);
            if running.is_some_and(|running| !running.is_given_up) {
                // Nobody asks any longer when everything ends.
                let _ = finish.send((job.id, done));
            }
            self.changed.notify_all();
            if let Some(owner) = owner {
                let _ = owner.send(Notice::Ready);
            }
        }
    }
}

impl<T> Queue<T> {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// How many have been under way for longer than [`SOON`].
    fn old(&self) -> usize {
        let running = self.running.values();
        let old = running.filter(|running| running.begin.elapsed() > SOON);
        old.count()
    }

    /// What is under way and not given up.
    fn waited_for(&self) -> impl Iterator<Item = &Running<T>> {
        let running = self.running.values();
        running.filter(|running| !running.is_given_up)
    }

    fn given_up(&self) -> usize {
        self.running.len() - self.waited_for().count()
    }

    /// Gives up a job whose watchdog says so.
    fn give_up(&mut self) -> Option<(TenantId, T)> {
        let mut running = self.running.values_mut();
        running.find_map(|running| {
            let done = running.watchdog.as_mut()?()?;
            running.watchdog = None;
            running.is_given_up = true;
            Some((running.id.clone(), done))
        })
    }

    /// Whether something began within this time, or is about to begin.
    fn has_younger(&self, time: Duration) -> bool {
        let can_begin = self.waiting.values().any(|job| self.may_begin(job));
        let mut running = self.waited_for();
        running.any(|running| running.begin.elapsed() <= time)
            || (can_begin && self.threads > self.running.len())
    }

    fn may_begin(&self, job: &Job<T>) -> bool {
        let running = self.waited_for();
        running.filter(|running| running.id == job.id).count() < OF_ONE_TENANT
    }

    fn take(&mut self) -> Option<Job<T>> {
        let mut waiting = self.waiting.iter();
        let key = waiting.find_map(|(key, job)| self.may_begin(job).then_some(*key))?;
        self.waiting.remove(&key)
    }
}

/// How many threads work side by side.
pub(super) fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(name: &str, work: impl FnOnce() -> usize + Send + 'static) -> Job<usize> {
        Job {
            id: TenantId::new(name).expect("an id"),
            kind: Kind::Compile,
            work: Box::new(work),
            watchdog: None,
        }
    }

    fn all(workers: &Workers<usize>, wait: Wait) -> Vec<usize> {
        let mut done: Vec<usize> =
            std::iter::from_fn(|| workers.next(wait).map(|done| done.1)).collect();
        done.sort_unstable();
        done
    }

    #[test]
    fn what_never_ends_holds_up_nobody_and_its_correction_neither() {
        let workers = Workers::new();
        let (end, over) = channel::<()>();
        let over = Arc::new(Mutex::new(over));
        let endless = || {
            let over = Arc::clone(&over);
            move || {
                let _ = over.lock().expect("a lock").recv();
                0
            }
        };
        let count = processors() + 2;
        let names = (0..count).map(|number| job(&format!("slow-{number}"), endless()));
        let quick = (1..100).map(|number| job(&format!("quick-{number}"), move || number));
        workers.hand_over(names.chain(quick).collect());
        let quick: Vec<usize> = (1..100).collect();
        assert_eq!(all(&workers, Wait::Each(SOON)), quick);
        workers.hand_over(vec![job("slow-0", || 7)]);
        assert_eq!(all(&workers, Wait::Each(SOON)), [7]);
        drop(end);
        assert_eq!(all(&workers, Wait::All), vec![0; count]);
    }

    #[test]
    fn what_takes_too_long_is_given_up_and_what_it_brings_later_is_dropped() {
        let workers = Workers::new();
        let (end, over) = channel::<()>();
        let over = Arc::new(Mutex::new(over));
        for _ in 0..3 {
            // More than may be worked on at once for one tenant.
            let over = Arc::clone(&over);
            let endless = job("endless", move || {
                let _ = over.lock().expect("a lock").recv();
                1
            });
            let begun = Instant::now();
            workers.hand_over(vec![Job {
                watchdog: Some(Box::new(move || (begun.elapsed() > SOON).then_some(2))),
                ..endless
            }]);
            assert_eq!(all(&workers, Wait::All), [2]);
        }
        workers.hand_over(vec![job("endless", || 7)]);
        assert_eq!(all(&workers, Wait::All), [7]);
        drop(end);
        while !workers.shared.lock().running.is_empty() {
            thread::yield_now();
        }
        assert!(all(&workers, Wait::All).is_empty());
    }

    #[test]
    fn of_what_waits_for_one_tenant_only_the_newest_is_begun() {
        let workers = Workers::new();
        let (begun, begins) = channel();
        let (open, gate) = channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        let busy = (0..processors()).map(|number| {
            let (begun, gate) = (begun.clone(), Arc::clone(&gate));
            job(&format!("busy-{number}"), move || {
                begun.send(()).expect("a test");
                let _ = gate.lock().expect("a lock").recv();
                0
            })
        });
        workers.hand_over(busy.collect());
        (0..processors()).for_each(|_| begins.recv().expect("a busy thread"));
        let one = (1..10).map(|number| job("one", move || number));
        workers.hand_over(one.collect());
        drop(open);
        let done = all(&workers, Wait::All);
        assert_eq!(done.last(), Some(&9));
        assert_eq!(done.len(), processors() + 1, "{done:?}");
    }
}
