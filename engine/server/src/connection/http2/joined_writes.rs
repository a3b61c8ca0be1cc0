//! Joins the frames of an HTTP/2 connection into fewer writes.
//!
//! `h2` writes each data frame on its own, and a write takes longer than the rest of a response. So frames are copied into a buffer, which is sent when it is full and when `h2` has no more to do.
//! All connections of a worker share the buffer; a connection has a buffer of its own only while its client reads too slowly.
//!
//! **Invariant:** changes no bytes and their order; holds none back while `h2` waits.

use std::cell::RefCell;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tracing::debug;

use crate::connection::served_connection::ServedConnection;

/// Maximum of bytes that wait for more. With two writes at once, the client wakes up half as often.
const BUFFER_BYTES: usize = 2 * WRITE_BYTES;

/// Maximum of bytes in a write. Also with the overhead of TLS, the kernel sends them as one packet, which has up to 64 KiB before it is segmented.
const WRITE_BYTES: usize = 60 * 1024;

/// The empty buffer of a worker, for the next connection that writes.
pub(crate) type SpareBuffer = Rc<RefCell<Vec<u8>>>;

/// A stream that holds written bytes back.
#[derive(Debug)]
struct Joined<S> {
    stream: S,
    unsent: Vec<u8>,
    /// Bytes of `unsent` that are sent.
    sent: usize,
    /// Whether `h2` waits to write.
    is_awaited: bool,
    spare: SpareBuffer,
}

impl<S: AsyncWrite + Unpin> Joined<S> {
    /// Sends all bytes that were held back.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.unsent.is_empty() {
            return Poll::Ready(Ok(()));
        }
        while self.sent < self.unsent.len() {
            let rest = &self.unsent[self.sent..];
            let rest = &rest[..rest.len().min(WRITE_BYTES)];
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, rest))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.sent += written;
        }
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.sent = 0;
        self.unsent.clear();
        self.spare.replace(std::mem::take(&mut self.unsent));
        Poll::Ready(Ok(()))
    }

    fn poll_hold(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.unsent.len() >= BUFFER_BYTES {
            let sent = self.poll_send(cx);
            self.is_awaited = sent.is_pending();
            ready!(sent)?;
        }
        if self.unsent.capacity() == 0 {
            self.unsent = self.spare.take();
        }
        let before = self.unsent.len();
        for slice in slices {
            let room = BUFFER_BYTES - self.unsent.len();
            self.unsent
                .extend_from_slice(&slice[..room.min(slice.len())]);
        }
        Poll::Ready(Ok(self.unsent.len() - before))
    }
}

/// The side of `h2` of a stream whose writes are joined.
#[derive(Debug)]
pub(crate) struct JoinedStream<S>(Rc<RefCell<Joined<S>>>);

impl<S: AsyncRead + Unpin> AsyncRead for JoinedStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.borrow_mut().stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for JoinedStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.borrow_mut().poll_hold(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0.borrow_mut().poll_hold(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Sends nothing: `h2` flushes after each frame, and [`JoinedConnection`] sends after all of them.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut joined = self.0.borrow_mut();
        ready!(joined.poll_send(cx))?;
        Pin::new(&mut joined.stream).poll_shutdown(cx)
    }
}

/// A connection whose writes are joined.
pub(crate) struct JoinedConnection<C, S> {
    connection: Pin<Box<C>>,
    stream: Rc<RefCell<Joined<S>>>,
    ended: Option<hyper::Result<()>>,
}

impl<C: ServedConnection, S: AsyncWrite + Unpin> JoinedConnection<C, S> {
    /// Begins a connection on a stream.
    pub(crate) fn begin(
        stream: S,
        spare: SpareBuffer,
        begin: impl FnOnce(JoinedStream<S>) -> C,
    ) -> Self {
        let stream = Rc::new(RefCell::new(Joined {
            stream,
            unsent: Vec::new(),
            sent: 0,
            is_awaited: false,
            spare,
        }));
        Self {
            connection: Box::pin(begin(JoinedStream(Rc::clone(&stream)))),
            stream,
            ended: None,
        }
    }
}

impl<C: ServedConnection, S: AsyncWrite + Unpin> Future for JoinedConnection<C, S> {
    type Output = hyper::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        loop {
            if this.ended.is_none()
                && let Poll::Ready(ended) = this.connection.as_mut().poll(cx)
            {
                this.ended = Some(ended);
            }
            let mut joined = this.stream.borrow_mut();
            if let Err(error) = ready!(joined.poll_send(cx)) {
                debug!(%error, "connection ended early");
                return Poll::Ready(Ok(()));
            }
            if let Some(ended) = this.ended.take() {
                return Poll::Ready(ended);
            }
            if !std::mem::take(&mut joined.is_awaited) {
                return Poll::Pending;
            }
        }
    }
}

impl<C: ServedConnection, S: AsyncWrite + Unpin> ServedConnection for JoinedConnection<C, S> {
    fn graceful_shutdown(self: Pin<&mut Self>) {
        self.get_mut().connection.as_mut().graceful_shutdown();
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// Writes `writes` pieces of `bytes` bytes, then ends.
    struct Writer {
        stream: JoinedStream<Socket>,
        writes: usize,
        bytes: usize,
    }

    impl Future for Writer {
        type Output = hyper::Result<()>;

        fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
            let this = self.get_mut();
            while this.writes > 0 {
                let piece = vec![this.writes as u8; this.bytes];
                let written = ready!(Pin::new(&mut this.stream).poll_write(cx, &piece));
                assert_eq!(written.unwrap(), this.bytes);
                assert!(Pin::new(&mut this.stream).poll_flush(cx).is_ready());
                this.writes -= 1;
            }
            Poll::Ready(Ok(()))
        }
    }

    impl ServedConnection for Writer {
        fn graceful_shutdown(self: Pin<&mut Self>) {}
    }

    /// A socket that takes `room` bytes, and counts writes.
    #[derive(Debug, Default)]
    struct Socket {
        room: usize,
        writes: usize,
        received: Vec<u8>,
    }

    impl AsyncWrite for Socket {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            let this = self.get_mut();
            let length = bytes.len().min(this.room);
            if length == 0 {
                return Poll::Pending;
            }
            this.room -= length;
            this.writes += 1;
            this.received.extend(&bytes[..length]);
            Poll::Ready(Ok(length))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    fn writer(room: usize, writes: usize, bytes: usize) -> JoinedConnection<Writer, Socket> {
        let socket = Socket {
            room,
            ..Socket::default()
        };
        JoinedConnection::begin(socket, SpareBuffer::default(), |stream| Writer {
            stream,
            writes,
            bytes,
        })
    }

    fn poll(connection: &mut JoinedConnection<Writer, Socket>) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        Pin::new(connection).poll(&mut cx).is_ready()
    }

    #[test]
    fn frames_leave_in_one_write_and_the_buffer_is_shared_again() {
        let mut connection = writer(usize::MAX, 5, 1000);
        assert!(poll(&mut connection));
        let joined = connection.stream.borrow();
        assert_eq!(
            (joined.stream.writes, joined.stream.received.len()),
            (1, 5000)
        );
        assert_eq!(joined.unsent.capacity(), 0);
        assert!(joined.spare.borrow().capacity() >= 5000);
    }

    #[test]
    fn slow_reader_holds_one_buffer_and_gets_all_bytes_in_order() {
        let mut connection = writer(0, 20, BUFFER_BYTES / 8);
        for _ in 0..3 {
            assert!(!poll(&mut connection));
            assert_eq!(connection.stream.borrow().unsent.len(), BUFFER_BYTES);
        }
        connection.stream.borrow_mut().stream.room = BUFFER_BYTES + 1;
        assert!(!poll(&mut connection));
        // The connection has ended, and the rest is still sent.
        connection.stream.borrow_mut().stream.room = usize::MAX;
        assert!(poll(&mut connection));
        let received = &connection.stream.borrow().stream.received;
        assert_eq!(received.len(), 20 * BUFFER_BYTES / 8);
        assert!(received.is_sorted_by(|before, after| before >= after));
    }
}
