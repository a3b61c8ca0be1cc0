//! A connection between the acceptor and its worker.
//!
//! **Invariant:** plain values.

use std::net::TcpStream;

use super::admission::Admitted;
use super::peer::{Entrance, Peer};
use super::permit::ConnectionPermit;

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
