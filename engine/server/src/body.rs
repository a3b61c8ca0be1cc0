//! The body of a response on its way out.
//!
//! Over HTTP/1.1 the bytes go to the socket in one piece. Over HTTP/2 they go in pieces as the client makes room for them, so that a body is alive for as long as its client has not taken it, and its connection knows which requests are under way.
//!
//! **Invariant:** copies nothing; holds a part of the snapshot's bytes.

use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::connection_state::ConnectionState;

/// Bytes of a piece: a frame of HTTP/2 as large as every client takes (RFC 9113, section 4.2).
const PIECE: usize = 16 * 1024;

/// What is left of a body.
#[derive(Debug)]
pub(super) struct SnapshotBody {
    rest: Bytes,
    stream: Option<OpenStream>,
}

impl SnapshotBody {
    pub(super) const fn new(bytes: Bytes, stream: Option<OpenStream>) -> Self {
        Self {
            rest: bytes,
            stream,
        }
    }
}

impl Body for SnapshotBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        if this.rest.is_empty() {
            return Poll::Ready(None);
        }
        let piece = match &this.stream {
            Some(stream) => {
                stream.state.moved();
                this.rest.split_to(PIECE.min(this.rest.len()))
            }
            None => std::mem::take(&mut this.rest),
        };
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(u64::try_from(self.rest.len()).unwrap_or(u64::MAX))
    }
}

/// A request of HTTP/2 that is under way; over when dropped.
#[derive(Debug)]
pub(super) struct OpenStream {
    state: Rc<ConnectionState>,
    number: u32,
}

impl OpenStream {
    pub(super) fn new(state: Rc<ConnectionState>, started: std::time::Instant) -> Self {
        let number = state.open_stream(started);
        Self { state, number }
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.state.close_stream(self.number);
    }
}
