//! Counters of connections.
//!
//! **Invariant:** plain numbers; opens and closes no connection.

use std::sync::atomic::AtomicU64;

/// Counters of connections since startup.
#[derive(Debug, Default)]
pub struct ConnectionCounters {
    /// Accepted connections.
    pub accepted: AtomicU64,
    /// Connections that are open now.
    pub open: AtomicU64,
    /// The maximum of open connections.
    pub limit: AtomicU64,
    /// Accepted connections that wait for a permit, because the maximum is open.
    pub waiting: AtomicU64,
    /// Connections closed at once, because their client subnet has too many.
    pub refused: AtomicU64,
    /// Idle connections closed to make room for another.
    pub made_room: AtomicU64,
    /// Connections closed because the header fields of a request took too long.
    pub slow_heads: AtomicU64,
    /// Connections closed because the client did not read the response.
    pub slow_readers: AtomicU64,
    /// Connections closed because a request and its response together took too long.
    pub slow_requests: AtomicU64,
    /// Connections closed because no request came for too long.
    pub idle: AtomicU64,
    /// Connections closed because the client sent no valid HTTP, or exceeded a limit of size.
    pub malformed: AtomicU64,
}
