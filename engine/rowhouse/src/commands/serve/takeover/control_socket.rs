//! The running server's side of a takeover: a Unix socket that only processes of the same user may use.
//!
//! **Invariant:** a takeover that fails changes nothing: the server accepts connections the whole time.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream as StdUnixStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail, ensure};
use rustix::process::geteuid;
use tokio::net::UnixStream;
use tokio::time::timeout;
use tracing::{info, warn};

use super::message::{MAX_SOCKETS, Message, Role, VERSION, receive, send};
use crate::cli::ServeArguments;
use server::listen::Listeners;
use supervisor::{CommandHold, Operator};

/// Time limit for the request of a new process.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// Time limit for operators' commands in flight.
const HOLD_TIMEOUT: Duration = Duration::from_secs(5);

/// Time limit for writing the state before a new process reads it.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(10);

/// Time limit for the new process to become ready. Rendering 10,000 tenants takes a few minutes on a slow machine.
const WARM_UP_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// The reason for refusing a takeover while a service manager has the sockets: the manager would start a second server with the same sockets.
const SERVICE_MANAGER: &str = "a service manager opened the sockets of the running server (`LISTEN_FDS`); restart the service instead, which fails no request either";

/// The control socket of a running server, and copies of its listening sockets.
///
/// The copies keep the sockets open, so the value must be dropped when the server drains.
#[derive(Debug)]
pub(crate) struct ControlSocket {
    listener: UnixListener,
    sockets: Vec<(Role, OwnedFd)>,
    /// Whether a service manager opened the sockets.
    is_managed: bool,
}

/// The replacement of this process by a new process.
#[derive(Debug)]
pub(crate) struct Replacement {
    /// Commands stay refused, since the new process has read the state.
    _hold: CommandHold,
    /// The new process waits for the end of this connection, and so for the end of this process.
    _stream: UnixStream,
}

impl ControlSocket {
    /// Uses the socket of a former process, or opens the socket at `path`.
    ///
    /// # Errors
    /// When the socket cannot be opened, or another server has the path.
    pub(crate) fn open(
        path: &Path,
        received: Option<UnixListener>,
        visitors: &Listeners,
        admin: &impl AsFd,
        is_managed: bool,
    ) -> anyhow::Result<Self> {
        let mut sockets = Vec::new();
        for (role, list) in [
            (Role::Clear, &visitors.clear),
            (Role::Tls, &visitors.tls),
            (Role::Redirect, &visitors.redirect),
        ] {
            for socket in list {
                sockets.push((role, socket.as_fd().try_clone_to_owned()?));
            }
        }
        sockets.push((Role::Admin, admin.as_fd().try_clone_to_owned()?));
        ensure!(sockets.len() < MAX_SOCKETS, "there are too many sockets");
        let listener = match received {
            Some(listener) => listener,
            None => bind(path)?,
        };
        sockets.push((Role::Control, listener.as_fd().try_clone_to_owned()?));
        Ok(Self {
            listener,
            sockets,
            is_managed,
        })
    }

    /// Opens the control socket that `arguments` describe, if they do. A socket in the state is optional: without the socket, only a takeover is not possible.
    ///
    /// # Errors
    /// When the socket of `--control-socket` cannot be opened.
    pub(crate) fn of_arguments(
        arguments: &ServeArguments,
        received: Option<UnixListener>,
        (visitors, admin): (&Listeners, &impl AsFd),
        is_managed: bool,
    ) -> anyhow::Result<Option<Self>> {
        let Some(path) = super::socket_path(arguments) else {
            return Ok(None);
        };
        let opened = Self::open(&path, received, visitors, admin, is_managed);
        match opened {
            Ok(socket) => Ok(Some(socket)),
            Err(error) if arguments.control_socket.is_some() => Err(error)
                .with_context(|| format!("cannot use `--control-socket {}`", path.display())),
            Err(error) => {
                info!(path = %path.display(), error = format!("{error:#}"), "control socket not opened; `--takeover` is not possible");
                Ok(None)
            }
        }
    }

    /// Waits until a new process serves in place of this process.
    pub(crate) async fn replaced(self, operator: &Arc<Operator>) -> Replacement {
        match self.accept(operator).await {
            Ok(replacement) => replacement,
            Err(error) => {
                warn!(%error, "control socket failed; `--takeover` is no longer possible");
                std::future::pending().await
            }
        }
    }

    /// Handles the requests of new processes, one at a time, until one has taken over.
    async fn accept(&self, operator: &Arc<Operator>) -> io::Result<Replacement> {
        self.listener.set_nonblocking(true)?;
        let listener = tokio::net::UnixListener::from_std(self.listener.try_clone()?)?;
        loop {
            let (stream, _) = listener.accept().await?;
            match self.hand_over(&stream, operator, WARM_UP_TIMEOUT).await {
                Ok(hold) => {
                    return Ok(Replacement {
                        _hold: hold,
                        _stream: stream,
                    });
                }
                Err(error) => {
                    let reason = format!("{error:#}");
                    warn!(reason, "takeover failed; serving as before");
                    // The new process may have ended.
                    let _ = send(&stream, &Message::Refused { reason }, &[]).await;
                }
            }
        }
    }

    /// Passes the sockets to a new process, and waits until it serves.
    async fn hand_over(
        &self,
        stream: &UnixStream,
        operator: &Arc<Operator>,
        warm_up_timeout: Duration,
    ) -> anyhow::Result<CommandHold> {
        let (theirs, ours) = (stream.peer_cred()?.uid(), geteuid().as_raw());
        ensure!(
            theirs == ours,
            "the new process runs as user {theirs}, and the running server as user {ours}; start the new process as the same user"
        );
        let request = timeout(REQUEST_TIMEOUT, receive(stream)).await;
        let request = request.context("the new process sent no request")??;
        let Some((Message::Request { version, pid }, _)) = request else {
            bail!("the new process sent no request");
        };
        ensure!(
            version == VERSION,
            "the new process speaks version {version} of the takeover, and the running server version {VERSION}; restart the server instead"
        );
        ensure!(!self.is_managed, SERVICE_MANAGER);
        info!(
            new_pid = pid,
            "takeover requested; handing over the sockets"
        );
        let hold = hold(Arc::clone(operator)).await?;
        let (roles, sockets): (Vec<Role>, Vec<BorrowedFd<'_>>) = self
            .sockets
            .iter()
            .map(|(role, socket)| (*role, socket.as_fd()))
            .unzip();
        let message = Message::Sockets {
            pid: std::process::id(),
            roles,
        };
        send(stream, &message, &sockets).await?;
        match timeout(warm_up_timeout, receive(stream)).await {
            Err(_) => bail!(
                "the new process was not ready within {} s",
                warm_up_timeout.as_secs()
            ),
            Ok(Ok(Some((Message::Serving, _)))) => {}
            Ok(Ok(Some(_))) => bail!("the new process sent an unexpected message"),
            Ok(_) => bail!("the new process ended before it was ready; see its log"),
        }
        send(stream, &Message::Draining, &[])
            .await
            .context("the new process has ended")?;
        info!(new_pid = pid, "new process serves");
        Ok(hold)
    }
}

/// Refuses commands that change something, and writes the state.
async fn hold(operator: Arc<Operator>) -> anyhow::Result<CommandHold> {
    let held = tokio::task::spawn_blocking(move || {
        let hold = operator.hold_commands(HOLD_TIMEOUT)?;
        if !operator.flush(FLUSH_TIMEOUT) {
            warn!("state not written completely; the new process renders the missing pages again");
        }
        Some(hold)
    });
    held.await?
        .ok_or_else(|| anyhow!("a command of an operator is in flight; try again"))
}

/// Opens the socket for processes of the same user, in place of the socket of a process that has ended.
fn bind(path: &Path) -> anyhow::Result<UnixListener> {
    if let Some(folder) = path.parent().filter(|folder| !folder.exists()) {
        let mut folders = DirBuilder::new();
        folders
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .with_context(|| format!("cannot create `{}`", folder.display()))?;
    }
    if let Ok(metadata) = fs::symlink_metadata(path) {
        // A connection to a file is refused, too.
        ensure!(metadata.file_type().is_socket(), "the path is not a socket");
        match StdUnixStream::connect(path) {
            Ok(_) => bail!("another server uses the socket"),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                fs::remove_file(path)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use supervisor::Inbox;
    use supervisor::ReloadSender;
    use tempfile::TempDir;

    use super::*;

    struct Running {
        socket: ControlSocket,
        operator: Arc<Operator>,
        _folder: TempDir,
    }

    impl Running {
        fn new() -> Self {
            let folder = TempDir::new().expect("a folder");
            let admin = TcpListener::bind("127.0.0.1:0").expect("a socket");
            let path = folder.path().join("control/1.sock");
            let visitors = Listeners::default();
            let socket = ControlSocket::open(&path, None, &visitors, &admin, false);
            let operator = Operator {
                store: None,
                inbox: Inbox::default(),
                reloads: ReloadSender::default(),
                board: Arc::default(),
                tenants: folder.path().to_owned(),
            };
            Self {
                socket: socket.expect("a control socket"),
                operator: Arc::new(operator),
                _folder: folder,
            }
        }

        /// Returns the error of a takeover by a process that sends `request` and then waits.
        async fn refusal(&self, request: Message) -> String {
            let (ours, theirs) = UnixStream::pair().expect("a pair");
            send(&theirs, &request, &[]).await.expect("a request");
            let handed_over =
                self.socket
                    .hand_over(&ours, &self.operator, Duration::from_millis(10));
            let error = handed_over.await.expect_err("a refusal");
            assert!(self.operator.hold_commands(Duration::ZERO).is_some());
            error.to_string()
        }
    }

    #[tokio::test]
    async fn process_that_is_not_ready_in_time_is_refused() {
        let running = Running::new();
        let request = Message::Request {
            version: VERSION,
            pid: 1,
        };
        let refusal = running.refusal(request).await;
        assert!(refusal.contains("not ready within"), "{refusal}");
        let other = Message::Request {
            version: VERSION + 1,
            pid: 1,
        };
        let refusal = running.refusal(other).await;
        assert!(refusal.contains("restart the server"), "{refusal}");
        let refusal = running.refusal(Message::Serving).await;
        assert!(refusal.contains("no request"), "{refusal}");
    }
}
