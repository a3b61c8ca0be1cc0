//! Accepts connections and gives each to the worker with the fewest.
//!
//! A connection needs a permit. Where all are taken, the connections that have been idle for longest are ended; where all have a request under way, the new one waits until one of them ends.
//!
//! **Invariant:** reads and writes no byte of a connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, mpsc};

use super::admission::{Admission, Admitted};
use super::command::{Command, NewConnection};
use super::listen;
use super::peer::{Entrance, Peer};
use super::permit::ConnectionPermit;
use super::settings::ServeSettings;
use super::snapshot_store::SnapshotStore;

/// The way to one worker.
#[derive(Debug)]
pub(super) struct WorkerHandle {
    commands: mpsc::UnboundedSender<Command>,
    /// Its open connections.
    load: Arc<AtomicUsize>,
}

impl WorkerHandle {
    pub(super) fn new(commands: mpsc::UnboundedSender<Command>) -> Self {
        Self {
            commands,
            load: Arc::default(),
        }
    }
}

/// What accepting needs.
#[derive(Debug)]
pub(super) struct Acceptor {
    workers: Vec<WorkerHandle>,
    admission: Arc<Admission>,
    permits: Arc<Semaphore>,
    snapshots: Arc<SnapshotStore>,
    settings: Arc<ServeSettings>,
}

impl Acceptor {
    pub(super) fn new(
        workers: Vec<WorkerHandle>,
        admission: Arc<Admission>,
        snapshots: Arc<SnapshotStore>,
        settings: Arc<ServeSettings>,
    ) -> Self {
        Self {
            workers,
            admission,
            permits: Arc::new(Semaphore::new(settings.limits.connections)),
            snapshots,
            settings,
        }
    }

    /// Accepts connections for as long as it is polled.
    pub(super) async fn run(self: Arc<Self>, listener: TcpListener, entrance: Entrance) {
        let counters = &self.snapshots.connections;
        loop {
            let (socket, address) = listen::accept(&listener).await;
            counters.accepted.fetch_add(1, Relaxed);
            let peer = Peer {
                address: address.ip(),
                trusted: self.settings.trusts(address.ip()),
            };
            let Some(admitted) = self.admission.admit(peer, entrance) else {
                continue;
            };
            let Ok(permit) = self.permit().await else {
                return;
            };
            self.hand_over(socket, peer, entrance, admitted, permit);
        }
    }

    async fn permit(&self) -> Result<OwnedSemaphorePermit, AcquireError> {
        if let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
            return Ok(permit);
        }
        // Counted before the workers are asked: one that has nothing idle now sees it at its next look.
        let _waiting = WaitingCount::begin(&self.snapshots.connections.waiting);
        for worker in &self.workers {
            // The worker is gone only when everything ends.
            let _ = worker.commands.send(Command::MakeRoom);
        }
        Arc::clone(&self.permits).acquire_owned().await
    }

    fn hand_over(
        &self,
        socket: TcpStream,
        peer: Peer,
        entrance: Entrance,
        admitted: Admitted,
        permit: OwnedSemaphorePermit,
    ) {
        let least = self
            .workers
            .iter()
            .min_by_key(|worker| worker.load.load(Relaxed));
        let Some(worker) = least else {
            return;
        };
        let permit = ConnectionPermit::new(
            Arc::clone(&worker.load),
            Arc::clone(&self.snapshots),
            permit,
        );
        // A response is written in one go; waiting to fill a packet would only delay it.
        if let Ok(socket) = socket.set_nodelay(true).and_then(|()| socket.into_std()) {
            // The worker is gone only when everything ends.
            let _ = worker.commands.send(Command::Serve(NewConnection {
                socket,
                peer,
                entrance,
                admitted,
                permit,
            }));
        }
    }
}

/// Counts a connection that waits for its permit, until it has one or is given up.
struct WaitingCount<'c>(&'c AtomicU64);

impl<'c> WaitingCount<'c> {
    fn begin(count: &'c AtomicU64) -> Self {
        count.fetch_add(1, Relaxed);
        Self(count)
    }
}

impl Drop for WaitingCount<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
