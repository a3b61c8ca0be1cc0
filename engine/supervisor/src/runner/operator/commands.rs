//! The commands of operators whose results are not known yet.

use std::collections::BTreeMap;
use std::sync::mpsc::Sender;

use server::admin::control::ControlError;
use tracing::info;

use crate::model::event::{Reply, Ticket};

/// The commands whose results are not known yet.
#[derive(Debug, Default)]
pub(crate) struct Commands {
    last: Ticket,
    /// The commands that wait for the disk to be told of a pin.
    pins: BTreeMap<Ticket, PinCommand>,
    /// Why the disk could not be told of the last pin.
    problem: Option<String>,
    /// The callers that wait until everything is handed to the store.
    flushes: Vec<Sender<()>>,
}

/// A command that pins a release, or none.
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

    /// Notes why the disk could not be told of a pin.
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
                "nothing was changed: the folder has no valid pages; correct what `rowhouse check` reports first",
            ),
            Reply::NotWritten => failed(&self.problem.take().unwrap_or_default()),
        };
        // The caller may have timed out.
        let _ = sender.send(result);
    }

    /// Adds a caller that waits until everything is handed to the store.
    pub(crate) fn await_flush(&mut self, reply: Sender<()>) {
        self.flushes.push(reply);
    }

    /// Returns whether a caller waits until everything is handed to the store.
    pub(crate) const fn awaits_flush(&self) -> bool {
        !self.flushes.is_empty()
    }

    /// Tells the callers that everything is handed to the store.
    pub(crate) fn report_flushed(&mut self) {
        for reply in self.flushes.drain(..) {
            let _ = reply.send(());
        }
    }
}
