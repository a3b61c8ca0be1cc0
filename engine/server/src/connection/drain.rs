//! Reports a graceful shutdown: the requests that finished, and the requests that were cut off.
//!
//! **Invariant:** only counts.

use std::fmt;
use std::ops::AddAssign;

use crate::connection::connection_state::{ConnectionState, Phase};

/// The result of a graceful shutdown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DrainReport {
    /// Requests in flight when the signal came.
    pub waited_for: ConnectionCounts,
    /// Requests still in flight when the grace period ended.
    pub cut: ConnectionCounts,
}

/// Counts of connections, by their state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// Connections whose request has not arrived completely.
    pub arriving: usize,
    /// Connections whose response has not been sent completely.
    pub leaving: usize,
    /// HTTP/2 connections with requests in flight.
    pub streams: usize,
    /// Connections without a request in flight, which only have to close.
    pub ending: usize,
}

impl ConnectionCounts {
    /// Counts one connection.
    pub(crate) fn add(&mut self, state: &ConnectionState) {
        *match state.phase() {
            Phase::Handshake | Phase::Head => &mut self.arriving,
            Phase::Responding => &mut self.leaving,
            Phase::Streams if state.has_streams() => &mut self.streams,
            Phase::Streams | Phase::Idle | Phase::Closing => &mut self.ending,
        } += 1;
    }

    /// Returns the number of connections.
    #[must_use]
    pub const fn connections(&self) -> usize {
        self.arriving + self.leaving + self.streams + self.ending
    }
}

impl AddAssign for ConnectionCounts {
    fn add_assign(&mut self, other: Self) {
        self.arriving += other.arriving;
        self.leaving += other.leaving;
        self.streams += other.streams;
        self.ending += other.ending;
    }
}

impl AddAssign for DrainReport {
    fn add_assign(&mut self, other: Self) {
        self.waited_for += other.waited_for;
        self.cut += other.cut;
    }
}

impl fmt::Display for ConnectionCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = "";
        for (count, one, more) in [
            (self.arriving, "incomplete request", "incomplete requests"),
            (self.leaving, "unfinished response", "unfinished responses"),
            (
                self.streams,
                "HTTP/2 connection with requests",
                "HTTP/2 connections with requests",
            ),
            (self.ending, "idle connection", "idle connections"),
        ] {
            if count > 0 {
                write!(f, "{before}{count} {}", if count == 1 { one } else { more })?;
                before = ", ";
            }
        }
        f.write_str(if before.is_empty() { "nothing" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_flight_requests_are_listed_in_words() {
        let mut all = ConnectionCounts::default();
        assert_eq!(all.to_string(), "nothing");
        all += ConnectionCounts {
            arriving: 1,
            leaving: 2,
            ..ConnectionCounts::default()
        };
        assert_eq!(
            all.to_string(),
            "1 incomplete request, 2 unfinished responses"
        );
        assert_eq!(all.connections(), 3);
    }
}
