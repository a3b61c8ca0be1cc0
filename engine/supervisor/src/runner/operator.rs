//! Commands of operators, on their way from the admin listener to the reload loop.
//!
//! The admin listener's thread lists and compares releases, and waits for the disk. The reload loop runs the commands that change the current snapshot, one at a time, between two reloads.
//!
//! **Invariant:** a command whose caller has timed out is never started.

pub(crate) mod commands;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use release::store::{Release, ReleaseInfo, Store};
use server::admin::control::{Control, ControlError, PageChange, ReleaseLine};
use server::admin::status::StatusBoard;

use crate::model::agenda::ReloadScope;
use crate::runner::reload_queue::ReloadSender;
use crate::snapshot::compare::compare;
use crate::snapshot::findings::Findings;
use crate::state::release_record::CurrentRelease;

/// The time after which a command that was not started is withdrawn. The admin listener waits a little longer.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(20);

/// The additional time for a command that was started just before its timeout.
const STARTED_COMMAND_TIMEOUT: Duration = Duration::from_secs(4);

/// The time that a page of the console waits for findings. After that time the page is shown without findings.
const FINDINGS_TIMEOUT: Duration = Duration::from_secs(1);

/// The interval at which a caller that holds commands checks for commands in flight.
const HOLD_INTERVAL: Duration = Duration::from_millis(20);

/// The number of queued commands from which pages of the console do not request findings.
const MAX_QUEUED_COMMANDS: usize = 16;

/// The queue of commands that the reload loop has not started.
///
/// The queue stays short, because each caller waits for its command, and withdraws the command after a timeout.
/// The admin listener changes releases one at a time. The console sends no command while [`MAX_QUEUED_COMMANDS`] are queued.
#[derive(Debug, Clone, Default)]
pub struct Inbox(Arc<Mutex<CommandQueue>>);

#[derive(Debug, Default)]
struct CommandQueue {
    next_ticket: u64,
    commands: VecDeque<(u64, OperatorCommand)>,
    /// The callers that wait for the result of a change.
    callers: usize,
    /// Whether changes are refused ([`Operator::hold_commands`]).
    is_held: bool,
}

/// A command for the reload loop, with the sender of its result.
#[derive(Debug)]
pub(crate) enum OperatorCommand {
    /// Pass the current output of a tenant to the store, and reply with the current release.
    Record {
        tenant: String,
        reply: Sender<Result<CurrentRelease, ControlError>>,
    },
    /// Serve and pin this release.
    RollBack {
        tenant: String,
        release: Box<Release>,
        reply: Sender<Result<(), ControlError>>,
    },
    /// Remove the pin, and publish changes of the folder again.
    Resume {
        tenant: String,
        reply: Sender<Result<(), ControlError>>,
    },
    /// Serve a removed tenant until its folder is back.
    Restore {
        tenant: String,
        reply: Sender<Result<(), ControlError>>,
    },
    /// List the diagnostics of these tenants, as `check` does.
    Inspect {
        tenants: Vec<String>,
        reply: Sender<Findings>,
    },
    /// Reply once all new data is passed to the store.
    Flush { reply: Sender<()> },
}

impl Inbox {
    /// Adds a command, and returns its ticket.
    fn push(&self, command: OperatorCommand) -> u64 {
        let mut queue = self.lock();
        let ticket = queue.next_ticket;
        queue.next_ticket += 1;
        queue.commands.push_back((ticket, command));
        ticket
    }

    /// Removes a queued command. Returns whether the command was still queued.
    fn withdraw(&self, ticket: u64) -> bool {
        let mut queue = self.lock();
        let before = queue.commands.len();
        queue.commands.retain(|(other, _)| *other != ticket);
        queue.commands.len() < before
    }

    /// Removes and returns the oldest command, which counts as started from now on.
    pub(crate) fn next(&self) -> Option<OperatorCommand> {
        self.lock().commands.pop_front().map(|(_, command)| command)
    }

    fn len(&self) -> usize {
        self.lock().commands.len()
    }

    /// Counts a caller that waits for a change, until the guard is dropped. Returns `None` while changes are refused.
    fn enter(&self) -> Option<CallerGuard<'_>> {
        let mut queue = self.lock();
        if queue.is_held {
            return None;
        }
        queue.callers += 1;
        Some(CallerGuard(self))
    }

    fn lock(&self) -> MutexGuard<'_, CommandQueue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A caller that waits for a change.
struct CallerGuard<'i>(&'i Inbox);

impl Drop for CallerGuard<'_> {
    fn drop(&mut self) {
        self.0.lock().callers -= 1;
    }
}

/// Refuses commands that change something and pauses alerts, until the guard is dropped.
#[derive(Debug)]
pub struct CommandHold {
    inbox: Inbox,
    board: Arc<StatusBoard>,
}

impl Drop for CommandHold {
    fn drop(&mut self) {
        self.inbox.lock().is_held = false;
        self.board.set_handing_over(false);
    }
}

/// The operations of the admin listener, which reach the reload loop and the store.
#[derive(Debug)]
pub struct Operator {
    /// The store of releases, if data is persisted.
    pub store: Option<Arc<Store>>,
    /// The queue of commands for the reload loop.
    pub inbox: Inbox,
    /// The sender of reload requests, which also wakes the reload loop.
    pub reloads: ReloadSender,
    /// The states of the tenants.
    pub board: Arc<StatusBoard>,
    /// The folder of tenants.
    pub tenants: PathBuf,
}

impl Operator {
    /// Returns the store, if data is persisted and the tenant is known.
    fn store(&self, tenant: &str) -> Result<&Store, ControlError> {
        let store = self.store.as_deref().ok_or(ControlError::NoState)?;
        self.check_tenant(tenant).map(|()| store)
    }

    /// Returns the store, if data is persisted and the tenant is known or was removed.
    fn history(&self, tenant: &str) -> Result<&Store, ControlError> {
        match self.store(tenant) {
            Err(ControlError::Removed(_)) => self.store.as_deref().ok_or(ControlError::NoState),
            store => store,
        }
    }

    /// Returns an error if the tenant is not known or was removed.
    fn check_tenant(&self, tenant: &str) -> Result<(), ControlError> {
        let status = self.board.current();
        let tenant = tenant.to_owned();
        match (
            status.tenants.contains_key(&*tenant),
            status.is_removed(&tenant),
        ) {
            (true, _) => Ok(()),
            (false, true) => Err(ControlError::Removed(tenant)),
            (false, false) => Err(ControlError::UnknownTenant(tenant)),
        }
    }

    /// Returns the errors and warnings of these tenants, or `None` if the reload loop is busy.
    #[must_use]
    pub fn findings(&self, tenants: Vec<String>) -> Option<Findings> {
        if self.inbox.len() >= MAX_QUEUED_COMMANDS {
            return None;
        }
        let (reply, result) = channel();
        let ticket = self.send(OperatorCommand::Inspect { tenants, reply });
        let findings = result.recv_timeout(FINDINGS_TIMEOUT).ok();
        if findings.is_none() {
            self.inbox.withdraw(ticket);
        }
        findings
    }

    /// Persists all data that is not persisted yet. Returns whether that succeeded within `timeout`.
    #[must_use]
    pub fn flush(&self, timeout: Duration) -> bool {
        let Some(store) = self.store.clone() else {
            return true;
        };
        let deadline = Instant::now() + timeout;
        let (reply, handed_over) = channel();
        let ticket = self.send(OperatorCommand::Flush { reply });
        if handed_over.recv_timeout(timeout).is_err() {
            self.inbox.withdraw(ticket);
            return false;
        }
        let (written, is_written) = channel();
        // A disk that hangs must not prevent the process from exiting.
        thread::spawn(move || {
            store.finish();
            let _ = written.send(!store.has_problem());
        });
        let left = deadline.saturating_duration_since(Instant::now());
        is_written.recv_timeout(left) == Ok(true)
    }

    /// Refuses commands that change something from now on, pauses alerts, and waits for commands in flight. Another process can then read the pins, and no later change is lost. Returns `None` if a command is still in flight after `timeout`, or if commands are held already.
    #[must_use]
    pub fn hold_commands(&self, timeout: Duration) -> Option<CommandHold> {
        let deadline = Instant::now() + timeout;
        if std::mem::replace(&mut self.inbox.lock().is_held, true) {
            return None;
        }
        self.board.set_handing_over(true);
        let hold = CommandHold {
            inbox: self.inbox.clone(),
            board: Arc::clone(&self.board),
        };
        while self.inbox.lock().callers > 0 {
            if Instant::now() >= deadline {
                return None;
            }
            thread::sleep(HOLD_INTERVAL);
        }
        Some(hold)
    }

    /// Queues a command, and wakes the reload loop. Returns the ticket of the command.
    fn send(&self, command: OperatorCommand) -> u64 {
        let ticket = self.inbox.push(command);
        // If the reload loop has ended, the caller's timeout ends the wait.
        let _ = self.reloads.wake();
        ticket
    }

    /// Returns the store, and the releases of a tenant, newest first.
    ///
    /// # Errors
    /// If the tenant has no releases because the state cannot be written.
    fn list(&self, tenant: &str) -> Result<(&Store, Vec<ReleaseInfo>), ControlError> {
        let store = self.history(tenant)?;
        let entries = store.list(tenant);
        match store.problem().filter(|_| entries.is_empty()) {
            Some(problem) => Err(ControlError::StateFailed {
                tenant: tenant.to_owned(),
                problem,
            }),
            None => Ok((store, entries)),
        }
    }

    fn load(&self, tenant: &str, number: u64) -> Result<Release, ControlError> {
        let unknown = || ControlError::UnknownRelease {
            tenant: tenant.to_owned(),
            number,
        };
        let release = self.history(tenant)?.load(tenant, number);
        release.ok_or_else(unknown)
    }

    /// Sends the command that `make` creates for a reply channel, and waits for its result.
    ///
    /// # Errors
    /// Returns the error of the command. A command that is not started within `timeout` is withdrawn and has no effect.
    fn run<T>(
        &self,
        timeout: Duration,
        make: impl FnOnce(Sender<Result<T, ControlError>>) -> OperatorCommand,
    ) -> Result<T, ControlError> {
        let Some(_caller) = self.inbox.enter() else {
            return Err(ControlError::Failed(
                "nothing was changed: a new process is taking over the sites; try again in a few seconds"
                    .to_owned(),
            ));
        };
        let (reply, result) = channel();
        let ticket = self.send(make(reply));
        let seconds = timeout.as_secs();
        match result.recv_timeout(timeout) {
            Ok(result) => result,
            Err(RecvTimeoutError::Timeout) if !self.inbox.withdraw(ticket) => {
                wait_for_started(&result)
            }
            Err(_) => Err(ControlError::Failed(format!(
                "nothing was changed: the reload loop was busy for {seconds} s; see the log for the cause"
            ))),
        }
    }
}

/// Waits for the result of a command that was started before its caller timed out.
fn wait_for_started<T>(result: &Receiver<Result<T, ControlError>>) -> Result<T, ControlError> {
    let unknown = || {
        Err(ControlError::Failed(
            "the command has started, but its result is not known yet; check it with `rowhouse releases`"
                .to_owned(),
        ))
    };
    result
        .recv_timeout(STARTED_COMMAND_TIMEOUT)
        .unwrap_or_else(|_| unknown())
}

impl Control for Operator {
    fn releases(&self, tenant: &str) -> Result<Vec<ReleaseLine>, ControlError> {
        let (store, entries) = self.list(tenant)?;
        let pinned = store.pinned(tenant);
        let status = self.board.current();
        let status = status.tenants.get(tenant);
        let is_unreadable = status.is_some_and(|tenant| tenant.unreadable_pin.is_some());
        let served = pinned.or_else(|| Some(entries.first()?.number));
        let served = served.filter(|_| self.check_tenant(tenant).is_ok());
        let line = |entry: ReleaseInfo| ReleaseLine {
            number: entry.number,
            at: entry
                .at
                .duration_since(UNIX_EPOCH)
                .map_or(0, |at| at.as_secs()),
            cause: entry.cause,
            pages: entry.pages,
            is_served: served == Some(entry.number) && !is_unreadable,
            is_pinned: pinned == Some(entry.number),
        };
        Ok(entries.into_iter().map(line).collect())
    }

    fn diff(
        &self,
        tenant: &str,
        from: Option<u64>,
        to: Option<u64>,
    ) -> Result<Vec<PageChange>, ControlError> {
        let (_, entries) = self.list(tenant)?;
        let numbers = || entries.iter().map(|entry| entry.number);
        let none = || ControlError::NoEarlierRelease(tenant.to_owned());
        let to = to.or_else(|| numbers().next()).ok_or_else(none)?;
        let before = || numbers().find(|number| *number < to);
        let from = from.or_else(before).ok_or_else(none)?;
        Ok(compare(&self.load(tenant, from)?, &self.load(tenant, to)?))
    }

    fn roll_back(&self, tenant: &str, release: Option<u64>) -> Result<u64, ControlError> {
        let store = self.store(tenant)?;
        let name = || tenant.to_owned();
        // The current output has to be a release, so that an operator can return to it.
        let current = self.run(COMMAND_TIMEOUT, |reply| OperatorCommand::Record {
            tenant: name(),
            reply,
        })?;
        store.finish();
        let (_, entries) = self.list(tenant)?;
        let earlier = || current.earlier(&entries);
        let number = release
            .or_else(earlier)
            .ok_or_else(|| ControlError::NoEarlierRelease(name()))?;
        let release = Box::new(self.load(tenant, number)?);
        self.run(COMMAND_TIMEOUT, |reply| OperatorCommand::RollBack {
            tenant: name(),
            release,
            reply,
        })?;
        Ok(number)
    }

    fn resume(&self, tenant: &str) -> Result<(), ControlError> {
        self.store(tenant)?;
        self.run(COMMAND_TIMEOUT, |reply| OperatorCommand::Resume {
            tenant: tenant.to_owned(),
            reply,
        })
    }

    fn restore(&self, tenant: &str) -> Result<(), ControlError> {
        let store = self.history(tenant)?;
        self.run(COMMAND_TIMEOUT, |reply| OperatorCommand::Restore {
            tenant: tenant.to_owned(),
            reply,
        })?;
        // The restored tenant must outlive the process once the operator has the reply.
        store.finish();
        Ok(())
    }

    fn read_again(&self, tenant: &str) -> Result<(), ControlError> {
        self.check_tenant(tenant)?;
        let gone =
            |_| ControlError::Failed("the reload loop has ended; restart the server".to_owned());
        self.reloads
            .request(ReloadScope::Tenant(tenant.to_owned()))
            .map_err(gone)
    }
}

#[cfg(test)]
mod tests {
    use release::store::RetentionLimits;
    use tempfile::TempDir;

    use super::*;

    fn operator(folder: &TempDir) -> Operator {
        let keep = RetentionLimits {
            releases: 10,
            bytes: 1 << 20,
        };
        Operator {
            store: Some(Arc::new(Store::open(folder.path().to_owned(), keep))),
            inbox: Inbox::default(),
            reloads: ReloadSender::default(),
            board: Arc::default(),
            tenants: folder.path().to_owned(),
        }
    }

    fn resume(reply: Sender<Result<(), ControlError>>) -> OperatorCommand {
        OperatorCommand::Resume {
            tenant: "app".to_owned(),
            reply,
        }
    }

    #[test]
    fn timed_out_command_never_runs() {
        let folder = TempDir::new().expect("a folder");
        let operator = operator(&folder);
        let result = operator.run(Duration::ZERO, resume);
        assert!(result.is_err_and(|error| error.to_string().contains("nothing was changed")));
        assert!(operator.inbox.next().is_none());
    }

    #[test]
    fn held_commands_are_refused_until_the_hold_ends() {
        let folder = TempDir::new().expect("a folder");
        let operator = operator(&folder);
        let caller = operator.inbox.enter().expect("a caller");
        assert!(
            operator.hold_commands(Duration::ZERO).is_none(),
            "a command is in flight"
        );
        drop(caller);
        let hold = operator.hold_commands(Duration::ZERO).expect("a hold");
        assert!(operator.hold_commands(Duration::ZERO).is_none());
        let refused = operator.run(Duration::from_secs(60), resume);
        assert!(refused.is_err_and(|error| error.to_string().contains("is taking over")));
        drop(hold);
        let withdrawn = operator.run(Duration::ZERO, resume);
        assert!(withdrawn.is_err_and(|error| error.to_string().contains("was busy")));
    }

    #[test]
    fn started_command_cannot_be_withdrawn() {
        let inbox = Inbox::default();
        let (reply, _) = channel();
        let ticket = inbox.push(resume(reply));
        assert!(inbox.next().is_some());
        assert!(!inbox.withdraw(ticket));
    }

    #[test]
    fn command_started_before_its_timeout_reports_its_result() {
        let (reply, result) = channel();
        reply.send(Ok(4)).expect("a receiver");
        assert_eq!(wait_for_started(&result), Ok(4));
    }
}
