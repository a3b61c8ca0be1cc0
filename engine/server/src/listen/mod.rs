//! Opens the listening sockets.
//!
//! Sockets are opened before anything is rendered. A port that is in use is therefore reported at once, and early connections wait in the system's queue instead of being refused.
//! Port 0 binds a free port; the socket's local address names it.
//!
//! **Invariant:** does not decide which connections are admitted.

pub(crate) mod acceptor;
pub(crate) mod admission;
pub(crate) mod client_subnets;
pub mod descriptors;
pub(crate) mod error;
pub(crate) mod serve;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use listenfd::ListenFd;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpStream;
use tracing::warn;

use crate::listen::error::ServeError;

/// Connections that may wait to be accepted (listen(2)); the operating system may allow fewer.
const BACKLOG_CONNECTIONS: i32 = 1024;

/// The visitors' sockets, by protocol.
#[derive(Debug, Default)]
pub struct Listeners {
    /// HTTP without TLS.
    pub clear: Vec<TcpListener>,
    /// HTTPS. Needs [`ServeSettings::tls`](super::settings::ServeSettings::tls).
    pub tls: Vec<TcpListener>,
    /// HTTP that only redirects to HTTPS. Needs [`ServeSettings::tls`](super::settings::ServeSettings::tls).
    pub redirect: Vec<TcpListener>,
}

impl Listeners {
    /// Returns whether there is no socket.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.clear.is_empty() && self.tls.is_empty() && self.redirect.is_empty()
    }
}

impl From<Vec<TcpListener>> for Listeners {
    /// Uses all sockets for HTTP without TLS.
    fn from(clear: Vec<TcpListener>) -> Self {
        Self {
            clear,
            ..Self::default()
        }
    }
}

/// Opens a listening socket on `address`.
///
/// # Errors
/// When the address is in use or does not belong to this machine.
pub fn bind(address: SocketAddr) -> Result<TcpListener, ServeError> {
    let open = || -> io::Result<TcpListener> {
        let socket = Socket::new(
            Domain::for_address(address),
            Type::STREAM,
            Some(Protocol::TCP),
        )?;
        // After a restart, connections of the previous process may still be closing on this port.
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG_CONNECTIONS)?;
        Ok(socket.into())
    };
    open().map_err(|source| ServeError::Bind { address, source })
}

/// Returns the sockets that a service manager opened for this process (`LISTEN_FDS` of systemd), so that a restart refuses no connection. Empty if there are none.
///
/// Sockets named `https` and `http-redirect` serve HTTPS and redirects to HTTPS; all others serve HTTP without TLS. The names are in `LISTEN_FDNAMES`, which the unit's `FileDescriptorName=` sets (see sd_listen_fds(3)).
///
/// # Errors
/// When a descriptor is not a listening TCP socket.
pub fn inherited() -> Result<Listeners, ServeError> {
    let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
    let mut names = names.split(':');
    let mut sockets = ListenFd::from_env();
    let mut listeners = Listeners::default();
    for index in 0..sockets.len() {
        let list = match names.next() {
            Some("https") => &mut listeners.tls,
            Some("http-redirect") => &mut listeners.redirect,
            _ => &mut listeners.clear,
        };
        let socket = sockets.take_tcp_listener(index);
        list.extend(socket.map_err(ServeError::Inherited)?);
    }
    Ok(listeners)
}

/// Registers the socket with the current event loop.
///
/// # Errors
/// When the operating system refuses, or no event loop is running.
pub(super) fn nonblocking(listener: TcpListener) -> Result<tokio::net::TcpListener, ServeError> {
    listener.set_nonblocking(true).map_err(ServeError::Listen)?;
    tokio::net::TcpListener::from_std(listener).map_err(ServeError::Listen)
}

/// Returns the next connection. Retries after errors.
pub(super) async fn accept(listener: &tokio::net::TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) if concerns_one_connection(&error) => {}
            Err(error) => {
                warn!(%error, "accepting connections failed; retrying in 100 ms");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Returns whether the error concerns only the connection that was being accepted.
fn concerns_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted
    )
}
