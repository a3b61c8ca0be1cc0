//! Compiles tenants that take long on threads of their own, one tenant after the other: nobody else's change waits for them.
//!
//! Until it is done the tenant's last state is served. A change that comes in the meantime makes what is under way obsolete, and is compiled next.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rayon::ThreadPoolBuilder;

use super::tenant::{MadeFrom, Tenant};
use crate::compile::Compiled;
use crate::name::TenantId;
use crate::report::Report;
use crate::watch::Notice;

/// Renderings, pages times addresses, from which a tenant takes long.
const MANY: usize = 500;
/// How long the last compilation took when a tenant takes long, whatever it has.
const LONG: Duration = Duration::from_secs(1);

/// Whether a tenant is better compiled here than while all others wait.
pub(super) fn is_slow(tenant: &Tenant, made_from: &MadeFrom) -> bool {
    tenant.compiled_in >= LONG || made_from.site.pages.len() * made_from.addresses.len() >= MANY
}

/// A tenant to compile.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) id: TenantId,
    pub(super) made_from: MadeFrom,
}

/// A tenant that was compiled.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) job: Job,
    pub(super) compiled: Option<Compiled>,
    pub(super) report: Report,
    pub(super) took: Duration,
}

/// The threads, for as long as this lives.
#[derive(Debug)]
pub(super) struct SlowLane {
    jobs: Sender<Job>,
    done: Receiver<Done>,
}

impl SlowLane {
    /// Begins to wait for tenants. `owner` is told whenever one is done.
    pub(super) fn start(owner: Sender<Notice>) -> Self {
        let (jobs, to_do) = channel();
        let (finish, done) = channel();
        thread::spawn(move || work(&to_do, &finish, &owner));
        Self { jobs, done }
    }

    /// For handing over tenants.
    pub(super) fn jobs(&self) -> Sender<Job> {
        self.jobs.clone()
    }

    /// What was done since this was last asked.
    pub(super) fn done(&self) -> Vec<Done> {
        self.done.try_iter().collect()
    }
}

fn work(jobs: &Receiver<Job>, finish: &Sender<Done>, owner: &Sender<Notice>) {
    // The others' threads take up what is new only when they are through with what they have.
    let pool = ThreadPoolBuilder::new().build().ok();
    let mut waiting = BTreeMap::new();
    while let Ok(job) = jobs.recv() {
        waiting.insert(job.id.clone(), job);
        while let Some((_, job)) = waiting.pop_first() {
            let begin = Instant::now();
            let compile = || job.made_from.compile();
            let (compiled, report) = match &pool {
                Some(pool) => pool.install(compile),
                None => compile(),
            };
            let done = Done {
                job,
                compiled,
                report,
                took: begin.elapsed(),
            };
            // Nobody waits for it any longer when everything ends.
            if finish.send(done).is_err() || owner.send(Notice::Ready).is_err() {
                return;
            }
            waiting.extend(jobs.try_iter().map(|job| (job.id.clone(), job)));
        }
    }
}
