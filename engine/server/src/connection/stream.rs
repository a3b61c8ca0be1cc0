//! Wraps a connection's socket and records its reads and writes.
//!
//! The wrapper also closes connections without losing the last response. If a socket is closed while bytes from the client are unread, the system discards bytes that are on their way to the client. So the write side is closed first, and incoming bytes are read and discarded for up to two seconds.
//!
//! **Invariant:** knows no HTTP; counts bytes without reading their content.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connection::connection_state::{ConnectionState, Phase};

/// A socket or TLS stream with its connection's state.
#[derive(Debug)]
pub(crate) struct Stream<S> {
    socket: S,
    state: Rc<ConnectionState>,
    /// Bytes that were read before, and are read again.
    unread: Bytes,
    /// Bytes read and discarded after the last response.
    discarded_bytes: usize,
}

/// Maximum of bytes that are discarded after the last response.
const MAX_DISCARDED_BYTES: usize = 1024 * 1024;

impl<S> Stream<S> {
    pub(crate) const fn new(socket: S, state: Rc<ConnectionState>) -> Self {
        Self {
            socket,
            state,
            unread: Bytes::new(),
            discarded_bytes: 0,
        }
    }

    /// Returns the stream with bytes that are read before those of the socket.
    pub(crate) fn with_unread(mut self, unread: Bytes) -> Self {
        self.unread = unread;
        self
    }

    fn note(&self, written: &Poll<io::Result<usize>>) {
        match written {
            Poll::Ready(Ok(_)) => self.state.note_write(false),
            Poll::Ready(Err(_)) => {}
            Poll::Pending => self.state.note_write(true),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.unread.is_empty() {
            let length = this.unread.len().min(buffer.remaining());
            buffer.put_slice(&this.unread.split_to(length));
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let done = Pin::new(&mut this.socket).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            this.state.note_read();
        }
        done
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.socket).poll_write(cx, bytes);
        this.note(&written);
        written
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.socket).poll_write_vectored(cx, slices);
        this.note(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Called when all bytes of the response are written. With TLS, some of them may not be with the operating system yet.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.socket).poll_flush(cx);
        if flushed.is_pending() {
            this.state.note_write(true);
        }
        ready!(flushed)?;
        this.state.note_flush();
        if this.state.phase() == Phase::Responding {
            this.state.enter(Phase::Idle);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let phase = this.state.phase();
        if phase != Phase::Closing {
            ready!(Pin::new(&mut this.socket).poll_shutdown(cx))?;
            if phase == Phase::Streams {
                // While an HTTP/2 client reads the rest, it keeps sending window updates.
                this.state.mark_unread();
            }
            this.state.enter(Phase::Closing);
        }
        let mut sink = [0; 4096];
        while this.discarded_bytes < MAX_DISCARDED_BYTES {
            let mut buffer = ReadBuf::new(&mut sink);
            match Pin::new(&mut this.socket).poll_read(cx, &mut buffer) {
                // Unread content may still be on its way.
                Poll::Pending if this.state.has_unread() => return Poll::Pending,
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                    this.discarded_bytes += buffer.filled().len();
                    this.state.mark_unread();
                }
                Poll::Ready(_) | Poll::Pending => break,
            }
        }
        Poll::Ready(Ok(()))
    }
}
