//! The other end of a connection, and where it came in.
//!
//! **Invariant:** plain values.

use std::net::IpAddr;

/// The other end of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer {
    pub(super) address: IpAddr,
    /// Whether it is a trusted proxy.
    pub(super) trusted: bool,
}

/// Which kind of listener a connection came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entrance {
    /// HTTP without TLS, of a proxy or on the machine itself.
    Clear,
    /// HTTPS.
    Tls,
    /// HTTP that only leads to HTTPS, and answers the challenges of authorities.
    Redirect,
}
