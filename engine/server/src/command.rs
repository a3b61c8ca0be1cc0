//! What a worker is sent.
//!
//! **Invariant:** plain values.

use std::net::TcpStream;

use super::admission::Admitted;
use super::peer::{Entrance, Peer};
use super::permit::ConnectionPermit;

/// What a worker is sent.
#[derive(Debug)]
pub(super) enum Command {
    /// This connection is the worker's from now on.
    Serve(NewConnection),
    /// Another connection waits for a permit, and none is left.
    MakeRoom,
}

/// A connection on its way to a worker.
#[derive(Debug)]
pub(super) struct NewConnection {
    /// Not blocking.
    pub(super) socket: TcpStream,
    pub(super) peer: Peer,
    pub(super) entrance: Entrance,
    pub(super) admitted: Admitted,
    pub(super) permit: ConnectionPermit,
}
