//! Threads that read, check and compile tenants, so that nobody waits for the slowest.
//!
//! Every changed tenant is handed over as a [`Job`]. Whoever handed it over waits for those that are done soon and takes the others when they are.
//! As many threads as there are processors work on jobs that began within [`SOON`], and four times as many where a great number of folders is to be read. A job that takes longer keeps its thread, and another thread is started for what waits: a tenant that takes long, or for ever, holds up nobody else.
//! A job may have a [`Watchdog`], which gives it up and says what comes of it instead. Its thread is lost if the work never ends; what it brings later is dropped.
//! Of what waits, what came with the fewest others goes first: a saved page is not kept waiting by a new theme for a thousand tenants.
//! What is done in the background has threads of its own, which step back where there is much to do, and nobody waits for it; a request for its tenant brings it to the front ([`Workers::hurry`]).

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Bound;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
    /// Whether nobody waits for it.
    pub(super) is_background: bool,
    /// Is told whether somebody waits for it.
    pub(super) work: Box<dyn FnOnce(bool) -> T + Send>,
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
    /// By the number of jobs that came together, [`BACKGROUND`] for what nobody waits for, then in their order.
    waiting: BTreeMap<Turn, Job<T>>,
    /// What is begun only when somebody asks.
    asleep: BTreeMap<TenantId, Job<T>>,
    /// The tenants that somebody asked for while nothing of theirs could be brought to the front.
    wanted: BTreeSet<String>,
    /// When each of those that wait has its turn.
    turns: BTreeMap<TenantId, Vec<(Kind, Turn)>>,
    /// What is under way, by its number.
    running: BTreeMap<u64, Running<T>>,
    /// How many jobs of the background may still be begun.
    allowed: usize,
    /// By [`Lane`].
    threads: [usize; 2],
    next: u64,
    finish: Sender<(TenantId, T)>,
    /// Who is told whenever something is done.
    owner: Option<Sender<Notice>>,
    is_over: bool,
}

/// When a job has its turn: the least comes first.
type Turn = (usize, u64);

/// The turns of what a request waits for.
const HURRIED: usize = 0;

/// The turns of what nobody waits for.
const BACKGROUND: usize = usize::MAX;

/// Which of the two kinds of threads does a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lane {
    /// What somebody waits for.
    Front,
    /// What nobody waits for.
    Back,
}

impl Lane {
    const BOTH: [Self; 2] = [Self::Front, Self::Back];

    /// The turns of its jobs.
    const fn turns(self) -> (Bound<Turn>, Bound<Turn>) {
        let first = (BACKGROUND, 0);
        match self {
            Self::Front => (Bound::Unbounded, Bound::Excluded(first)),
            Self::Back => (Bound::Included(first), Bound::Unbounded),
        }
    }
}

/// With more jobs than this in the background, their threads leave the processors to everything else; and with more folders than this to be read, more of them are read at once than there are processors.
const MANY: usize = 64;
/// So many folders for each processor: those who read wait for the disk most of the time, until the system has it all in memory.
const READERS: usize = 4;

struct Running<T> {
    id: TenantId,
    lane: Lane,
    is_background: bool,
    begin: Instant,
    watchdog: Option<Watchdog<T>>,
    is_given_up: bool,
}

impl<T: Send + 'static> Workers<T> {
    pub(super) fn new() -> Self {
        let (finish, done) = channel();
        let queue = Queue {
            waiting: BTreeMap::new(),
            asleep: BTreeMap::new(),
            wanted: BTreeSet::new(),
            turns: BTreeMap::new(),
            running: BTreeMap::new(),
            allowed: usize::MAX,
            threads: [0; 2],
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
            queue.remove(&job.id, Some(job.kind));
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
    pub(super) fn sleep(&self, job: Job<T>) -> bool {
        let mut queue = self.shared.lock();
        let is_wanted = queue.wanted.remove(job.id.as_str());
        if is_wanted {
            queue.insert(HURRIED, job);
            self.shared.staff(&mut queue);
            self.shared.changed.notify_all();
        } else {
            queue.asleep.insert(job.id.clone(), job);
        }
        !is_wanted
    }

    /// Drops what is to be done for a tenant when somebody asks.
    pub(super) fn forget(&self, id: &TenantId) {
        let mut queue = self.shared.lock();
        queue.asleep.remove(id);
        queue.wanted.remove(id.as_str());
    }

    /// Brings what is to be done in the background for a tenant, or when somebody asks, to the front, for whoever calls the result with its id.
    pub(super) fn hurry(&self) -> impl Fn(&str) + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        move |id| {
            let mut queue = shared.lock();
            let asleep = queue.asleep.remove(id);
            let known = queue.turns.get_key_value(id).map(|(id, _)| id.clone());
            let Some(id) = known.or_else(|| Some(asleep.as_ref()?.id.clone())) else {
                queue.wanted.insert(id.to_owned());
                return;
            };
            let waiting = queue.remove(&id, None);
            for job in asleep.into_iter().chain(waiting) {
                queue.insert(HURRIED, job);
            }
            shared.staff(&mut queue);
            shared.changed.notify_all();
        }
    }

    /// Lets no more than so many jobs of the background begin, until this is called again. At first there is no limit.
    pub(super) fn allow(&self, jobs: usize) {
        self.shared.lock().allowed = jobs;
        self.shared.changed.notify_all();
    }

    /// Whether what waits in the background may not begin.
    pub(super) fn is_held(&self) -> bool {
        let queue = self.shared.lock();
        queue.allowed == 0 && queue.waiting.range(Lane::Back.turns()).next().is_some()
    }

    /// Lets the owner look what there is to do, for whoever calls the result.
    pub(super) fn wake(&self) -> impl Fn() + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        move || {
            if let Some(owner) = &shared.lock().owner {
                // Nobody listens any longer when everything ends.
                let _ = owner.send(Notice::Ready);
            }
        }
    }

    /// Whether something is still to be done in the background.
    pub(super) fn has_background(&self) -> bool {
        let queue = self.shared.lock();
        let mut running = queue.running.values();
        let last = queue.waiting.last_key_value();
        last.is_some_and(|((first, _), _)| *first == BACKGROUND)
            || running.any(|running| running.is_background && !running.is_given_up)
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
                    Wait::All => !queue.waiting.is_empty() || queue.not_given_up().next().is_some(),
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
        for lane in Lane::BOTH {
            loop {
                let most = queue.most(lane);
                let (threads, old) = (queue.threads[lane as usize], queue.old(lane));
                let waiting = queue.waiting.range(lane.turns()).take(most).count();
                let wanted = most.min(waiting + queue.in_lane(lane).count() - old);
                if threads - old >= wanted || threads >= most + ASIDE + queue.given_up(lane) {
                    break;
                }
                let shared = Arc::clone(self);
                let steps_back = lane == Lane::Back && queue.waiting.len() > MANY;
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
            let Some((turn, job)) = queue.take(lane) else {
                queue = self
                    .changed
                    .wait(queue)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let number = queue.number();
            let running = Running {
                id: job.id.clone(),
                lane,
                is_background: job.is_background,
                begin: Instant::now(),
                watchdog: job.watchdog,
                is_given_up: false,
            };
            queue.running.insert(number, running);
            let (finish, owner) = (queue.finish.clone(), queue.owner.clone());
            let name = job.id.clone();
            drop(queue);
            let done = (job.work)(turn.0 == HURRIED);
            queue = self.lock();
            let running = queue.running.remove(&number);
            if running.is_some_and(|running| !running.is_given_up) {
                // Nobody asks any longer when everything ends.
                let _ = finish.send((job.id, done));
            }
            self.changed.notify_all();
            // Of what nobody waits for, the owner hears when all is done that may be.
            let is_wanted = queue.wanted.contains(name.as_str());
            let is_over = queue.waiting.is_empty() || queue.allowed == 0;
            let is_awaited = lane == Lane::Front || is_wanted || is_over;
            if let Some(owner) = owner.filter(|_| is_awaited) {
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

    /// How many threads work side by side.
    fn most(&self, lane: Lane) -> usize {
        let next = self.waiting.first_key_value();
        let is_reading = next.is_some_and(|(_, job)| job.kind == Kind::Read);
        match lane == Lane::Front && is_reading && self.waiting.len() > MANY {
            true => processors() * READERS,
            false => processors(),
        }
    }

    /// What is under way on threads of a kind.
    fn in_lane(&self, lane: Lane) -> impl Iterator<Item = &Running<T>> {
        let running = self.running.values();
        running.filter(move |running| running.lane == lane)
    }

    /// How many of them have been under way for longer than [`SOON`].
    fn old(&self, lane: Lane) -> usize {
        let running = self.in_lane(lane);
        running
            .filter(|running| running.begin.elapsed() > SOON)
            .count()
    }

    /// Adds a job behind those that have as few others with them.
    fn insert(&mut self, first: usize, job: Job<T>) {
        let turn = (first, self.number());
        let turns = self.turns.entry(job.id.clone()).or_default();
        turns.push((job.kind, turn));
        self.waiting.insert(turn, job);
    }

    /// Takes the jobs of a tenant out, of one kind or of all.
    fn remove(&mut self, id: &TenantId, kind: Option<Kind>) -> Vec<Job<T>> {
        let Some(turns) = self.turns.get_mut(id) else {
            return Vec::new();
        };
        let is_meant = |(own, _): &mut (Kind, Turn)| kind.is_none_or(|kind| kind == *own);
        let removed: Vec<_> = turns.extract_if(.., is_meant).collect();
        if turns.is_empty() {
            self.turns.remove(id);
        }
        let jobs = removed
            .iter()
            .filter_map(|(_, turn)| self.waiting.remove(turn));
        jobs.collect()
    }

    /// What is under way and not given up.
    fn not_given_up(&self) -> impl Iterator<Item = &Running<T>> {
        let running = self.running.values();
        running.filter(|running| !running.is_given_up)
    }

    fn given_up(&self, lane: Lane) -> usize {
        self.in_lane(lane)
            .filter(|running| running.is_given_up)
            .count()
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
        let mut waiting = self.waiting.range(Lane::Front.turns());
        let can_begin = waiting.any(|(_, job)| !job.is_background && self.may_begin(job));
        let front = self.in_lane(Lane::Front).count();
        let mut running = self.not_given_up();
        running.any(|running| !running.is_background && running.begin.elapsed() <= time)
            || (can_begin && self.threads[Lane::Front as usize] > front)
    }

    fn may_begin(&self, job: &Job<T>) -> bool {
        let running = self.not_given_up();
        running.filter(|running| running.id == job.id).count() < OF_ONE_TENANT
    }

    fn take(&mut self, lane: Lane) -> Option<(Turn, Job<T>)> {
        if lane == Lane::Back && self.allowed == 0 {
            return None;
        }
        let mut waiting = self.waiting.range(lane.turns());
        let turn = waiting.find_map(|(turn, job)| self.may_begin(job).then_some(*turn))?;
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

/// Lets everything else go before this thread, as far as the system has that (`setpriority(2)`: on Linux each thread has a priority of its own).
pub(super) fn step_back() {
    #[cfg(target_os = "linux")]
    // Without it the work is done all the same.
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), 10);
}

/// How many threads work side by side. To find that out takes as long as some jobs do, so it is asked once.
pub(super) fn processors() -> usize {
    static PROCESSORS: LazyLock<usize> =
        LazyLock::new(|| thread::available_parallelism().map_or(1, usize::from));
    *PROCESSORS
}
