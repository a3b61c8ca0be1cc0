//! What one connection is doing, and since when.
//!
//! The socket and the service of a connection note each step here, by setting a cell; twice a second the worker looks at all of its connections and ends those that have not moved for too long.
//! That makes every timeout free for a request: no clock is read and no timer is set for it.
//!
//! **Invariant:** knows no HTTP and no sockets; never leaves its worker's thread.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::task::Waker;
use std::time::{Duration, Instant};

use crate::settings::Limits;

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// New, and before HTTP: what a proxy says of the visitor, a TLS handshake.
    Handshake,
    /// New, or in the middle of a request's header fields.
    Head,
    /// Writing a response.
    Responding,
    /// Between requests.
    Idle,
    /// HTTP/2, where requests overlap.
    Streams,
    /// The response that ends the connection is out; what the client still sends is read and thrown away.
    Closing,
}

/// Why a connection was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overdue {
    /// What comes before HTTP took too long.
    Handshake,
    /// The header fields took too long.
    Head,
    /// The client did not take the response.
    Write,
    /// The request and its response took too long together.
    Request,
    /// No request came.
    Idle,
    /// No request was in flight, and another connection needs the room.
    Room,
}

impl Overdue {
    /// Whether nothing is in flight that cannot be cut: what has come meanwhile is still answered, and over HTTP/2 the client is sent a GOAWAY (RFC 9113, section 6.8).
    pub(crate) const fn is_idle(self) -> bool {
        matches!(self, Self::Idle | Self::Room)
    }
}

/// The state of one connection.
#[derive(Debug)]
pub(crate) struct ConnectionState {
    phase: Cell<Phase>,
    /// The socket takes no more bytes.
    blocked: Cell<bool>,
    /// Goes up with every step.
    steps: Cell<u32>,
    /// The step that was last seen, and when it was first seen.
    seen: Cell<(u32, Instant)>,
    /// Goes up with every request of HTTP/1.1.
    requests: Cell<u32>,
    /// The request that was last seen, and when it was first seen.
    request_seen: Cell<(u32, Instant)>,
    /// When each request of HTTP/2 that is in flight began, the oldest first.
    streams: RefCell<BTreeMap<u32, Instant>>,
    next_stream: Cell<u32>,
    overdue: Cell<Option<Overdue>>,
    waker: RefCell<Option<Waker>>,
    /// The request brought content that nobody reads.
    unread: Cell<bool>,
    /// Nothing has come yet, and the connection is too new for that to mean that nothing will.
    expects: Cell<bool>,
}

/// How long a connection that is over may take to read its last response.
const CLOSING: Duration = Duration::from_secs(2);

/// How long a new connection may take to its first request while the process ends: a client that has just done a handshake has a request on its way, and browsers do not try again on a connection that was never used.
const FIRST: Duration = Duration::from_secs(1);

impl ConnectionState {
    pub(crate) fn new(now: Instant, phase: Phase) -> Self {
        Self {
            phase: Cell::new(phase),
            blocked: Cell::new(false),
            steps: Cell::new(0),
            seen: Cell::new((0, now)),
            requests: Cell::new(0),
            request_seen: Cell::new((0, now)),
            streams: RefCell::default(),
            next_stream: Cell::new(0),
            overdue: Cell::new(None),
            waker: RefCell::new(None),
            unread: Cell::new(false),
            expects: Cell::new(true),
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase.get()
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.set(phase);
        self.moved();
    }

    /// Bytes came. Over HTTP/2 they may be anything, so that only requests and bodies count as steps there.
    pub(crate) fn read(&self) {
        self.expects.set(false);
        if self.phase.get() == Phase::Idle {
            self.begin_request();
            self.enter(Phase::Head);
        }
    }

    /// A request's head is complete.
    pub(crate) fn respond(&self) {
        // One that came together with the one before it has had no phase of its own.
        if self.phase.get() != Phase::Head {
            self.begin_request();
        }
        self.enter(Phase::Responding);
    }

    /// Bytes went, or could not go.
    pub(crate) fn wrote(&self, blocked: bool) {
        let was_blocked = self.blocked.replace(blocked);
        let moved = match self.phase.get() {
            Phase::Streams => blocked != was_blocked,
            _ => !blocked,
        };
        if moved {
            self.moved();
        }
    }

    /// All bytes went that could not go before.
    pub(crate) fn flushed(&self) {
        if self.blocked.get() {
            self.wrote(false);
        }
    }

    /// A request of HTTP/2 began.
    pub(crate) fn open_stream(&self, started: Instant) -> u32 {
        let number = self.next_stream.get();
        self.next_stream.set(number.wrapping_add(1));
        self.streams.borrow_mut().insert(number, started);
        self.moved();
        number
    }

    /// It is answered, or was taken back.
    pub(crate) fn close_stream(&self, number: u32) {
        self.streams.borrow_mut().remove(&number);
        self.moved();
    }

    pub(crate) fn leave_unread(&self) {
        self.unread.set(true);
    }

    pub(crate) fn has_unread(&self) -> bool {
        self.unread.get()
    }

    /// Whether the first request of HTTP/1.1 is on its way.
    pub(crate) fn expects_request(&self) -> bool {
        self.expects.get() && self.phase.get() == Phase::Head
    }

    pub(crate) fn has_streams(&self) -> bool {
        !self.streams.borrow().is_empty()
    }

    /// Remembers whom to wake. The waker of a spawned task stays the same, so once is enough.
    pub(crate) fn register(&self, waker: &Waker) {
        self.waker.borrow_mut().get_or_insert_with(|| waker.clone());
    }

    pub(crate) fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }

    /// Why the connection has to end, if it has.
    pub(crate) fn overdue(&self) -> Option<Overdue> {
        self.overdue.get()
    }

    /// Since when no request is in flight, as far as the last look knows; `None` while one is, or when the connection ends anyway. Half a head is no request yet.
    pub(crate) fn idle_since(&self, now: Instant) -> Option<Instant> {
        if self.has_request() || self.phase.get() == Phase::Closing || self.overdue.get().is_some()
        {
            return None;
        }
        let (steps, since) = self.seen.get();
        Some(if steps == self.steps.get() {
            since
        } else {
            now
        })
    }

    fn has_request(&self) -> bool {
        match self.phase.get() {
            Phase::Responding => true,
            Phase::Streams => self.has_streams() || self.blocked.get(),
            Phase::Handshake | Phase::Head | Phase::Idle | Phase::Closing => false,
        }
    }

    /// Ends an idle connection, so that another has room.
    pub(crate) fn make_room(&self) {
        self.end(Overdue::Room);
    }

    /// Spares a connection that was to make room, if a request has come meanwhile. Returns whether it has.
    pub(crate) fn spare(&self) -> bool {
        let spared = self.overdue.get() == Some(Overdue::Room) && self.has_request();
        if spared {
            self.overdue.set(None);
        }
        spared
    }

    /// Looks whether the connection has moved, and ends it if it has not for too long.
    pub(crate) fn check(&self, now: Instant, limits: &Limits) -> Option<Overdue> {
        if self.is_without_end(now, limits.request) {
            return Some(self.end(Overdue::Request));
        }
        let steps = self.steps.get();
        let (seen, since) = self.seen.get();
        if steps != seen {
            self.seen.set((steps, now));
            return None;
        }
        if self.expects_request() && now.duration_since(since) >= FIRST {
            self.expects.set(false);
            self.wake();
        }
        let (limit, overdue) = match self.phase.get() {
            Phase::Handshake => (limits.handshake, Overdue::Handshake),
            Phase::Head => (limits.header_read, Overdue::Head),
            Phase::Responding => (limits.write, Overdue::Write),
            Phase::Streams if self.blocked.get() => (limits.write, Overdue::Write),
            Phase::Idle | Phase::Streams => (limits.idle, Overdue::Idle),
            Phase::Closing => (CLOSING, Overdue::Idle),
        };
        (now.duration_since(since) >= limit).then(|| self.end(overdue))
    }

    /// Whether a request is in flight for longer than `limit`, however much moves.
    fn is_without_end(&self, now: Instant, limit: Duration) -> bool {
        let since = match self.phase.get() {
            Phase::Head | Phase::Responding => {
                let request = self.requests.get();
                let (seen, since) = self.request_seen.get();
                if request != seen {
                    self.request_seen.set((request, now));
                    return false;
                }
                Some(since)
            }
            Phase::Streams => self.streams.borrow().values().next().copied(),
            Phase::Handshake | Phase::Idle | Phase::Closing => None,
        };
        since.is_some_and(|since| now.saturating_duration_since(since) >= limit)
    }

    fn end(&self, overdue: Overdue) -> Overdue {
        self.overdue.set(Some(overdue));
        self.wake();
        overdue
    }

    fn begin_request(&self) {
        self.requests.set(self.requests.get().wrapping_add(1));
    }

    /// Something moved that is a reason to wait for more.
    pub(crate) fn moved(&self) {
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
    fn more_bytes_of_a_head_buy_no_more_time() {
        let start = Instant::now();
        let state = ConnectionState::new(start, Phase::Head);
        for second in 1..10 {
            state.read();
            assert_eq!(
                state.check(start + Duration::from_secs(second), &limits()),
                None
            );
        }
        assert_eq!(
            state.check(start + Duration::from_secs(10), &limits()),
            Some(Overdue::Head)
        );
        assert_eq!(state.overdue(), Some(Overdue::Head));
    }

    #[test]
    fn a_new_connection_is_waited_for_until_something_comes_or_a_second_has_passed() {
        let start = Instant::now();
        let state = ConnectionState::new(start, Phase::Handshake);
        assert!(!state.expects_request(), "a handshake is waited for anyway");
        state.enter(Phase::Head);
        assert_eq!(state.check(start, &limits()), None);
        assert!(state.expects_request());
        assert_eq!(state.check(start + FIRST, &limits()), None);
        assert!(!state.expects_request());
        let other = ConnectionState::new(start, Phase::Head);
        other.read();
        assert!(!other.expects_request());
    }

    #[test]
    fn a_reader_that_takes_something_is_not_cut() {
        let start = Instant::now();
        let state = ConnectionState::new(start, Phase::Head);
        state.enter(Phase::Responding);
        assert_eq!(state.check(start + Duration::from_secs(1), &limits()), None);
        assert_eq!(
            state.check(start + Duration::from_secs(30), &limits()),
            None
        );
        state.wrote(false);
        assert_eq!(
            state.check(start + Duration::from_secs(31), &limits()),
            None
        );
        state.wrote(true);
        assert_eq!(
            state.check(start + Duration::from_secs(61), &limits()),
            Some(Overdue::Write)
        );
    }

    #[test]
    fn http_2_is_idle_when_nothing_moves() {
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
        // Signs of life that are no requests keep nothing open.
        state.read();
        state.wrote(false);
        assert_eq!(
            state.check(start + Duration::from_secs(121), &limits()),
            Some(Overdue::Idle)
        );
    }

    #[test]
    fn a_request_ends_however_much_moves() {
        let start = Instant::now();
        let at = |second| start + Duration::from_secs(second);
        let one = ConnectionState::new(start, Phase::Head);
        one.respond();
        let two = ConnectionState::new(start, Phase::Head);
        two.enter(Phase::Streams);
        let old = two.open_stream(start);
        for second in 1..300 {
            one.wrote(false);
            two.moved();
            let young = two.open_stream(at(second));
            two.close_stream(young);
            assert_eq!(one.check(at(second), &limits()), None);
            assert_eq!(two.check(at(second), &limits()), None);
        }
        assert_eq!(one.check(at(300), &limits()), Some(Overdue::Request));
        assert_eq!(two.check(at(300), &limits()), Some(Overdue::Request));
        two.close_stream(old);
        assert_eq!(two.check(at(301), &limits()), None);
    }

    #[test]
    fn requests_after_each_other_are_not_one_without_end() {
        let start = Instant::now();
        let state = ConnectionState::new(start, Phase::Head);
        for second in 0..1000 {
            state.respond();
            assert_eq!(
                state.check(start + Duration::from_secs(second), &limits()),
                None
            );
        }
    }

    #[test]
    fn only_who_has_nothing_under_way_makes_room() {
        let start = Instant::now();
        let at = |second| start + Duration::from_secs(second);
        let state = ConnectionState::new(start, Phase::Head);
        assert_eq!(state.idle_since(at(5)), Some(start), "it never sent a byte");
        state.respond();
        assert_eq!(state.idle_since(at(6)), None);
        state.enter(Phase::Idle);
        assert_eq!(state.idle_since(at(7)), Some(at(7)));
        assert_eq!(state.check(at(8), &limits()), None);
        assert_eq!(state.idle_since(at(9)), Some(at(8)));
        state.make_room();
        assert_eq!(state.idle_since(at(9)), None, "it is gone already");
        assert!(!state.spare());
        state.respond();
        assert!(state.spare() && state.overdue().is_none());

        let http2 = ConnectionState::new(start, Phase::Head);
        http2.enter(Phase::Streams);
        assert!(http2.idle_since(at(1)).is_some());
        let stream = http2.open_stream(at(1));
        assert_eq!(http2.idle_since(at(1)), None);
        http2.close_stream(stream);
        assert!(http2.idle_since(at(1)).is_some());
    }
}
