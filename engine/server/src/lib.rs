//! Answers requests from the snapshot on the [`SnapshotStore`](snapshot_store::SnapshotStore).
//!
//! ```text
//! listen -> accept -> worker -> stream/connection state -> hyper -> visit -> respond -> hyper -> stream
//!           (permits)   (thread)  (timeouts)                (counts)  (pure)
//! ```
//! [`run`] accepts connections and hands each to the worker with the fewest. When all permits are taken, those that have been idle for longest make room. It speaks HTTP/1.1, and HTTP/2 to clients that begin with it (RFC 9113, section 3.3); TLS is the business of the proxy before it.
//!
//! **Invariant:** knows no YAML, Markdown, Tera, React or tenant folder; sees only a [`Snapshot`](release::snapshot::Snapshot). A request takes no lock, opens no file and builds no body.

pub mod access;
pub mod admin;
mod body;
mod condition;
mod connection_state;
mod connections;
pub mod descriptors;
pub mod drain;
pub mod events;
mod host;
mod line;
pub mod listen;
mod metrics;
mod negotiate;
pub mod origin;
mod path;
mod redirect;
mod request_id;
mod request_service;
pub mod respond;
#[cfg(test)]
#[path = "../tests/support/sample.rs"]
mod sample;
pub mod settings;
pub mod snapshot_store;
mod span;
pub mod status;
mod stream;
mod worker;

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::thread;

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tracing::error;

use self::connections::{Addresses, Permit, Share, client_subnet};
use self::drain::Drained;
use self::settings::ServeSettings;
use self::snapshot_store::SnapshotStore;
use self::worker::{Arrival, Message, work};

/// Why serving could not begin, or had to end.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on `{address}`: choose another address with `--listen`")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The sockets of `LISTEN_FDS` are not what they should be.
    #[error("`LISTEN_FDS` names a socket that is no listening TCP socket")]
    Inherited(#[source] io::Error),
    /// A socket cannot be waited on.
    #[error("cannot wait for connections")]
    Listen(#[source] io::Error),
    /// A worker's thread or event loop could not be made.
    #[error("cannot start a worker thread")]
    Worker(#[source] io::Error),
    /// A worker has ended by itself.
    #[error("a worker thread has ended before it was told to")]
    Lost,
}

/// What the workers are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Serve,
    Drain,
}

/// Serves what is on `snapshots` on all `listeners` until `shutdown` is done; then accepts no more, and lets the requests under way finish within [`ServeSettings::grace`].
///
/// Dropping the future ends everything at once, which is what a second signal should do.
///
/// # Errors
/// When no worker can be started or a socket cannot be waited on. A failing connection is never an error.
pub async fn run(
    listeners: Vec<TcpListener>,
    snapshots: Arc<SnapshotStore>,
    settings: ServeSettings,
    shutdown: impl Future<Output = ()>,
) -> Result<Drained, ServeError> {
    let settings = Arc::new(settings);
    let (order, orders) = watch::channel(Order::Serve);
    let mut workers = Vec::new();
    let mut ends = JoinSet::new();
    for number in 0..settings.workers.get() {
        let (post, end) = start_worker(number, &snapshots, &settings, &orders)?;
        workers.push(post);
        ends.spawn(end);
    }

    let limit = u64::try_from(settings.limits.connections).unwrap_or(u64::MAX);
    snapshots.connections.limit.store(limit, Relaxed);
    let acceptor = Arc::new(Acceptor {
        workers,
        addresses: Arc::default(),
        permits: Arc::new(Semaphore::new(settings.limits.connections)),
        snapshots,
        settings,
    });
    let mut accepting = JoinSet::new();
    for listener in listeners {
        accepting.spawn(accept(listen::waiting(listener)?, Arc::clone(&acceptor)));
    }

    tokio::select! {
        () = shutdown => {}
        Some(_) = ends.join_next() => return Err(ServeError::Lost),
    }
    accepting.shutdown().await;
    drop(acceptor);
    // Nobody listens if all workers are gone, which the loop below reports.
    let _ = order.send(Order::Drain);

    let mut drained = Drained::default();
    while let Some(end) = ends.join_next().await {
        let Ok(Some(end)) = end else {
            return Err(ServeError::Lost);
        };
        drained += end;
    }
    Ok(drained)
}

/// The way to one worker.
#[derive(Debug)]
struct WorkerHandle {
    messages: mpsc::UnboundedSender<Message>,
    /// Its open connections.
    load: Arc<AtomicUsize>,
}

fn start_worker(
    number: usize,
    snapshots: &Arc<SnapshotStore>,
    settings: &Arc<ServeSettings>,
    orders: &watch::Receiver<Order>,
) -> Result<(WorkerHandle, impl Future<Output = Option<Drained>> + use<>), ServeError> {
    let (messages, received) = mpsc::unbounded_channel();
    let (ended, end) = oneshot::channel();
    let (snapshots, settings, orders) =
        (Arc::clone(snapshots), Arc::clone(settings), orders.clone());
    thread::Builder::new()
        .name(format!("worker-{number}"))
        .spawn(move || match work(snapshots, settings, received, orders) {
            // The receiver is gone when serving was ended at once.
            Ok(drained) => drop(ended.send(drained)),
            Err(error) => error!(%error, "a worker could not start its event loop"),
        })
        .map_err(ServeError::Worker)?;
    Ok((
        WorkerHandle {
            messages,
            load: Arc::default(),
        },
        async { end.await.ok() },
    ))
}

/// What accepting needs.
#[derive(Debug)]
struct Acceptor {
    workers: Vec<WorkerHandle>,
    addresses: Arc<Addresses>,
    permits: Arc<Semaphore>,
    snapshots: Arc<SnapshotStore>,
    settings: Arc<ServeSettings>,
}

/// Accepts connections as long as it is polled.
async fn accept(listener: tokio::net::TcpListener, acceptor: Arc<Acceptor>) {
    loop {
        let (socket, peer) = listen::accept(&listener).await;
        acceptor
            .snapshots
            .connections
            .accepted
            .fetch_add(1, Relaxed);
        let trusted = acceptor.settings.trusts(peer.ip());
        let share = (!trusted).then(|| acceptor.share(peer.ip()));
        if matches!(share, Some(None)) {
            acceptor.snapshots.connections.refused.fetch_add(1, Relaxed);
            continue;
        }
        let Ok(permit) = acceptor.permit().await else {
            return;
        };
        acceptor.admit(socket, peer.ip(), share.flatten(), permit);
    }
}

/// Counts a connection that waits for its permit, until it has one or is given up.
struct Waiting<'d>(&'d AtomicU64);

impl<'d> Waiting<'d> {
    fn begin(count: &'d AtomicU64) -> Self {
        count.fetch_add(1, Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Acceptor {
    fn share(&self, peer: IpAddr) -> Option<Share> {
        let most = self.settings.limits.connections_per_address;
        self.addresses.enter(client_subnet(peer), most)
    }

    /// The permit for one connection. Where all are taken, idle connections make room; where all have a request under way, the first that is over does.
    async fn permit(&self) -> Result<OwnedSemaphorePermit, AcquireError> {
        if let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
            return Ok(permit);
        }
        // Counted first, so that a worker that has nothing idle now knows it later.
        let _waiting = Waiting::begin(&self.snapshots.connections.waiting);
        for post in &self.workers {
            // The worker is gone only when everything ends.
            let _ = post.messages.send(Message::MakeRoom);
        }
        Arc::clone(&self.permits).acquire_owned().await
    }

    /// Gives a connection to the worker with the fewest.
    fn admit(
        &self,
        socket: tokio::net::TcpStream,
        peer: IpAddr,
        share: Option<Share>,
        permit: OwnedSemaphorePermit,
    ) {
        let trusted = share.is_none();
        let Some(post) = self
            .workers
            .iter()
            .min_by_key(|post| post.load.load(Relaxed))
        else {
            return;
        };
        let permit = Permit::new(
            share,
            Arc::clone(&post.load),
            Arc::clone(&self.snapshots),
            permit,
        );
        // A response is written in one go; waiting to fill a packet would only delay it.
        if let Ok(socket) = socket.set_nodelay(true).and_then(|()| socket.into_std()) {
            // The worker is gone only when everything ends.
            let _ = post.messages.send(Message::Admit(Arrival {
                socket,
                peer,
                trusted,
                permit,
            }));
        }
    }
}
