//! Listening sockets.
//!
//! Sockets are opened early, before anything is rendered, so that a taken port is reported at once and connections wait in the system's queue instead of being refused.
//! Port 0 takes a free one; ask the socket for its address.
//!
//! **Invariant:** decides nothing about what is accepted.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use listenfd::ListenFd;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpStream;
use tracing::warn;

use super::error::ServeError;

/// Connections that may wait to be accepted; the system may allow fewer.
const BACKLOG: i32 = 1024;

/// Opens a socket for `address`.
///
/// # Errors
/// When the address is taken or not this machine's.
pub fn bind(address: SocketAddr) -> Result<TcpListener, ServeError> {
    let open = || -> io::Result<TcpListener> {
        let socket = Socket::new(
            Domain::for_address(address),
            Type::STREAM,
            Some(Protocol::TCP),
        )?;
        // After a restart, connections of the last process may still be dying on this port.
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        Ok(socket.into())
    };
    open().map_err(|source| ServeError::Bind { address, source })
}

/// The sockets that a supervisor has opened for this process (`LISTEN_FDS` of systemd), so that a restart refuses nobody. Empty where there are none.
///
/// # Errors
/// When what was handed over is no listening TCP socket.
pub fn inherited() -> Result<Vec<TcpListener>, ServeError> {
    let mut sockets = ListenFd::from_env();
    (0..sockets.len())
        .filter_map(|index| sockets.take_tcp_listener(index).transpose())
        .collect::<io::Result<_>>()
        .map_err(ServeError::Inherited)
}

/// The socket as the event loop takes it.
///
/// # Errors
/// When the system refuses it, or there is no event loop here.
pub(super) fn nonblocking(listener: TcpListener) -> Result<tokio::net::TcpListener, ServeError> {
    listener.set_nonblocking(true).map_err(ServeError::Listen)?;
    tokio::net::TcpListener::from_std(listener).map_err(ServeError::Listen)
}

/// The next connection, however long it takes.
pub(super) async fn accept(listener: &tokio::net::TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) if concerns_one_connection(&error) => {}
            Err(error) => {
                warn!(%error, "cannot accept connections, trying again in 100 ms");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Whether the connection broke while it waited, which says nothing about the next.
fn concerns_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted
    )
}
