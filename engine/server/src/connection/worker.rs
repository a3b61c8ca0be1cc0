//! A worker: a thread that answers requests.
//!
//! Each worker has an event loop of its own, and a connection stays with its worker. Workers share only the counters and the snapshot, which is only read.
//! Compared with one event loop for all threads, there are no locks and wake-ups between threads.
//!
//! **Invariant:** accepts no connections and chooses no response.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::net::TcpStream as StdStream;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::{Duration, Instant};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::MissedTickBehavior;
use tracing::debug;

use crate::connection::body_stream::BodyPiece;
use crate::connection::connection_state::{CloseReason, ConnectionState, Phase};
use crate::connection::drain::{ConnectionCounts, DrainReport};
use crate::connection::event_service::EventService;
use crate::connection::fast_lane::FastLane;
use crate::connection::http2::joined_writes::JoinedConnection;
use crate::connection::http2::preface::opens_with_preface;
use crate::connection::http2::{self, Http2Connection, RequestContent};
use crate::connection::proxy_header;
use crate::connection::request_service::{Channel, RequestService};
use crate::connection::served_connection::ServedConnection;
use crate::connection::stream::Stream;
use crate::connection::worker_context::WorkerContext;
use crate::listen::admission::ConnectionPermit;
use crate::listen::admission::NewConnection;
use crate::listen::admission::{Admission, AdmissionGuard};
use crate::listen::admission::{ListenerKind, Peer};
use crate::settings::{Limits, ServeSettings};
use crate::snapshot_store::SnapshotStore;
use crate::tls::handshake::accept_tls;

/// How often a worker checks its connections.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Idle connections per closed connection when room is needed. With thousands of idle connections, several are closed at once, so that the next connection does not scan all of them again.
const IDLE_PER_EVICTION: usize = 16;

/// A connection of either protocol.
///
/// The separate box keeps the surrounding future small. A large future is spread over memory, which costs cache misses with every request.
type Connection = Pin<Box<dyn ServedConnection>>;

/// A worker and its connections.
struct Worker {
    context: Rc<WorkerContext>,
    http1: Rc<http1::Builder>,
    http2: h2::server::Builder,
    connections: RefCell<HashMap<u64, Rc<ConnectionState>>>,
    next_number: Cell<u64>,
    /// Whether idle connections of HTTP/1.1 wait for one more request while the worker drains.
    is_lingering: Cell<bool>,
    /// Notified when a connection ends while the worker drains.
    ended: Notify,
    /// Set once the server drains: the time for which idle connections wait for one more request. If the sender is gone, the worker ends at once.
    draining: watch::Receiver<Option<Duration>>,
}

/// Runs a worker until the server ends.
///
/// # Errors
/// When the event loop cannot be created.
pub(crate) fn run(
    (snapshots, settings, admission): (Arc<SnapshotStore>, Arc<ServeSettings>, Arc<Admission>),
    (connections, needs_permit): (mpsc::Receiver<NewConnection>, Arc<Notify>),
    draining: watch::Receiver<Option<Duration>>,
) -> io::Result<DrainReport> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())?;
    let context = Rc::new(WorkerContext::new(snapshots, settings, admission));
    let worker = Rc::new(Worker::new(context, draining.clone()));
    Ok(runtime.block_on(worker.serve(connections, &needs_permit, draining)))
}

impl Worker {
    fn new(context: Rc<WorkerContext>, draining: watch::Receiver<Option<Duration>>) -> Self {
        let limits = &context.settings.limits;
        let mut http1 = http1::Builder::new();
        // `ConnectionState` has the timeouts, without a timer per request.
        http1
            .header_read_timeout(None)
            // A client may close its write side after the request and still read the response (RFC 9112, section 9.6).
            .half_close(true)
            .max_header_size(limits.header_bytes);
        if limits.header_fields != Limits::default().header_fields {
            // Setting the limit makes hyper allocate, so hyper's own default of the same value is kept.
            http1.max_headers(limits.header_fields);
        }
        let http2 = http2::builder(limits);
        Self {
            context,
            http1: Rc::new(http1),
            http2,
            connections: RefCell::default(),
            next_number: Cell::new(0),
            is_lingering: Cell::new(false),
            ended: Notify::new(),
            draining,
        }
    }

    async fn serve(
        self: Rc<Self>,
        mut new_connections: mpsc::Receiver<NewConnection>,
        needs_permit: &Notify,
        mut draining: watch::Receiver<Option<Duration>>,
    ) -> DrainReport {
        let mut checks = tokio::time::interval(CHECK_INTERVAL);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut deadline = None;
        let mut linger = pin!(tokio::time::sleep(Duration::ZERO));
        let mut drained = DrainReport::default();
        loop {
            let open = self.connections.borrow().len();
            if let Some(deadline) = deadline
                && (open == 0 || Instant::now() >= deadline)
            {
                drained.cut = self.in_flight();
                return drained;
            }
            tokio::select! {
                Some(connection) = new_connections.recv() => self.accept(connection),
                () = needs_permit.notified() => self.make_room(Instant::now()),
                changed = draining.changed() => {
                    if changed.is_err() {
                        return drained;
                    }
                    // The acceptors end before the signal, so the channel has every accepted connection.
                    while let Ok(connection) = new_connections.try_recv() {
                        self.accept(connection);
                    }
                    let now = Instant::now();
                    deadline = Some(now + self.context.settings.grace);
                    let time = draining.borrow().unwrap_or_default();
                    linger.as_mut().reset((now + time).into());
                    drained.waited_for = self.drain(!time.is_zero());
                }
                () = linger.as_mut(), if self.is_lingering.get() => {
                    self.is_lingering.set(false);
                    self.wake_all();
                }
                _ = checks.tick(), if open > 0 || self.has_buffered() => {
                    self.check(Instant::now());
                    if let Some(log) = &self.context.access_log {
                        log.borrow_mut().flush();
                    }
                    self.context.page_requests.borrow_mut().flush();
                }
                () = self.ended.notified(), if deadline.is_some() => {}
            }
        }
    }

    /// Returns whether log lines or requests for pages are not passed on yet.
    fn has_buffered(&self) -> bool {
        let log = self.context.access_log.as_ref();
        log.is_some_and(|log| log.borrow().has_lines())
            || !self.context.page_requests.borrow().is_empty()
    }

    fn accept(self: &Rc<Self>, new: NewConnection) {
        let has_prologue = new.kind == ListenerKind::Tls || self.has_proxy_header(new.peer);
        let phase = match has_prologue {
            true => Phase::Handshake,
            false => Phase::Head,
        };
        let state = Rc::new(ConnectionState::new(Instant::now(), phase));
        let tracked = TrackedConnection::begin(Rc::clone(self), &state, new.permit);
        let (socket, peer, kind) = (new.socket, new.peer, new.kind);
        tokio::task::spawn_local(async move {
            let worker = &tracked.worker;
            let mut admitted = new.admitted;
            let begun = match has_prologue {
                true => {
                    let begin =
                        worker.begin_with_prologue(socket, (peer, kind), &state, &mut admitted);
                    until_closed(&state, Box::pin(begin)).await
                }
                false => {
                    let begin = worker.begin_clear(socket, peer, kind, &state);
                    until_closed(&state, Box::pin(begin)).await
                }
            };
            // The handshake has ended, successfully or not.
            admitted.handshake = None;
            let Some(Ok(Some(connection))) = begun else {
                return;
            };
            if let Some(Err(error)) = worker.drive(&state, connection).await {
                if error.is_parse() || error.is_parse_too_large() {
                    let counters = &worker.context.snapshots.connections;
                    counters.malformed.fetch_add(1, Relaxed);
                }
                debug!(%error, "connection ended early");
            }
        });
    }

    /// Returns whether the connection begins with a PROXY protocol header.
    fn has_proxy_header(&self, peer: Peer) -> bool {
        peer.is_trusted && self.context.settings.proxy_protocol
    }

    /// Reads the bytes before HTTP: the PROXY protocol header and the TLS handshake. Returns `None` if the connection ends after them.
    async fn begin_with_prologue(
        &self,
        socket: StdStream,
        (mut peer, kind): (Peer, ListenerKind),
        state: &Rc<ConnectionState>,
        admitted: &mut AdmissionGuard,
    ) -> io::Result<Option<Connection>> {
        let mut socket = TcpStream::from_std(socket)?;
        let context = &self.context;
        if self.has_proxy_header(peer) {
            let named = proxy_header::read(&mut socket).await.inspect_err(|_| {
                let counters = &context.snapshots.connections;
                counters.malformed.fetch_add(1, Relaxed);
            })?;
            if let Some(address) = named {
                let is_trusted = context.settings.trusts(address);
                peer = Peer {
                    address,
                    is_trusted,
                };
                match context.admission.admit(peer, kind) {
                    Some(guard) => *admitted = guard,
                    None => return Ok(None),
                }
            }
        }
        let Some(tls) = (context.settings.tls.as_ref()).filter(|_| kind == ListenerKind::Tls)
        else {
            state.enter(Phase::Head);
            return self.begin(socket, peer, kind, state).await;
        };
        let Some(secured) = accept_tls(socket, tls, &context.snapshots).await? else {
            return Ok(None);
        };
        state.enter(if secured.is_http2 {
            Phase::Streams
        } else {
            Phase::Head
        });
        let service = self.service(peer, Channel::Secure(secured.name), state);
        let stream = Stream::new(secured.stream, Rc::clone(state));
        Ok(Some(self.with_events(stream, secured.is_http2, service)))
    }

    async fn begin_clear(
        &self,
        socket: StdStream,
        peer: Peer,
        kind: ListenerKind,
        state: &Rc<ConnectionState>,
    ) -> io::Result<Option<Connection>> {
        let socket = TcpStream::from_std(socket)?;
        self.begin(socket, peer, kind, state).await
    }

    /// Detects the protocol of a client without TLS.
    async fn begin(
        &self,
        socket: TcpStream,
        peer: Peer,
        kind: ListenerKind,
        state: &Rc<ConnectionState>,
    ) -> io::Result<Option<Connection>> {
        let is_http2 = opens_with_preface(&socket).await?;
        if is_http2 {
            state.enter(Phase::Streams);
        }
        let channel = match kind {
            ListenerKind::Redirect => Channel::Redirect(None),
            ListenerKind::Clear | ListenerKind::Tls => Channel::Clear,
        };
        let service = self.service(peer, channel, state);
        let stream = Stream::new(socket, Rc::clone(state));
        Ok(Some(self.with_events(stream, is_http2, service)))
    }

    fn service(&self, peer: Peer, channel: Channel, state: &Rc<ConnectionState>) -> RequestService {
        RequestService {
            context: Rc::clone(&self.context),
            state: Rc::clone(state),
            peer,
            channel,
        }
    }

    /// Wraps the service in [`EventService`] if the settings have events. Otherwise, visitors' HTTP/1.1 connections begin in the fast lane.
    fn with_events<S>(
        &self,
        stream: Stream<S>,
        is_http2: bool,
        service: RequestService,
    ) -> Connection
    where
        S: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        match &self.context.settings.events {
            None if !is_http2 && self.has_fast_lane(&service.channel) => {
                let http1 = Rc::clone(&self.http1);
                Box::pin(FastLane::new(stream, service, http1))
            }
            None => self.connection(stream, is_http2, service),
            Some(events) => {
                let service = EventService {
                    visitors: service,
                    events: events.clone(),
                    draining: self.draining.clone(),
                };
                self.connection(stream, is_http2, service)
            }
        }
    }

    fn has_fast_lane(&self, channel: &Channel) -> bool {
        self.context.settings.fast_lane && !matches!(channel, Channel::Redirect(_))
    }

    fn connection<I, S, B>(&self, stream: Stream<I>, is_http2: bool, service: S) -> Connection
    where
        I: AsyncRead + AsyncWrite + Unpin + 'static,
        S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>
            + Service<Request<RequestContent>, Response = Response<B>, Error = Infallible>
            + Unpin
            + 'static,
        <S as Service<Request<Incoming>>>::Future: 'static,
        <S as Service<Request<RequestContent>>>::Future: Unpin + 'static,
        B: http_body::Body<Data = BodyPiece> + Unpin + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        if is_http2 {
            let context = Rc::clone(&self.context);
            let spare = Rc::clone(&context.spare_buffer);
            Box::pin(JoinedConnection::begin(stream, spare, |stream| {
                Http2Connection::new(stream, &self.http2, service, context)
            }))
        } else {
            let stream = TokioIo::new(stream);
            Box::pin(self.http1.serve_connection(stream, service))
        }
    }

    /// Polls a connection until it ends. Starts its graceful shutdown when the connection must end or the worker drains.
    fn drive(
        &self,
        state: &ConnectionState,
        mut connection: Connection,
    ) -> impl Future<Output = Option<hyper::Result<()>>> {
        let mut has_begun_shutdown = false;
        poll_fn(move |cx| {
            state.register(cx.waker());
            let reason = state.close_reason();
            if reason.is_some_and(|reason| !reason.is_idle()) {
                return Poll::Ready(None);
            }
            // Polls before the shutdown, so that a request that has already arrived is still answered.
            if let Poll::Ready(ended) = connection.as_mut().poll(cx) {
                return Poll::Ready(Some(ended));
            }
            let must_end = reason.is_some() && !state.cancel_eviction();
            let may_linger = self.is_lingering.get() && state.phase() == Phase::Idle;
            let is_draining =
                self.context.is_draining.get() && !state.expects_request() && !may_linger;
            if (must_end || is_draining) && !has_begun_shutdown {
                has_begun_shutdown = true;
                connection.as_mut().graceful_shutdown();
                if let Poll::Ready(ended) = connection.as_mut().poll(cx) {
                    return Poll::Ready(Some(ended));
                }
            }
            if must_end {
                Poll::Ready(None)
            } else {
                Poll::Pending
            }
        })
    }

    /// Shuts all connections down gracefully. Connections without a request in flight end at once, unless `is_lingering`.
    fn drain(&self, is_lingering: bool) -> ConnectionCounts {
        self.context.is_draining.set(true);
        self.is_lingering.set(is_lingering);
        self.wake_all();
        ConnectionCounts {
            ending: 0,
            ..self.in_flight()
        }
    }

    fn wake_all(&self) {
        for state in self.connections.borrow().values() {
            state.wake();
        }
    }

    fn in_flight(&self) -> ConnectionCounts {
        let mut all = ConnectionCounts::default();
        for state in self.connections.borrow().values() {
            all.add(state);
        }
        all
    }

    fn check(&self, now: Instant) {
        let counters = &self.context.snapshots.connections;
        for state in self.connections.borrow().values() {
            match state.check(now, &self.context.settings.limits) {
                Some(CloseReason::Handshake) => {
                    let handshakes = &self.context.snapshots.handshakes;
                    handshakes.slow.fetch_add(1, Relaxed)
                }
                Some(CloseReason::Head) => counters.slow_heads.fetch_add(1, Relaxed),
                Some(CloseReason::Write) => counters.slow_readers.fetch_add(1, Relaxed),
                Some(CloseReason::Request) => counters.slow_requests.fetch_add(1, Relaxed),
                Some(CloseReason::Idle) => counters.idle.fetch_add(1, Relaxed),
                Some(CloseReason::Room) | None => continue,
            };
        }
        // A connection may have begun to wait when no connection was idle.
        self.make_room(now);
    }

    /// Closes the connections that have been idle for longest, if a connection still waits for a permit. Another worker may have made room already.
    fn make_room(&self, now: Instant) {
        if self.context.snapshots.connections.waiting.load(Relaxed) == 0 {
            return;
        }
        let connections = self.connections.borrow();
        let mut idle: Vec<_> = connections
            .iter()
            .filter_map(|(number, state)| Some((state.idle_since(now)?, *number, state)))
            .collect();
        let count = idle.len().div_ceil(IDLE_PER_EVICTION);
        if count == 0 {
            return;
        }
        // Connections that became idle between two checks are ordered by age.
        idle.select_nth_unstable_by_key(count - 1, |(since, number, _)| (*since, *number));
        for (_, _, state) in &idle[..count] {
            state.make_room();
            self.context
                .snapshots
                .connections
                .made_room
                .fetch_add(1, Relaxed);
        }
    }
}

/// Polls `future` until it completes or its connection must end.
fn until_closed<T>(
    state: &ConnectionState,
    mut future: impl Future<Output = T> + Unpin,
) -> impl Future<Output = Option<T>> {
    poll_fn(move |cx| {
        state.register(cx.waker());
        if state.close_reason().is_some() {
            return Poll::Ready(None);
        }
        Pin::new(&mut future).poll(cx).map(Some)
    })
}

/// Registers a connection with its worker until it is dropped.
struct TrackedConnection {
    worker: Rc<Worker>,
    number: u64,
    _permit: ConnectionPermit,
}

impl TrackedConnection {
    fn begin(worker: Rc<Worker>, state: &Rc<ConnectionState>, permit: ConnectionPermit) -> Self {
        let number = worker.next_number.get();
        worker.next_number.set(number + 1);
        worker
            .connections
            .borrow_mut()
            .insert(number, Rc::clone(state));
        Self {
            worker,
            number,
            _permit: permit,
        }
    }
}

impl Drop for TrackedConnection {
    fn drop(&mut self) {
        self.worker.connections.borrow_mut().remove(&self.number);
        if self.worker.context.is_draining.get() {
            self.worker.ended.notify_one();
        }
    }
}
