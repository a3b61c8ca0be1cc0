//! Jobs that read the pinned release of a tenant, and write pins to disk.

use std::sync::Arc;

use content::name::TenantId;
use release::store::Store;

use crate::jobs::outcome::JobOutcome;
use crate::runner::threads::job_pool::{Job, JobKind, JobStep, JobWork};

/// Returns a job that reads the pinned release of a tenant.
pub(crate) fn load(store: &Arc<Store>, id: TenantId, number: u64) -> Job<JobOutcome> {
    let (store, name) = (Arc::clone(store), id.clone());
    let work = move |_| {
        let release = store.load(name.as_str(), number);
        JobStep::Done(JobOutcome::Release(release.map(Box::new)))
    };
    job(id, Box::new(work))
}

/// Returns a job that writes a pin to disk, or removes the pin (`None`).
pub(crate) fn write(store: &Arc<Store>, id: TenantId, to: Option<u64>) -> Job<JobOutcome> {
    let (store, name) = (Arc::clone(store), id.clone());
    let work = move |_| {
        let result = match to {
            Some(number) => store.pin(name.as_str(), number),
            None => store.unpin(name.as_str()),
        };
        let problem = result.err().map(|error| error.to_string());
        JobStep::Done(JobOutcome::PinWritten(problem))
    };
    job(id, Box::new(work))
}

fn job(id: TenantId, work: JobWork<JobOutcome>) -> Job<JobOutcome> {
    Job {
        id,
        kind: JobKind::Release,
        is_background: false,
        weight: None,
        work,
        watchdog: None,
        copy: None,
    }
}
