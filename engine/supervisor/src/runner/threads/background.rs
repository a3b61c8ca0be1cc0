//! The background worker: renders images, and makes the Markdown forms and the best encodings of pages, on separate threads. The worker delays neither visitors nor saved files, and leaves a processor for both if there are several.
//!
//! A job cannot be stopped. A job that exceeds [`LATE_JOB_TIME`] is logged and continues, and other jobs no longer wait for it.

mod encoding_source;
pub(crate) mod order;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tracing::{debug, warn};

use crate::jobs::shared_encodings::unpack_encodings;
use crate::runner::threads::job_pool::priority::{Priority, current_thread, lower_priority};
use crate::runner::threads::job_pool::processors;
use content::report::guard::guard;
use render::CompiledTenant;
use render::CompressTask;
use render::ImageTask;
use render::MarkdownTask;

/// The time after which a job is late, so that other jobs no longer wait for it. An image within its limits takes a second or two.
const LATE_JOB_TIME: Duration = Duration::from_secs(5);
/// The limit on jobs in flight that are not late. Each image has its layers in memory.
const MAX_JOBS: usize = 3;
/// The limit on late jobs. At this limit, no further job starts.
const MAX_LATE_JOBS: usize = 3;

/// The handle of the background threads. No further job starts after it is dropped.
#[derive(Debug)]
pub(crate) struct BackgroundWorker {
    messages: Sender<BackgroundMessage>,
    finished: Receiver<()>,
}

enum BackgroundMessage {
    /// Replaces all ordered jobs that have not started.
    Order(Vec<BackgroundJob>),
    /// The job has ended.
    Done(BackgroundJobId),
    /// The handle was dropped.
    End,
}

/// A job: one image to render, one page to convert, one body to compress, or a tenant whose best encodings another replica has made.
pub(crate) struct BackgroundJob {
    id: BackgroundJobId,
    name: String,
    work: Box<dyn FnOnce() + Send>,
}

/// The identity of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BackgroundJobId {
    /// An image, by its digest.
    Image([u8; 32]),
    /// The Markdown form of a page, by the address of the page in memory.
    Markdown(usize),
    /// The best encoding of a body, by the address of the body in memory.
    Encoding(usize),
    /// The best encodings of a tenant, by the address of its pages in memory.
    Encodings(usize),
}

impl From<ImageTask> for BackgroundJob {
    fn from(image: ImageTask) -> Self {
        Self {
            id: BackgroundJobId::Image(image.digest()),
            name: image.name(),
            work: Box::new(
                move || match guard("draw", "a picture", "pictures", || image.run()) {
                    Ok(Ok(())) => {}
                    Ok(Err(problem)) => warn!(problem, "image cannot be rendered; not retried"),
                    Err(diagnostic) => {
                        warn!(problem = diagnostic.message, "image cannot be rendered");
                    }
                },
            ),
        }
    }
}

impl From<MarkdownTask> for BackgroundJob {
    fn from(page: MarkdownTask) -> Self {
        Self {
            id: BackgroundJobId::Markdown(page.place()),
            name: page.name().to_owned(),
            work: Box::new(move || {
                if let Err(problem) = page.run() {
                    let page = page.name();
                    warn!(
                        page,
                        problem, "page cannot be converted to Markdown; not retried"
                    );
                }
            }),
        }
    }
}

impl From<CompressTask> for BackgroundJob {
    fn from(body: CompressTask) -> Self {
        Self {
            id: BackgroundJobId::Encoding(body.place()),
            name: body.name().to_owned(),
            work: Box::new(move || improve(&body)),
        }
    }
}

impl BackgroundJob {
    /// Returns a job that reuses the best encodings of another replica. A body that has none is compressed.
    pub(crate) fn reusing(compiled: Arc<CompiledTenant>, encodings: Bytes) -> Self {
        Self {
            id: BackgroundJobId::Encodings(Arc::as_ptr(&compiled).addr()),
            name: (compiled.mounts.first()).map_or_else(String::new, |placed| {
                format!("{}: content encodings", placed.mount.tenant)
            }),
            work: Box::new(move || {
                compiled
                    .cache
                    .adopt(unpack_encodings(&encodings).unwrap_or_default());
                compiled.compress_tasks().for_each(|body| improve(&body));
            }),
        }
    }
}

fn improve(body: &CompressTask) {
    let name = body.name();
    if let Err(diagnostic) = guard("compress", name, name, || body.improve()) {
        warn!(
            problem = diagnostic.message,
            "best content encoding of a page failed; serving its other content encodings"
        );
    }
}

impl BackgroundWorker {
    /// Starts the dispatcher thread.
    pub(crate) fn start() -> Self {
        let processors = processors();
        Self::with(
            processors.saturating_sub(1).clamp(1, MAX_JOBS),
            LATE_JOB_TIME,
        )
    }

    /// Starts the dispatcher thread with these limits.
    fn with(most: usize, late: Duration) -> Self {
        // Unbounded: the dispatcher never waits for a job, so that messages do not pile up.
        let (messages, received) = channel();
        // Capacity one: a second notice would say the same.
        let (finish, finished) = sync_channel(1);
        let dispatcher = Dispatcher {
            most,
            late,
            waiting: VecDeque::new(),
            begun: Vec::new(),
            done: messages.clone(),
        };
        thread::spawn(move || dispatcher.run(&received, &finish));
        Self { messages, finished }
    }

    /// Orders jobs, in place of all earlier jobs that have not started.
    pub(crate) fn order(&self, jobs: Vec<BackgroundJob>) {
        if !jobs.is_empty() {
            // The dispatcher lives as long as its handle.
            let _ = self.messages.send(BackgroundMessage::Order(jobs));
        }
    }

    /// Returns whether all ordered jobs have ended since the last call. Late jobs do not count.
    pub(crate) fn has_finished(&self) -> bool {
        self.finished.try_recv().is_ok()
    }
}

impl Drop for BackgroundWorker {
    fn drop(&mut self) {
        let _ = self.messages.send(BackgroundMessage::End);
    }
}

/// The state of the dispatcher thread, which starts jobs.
struct Dispatcher {
    most: usize,
    late: Duration,
    waiting: VecDeque<BackgroundJob>,
    begun: Vec<StartedJob>,
    done: Sender<BackgroundMessage>,
}

/// A job that is in flight.
struct StartedJob {
    id: BackgroundJobId,
    name: String,
    since: Instant,
    is_late: bool,
}

impl Dispatcher {
    /// Handles messages until the handle is dropped.
    fn run(mut self, messages: &Receiver<BackgroundMessage>, finish: &SyncSender<()>) {
        // Whether a job has ended since the last notice.
        let mut is_new = false;
        loop {
            match messages.recv_timeout(self.time_until_late()) {
                Ok(BackgroundMessage::Order(jobs)) => {
                    let mut waiting = VecDeque::from(jobs);
                    waiting.retain(|job| self.begun.iter().all(|begun| begun.id != job.id));
                    self.waiting = waiting;
                }
                Ok(BackgroundMessage::Done(id)) => {
                    self.begun.retain(|begun| begun.id != id);
                    is_new = true;
                }
                Err(RecvTimeoutError::Timeout) => self.mark_late_jobs(),
                Ok(BackgroundMessage::End) | Err(RecvTimeoutError::Disconnected) => return,
            }
            self.begin();
            if is_new && self.waiting.is_empty() && self.in_time().next().is_none() {
                is_new = false;
                debug!("background jobs done");
                // The channel is full if the last notice was not received yet, and closed during shutdown.
                let _ = finish.try_send(());
            }
        }
    }

    /// Returns the jobs in flight that are not late.
    fn in_time(&self) -> impl Iterator<Item = &StartedJob> {
        self.begun.iter().filter(|begun| !begun.is_late)
    }

    /// Returns the time until the next job in flight becomes late.
    fn time_until_late(&self) -> Duration {
        let left = self
            .in_time()
            .map(|begun| self.late.saturating_sub(begun.since.elapsed()));
        left.min().unwrap_or(Duration::from_secs(3600))
    }

    /// Marks and logs the jobs that have become late.
    fn mark_late_jobs(&mut self) {
        for begun in &mut self.begun {
            if !begun.is_late && begun.since.elapsed() >= self.late {
                begun.is_late = true;
                warn!(
                    job = begun.name,
                    "background job exceeds {} s; other jobs no longer wait for it",
                    self.late.as_secs()
                );
            }
        }
    }

    /// Starts as many jobs as may be in flight at the same time.
    fn begin(&mut self) {
        let mut in_time = self.in_time().count();
        let late = self.begun.len() - in_time;
        while in_time < self.most && late < MAX_LATE_JOBS {
            let Some(BackgroundJob { id, name, work }) = self.waiting.pop_front() else {
                return;
            };
            let done = DoneOnDrop(self.done.clone(), id);
            let thread = thread::Builder::new().spawn(move || {
                let _done = done;
                lower_priority(current_thread(), Priority::Background);
                work();
            });
            match thread {
                Ok(_) => {
                    in_time += 1;
                    self.begun.push(StartedJob {
                        id,
                        name,
                        since: Instant::now(),
                        is_late: false,
                    });
                }
                Err(error) => {
                    warn!(job = name, %error, "background thread cannot start; job dropped")
                }
            }
        }
    }
}

/// Reports the end of a job when dropped, even after a panic.
struct DoneOnDrop(Sender<BackgroundMessage>, BackgroundJobId);

impl Drop for DoneOnDrop {
    fn drop(&mut self) {
        let _ = self.0.send(BackgroundMessage::Done(self.1));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use super::*;

    /// The time after which a job of these tests is late.
    const LATE_AFTER: Duration = Duration::from_millis(20);
    /// The time limit for each step of a test.
    const TEST_TIMEOUT: Duration = Duration::from_secs(30);

    fn job(number: u8, draw: impl FnOnce() + Send + 'static) -> BackgroundJob {
        BackgroundJob {
            id: BackgroundJobId::Image([number; 32]),
            name: format!("picture {number}"),
            work: Box::new(draw),
        }
    }

    fn wait(mut condition: impl FnMut() -> bool) {
        let begin = Instant::now();
        while !condition() {
            assert!(begin.elapsed() < TEST_TIMEOUT, "the condition never holds");
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn late_job_does_not_delay_other_jobs_and_still_ends() {
        let worker = BackgroundWorker::with(1, LATE_AFTER);
        let drawn = Arc::new(AtomicUsize::new(0));
        let count = |number| {
            let drawn = Arc::clone(&drawn);
            job(number, move || {
                drawn.fetch_add(1, SeqCst);
            })
        };
        let (release, held) = channel::<()>();
        let slow = Arc::clone(&drawn);
        let slow = job(1, move || {
            let _ = held.recv();
            slow.fetch_add(100, SeqCst);
        });
        worker.order(vec![slow, count(2), count(3)]);
        wait(|| drawn.load(SeqCst) == 2);
        wait(|| worker.has_finished());
        // A job in flight is not started again.
        worker.order(vec![count(1), count(4)]);
        wait(|| drawn.load(SeqCst) == 3);
        release.send(()).expect("a thread that waits");
        wait(|| drawn.load(SeqCst) == 103);
        wait(|| worker.has_finished());
    }

    #[test]
    fn number_of_late_jobs_is_limited() {
        let worker = BackgroundWorker::with(2, LATE_AFTER);
        let begun = Arc::new(AtomicUsize::new(0));
        let (release, held) = channel::<()>();
        let held = Arc::new(std::sync::Mutex::new(held));
        let jobs = (0..20).map(|number| {
            let (begun, held) = (Arc::clone(&begun), Arc::clone(&held));
            job(number, move || {
                begun.fetch_add(1, SeqCst);
                let held = held
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner);
                let _ = held.recv();
            })
        });
        worker.order(jobs.collect());
        wait(|| begun.load(SeqCst) > MAX_LATE_JOBS);
        thread::sleep(LATE_AFTER * 10);
        let most = begun.load(SeqCst);
        assert!(most <= MAX_LATE_JOBS + 2, "{most} threads");
        drop(release);
        wait(|| begun.load(SeqCst) == 20);
        wait(|| worker.has_finished());
    }

    #[test]
    fn job_that_panics_does_not_stop_other_jobs() {
        let worker = BackgroundWorker::with(1, TEST_TIMEOUT);
        let (sender, receiver) = channel();
        worker.order(vec![
            job(1, || panic!("the test makes this job panic")),
            job(2, move || sender.send(()).unwrap_or_default()),
        ]);
        receiver.recv_timeout(TEST_TIMEOUT).expect("the other job");
    }
}
