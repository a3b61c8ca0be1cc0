//! `rowhouse probe`: asks a running server whether it is ready, for health checks where there is no other program to ask with.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::ExitCode;
use std::time::Duration;

use super::output::{print, say};
use crate::cli::ProbeArguments;

/// For each step of the question; a server that takes longer is not well.
const PATIENCE: Duration = Duration::from_secs(2);

/// Bytes of an answer that are read: a line for each tenant that is not live.
const ENOUGH: u64 = 64 * 1024;

/// Prints what `/readyz` says: 0 ready, 1 not ready or nobody there.
///
/// Not 2, as for whatever else could not run: container engines keep that one for themselves.
pub(super) fn run(arguments: &ProbeArguments) -> ExitCode {
    match ask(arguments.admin) {
        Ok((ready, text)) => {
            print(text.trim_end());
            ExitCode::from(u8::from(!ready))
        }
        Err(error) => {
            say(&format!(
                "error: nobody answers at `{}`: {error}",
                arguments.admin
            ));
            ExitCode::FAILURE
        }
    }
}

/// Whether the server is ready, and its words. One that listens on every address (`0.0.0.0`) is reached by that address, too.
fn ask(admin: SocketAddr) -> io::Result<(bool, String)> {
    let mut stream = TcpStream::connect_timeout(&admin, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.take(ENOUGH).read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    Ok((head.starts_with("HTTP/1.1 200 "), body.to_owned()))
}
