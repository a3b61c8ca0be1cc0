//! The messages between a running server and a new process: a JSON object per line, and file descriptors (`SCM_RIGHTS`, unix(7)).
//!
//! Either side waits for the other side's message before it sends the next one, so a read never has two messages.
//!
//! **Invariant:** knows neither the order of the messages nor their effects.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::cmsg_space;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};
use tokio::io::Interest;
use tokio::net::UnixStream;

/// The version of the messages. Servers with different versions refuse a takeover.
pub(super) const VERSION: u32 = 1;

/// The sockets that one message can carry. A server has one for each listening address, and its control socket.
pub(super) const MAX_SOCKETS: usize = 16;

/// Maximum bytes of a message.
const MAX_MESSAGE_BYTES: usize = 4096;

/// A message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Message {
    /// The new process asks for the sockets.
    Request { version: u32, pid: u32 },
    /// The running server passes its sockets, in the order of `roles`.
    Sockets { pid: u32, roles: Vec<Role> },
    /// The running server refuses, and serves as before.
    Refused { reason: String },
    /// The new process accepts connections.
    Serving,
    /// The running server accepts no more connections.
    Draining,
}

/// The role of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Role {
    /// HTTP for visitors.
    Clear,
    /// HTTPS for visitors.
    Tls,
    /// Redirects to HTTPS.
    Redirect,
    /// The admin listener.
    Admin,
    /// The control socket itself.
    Control,
}

/// Sends a message with file descriptors.
///
/// # Errors
/// When the other process has ended, or the message is too large.
pub(super) async fn send(
    stream: &UnixStream,
    message: &Message,
    sockets: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    if line.len() > MAX_MESSAGE_BYTES || sockets.len() > MAX_SOCKETS {
        return Err(io::Error::other("the message is too large"));
    }
    let sent = stream
        .async_io(Interest::WRITABLE, || {
            let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MAX_SOCKETS))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            if !sockets.is_empty() {
                control.push(SendAncillaryMessage::ScmRights(sockets));
            }
            let parts = [IoSlice::new(&line)];
            Ok(sendmsg(
                stream.as_fd(),
                &parts,
                &mut control,
                SendFlags::empty(),
            )?)
        })
        .await?;
    // The buffer of a new socket holds far more than one message.
    match sent == line.len() {
        true => Ok(()),
        false => Err(io::ErrorKind::WriteZero.into()),
    }
}

/// Receives a message with its file descriptors. Returns `None` if the other process has closed the connection.
///
/// # Errors
/// When the connection fails, or the bytes are not a message.
pub(super) async fn receive(stream: &UnixStream) -> io::Result<Option<(Message, Vec<OwnedFd>)>> {
    let mut line = Vec::new();
    let mut sockets = Vec::new();
    loop {
        let mut bytes = [0; MAX_MESSAGE_BYTES];
        let length = stream
            .async_io(Interest::READABLE, || {
                receive_part(stream, &mut bytes, &mut sockets)
            })
            .await?;
        if length == 0 {
            return Ok(None);
        }
        line.extend_from_slice(bytes.get(..length).unwrap_or_default());
        if line.ends_with(b"\n") {
            return Ok(Some((serde_json::from_slice(&line)?, sockets)));
        }
        if line.len() > MAX_MESSAGE_BYTES {
            return Err(io::Error::other("the message is too large"));
        }
    }
}

fn receive_part(
    stream: &UnixStream,
    bytes: &mut [u8],
    sockets: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MAX_SOCKETS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(bytes)];
    let received = recvmsg(stream.as_fd(), &mut parts, &mut control, RecvFlags::empty())?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            sockets.extend(descriptors);
        }
    }
    for socket in sockets.iter() {
        fcntl_setfd(socket, FdFlags::CLOEXEC)?;
    }
    Ok(received.bytes)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::fd::AsFd as _;

    use super::*;

    #[tokio::test]
    async fn message_arrives_with_its_sockets() {
        let (one, other) = UnixStream::pair().expect("a pair");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let message = Message::Sockets {
            pid: 7,
            roles: vec![Role::Clear, Role::Admin],
        };
        let sockets = [listener.as_fd(), listener.as_fd()];
        send(&one, &message, &sockets)
            .await
            .expect("a sent message");
        let (received, sockets) = receive(&other).await.expect("bytes").expect("a message");
        assert_eq!(received, message);
        for socket in sockets {
            let same = TcpListener::from(socket);
            assert_eq!(same.local_addr().ok(), listener.local_addr().ok());
        }
        drop(one);
        assert!(receive(&other).await.expect("an end").is_none());
    }

    #[tokio::test]
    async fn other_bytes_are_not_a_message() {
        for bytes in [&b"GET / HTTP/1.1\r\n"[..], &[b' '; 2 * MAX_MESSAGE_BYTES]] {
            let (one, other) = UnixStream::pair().expect("a pair");
            one.writable().await.expect("room");
            assert_eq!(one.try_write(bytes).ok(), Some(bytes.len()));
            assert!(receive(&other).await.is_err());
        }
    }
}
