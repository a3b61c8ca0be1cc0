//! Which protocol a client begins with.
//!
//! **Invariant:** takes nothing off the socket.

use std::io;

use tokio::io::Interest;
use tokio::net::TcpStream;

/// Whether the client speaks HTTP/2 from the start (RFC 9113, section 3.3).
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
        // The rest is on its way, or the timeout for header fields ends the wait. What has come already does not wake this again.
        let _ = socket.try_io(Interest::READABLE, || -> io::Result<()> {
            Err(io::ErrorKind::WouldBlock.into())
        });
    }
}
