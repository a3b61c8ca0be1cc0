//! Runs surveys on their own threads, so that the loop never waits for a file system.
//!
//! One survey runs at a time. After [`SURVEY_TIMEOUT`] a survey is abandoned, and its thread stays until the file system responds.

use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::source::survey::{Survey, SurveyRequest};

/// The time after which a survey is abandoned.
pub(crate) const SURVEY_TIMEOUT: Duration = Duration::from_secs(10);

/// The limit on threads of abandoned surveys. At the limit, no survey starts.
const MAX_STALLED_SURVEYS: usize = 4;

/// The survey in flight, and the abandoned surveys.
#[derive(Debug, Default)]
pub(crate) struct Surveyor {
    in_flight: Option<(Instant, Receiver<Survey>)>,
    stalled: Vec<Receiver<Survey>>,
}

impl Surveyor {
    /// Returns whether a survey cannot be started now.
    pub(crate) fn is_busy(&mut self) -> bool {
        // The thread of a survey that ended has dropped its sender.
        self.stalled
            .retain(|receiver| matches!(receiver.try_recv(), Err(TryRecvError::Empty)));
        self.in_flight.is_some() || self.stalled.len() >= MAX_STALLED_SURVEYS
    }

    /// Starts a survey, and calls `wake` when the survey has ended.
    pub(crate) fn start(&mut self, request: SurveyRequest, wake: impl FnOnce() + Send + 'static) {
        let (sender, receiver) = sync_channel(1);
        let started = thread::Builder::new()
            .name("survey".to_owned())
            .spawn(move || {
                let wake = CallOnDrop(Some(wake));
                // A send fails if the loop has dropped the receiver.
                let _ = sender.send(request.run());
                drop(sender);
                drop(wake);
            });
        // If no thread starts, the sender is dropped, which counts as a failed survey.
        drop(started);
        self.in_flight = Some((Instant::now(), receiver));
    }

    /// Returns the result of the survey in flight, or `None` while the survey still runs.
    pub(crate) fn poll(&mut self) -> Option<Result<Survey, &'static str>> {
        let (begun, receiver) = self.in_flight.take()?;
        match receiver.try_recv() {
            Ok(survey) => Some(Ok(survey)),
            Err(TryRecvError::Disconnected) => {
                Some(Err("internal error while reading the folders"))
            }
            Err(TryRecvError::Empty) if begun.elapsed() < SURVEY_TIMEOUT => {
                self.in_flight = Some((begun, receiver));
                None
            }
            Err(TryRecvError::Empty) => {
                self.stalled.push(receiver);
                Some(Err(
                    "the file system of the tenants or themes does not respond",
                ))
            }
        }
    }
}

/// Calls a function when dropped, so that a survey that panics wakes the loop, too.
struct CallOnDrop<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> Drop for CallOnDrop<F> {
    fn drop(&mut self) {
        if let Some(wake) = self.0.take() {
            wake();
        }
    }
}
