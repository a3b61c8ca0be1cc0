//! Errors of starting and running the server.
//!
//! **Invariant:** knows no HTTP; an error on one connection is never a [`ServeError`].

use std::io;
use std::net::SocketAddr;

/// Error of starting or running the server.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be bound.
    #[error("cannot listen on `{address}`")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The operating system's error.
        source: io::Error,
    },
    /// A socket in `LISTEN_FDS` is not a listening TCP socket.
    #[error("`LISTEN_FDS` has a socket that is not a listening TCP socket")]
    Inherited(#[source] io::Error),
    /// A socket cannot be registered with the event loop.
    #[error("cannot accept connections")]
    Listen(#[source] io::Error),
    /// There are HTTPS sockets, but the settings have no certificates.
    #[error("`LISTEN_FDS` has a socket for HTTPS, but HTTPS is off: add `--https`")]
    NoTls,
    /// A worker's thread or event loop cannot be created.
    #[error("cannot start a worker thread")]
    Worker(#[source] io::Error),
    /// A worker ended before the shutdown.
    #[error("a worker thread ended unexpectedly")]
    Lost,
}
