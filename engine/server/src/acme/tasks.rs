//! The orders and renewal queries in flight, each with its task.
//!
//! A task that panics ends only its own job.
//!
//! **Invariant:** does not know the work of a job.

use std::collections::HashMap;
use std::future::Future;

use tokio::task::{Id, JoinError, JoinSet};

/// Running jobs, described by `J`, each with a result `R`.
#[derive(Debug)]
pub(super) struct JobSet<J, R> {
    tasks: JoinSet<R>,
    /// By task. The only record of the jobs in flight, so no second count can differ.
    jobs: HashMap<Id, J>,
}

impl<J, R: Send + 'static> JobSet<J, R> {
    pub(super) fn new() -> Self {
        Self {
            tasks: JoinSet::new(),
            jobs: HashMap::new(),
        }
    }

    /// Returns the jobs in flight.
    pub(super) fn iter(&self) -> impl Iterator<Item = &J> {
        self.jobs.values()
    }

    /// Starts a job.
    pub(super) fn spawn(&mut self, job: J, work: impl Future<Output = R> + Send + 'static) {
        let id = self.tasks.spawn(work).id();
        self.jobs.insert(id, job);
    }

    /// Waits for the next job to end. Returns `None` if no job is in flight. Dropping the future loses no result.
    pub(super) async fn next(&mut self) -> Option<(J, Result<R, JoinError>)> {
        loop {
            let (id, result) = match self.tasks.join_next_with_id().await? {
                Ok((id, result)) => (id, Ok(result)),
                Err(error) => (error.id(), Err(error)),
            };
            if let Some(job) = self.jobs.remove(&id) {
                return Some((job, result));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn panicked_job_ends_no_other_job() {
        let mut jobs = JobSet::new();
        jobs.spawn("panics", async { panic!("a fault of this program") });
        let (sender, receiver) = tokio::sync::oneshot::channel::<u8>();
        jobs.spawn("waits", async move { receiver.await.unwrap_or_default() });
        let (job, result) = jobs.next().await.unwrap();
        assert_eq!(job, "panics");
        assert!(result.unwrap_err().is_panic());
        // The other job continues, and a new job can start.
        assert_eq!(jobs.iter().collect::<Vec<_>>(), [&"waits"]);
        jobs.spawn("begins", async { 2 });
        let (job, result) = jobs.next().await.unwrap();
        assert_eq!((job, result.unwrap()), ("begins", 2));
        sender.send(1).unwrap();
        let (job, result) = jobs.next().await.unwrap();
        assert_eq!((job, result.unwrap()), ("waits", 1));
        assert!(jobs.next().await.is_none() && jobs.iter().count() == 0);
    }
}
