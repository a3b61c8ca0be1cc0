//! Serves from startup to shutdown: starts the workers, accepts connections, drains.
//!
//! **Invariant:** sees no byte of a connection.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tracing::error;

use crate::connection::drain::DrainReport;
use crate::connection::worker;
use crate::listen::acceptor::{Acceptor, WorkerHandle};
use crate::listen::admission::Admission;
use crate::listen::admission::ListenerKind;
use crate::listen::error::ServeError;
use crate::listen::{self, Listeners};
use crate::settings::ServeSettings;
use crate::snapshot_store::SnapshotStore;

/// Serves the current snapshot in `snapshots` on all `listeners` until `shutdown` completes. Then accepts no more connections, and lets requests in flight finish within [`ServeSettings::grace`].
///
/// `shutdown` is polled once connections are accepted. It returns the time for which idle connections of HTTP/1.1 wait for one more request, whose response then ends the connection. A client that sends a request while its connection is closed would see an error.
///
/// Dropping the future ends everything at once, as a second signal should.
///
/// # Errors
/// When a worker cannot be started or ends early, a socket cannot be registered, or a socket needs TLS and the settings have none. An error on one connection is never returned.
pub async fn run(
    listeners: impl Into<Listeners>,
    snapshots: Arc<SnapshotStore>,
    settings: ServeSettings,
    shutdown: impl Future<Output = Duration>,
) -> Result<DrainReport, ServeError> {
    let listeners = listeners.into();
    if settings.tls.is_none() && !(listeners.tls.is_empty() && listeners.redirect.is_empty()) {
        return Err(ServeError::NoTls);
    }
    let settings = Arc::new(settings);
    let admission = Admission::new(Arc::clone(&snapshots), Arc::clone(&settings));
    let admission = Arc::new(admission);
    let (drain, draining) = watch::channel(None);
    let mut workers = Vec::new();
    let mut results = JoinSet::new();
    for number in 0..settings.workers.get() {
        let context = (&snapshots, &settings, &admission);
        let (worker, result) = start_worker(number, context, &draining)?;
        workers.push(worker);
        results.spawn(result);
    }

    let limit = u64::try_from(settings.limits.connections).unwrap_or(u64::MAX);
    snapshots.connections.limit.store(limit, Relaxed);
    let acceptor = Arc::new(Acceptor::new(workers, admission, snapshots, settings));
    let mut accepting = JoinSet::new();
    for (sockets, kind) in [
        (listeners.clear, ListenerKind::Clear),
        (listeners.tls, ListenerKind::Tls),
        (listeners.redirect, ListenerKind::Redirect),
    ] {
        for socket in sockets {
            let listener = listen::nonblocking(socket)?;
            accepting.spawn(Arc::clone(&acceptor).run(listener, kind));
        }
    }

    let linger = tokio::select! {
        linger = shutdown => linger,
        Some(_) = results.join_next() => return Err(ServeError::Lost),
    };
    accepting.shutdown().await;
    drop(acceptor);
    // No receiver is left if all workers are gone, which the loop below reports.
    let _ = drain.send(Some(linger));

    let mut drained = DrainReport::default();
    while let Some(result) = results.join_next().await {
        let Ok(Some(result)) = result else {
            return Err(ServeError::Lost);
        };
        drained += result;
    }
    Ok(drained)
}

/// Starts a worker. The returned future completes when the worker ends, with `None` if its event loop could not start.
fn start_worker(
    number: usize,
    context: (&Arc<SnapshotStore>, &Arc<ServeSettings>, &Arc<Admission>),
    draining: &watch::Receiver<Option<Duration>>,
) -> Result<
    (
        WorkerHandle,
        impl Future<Output = Option<DrainReport>> + use<>,
    ),
    ServeError,
> {
    // Each queued connection holds a permit, and the capacity is the number of permits.
    let (connections, received) = mpsc::channel(context.1.limits.connections.max(1));
    let needs_permit = Arc::new(Notify::new());
    let permit_needed = Arc::clone(&needs_permit);
    let (ended, end) = oneshot::channel();
    let (snapshots, settings, admission) = context;
    let (snapshots, settings) = (Arc::clone(snapshots), Arc::clone(settings));
    let (admission, draining) = (Arc::clone(admission), draining.clone());
    thread::Builder::new()
        .name(format!("worker-{number}"))
        .spawn(move || {
            match worker::run(
                (snapshots, settings, admission),
                (received, permit_needed),
                draining,
            ) {
                // The receiver is gone if serving was ended at once.
                Ok(drained) => drop(ended.send(drained)),
                Err(error) => {
                    error!(%error, "starting the event loop of a worker failed; shutting down")
                }
            }
        })
        .map_err(ServeError::Worker)?;
    Ok((WorkerHandle::new(connections, needs_permit), async {
        end.await.ok()
    }))
}
