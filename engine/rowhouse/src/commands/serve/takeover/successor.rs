//! The new process's side of a takeover (`serve --takeover`).
//!
//! **Invariant:** accepts no connection before it is ready.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail, ensure};
use rustix::process::geteuid;
use tokio::net::UnixStream;
use tokio::time::timeout;
use tracing::{error, info, warn};

use super::message::{Message, Role, VERSION, receive, send};
use crate::cli::ServeArguments;
use server::listen::Listeners;
use supervisor::Registry;

/// Time limit for the running server to pass its sockets. It finishes commands and writes its state first.
const SOCKETS_TIMEOUT: Duration = Duration::from_secs(30);

/// Time limit for the running server to begin to drain.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// The sockets of the running server. A process that takes over from no server has none.
#[derive(Debug, Default)]
pub(crate) struct ReceivedSockets {
    pub(crate) visitors: Listeners,
    pub(crate) admin: Vec<TcpListener>,
    pub(crate) control: Option<UnixListener>,
}

impl ReceivedSockets {
    /// Closes the remaining sockets, whose addresses the flags of this process do not name.
    pub(crate) fn close(self) {
        let visitors = self.visitors;
        let rest = [visitors.clear, visitors.tls, visitors.redirect, self.admin];
        for socket in rest.into_iter().flatten() {
            if let Ok(address) = socket.local_addr() {
                warn!(%address, "the flags do not name an address of the running server; the takeover closes it");
            }
        }
    }
}

/// A takeover in flight. Dropping it before it is complete ends the takeover, and the running server serves as before.
#[derive(Debug)]
pub(crate) struct Takeover {
    stream: UnixStream,
    former_pid: u32,
    is_complete: bool,
}

/// Requests the sockets of the running server. Returns `None` if no server is running, or without `--takeover`.
///
/// # Errors
/// When the flags name no control socket, or the running server refuses.
pub(crate) async fn request(
    arguments: &ServeArguments,
) -> anyhow::Result<Option<(Takeover, ReceivedSockets)>> {
    if !arguments.takeover {
        return Ok(None);
    }
    let path = super::socket_path(arguments).context(
        "`--takeover` needs a path where the two processes meet: start both with `--state DIR` or `--control-socket FILE`",
    )?;
    let stream = match UnixStream::connect(&path).await {
        Ok(stream) => stream,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
            ) =>
        {
            info!(path = %path.display(), "no running server to take over from; starting normally");
            return Ok(None);
        }
        Err(error) => return Err(error).with_context(|| unreachable(&path)),
    };
    let (takeover, sockets) = receive_sockets(stream)
        .await
        .context("takeover failed; the running server serves as before")?;
    info!(
        former_pid = takeover.former_pid,
        "taking over from the running server"
    );
    Ok(Some((takeover, sockets)))
}

fn unreachable(path: &Path) -> String {
    format!(
        "cannot reach the running server at `{}`; start the new process as the same user",
        path.display()
    )
}

async fn receive_sockets(stream: UnixStream) -> anyhow::Result<(Takeover, ReceivedSockets)> {
    let (theirs, ours) = (stream.peer_cred()?.uid(), geteuid().as_raw());
    ensure!(
        theirs == ours,
        "the running server runs as user {theirs}, and this process as user {ours}; start the new process as the same user"
    );
    let request = Message::Request {
        version: VERSION,
        pid: std::process::id(),
    };
    send(&stream, &request, &[]).await?;
    let response = timeout(SOCKETS_TIMEOUT, receive(&stream)).await;
    let response = response.context("the running server did not respond")??;
    let (former_pid, roles, sockets) = match response {
        Some((Message::Sockets { pid, roles }, sockets)) => (pid, roles, sockets),
        Some((Message::Refused { reason }, _)) => bail!(reason),
        Some(_) => bail!("the running server sent an unexpected message"),
        None => bail!("the running server closed the connection"),
    };
    ensure!(
        roles.len() == sockets.len(),
        "the running server sent {} sockets and named {}",
        sockets.len(),
        roles.len()
    );
    let mut received = ReceivedSockets::default();
    let visitors = &mut received.visitors;
    for (role, socket) in roles.into_iter().zip(sockets) {
        match role {
            Role::Clear => visitors.clear.push(socket.into()),
            Role::Tls => visitors.tls.push(socket.into()),
            Role::Redirect => visitors.redirect.push(socket.into()),
            Role::Admin => received.admin.push(socket.into()),
            Role::Control => received.control = Some(socket.into()),
        }
    }
    let takeover = Takeover {
        stream,
        former_pid,
        is_complete: false,
    };
    Ok((takeover, received))
}

/// Removes and returns the socket that listens on `address`. Any socket fits port 0.
pub(crate) fn socket_for(
    sockets: &mut Vec<TcpListener>,
    address: SocketAddr,
) -> Option<TcpListener> {
    let is_same = |socket: &TcpListener| {
        let known = socket.local_addr();
        known.is_ok_and(|known| {
            known == address || (address.port() == 0 && known.ip() == address.ip())
        })
    };
    let index = sockets.iter().position(is_same)?;
    Some(sockets.swap_remove(index))
}

impl Takeover {
    /// Checks that this process can serve in place of the running server.
    ///
    /// # Errors
    /// When the folders or `deployment.yaml` cannot be used: the running server may have read them before.
    pub(crate) fn check_ready(registry: &Registry) -> anyhow::Result<()> {
        if let Some(alarm) = registry.alarm() {
            return Err(anyhow!(alarm.to_owned()).context("the new process is not ready"));
        }
        ensure!(
            registry.status().complete,
            "the new process is not ready: reading the folders failed"
        );
        Ok(())
    }

    /// Reports that this process accepts connections, so that the running server drains. Returns the former server; `None` if this process must not go on serving.
    pub(crate) async fn complete(mut self) -> Option<FormerServer> {
        let former_pid = self.former_pid;
        let sent = send(&self.stream, &Message::Serving, &[]).await;
        let response = match sent {
            Ok(()) => timeout(DRAIN_TIMEOUT, receive(&self.stream)).await,
            Err(error) => Ok(Err(error)),
        };
        match response {
            Ok(Ok(Some((Message::Draining, _)))) => {
                info!(former_pid, "took over; the former server is draining");
            }
            Ok(Ok(Some((Message::Refused { reason }, _)))) => {
                error!(reason, "the running server has ended the takeover");
                return None;
            }
            _ => warn!(
                former_pid,
                "former server ended or stalled during the takeover; serving"
            ),
        }
        self.is_complete = true;
        Some(FormerServer(self))
    }
}

/// A server that drains after a takeover.
#[derive(Debug)]
pub(crate) struct FormerServer(Takeover);

impl FormerServer {
    /// Waits until the former server has ended.
    pub(crate) async fn ended(self) {
        // The former server sends nothing more. Its end closes the connection.
        while let Ok(Some(_)) = receive(&self.0.stream).await {}
    }
}

impl Drop for Takeover {
    fn drop(&mut self) {
        if !self.is_complete {
            error!(
                former_pid = self.former_pid,
                "takeover failed; the running server serves as before"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socket_is_found_by_its_address() {
        let listen = || TcpListener::bind("127.0.0.1:0").expect("a socket");
        let (one, two) = (listen(), listen());
        let address = two.local_addr().expect("an address");
        let mut sockets = vec![one, two];
        let other = SocketAddr::from(([127, 0, 0, 2], address.port()));
        assert!(socket_for(&mut sockets, other).is_none());
        let found = socket_for(&mut sockets, address).expect("the socket");
        assert_eq!(found.local_addr().ok(), Some(address));
        assert!(socket_for(&mut sockets, address).is_none());
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        assert!(socket_for(&mut sockets, any).is_some());
    }
}
