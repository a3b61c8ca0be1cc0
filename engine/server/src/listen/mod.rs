//! Listening sockets.
//!
//! Sockets are opened early, before anything is rendered, so that a taken port is reported at once and connections wait in the system's queue instead of being refused.
//! Port 0 takes a free one; ask the socket for its address.
//!
//! **Invariant:** decides nothing about what is accepted.

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

/// Connections that may wait to be accepted; the system may allow fewer.
const BACKLOG: i32 = 1024;

/// The sockets of visitors, by what is spoken on them.
#[derive(Debug, Default)]
pub struct Listeners {
    /// HTTP without TLS.
    pub clear: Vec<TcpListener>,
    /// HTTPS, which [`ServeSettings::tls`](super::settings::ServeSettings::tls) has to be set for.
    pub tls: Vec<TcpListener>,
    /// HTTP that only leads to HTTPS; the same holds for it.
    pub redirect: Vec<TcpListener>,
}

impl From<Vec<TcpListener>> for Listeners {
    /// HTTP without TLS.
    fn from(clear: Vec<TcpListener>) -> Self {
        Self {
            clear,
            ..Self::default()
        }
    }
}

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
/// Those that are called `https` and `http-redirect` (`LISTEN_FDNAMES`, by `FileDescriptorName=` of the unit, see sd_listen_fds(3)) are for TLS and for leading to it, all others for HTTP without TLS.
///
/// # Errors
/// When what was handed over is no listening TCP socket.
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
