//! Counters of connections.
//!
//! **Invariant:** plain numbers; opens and closes no connection.

use std::sync::atomic::AtomicU64;

/// Counters of connections since the start.
#[derive(Debug, Default)]
pub struct ConnectionCounters {
    /// Accepted.
    pub accepted: AtomicU64,
    /// Of these, still open.
    pub open: AtomicU64,
    /// How many may be open at once.
    pub limit: AtomicU64,
    /// Accepted, and waiting for another to end, since as many are open as may be.
    pub waiting: AtomicU64,
    /// Closed at once, since their address has too many.
    pub refused: AtomicU64,
    /// Ended while idle, to make room for another.
    pub made_room: AtomicU64,
    /// Ended because the header fields of a request took too long.
    pub slow_heads: AtomicU64,
    /// Ended because the client did not read.
    pub slow_readers: AtomicU64,
    /// Ended because a request and its response took too long together.
    pub slow_requests: AtomicU64,
    /// Ended because no request came for too long.
    pub idle: AtomicU64,
    /// Ended because what came was no HTTP, or more of it than is allowed.
    pub malformed: AtomicU64,
}
