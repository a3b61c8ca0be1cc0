//! Detects HTTP/2 on a connection without TLS, by its preface.
//!
//! **Invariant:** consumes no byte of the socket.

use std::io;

use tokio::io::Interest;
use tokio::net::TcpStream;

/// Returns whether the client begins with the HTTP/2 preface (RFC 9113, section 3.3).
pub(crate) async fn opens_with_preface(socket: &TcpStream) -> io::Result<bool> {
    const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let mut start = [0; PREFACE.len()];
    loop {
        let ready = socket.ready(Interest::READABLE).await?;
        let length = socket.peek(&mut start).await?;
        let is_open = length < PREFACE.len() && !ready.is_read_closed();
        if length == 0 || !is_open || !PREFACE.starts_with(&start[..length]) {
            return Ok(start == *PREFACE);
        }
        // The rest of the preface is on its way, or the timeout for header fields ends the connection. Clearing the readiness makes the next wait need new bytes.
        let _ = socket.try_io(Interest::READABLE, || -> io::Result<()> {
            Err(io::ErrorKind::WouldBlock.into())
        });
    }
}
