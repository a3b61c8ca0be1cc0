//! The commands of operators that were started and have no result yet.

use std::collections::BTreeMap;
use std::sync::mpsc::Sender;

use server::admin::control::ControlError;
use tracing::info;

use crate::model::event::{Reply, Ticket};

/// The commands that were started and have no result yet.
#[derive(Debug, Default)]
pub(crate) struct Commands {
    last: Ticket,
    /// The commands that wait until their pin is written to disk.
    pins: BTreeMap<Ticket, PinCommand>,
    /// The error of the last write of a pin, if it failed.
    problem: Option<String>,
    /// The callers that wait until all new data is passed to the store.
    flushes: Vec<Sender<()>>,
}

/// A command that pins a release, or removes the pin (`None`).
#[derive(Debug)]
pub(crate) struct PinCommand {
    pub(crate) tenant: String,
    pub(crate) release: Option<u64>,
    pub(crate) reply: Sender<Result<(), ControlError>>,
}

impl Commands {
    /// Adds a command, and returns its ticket.
    pub(crate) fn add(&mut self, command: PinCommand) -> Ticket {
        self.last += 1;
        self.pins.insert(self.last, command);
        self.last
    }

    /// Records the error of the last write of a pin, or `None` if it succeeded.
    pub(crate) fn set_problem(&mut self, problem: Option<String>) {
        self.problem = problem;
    }

    /// Sends the result of a command.
    pub(crate) fn reply(&mut self, ticket: Ticket, reply: Reply) {
        let Some(command) = self.pins.remove(&ticket) else {
            return;
        };
        let PinCommand {
            tenant,
            release,
            reply: sender,
        } = command;
        let failed = |problem: &str| Err(ControlError::Failed(problem.to_owned()));
        let result = match reply {
            Reply::Done => {
                match release {
                    Some(release) => info!(
                        tenant,
                        release, "rolled back; changes of the folder are not published"
                    ),
                    None => info!(tenant, "resumed; changes of the folder are published again"),
                }
                Ok(())
            }
            Reply::UnknownTenant => Err(ControlError::UnknownTenant(tenant)),
            Reply::Busy => failed(
                "nothing was changed: another rollback of the tenant is in flight; try again",
            ),
            Reply::NoPages => failed(
                "nothing was changed: the folder has no valid pages; correct the errors that `rowhouse check` lists, then try again",
            ),
            Reply::NotWritten => failed(&self.problem.take().unwrap_or_default()),
        };
        // The caller may have timed out.
        let _ = sender.send(result);
    }

    /// Adds a caller that waits until all new data is passed to the store.
    pub(crate) fn await_flush(&mut self, reply: Sender<()>) {
        self.flushes.push(reply);
    }

    /// Returns whether a caller waits until all new data is passed to the store.
    pub(crate) const fn awaits_flush(&self) -> bool {
        !self.flushes.is_empty()
    }

    /// Replies to all callers that wait for a flush.
    pub(crate) fn report_flushed(&mut self) {
        for reply in self.flushes.drain(..) {
            let _ = reply.send(());
        }
    }
}
