//! Hands the listening sockets of a running server to a new process (`serve --takeover`), so that an upgrade fails no request.
//!
//! ```text
//! new process (successor)                running server (control_socket)
//!   connects, Request ───────────────────▶ checks the user, holds commands, flushes the state
//!   reads the state and the folders ◀───── Sockets (file descriptors)
//!   accepts connections, Serving ────────▶ stops accepting, drains, exits
//!                       ◀───────────────── Draining
//! ```
//!
//! Both processes have the same sockets, so connections wait in one queue, and either process accepts them. The running server drains only after the new process accepts connections. If the new process ends before that, or is not ready in time, the running server serves as before.
//!
//! The state has one writer. The new process reads the state, and becomes the writer once the running server has ended. Rollbacks and other changes are refused from the flush until then.
//!
//! **Invariant:** sees no connection of a visitor, and decides nothing about the state except when it is flushed.

pub(crate) mod control_socket;
mod message;
pub(crate) mod successor;

use std::path::PathBuf;
use std::time::Duration;

use crate::cli::ServeArguments;

/// The time for which idle connections wait for one more request after a takeover.
pub(crate) const LINGER: Duration = Duration::from_secs(3);

/// Returns the path of the control socket. The port of the admin listener keeps servers apart that share `--state`.
pub(crate) fn socket_path(arguments: &ServeArguments) -> Option<PathBuf> {
    let below_state = || {
        let file = format!("{}.sock", arguments.admin.port());
        Some(arguments.state.as_ref()?.join("control").join(file))
    };
    arguments.control_socket.clone().or_else(below_state)
}
