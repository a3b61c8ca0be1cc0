//! The commands of operators that were started and have no result yet.

use std::collections::BTreeMap;
use std::sync::mpsc::Sender;

use server::admin::control::ControlError;
use tracing::info;

use crate::model::event::{CommandReply, Ticket};

/// The commands that were started and have no result yet.
#[derive(Debug, Default)]
pub(crate) struct StartedCommands {
    last: Ticket,
    /// The commands for single tenants.
    of_tenants: BTreeMap<Ticket, TenantCommand>,
    /// The error of the last write of a pin, if it failed.
    problem: Option<String>,
    /// The callers that wait until all new data is passed to the store.
    flushes: Vec<Sender<()>>,
}

/// A command for one tenant.
#[derive(Debug)]
pub(crate) struct TenantCommand {
    pub(crate) tenant: String,
    pub(crate) kind: CommandKind,
    pub(crate) reply: Sender<Result<(), ControlError>>,
}

/// The kind of a command for one tenant.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CommandKind {
    /// Pin this release.
    RollBack(u64),
    /// Remove the pin.
    Resume,
    /// Serve the removed tenant.
    Restore,
}

impl StartedCommands {
    /// Adds a command, and returns its ticket.
    pub(crate) fn add(&mut self, command: TenantCommand) -> Ticket {
        self.last += 1;
        self.of_tenants.insert(self.last, command);
        self.last
    }

    /// Records the error of the last write of a pin, or `None` if it succeeded.
    pub(crate) fn set_problem(&mut self, problem: Option<String>) {
        self.problem = problem;
    }

    /// Sends the result of a command.
    pub(crate) fn reply(&mut self, ticket: Ticket, reply: CommandReply) {
        let Some(command) = self.of_tenants.remove(&ticket) else {
            return;
        };
        let TenantCommand {
            tenant,
            kind,
            reply: sender,
        } = command;
        let failed = |problem: &str| Err(ControlError::Failed(problem.to_owned()));
        let result = match reply {
            CommandReply::Done => {
                match kind {
                    CommandKind::RollBack(release) => info!(
                        tenant,
                        release, "rolled back; changes of the folder are not published"
                    ),
                    CommandKind::Resume => {
                        info!(tenant, "resumed; changes of the folder are published again");
                    }
                    // `Action::Restore` is logged.
                    CommandKind::Restore => {}
                }
                Ok(())
            }
            CommandReply::UnknownTenant => Err(ControlError::UnknownTenant(tenant)),
            CommandReply::Busy => failed(
                "nothing was changed: another rollback of the tenant is in flight; try again",
            ),
            CommandReply::NoPages => failed(
                "nothing was changed: the folder has no valid pages; correct the errors that `rowhouse check` lists, then try again",
            ),
            CommandReply::FolderPresent => failed(&format!(
                "nothing was changed: the folder of `{tenant}` exists; only a tenant without a folder can be restored"
            )),
            CommandReply::NotPersisted => failed(&format!(
                "nothing was changed: the state has no valid folder of `{tenant}`; copy the folder from a backup"
            )),
            CommandReply::NotWritten => failed(&self.problem.take().unwrap_or_default()),
        };
        // The caller may have timed out.
        let _ = sender.send(result);
    }

    /// Adds a caller that waits until all new data is passed to the store.
    pub(crate) fn add_flush(&mut self, reply: Sender<()>) {
        self.flushes.push(reply);
    }

    /// Returns whether a caller waits until all new data is passed to the store.
    pub(crate) const fn has_pending_flush(&self) -> bool {
        !self.flushes.is_empty()
    }

    /// Replies to all callers that wait for a flush.
    pub(crate) fn report_flushed(&mut self) {
        for reply in self.flushes.drain(..) {
            let _ = reply.send(());
        }
    }
}
