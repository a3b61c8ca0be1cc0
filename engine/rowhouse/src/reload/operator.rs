//! What operators ask for through the admin listener, on its way to the owner of the tenants.
//!
//! Lists and comparisons are read from the disk at once. What changes what is served is done by the owner, between two changes of folders.

use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use release::store::{Entry, Release, Store};
use server::control::{Control, ControlError, PageChange, ReleaseLine};
use server::status::StatusBoard;

use super::compare::compare;
use super::findings::Findings;
use crate::watch::Notice;

/// How long the owner may take; the admin listener waits a little longer.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long a page waits for what the owner has found: it can do without.
const GLANCE: Duration = Duration::from_secs(1);

/// So many may wait for it at once: of an owner that hangs nobody expects an answer.
const WAITING: usize = 16;

/// What the owner has still to do, and where it says what came of it.
#[derive(Debug, Clone, Default)]
pub struct Inbox(Arc<Mutex<Vec<Wish>>>);

/// Something that an operator asks for.
#[derive(Debug)]
pub(super) enum Wish {
    /// Something that changes what is served.
    Change {
        tenant: String,
        what: What,
        done: Sender<Result<u64, ControlError>>,
    },
    /// What is to be said of these tenants.
    Look {
        tenants: Vec<String>,
        done: Sender<Findings>,
    },
}

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) enum What {
    /// An older release, by its number or the one before what is served.
    RollBack(Option<u64>),
    /// The folder again.
    Resume,
}

impl Inbox {
    fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Everything that was asked for since the last time.
    pub(super) fn take(&self) -> Vec<Wish> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The owner of the tenants, as the admin listener reaches it.
#[derive(Debug)]
pub struct Operator {
    /// Where releases are kept, if they are.
    pub store: Option<Arc<Store>>,
    /// Where the owner looks for what is asked for.
    pub inbox: Inbox,
    /// What wakes it.
    pub owner: Sender<Notice>,
    /// What it says of the tenants.
    pub board: Arc<StatusBoard>,
    /// The folder of tenants.
    pub tenants: PathBuf,
}

impl Operator {
    fn store(&self, tenant: &str) -> Result<&Store, ControlError> {
        let store = self.store.as_deref().ok_or(ControlError::NoState)?;
        self.known(tenant).map(|()| store)
    }

    fn known(&self, tenant: &str) -> Result<(), ControlError> {
        let status = self.board.current();
        let is_known = status.tenants.iter().any(|known| &*known.id == tenant);
        match is_known {
            true => Ok(()),
            false => Err(ControlError::UnknownTenant(tenant.to_owned())),
        }
    }

    /// What the owner has to say of these tenants now, each with all its errors and warnings. `None` where it is busy.
    #[must_use]
    pub fn findings(&self, tenants: Vec<String>) -> Option<Findings> {
        if self.inbox.len() >= WAITING {
            return None;
        }
        let (done, is_done) = channel();
        self.send(Wish::Look { tenants, done });
        is_done.recv_timeout(GLANCE).ok()
    }

    fn send(&self, wish: Wish) {
        let mut inbox = self.inbox.0.lock().unwrap_or_else(PoisonError::into_inner);
        inbox.push(wish);
        drop(inbox);
        // Without an owner nobody answers, which whoever waits notices.
        let _ = self.owner.send(Notice::Ready);
    }

    fn load(&self, tenant: &str, number: u64) -> Result<Release, ControlError> {
        let unknown = || ControlError::UnknownRelease {
            tenant: tenant.to_owned(),
            number,
        };
        self.store(tenant)?.load(tenant, number).ok_or_else(unknown)
    }

    fn ask(&self, tenant: &str, what: What) -> Result<u64, ControlError> {
        self.store(tenant)?;
        let (done, is_done) = channel();
        self.send(Wish::Change {
            tenant: tenant.to_owned(),
            what,
            done,
        });
        is_done.recv_timeout(PATIENCE).unwrap_or_else(|_| {
            let seconds = PATIENCE.as_secs();
            Err(ControlError::Failed(format!(
                "nothing was done within {seconds} seconds: the log says what keeps the server"
            )))
        })
    }
}

impl Control for Operator {
    fn releases(&self, tenant: &str) -> Result<Vec<ReleaseLine>, ControlError> {
        let store = self.store(tenant)?;
        let entries = store.list(tenant);
        let pinned = store.pinned(tenant);
        let served = pinned.or_else(|| Some(entries.first()?.number));
        let line = |entry: Entry| ReleaseLine {
            number: entry.number,
            at: entry
                .at
                .duration_since(UNIX_EPOCH)
                .map_or(0, |at| at.as_secs()),
            cause: entry.cause,
            pages: entry.pages,
            is_served: served == Some(entry.number),
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
        let entries = self.store(tenant)?.list(tenant);
        let numbers = || entries.iter().map(|entry| entry.number);
        let none = || ControlError::NoEarlierRelease(tenant.to_owned());
        let to = to.or_else(|| numbers().next()).ok_or_else(none)?;
        let before = || numbers().find(|number| *number < to);
        let from = from.or_else(before).ok_or_else(none)?;
        Ok(compare(&self.load(tenant, from)?, &self.load(tenant, to)?))
    }

    fn roll_back(&self, tenant: &str, release: Option<u64>) -> Result<u64, ControlError> {
        self.ask(tenant, What::RollBack(release))
    }

    fn resume(&self, tenant: &str) -> Result<(), ControlError> {
        self.ask(tenant, What::Resume).map(drop)
    }

    fn read_again(&self, tenant: &str) -> Result<(), ControlError> {
        self.known(tenant)?;
        let folder = Notice::Path(self.tenants.join(tenant));
        let gone = |_| ControlError::Failed("nobody reads the folders any longer".to_owned());
        self.owner.send(folder).map_err(gone)
    }
}
