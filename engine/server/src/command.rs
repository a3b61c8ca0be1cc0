//! What a worker is sent.
//!
//! **Invariant:** plain values.

use std::net::{IpAddr, TcpStream};

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
    pub(super) permit: ConnectionPermit,
}

/// The other end of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer {
    pub(super) address: IpAddr,
    /// Whether it is a trusted proxy.
    pub(super) trusted: bool,
}
