//! Connections: reuse, timeouts, draining and limits.

mod limits;
mod reuse_and_timeouts;
