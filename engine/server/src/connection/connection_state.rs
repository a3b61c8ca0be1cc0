//! Tracks the phase and the progress of one connection, for its timeouts.
//!
//! The socket and the service of a connection record each step by setting a `Cell`. Twice a second the worker checks all of its connections and ends those without progress for too long.
//! Timeouts therefore cost a request nothing: no clock reading and no timer.
//!
//! **Invariant:** knows no HTTP and no sockets; never leaves its worker's thread.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::task::Waker;
use std::time::{Duration, Instant};

use crate::settings::Limits;

/// The phase of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Before HTTP: the PROXY protocol header and the TLS handshake.
    Handshake,
    /// New, or in the middle of a request's header fields.
    Head,
    /// Writing a response.
    Responding,
    /// Between requests.
    Idle,
    /// HTTP/2, where requests overlap.
    Streams,
    /// The last response is sent. Bytes that the client still sends are read and discarded.
    Closing,
}

/// The reason for ending a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CloseReason {
    /// The PROXY protocol header or the TLS handshake took too long.
    Handshake,
    /// The header fields took too long.
    Head,
    /// The client did not read the response.
    Write,
    /// The request and its response together took too long.
    Request,
    /// No request came.
    Idle,
    /// No request was in flight, and another connection needs a permit.
    Room,
}

impl CloseReason {
    /// Returns whether the connection may end gracefully. Requests that have arrived meanwhile are then still answered, and an HTTP/2 client gets a GOAWAY (RFC 9113, section 6.8).
    pub(crate) const fn is_idle(self) -> bool {
        matches!(self, Self::Idle | Self::Room)
    }
}

/// The phase and the progress of one connection.
#[derive(Debug)]
pub(crate) struct ConnectionState {
    phase: Cell<Phase>,
    /// Whether the socket accepts no more bytes.
    is_blocked: Cell<bool>,
    /// Counts the steps of progress.
    steps: Cell<u32>,
    /// The last step that a check saw, and when a check first saw it.
    last_seen_step: Cell<(u32, Instant)>,
    /// Counts the HTTP/1.1 requests.
    requests: Cell<u32>,
    /// The last request that a check saw, and when a check first saw it.
    last_seen_request: Cell<(u32, Instant)>,
    /// Start times of the HTTP/2 requests in flight, oldest first.
    streams: RefCell<BTreeMap<u32, Instant>>,
    next_stream: Cell<u32>,
    close_reason: Cell<Option<CloseReason>>,
    waker: RefCell<Option<Waker>>,
    /// Whether the request has content that is not read.
    has_unread: Cell<bool>,
    /// Whether the connection is new and its first byte may still be on its way.
    expects_first_byte: Cell<bool>,
}

/// Timeout for a client to read the last response of its connection.
const CLOSING_TIMEOUT: Duration = Duration::from_secs(2);

/// Timeout for the first request of a new connection while the server drains.
///
/// A client that has just completed a handshake has usually sent a request. Browsers do not retry on a connection that was never used.
const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(1);

impl ConnectionState {
    pub(crate) fn new(now: Instant, phase: Phase) -> Self {
        Self {
            phase: Cell::new(phase),
            is_blocked: Cell::new(false),
            steps: Cell::new(0),
            last_seen_step: Cell::new((0, now)),
            requests: Cell::new(0),
            last_seen_request: Cell::new((0, now)),
            streams: RefCell::default(),
            next_stream: Cell::new(0),
            close_reason: Cell::new(None),
            waker: RefCell::new(None),
            has_unread: Cell::new(false),
            expects_first_byte: Cell::new(true),
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase.get()
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.set(phase);
        self.note_progress();
    }

    /// Records that bytes were read.
    ///
    /// Over HTTP/2 these bytes may be anything, so only requests and bodies count as progress there.
    pub(crate) fn note_read(&self) {
        self.expects_first_byte.set(false);
        if self.phase.get() == Phase::Idle {
            self.begin_request();
            self.enter(Phase::Head);
        }
    }

    /// Records that the header fields of a request are complete.
    pub(crate) fn begin_response(&self) {
        // A pipelined request arrives together with the previous request, so it had no phase of its own.
        if self.phase.get() != Phase::Head {
            self.begin_request();
        }
        self.enter(Phase::Responding);
    }

    /// Records that bytes were written, or that the socket is blocked.
    pub(crate) fn note_write(&self, blocked: bool) {
        let was_blocked = self.is_blocked.replace(blocked);
        let has_moved = match self.phase.get() {
            Phase::Streams => blocked != was_blocked,
            _ => !blocked,
        };
        if has_moved {
            self.note_progress();
        }
    }

    /// Records that a blocked socket was flushed.
    pub(crate) fn note_flush(&self) {
        if self.is_blocked.get() {
            self.note_write(false);
        }
    }

    /// Records the start of an HTTP/2 request and returns its number.
    pub(crate) fn open_stream(&self, started: Instant) -> u32 {
        let number = self.next_stream.get();
        self.next_stream.set(number.wrapping_add(1));
        self.streams.borrow_mut().insert(number, started);
        self.note_progress();
        number
    }

    /// Records the end of an HTTP/2 request: its response is sent, or the client reset the stream.
    pub(crate) fn close_stream(&self, number: u32) {
        self.streams.borrow_mut().remove(&number);
        self.note_progress();
    }

    pub(crate) fn mark_unread(&self) {
        self.has_unread.set(true);
    }

    pub(crate) fn has_unread(&self) -> bool {
        self.has_unread.get()
    }

    /// Returns whether the first HTTP/1.1 request is probably on its way.
    pub(crate) fn expects_request(&self) -> bool {
        self.expects_first_byte.get() && self.phase.get() == Phase::Head
    }

    /// Returns whether an HTTP/1.1 connection waits for a request, or for the rest of one. A blocked socket has an error response.
    pub(crate) fn awaits_request(&self) -> bool {
        matches!(self.phase.get(), Phase::Head | Phase::Idle) && !self.is_blocked.get()
    }

    pub(crate) fn has_streams(&self) -> bool {
        !self.streams.borrow().is_empty()
    }

    /// Stores the waker of the connection's task. The waker of a spawned task stays the same, so the first one is kept.
    pub(crate) fn register(&self, waker: &Waker) {
        self.waker.borrow_mut().get_or_insert_with(|| waker.clone());
    }

    pub(crate) fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }

    /// Returns why the connection must end, if it must.
    pub(crate) fn close_reason(&self) -> Option<CloseReason> {
        self.close_reason.get()
    }

    /// Returns since when the connection has had no request in flight, as of the last check.
    ///
    /// Returns `None` while a request is in flight, and for a connection that is ending. Incomplete header fields do not count as a request.
    pub(crate) fn idle_since(&self, now: Instant) -> Option<Instant> {
        if self.has_request()
            || self.phase.get() == Phase::Closing
            || self.close_reason.get().is_some()
        {
            return None;
        }
        let (steps, since) = self.last_seen_step.get();
        Some(if steps == self.steps.get() {
            since
        } else {
            now
        })
    }

    fn has_request(&self) -> bool {
        match self.phase.get() {
            Phase::Responding => true,
            Phase::Streams => self.has_streams() || self.is_blocked.get(),
            Phase::Handshake | Phase::Head | Phase::Idle | Phase::Closing => false,
        }
    }

    /// Ends an idle connection to make room for another.
    pub(crate) fn make_room(&self) {
        self.end(CloseReason::Room);
    }

    /// Cancels [`Self::make_room`] if a request has arrived meanwhile. Returns whether it did.
    pub(crate) fn cancel_eviction(&self) -> bool {
        let is_cancelled = self.close_reason.get() == Some(CloseReason::Room) && self.has_request();
        if is_cancelled {
            self.close_reason.set(None);
        }
        is_cancelled
    }

    /// Checks the timeouts. Ends the connection if one has passed, and returns the reason.
    pub(crate) fn check(&self, now: Instant, limits: &Limits) -> Option<CloseReason> {
        if self.has_overlong_request(now, limits.request) {
            return Some(self.end(CloseReason::Request));
        }
        let steps = self.steps.get();
        let (seen, since) = self.last_seen_step.get();
        if steps != seen {
            self.last_seen_step.set((steps, now));
            return None;
        }
        if self.expects_request() && now.duration_since(since) >= FIRST_REQUEST_TIMEOUT {
            self.expects_first_byte.set(false);
            self.wake();
        }
        let (limit, close_reason) = match self.phase.get() {
            Phase::Handshake => (limits.handshake, CloseReason::Handshake),
            Phase::Head => (limits.header_read, CloseReason::Head),
            Phase::Responding => (limits.write, CloseReason::Write),
            Phase::Streams if self.is_blocked.get() => (limits.write, CloseReason::Write),
            Phase::Idle | Phase::Streams => (limits.idle, CloseReason::Idle),
            Phase::Closing => (CLOSING_TIMEOUT, CloseReason::Idle),
        };
        (now.duration_since(since) >= limit).then(|| self.end(close_reason))
    }

    /// Returns whether a request has been in flight for `limit`, even if bytes still move.
    fn has_overlong_request(&self, now: Instant, limit: Duration) -> bool {
        let since = match self.phase.get() {
            Phase::Head | Phase::Responding => {
                let request = self.requests.get();
                let (seen, since) = self.last_seen_request.get();
                if request != seen {
                    self.last_seen_request.set((request, now));
                    return false;
                }
                Some(since)
            }
            Phase::Streams => self.streams.borrow().values().next().copied(),
            Phase::Handshake | Phase::Idle | Phase::Closing => None,
        };
        since.is_some_and(|since| now.saturating_duration_since(since) >= limit)
    }

    fn end(&self, close_reason: CloseReason) -> CloseReason {
        self.close_reason.set(Some(close_reason));
        self.wake();
        close_reason
    }

    fn begin_request(&self) {
        self.requests.set(self.requests.get().wrapping_add(1));
    }

    /// Records progress, which restarts the timeout of the current phase.
    pub(crate) fn note_progress(&self) {
        self.steps.set(self.steps.get().wrapping_add(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits {
            header_read: Duration::from_secs(10),
            write: Duration::from_secs(30),
            idle: Duration::from_secs(60),
            ..Limits::default()
        }
    }

    #[test]
    fn more_header_bytes_do_not_extend_the_timeout() {
        let start = Instant::now();
        let state = ConnectionState::new(start, Phase::Head);
        for second in 1..10 {
            state.note_read();
            assert_eq!(
                state.check(start + Duration::from_secs(second), &limits()),
                None
            );
        }
        assert_eq!(
            state.check(start + Duration::from_secs(10), &limits()),
            Some(CloseReason::Head)
        );
        assert_eq!(state.close_reason(), Some(CloseReason::Head));
    }

    #[test]
    fn first_request_is_expected_until_a_byte_comes_or_a_second_passes() {
        let start = Instant::now();
        let state = ConnectionState::new(start, Phase::Handshake);
        assert!(!state.expects_request(), "a handshake is in flight");
        state.enter(Phase::Head);
        assert_eq!(state.check(start, &limits()), None);
        assert!(state.expects_request());
        assert_eq!(state.check(start + FIRST_REQUEST_TIMEOUT, &limits()), None);
        assert!(!state.expects_request());
        let other = ConnectionState::new(start, Phase::Head);
        other.note_read();
        assert!(!other.expects_request());
    }

    #[test]
    fn slow_reader_is_cut_only_without_progress() {
        let start = Instant::now();
        let state = ConnectionState::new(start, Phase::Head);
        state.enter(Phase::Responding);
        assert_eq!(state.check(start + Duration::from_secs(1), &limits()), None);
        assert_eq!(
            state.check(start + Duration::from_secs(30), &limits()),
            None
        );
        state.note_write(false);
        assert_eq!(
            state.check(start + Duration::from_secs(31), &limits()),
            None
        );
        state.note_write(true);
        assert_eq!(
            state.check(start + Duration::from_secs(61), &limits()),
            Some(CloseReason::Write)
        );
    }

    #[test]
    fn http2_without_requests_is_idle() {
        let start = Instant::now();
        let state = ConnectionState::new(start, Phase::Head);
        state.enter(Phase::Streams);
        assert_eq!(state.check(start + Duration::from_secs(1), &limits()), None);
        assert_eq!(
            state.check(start + Duration::from_secs(60), &limits()),
            None
        );
        let stream = state.open_stream(start + Duration::from_secs(60));
        state.close_stream(stream);
        assert_eq!(
            state.check(start + Duration::from_secs(61), &limits()),
            None
        );
        // Bytes without a request do not keep the connection open.
        state.note_read();
        state.note_write(false);
        assert_eq!(
            state.check(start + Duration::from_secs(121), &limits()),
            Some(CloseReason::Idle)
        );
    }

    #[test]
    fn request_times_out_despite_progress() {
        let start = Instant::now();
        let at = |second| start + Duration::from_secs(second);
        let one = ConnectionState::new(start, Phase::Head);
        one.begin_response();
        let two = ConnectionState::new(start, Phase::Head);
        two.enter(Phase::Streams);
        let old = two.open_stream(start);
        for second in 1..300 {
            one.note_write(false);
            two.note_progress();
            let young = two.open_stream(at(second));
            two.close_stream(young);
            assert_eq!(one.check(at(second), &limits()), None);
            assert_eq!(two.check(at(second), &limits()), None);
        }
        assert_eq!(one.check(at(300), &limits()), Some(CloseReason::Request));
        assert_eq!(two.check(at(300), &limits()), Some(CloseReason::Request));
        two.close_stream(old);
        assert_eq!(two.check(at(301), &limits()), None);
    }

    #[test]
    fn consecutive_requests_do_not_time_out_together() {
        let start = Instant::now();
        let state = ConnectionState::new(start, Phase::Head);
        for second in 0..1000 {
            state.begin_response();
            assert_eq!(
                state.check(start + Duration::from_secs(second), &limits()),
                None
            );
        }
    }

    #[test]
    fn only_connection_without_requests_in_flight_makes_room() {
        let start = Instant::now();
        let at = |second| start + Duration::from_secs(second);
        let state = ConnectionState::new(start, Phase::Head);
        assert_eq!(state.idle_since(at(5)), Some(start), "no byte has come");
        state.begin_response();
        assert_eq!(state.idle_since(at(6)), None);
        state.enter(Phase::Idle);
        assert_eq!(state.idle_since(at(7)), Some(at(7)));
        assert_eq!(state.check(at(8), &limits()), None);
        assert_eq!(state.idle_since(at(9)), Some(at(8)));
        state.make_room();
        assert_eq!(
            state.idle_since(at(9)),
            None,
            "the connection is ending already"
        );
        assert!(!state.cancel_eviction());
        state.begin_response();
        assert!(state.cancel_eviction() && state.close_reason().is_none());

        let http2 = ConnectionState::new(start, Phase::Head);
        http2.enter(Phase::Streams);
        assert!(http2.idle_since(at(1)).is_some());
        let stream = http2.open_stream(at(1));
        assert_eq!(http2.idle_since(at(1)), None);
        http2.close_stream(stream);
        assert!(http2.idle_since(at(1)).is_some());
    }
}
