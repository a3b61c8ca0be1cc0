//! A thread that answers requests.
//!
//! Each worker has an event loop of its own, and a connection stays with the worker that it came to: nothing that a request touches is shared with another thread, but for the snapshot, which is only read, and the counters.
//! Against one loop for all threads that saves the locks and the wake-ups between them; `benches/against_nginx.rs` measures it.
//!
//! **Invariant:** accepts no connections and decides no answer.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, TcpStream as StdStream};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::{Duration, Instant};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulConnection;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::MissedTickBehavior;
use tracing::debug;

use super::Order;
use super::access::Lines;
use super::connection_state::{ConnectionState, Overdue, Phase};
use super::connections::Permit;
use super::drain::{Drained, UnderWay};
use super::events::EventService;
use super::request_id::RequestIds;
use super::request_service::RequestService;
use super::settings::{Limits, ServeSettings};
use super::snapshot_store::SnapshotStore;
use super::stream::Stream;

/// How often a worker looks at its connections.
const ROUND: Duration = Duration::from_millis(500);

/// What a worker is sent.
#[derive(Debug)]
pub(super) enum Message {
    /// A connection is its own from now on.
    Admit(Arrival),
    /// One waits for which there is no room.
    MakeRoom,
}

/// Of so many idle connections, one makes room: more than one is needed then, or the next one would look through all of them again.
const IN_SO_MANY: usize = 16;

/// A connection on its way to a worker.
#[derive(Debug)]
pub(super) struct Arrival {
    /// Not blocking.
    pub(super) socket: StdStream,
    pub(super) peer: IpAddr,
    /// Whether the peer is a trusted proxy.
    pub(super) trusted: bool,
    pub(super) permit: Permit,
}

/// A connection in either protocol.
///
/// It is in a box of its own, so that the future around it stays small: what lies far apart is fetched from memory again for every request.
type Connection =
    Pin<Box<dyn GracefulConnection<Error = hyper::Error, Output = hyper::Result<()>>>>;

/// What a worker's connections have in common.
pub(super) struct Worker {
    pub(super) snapshots: Arc<SnapshotStore>,
    pub(super) settings: Arc<ServeSettings>,
    pub(super) ids: RequestIds,
    /// Where there is an access log.
    pub(super) lines: Option<RefCell<Lines>>,
    http1: http1::Builder,
    http2: http2::Builder<Local>,
    connections: RefCell<HashMap<u64, Rc<ConnectionState>>>,
    next: Cell<u64>,
    draining: Cell<bool>,
    /// Told while draining, when a connection has ended.
    emptied: Notify,
    orders: watch::Receiver<Order>,
}

/// Runs a worker until it is told to stop.
///
/// # Errors
/// When the system refuses the event loop.
pub(super) fn work(
    snapshots: Arc<SnapshotStore>,
    settings: Arc<ServeSettings>,
    messages: mpsc::UnboundedReceiver<Message>,
    orders: watch::Receiver<Order>,
) -> io::Result<Drained> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())?;
    let worker = Rc::new(Worker::new(snapshots, settings, orders.clone()));
    Ok(runtime.block_on(worker.run(messages, orders)))
}

impl Worker {
    fn new(
        snapshots: Arc<SnapshotStore>,
        settings: Arc<ServeSettings>,
        orders: watch::Receiver<Order>,
    ) -> Self {
        let limits = &settings.limits;
        let mut http1 = http1::Builder::new();
        // The timeout is kept by `connection state`, which needs no timer for each request.
        http1
            .header_read_timeout(None)
            .max_header_size(limits.header_bytes);
        if limits.header_fields != Limits::default().header_fields {
            // Hyper keeps its own default, which is ours, without an allocation.
            http1.max_headers(limits.header_fields);
        }
        let mut http2 = http2::Builder::new(Local);
        http2
            .timer(TokioTimer::new())
            .max_concurrent_streams(limits.http2_streams)
            .max_pending_accept_reset_streams(limits.http2_resets)
            .max_local_error_reset_streams(limits.http2_resets)
            .max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX))
            // Content is refused, so that nobody needs a window larger than the least that the protocol has.
            .initial_stream_window_size(65_535)
            .initial_connection_window_size(65_535);
        let lines = settings.access_log.clone().map(Lines::new);
        Self {
            snapshots,
            settings,
            ids: RequestIds::default(),
            lines: lines.map(RefCell::new),
            http1,
            http2,
            connections: RefCell::default(),
            next: Cell::new(0),
            draining: Cell::new(false),
            emptied: Notify::new(),
            orders,
        }
    }

    async fn run(
        self: Rc<Self>,
        mut messages: mpsc::UnboundedReceiver<Message>,
        mut orders: watch::Receiver<Order>,
    ) -> Drained {
        let mut round = tokio::time::interval(ROUND);
        round.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut deadline = None;
        let mut drained = Drained::default();
        loop {
            let open = self.connections.borrow().len();
            if let Some(deadline) = deadline
                && (open == 0 || Instant::now() >= deadline)
            {
                drained.cut = self.under_way();
                return drained;
            }
            tokio::select! {
                Some(message) = messages.recv() => self.take(message),
                order = orders.changed() => {
                    if order.is_err() {
                        return drained;
                    }
                    // The door is shut before the order is given: all who came are in the queue.
                    while let Ok(message) = messages.try_recv() {
                        self.take(message);
                    }
                    deadline = Some(Instant::now() + self.settings.grace);
                    drained.waited_for = self.drain();
                }
                _ = round.tick(), if open > 0 || self.has_lines() => {
                    self.check(Instant::now());
                    if let Some(lines) = &self.lines {
                        lines.borrow_mut().hand_over();
                    }
                }
                () = self.emptied.notified(), if deadline.is_some() => {}
            }
        }
    }

    fn has_lines(&self) -> bool {
        self.lines
            .as_ref()
            .is_some_and(|lines| lines.borrow().has_some())
    }

    fn take(self: &Rc<Self>, message: Message) {
        match message {
            Message::Admit(arrival) => self.admit(arrival),
            Message::MakeRoom => self.make_room(Instant::now()),
        }
    }

    fn admit(self: &Rc<Self>, arrival: Arrival) {
        let state = Rc::new(ConnectionState::new(Instant::now()));
        let place = Place::take(Rc::clone(self), &state, arrival.permit);
        let visit = RequestService {
            worker: Rc::clone(self),
            state: Rc::clone(&state),
            peer: arrival.peer,
            trusted: arrival.trusted,
        };
        tokio::task::spawn_local(async move {
            let worker = &place.worker;
            let begin = Box::pin(worker.begin(arrival.socket, visit));
            let Some(Ok(connection)) = until_overdue(&state, begin).await else {
                return;
            };
            if let Some(Err(error)) = worker.drive(&state, connection).await {
                if error.is_parse() || error.is_parse_too_large() {
                    worker.snapshots.connections.malformed.fetch_add(1, Relaxed);
                }
                debug!(%error, "a connection ended early");
            }
        });
    }

    /// Learns which protocol the client speaks.
    async fn begin(&self, socket: StdStream, visit: RequestService) -> io::Result<Connection> {
        let socket = TcpStream::from_std(socket)?;
        let http2 = opens_with_preface(&socket).await?;
        let stream = TokioIo::new(Stream::new(socket, Rc::clone(&visit.state)));
        if http2 {
            visit.state.enter(Phase::Streams);
        }
        Ok(match &self.settings.events {
            None => self.converse(stream, http2, visit),
            Some(events) => {
                let attended = EventService {
                    visit,
                    events: events.clone(),
                    snapshots: Arc::clone(&self.snapshots),
                    orders: self.orders.clone(),
                };
                self.converse(stream, http2, attended)
            }
        })
    }

    fn converse<S, B>(&self, stream: TokioIo<Stream>, http2: bool, service: S) -> Connection
    where
        S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + 'static,
        S::Future: 'static,
        B: http_body::Body + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        if http2 {
            Box::pin(self.http2.serve_connection(stream, service))
        } else {
            Box::pin(self.http1.serve_connection(stream, service))
        }
    }

    /// Polls a connection to its end, or until it has to end, and asks it to end once the worker drains.
    fn drive(
        &self,
        state: &ConnectionState,
        mut connection: Connection,
    ) -> impl Future<Output = Option<hyper::Result<()>>> {
        let mut told = false;
        poll_fn(move |cx| {
            state.attend(cx.waker());
            let overdue = state.overdue();
            if overdue.is_some_and(|overdue| !overdue.is_idle()) {
                return Poll::Ready(None);
            }
            // First what has come already, so that a request that was sent before the end is still answered.
            if let Poll::Ready(ended) = connection.as_mut().poll(cx) {
                return Poll::Ready(Some(ended));
            }
            let ends = overdue.is_some() && !state.spare();
            if (ends || self.draining.get()) && !told {
                told = true;
                connection.as_mut().graceful_shutdown();
                if let Poll::Ready(ended) = connection.as_mut().poll(cx) {
                    return Poll::Ready(Some(ended));
                }
            }
            if ends {
                Poll::Ready(None)
            } else {
                Poll::Pending
            }
        })
    }

    /// Asks all connections to end. What has nothing under way does so at once.
    fn drain(&self) -> UnderWay {
        self.draining.set(true);
        for state in self.connections.borrow().values() {
            state.wake();
        }
        UnderWay {
            ending: 0,
            ..self.under_way()
        }
    }

    fn under_way(&self) -> UnderWay {
        let mut all = UnderWay::default();
        for state in self.connections.borrow().values() {
            all.add(state);
        }
        all
    }

    fn check(&self, now: Instant) {
        let counters = &self.snapshots.connections;
        for state in self.connections.borrow().values() {
            match state.check(now, &self.settings.limits) {
                Some(Overdue::Head) => counters.slow_heads.fetch_add(1, Relaxed),
                Some(Overdue::Write) => counters.slow_readers.fetch_add(1, Relaxed),
                Some(Overdue::Request) => counters.slow_requests.fetch_add(1, Relaxed),
                Some(Overdue::Idle) => counters.idle.fetch_add(1, Relaxed),
                Some(Overdue::Room) | None => continue,
            };
        }
        // Whoever waits may have come when nothing was idle.
        self.make_room(now);
    }

    /// Ends the connections that have been idle for longest, if one still waits for room: another worker may have made some.
    fn make_room(&self, now: Instant) {
        if self.snapshots.connections.waiting.load(Relaxed) == 0 {
            return;
        }
        let connections = self.connections.borrow();
        let mut idle: Vec<_> = connections
            .iter()
            .filter_map(|(number, state)| Some((state.idle_since(now)?, *number, state)))
            .collect();
        let count = idle.len().div_ceil(IN_SO_MANY);
        if count == 0 {
            return;
        }
        // Of those that came to rest between two looks, the older one counts as idle for longer.
        idle.select_nth_unstable_by_key(count - 1, |(since, number, _)| (*since, *number));
        for (_, _, state) in &idle[..count] {
            state.make_room();
            self.snapshots.connections.made_room.fetch_add(1, Relaxed);
        }
    }
}

/// Polls `future` to its end, or until its connection has to end.
fn until_overdue<T>(
    state: &ConnectionState,
    mut future: impl Future<Output = T> + Unpin,
) -> impl Future<Output = Option<T>> {
    poll_fn(move |cx| {
        state.attend(cx.waker());
        if state.overdue().is_some() {
            return Poll::Ready(None);
        }
        Pin::new(&mut future).poll(cx).map(Some)
    })
}

/// A connection's place in its worker's list, until it ends.
struct Place {
    worker: Rc<Worker>,
    number: u64,
    _seat: Permit,
}

impl Place {
    fn take(worker: Rc<Worker>, state: &Rc<ConnectionState>, permit: Permit) -> Self {
        let number = worker.next.get();
        worker.next.set(number + 1);
        worker
            .connections
            .borrow_mut()
            .insert(number, Rc::clone(state));
        Self {
            worker,
            number,
            _seat: permit,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.worker.connections.borrow_mut().remove(&self.number);
        if self.worker.draining.get() {
            self.worker.emptied.notify_one();
        }
    }
}

/// Whether the client speaks HTTP/2 from the start (RFC 9113, section 3.3). Nothing is taken off the socket.
async fn opens_with_preface(socket: &TcpStream) -> io::Result<bool> {
    const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let mut start = [0; PREFACE.len()];
    loop {
        let ready = socket.ready(Interest::READABLE).await?;
        let length = socket.peek(&mut start).await?;
        let is_open = length < PREFACE.len() && !ready.is_read_closed();
        if length == 0 || !is_open || !PREFACE.starts_with(&start[..length]) {
            return Ok(start == *PREFACE);
        }
        // The rest is on its way, or the timeout for header fields ends the wait. What lies there already is no news any more.
        let _ = socket.try_io(Interest::READABLE, || -> io::Result<()> {
            Err(io::ErrorKind::WouldBlock.into())
        });
    }
}

/// Runs the streams of HTTP/2 connections on the worker's own thread.
#[derive(Debug, Clone, Copy)]
struct Local;

impl<F: Future + 'static> hyper::rt::Executor<F> for Local {
    fn execute(&self, stream: F) {
        tokio::task::spawn_local(async move {
            stream.await;
        });
    }
}
