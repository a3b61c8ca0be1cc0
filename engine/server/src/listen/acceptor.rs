//! Accepts connections and passes each to the worker with the fewest open connections.
//!
//! Each connection needs a permit. When all permits are taken, the connections that have been idle for longest are closed. When all connections have a request in flight, the new connection waits until one of them ends.
//!
//! **Invariant:** reads and writes no byte of a connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{AcquireError, Notify, OwnedSemaphorePermit, Semaphore, mpsc};

use crate::listen;
use crate::listen::admission::ConnectionPermit;
use crate::listen::admission::NewConnection;
use crate::listen::admission::{Admission, AdmissionGuard};
use crate::listen::admission::{ListenerKind, Peer};
use crate::settings::ServeSettings;
use crate::snapshot_store::SnapshotStore;

/// The acceptor's handle of a worker.
#[derive(Debug)]
pub(crate) struct WorkerHandle {
    /// The channel to the worker. Its capacity is the number of permits, so it is never full.
    connections: mpsc::Sender<NewConnection>,
    /// Notified when a connection waits for a permit. Repeated notifications of a busy worker count as one.
    needs_permit: Arc<Notify>,
    /// The worker's open connections.
    load: Arc<AtomicUsize>,
}

impl WorkerHandle {
    pub(crate) fn new(connections: mpsc::Sender<NewConnection>, needs_permit: Arc<Notify>) -> Self {
        Self {
            connections,
            needs_permit,
            load: Arc::default(),
        }
    }
}

/// The state that all accept loops share.
#[derive(Debug)]
pub(crate) struct Acceptor {
    workers: Vec<WorkerHandle>,
    admission: Arc<Admission>,
    permits: Arc<Semaphore>,
    snapshots: Arc<SnapshotStore>,
    settings: Arc<ServeSettings>,
}

impl Acceptor {
    pub(crate) fn new(
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

    /// Accepts connections until the future is dropped.
    pub(crate) async fn run(self: Arc<Self>, listener: TcpListener, kind: ListenerKind) {
        let counters = &self.snapshots.connections;
        loop {
            let (socket, address) = listen::accept(&listener).await;
            counters.accepted.fetch_add(1, Relaxed);
            let peer = Peer {
                address: address.ip(),
                is_trusted: self.settings.trusts(address.ip()),
            };
            let Some(admitted) = self.admission.admit(peer, kind) else {
                continue;
            };
            let Ok(permit) = self.permit().await else {
                return;
            };
            self.hand_over(socket, peer, kind, admitted, permit);
        }
    }

    async fn permit(&self) -> Result<OwnedSemaphorePermit, AcquireError> {
        if let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
            return Ok(permit);
        }
        // Incremented before the workers are notified: a worker without an idle connection now reads the count at its next check.
        let _waiting = WaitingCount::begin(&self.snapshots.connections.waiting);
        for worker in &self.workers {
            worker.needs_permit.notify_one();
        }
        Arc::clone(&self.permits).acquire_owned().await
    }

    fn hand_over(
        &self,
        socket: TcpStream,
        peer: Peer,
        kind: ListenerKind,
        admitted: AdmissionGuard,
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
        // A response is written in one piece; waiting to fill a packet would only delay it.
        if let Ok(socket) = socket.set_nodelay(true).and_then(|()| socket.into_std()) {
            // The receiver is gone only when the whole server ends.
            let _ = worker.connections.try_send(NewConnection {
                socket,
                peer,
                kind,
                admitted,
                permit,
            });
        }
    }
}

/// Counts a connection that waits for a permit, until the guard is dropped.
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::settings::Limits;

    #[tokio::test]
    async fn busy_worker_finds_one_notice_of_a_waiting_connection() {
        let (snapshots, limits) = (Arc::<SnapshotStore>::default(), Limits::default());
        let settings = Arc::new(ServeSettings {
            limits: Limits {
                connections: 1,
                ..limits
            },
            ..ServeSettings::default()
        });
        let admission = Admission::new(Arc::clone(&snapshots), Arc::clone(&settings));
        let (connections, _received) = mpsc::channel(1);
        let notify = Arc::new(Notify::new());
        let workers = vec![WorkerHandle::new(connections, Arc::clone(&notify))];
        let acceptor = Acceptor::new(workers, Arc::new(admission), snapshots, settings);
        let _permit = acceptor.permit().await.unwrap();
        for _ in 0..1_000 {
            // Dropped at once: the notification stays with the worker.
            assert!(futures_util::future::FutureExt::now_or_never(acceptor.permit()).is_none());
        }
        notify.notified().await;
        let second = tokio::time::timeout(Duration::ZERO, notify.notified()).await;
        assert!(second.is_err(), "the worker is notified twice");
    }
}
