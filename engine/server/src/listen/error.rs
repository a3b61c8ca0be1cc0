//! Why serving could not begin, or had to end.
//!
//! **Invariant:** knows no HTTP; what goes wrong on one connection is never an error of serving.

use std::io;
use std::net::SocketAddr;

/// Why serving could not begin, or had to end.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on `{address}`")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The sockets of `LISTEN_FDS` are not what they should be.
    #[error("`LISTEN_FDS` names a socket that is no listening TCP socket")]
    Inherited(#[source] io::Error),
    /// A socket cannot be waited on.
    #[error("cannot wait for connections")]
    Listen(#[source] io::Error),
    /// There are sockets for HTTPS, and nothing to speak it with.
    #[error("there are sockets for HTTPS, and no certificates: give `--https`")]
    NoTls,
    /// A worker's thread or event loop could not be made.
    #[error("cannot start a worker thread")]
    Worker(#[source] io::Error),
    /// A worker has ended by itself.
    #[error("a worker thread has ended before it was told to")]
    Lost,
}
