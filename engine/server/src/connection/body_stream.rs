//! Streams the body of a response to hyper or `h2`.
//!
//! Over HTTP/1.1, bytes in memory are one piece. Over HTTP/2, a piece has a limited size, since a response claims the client's window for it. The request is in flight until its last piece is sent.
//! A file that is too large for memory is read block by block, on tokio's blocking pool. If a block cannot be read, or has changed since it was hashed, only that response ends.
//!
//! **Invariant:** copies no bytes that are in memory; shares a slice of the snapshot's bytes.

use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use release::large::LargeFile;
use release::payload::Payload;
use tokio::task::{JoinHandle, spawn_blocking};
use tracing::warn;

use crate::connection::connection_state::ConnectionState;
use crate::response::response_body::ResponseBody;

/// Maximum of bytes that a response passes to `h2` without waiting. Most pages and assets are smaller.
const MAX_PIECE_BYTES: usize = 64 * 1024;

/// Bytes of a response body on their way to the socket.
#[derive(Debug, Default)]
pub(crate) struct BodyPiece {
    bytes: Bytes,
    /// The request of HTTP/2 that ends with the piece.
    stream: Option<OpenStream>,
}

impl From<Bytes> for BodyPiece {
    fn from(bytes: Bytes) -> Self {
        Self {
            bytes,
            stream: None,
        }
    }
}

impl Buf for BodyPiece {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        if let Some(stream) = &self.stream {
            stream.state.note_progress();
        }
    }
}

/// A response body with the bytes that are not sent yet.
#[derive(Debug)]
pub(crate) struct SnapshotBody {
    source: BodySource,
    stream: Option<OpenStream>,
}

#[derive(Debug)]
enum BodySource {
    Memory(Bytes),
    File(Box<FileReader>),
}

/// Reads a range of a large file.
#[derive(Debug)]
struct FileReader {
    file: LargeFile,
    /// The bytes that are not read yet.
    range: Range<u64>,
    /// Bytes that are read but not sent.
    ready: Bytes,
    reading: Option<JoinHandle<io::Result<Bytes>>>,
}

impl SnapshotBody {
    pub(crate) fn new(body: ResponseBody, stream: Option<OpenStream>) -> Self {
        let ResponseBody { payload, range } = body;
        let source = match payload {
            Payload::Memory(bytes) => BodySource::Memory(bytes),
            Payload::Large(file) => BodySource::File(Box::new(FileReader {
                file: *file,
                range,
                ready: Bytes::new(),
                reading: None,
            })),
        };
        Self { source, stream }
    }

    fn len(&self) -> u64 {
        match &self.source {
            BodySource::Memory(bytes) => bytes.len() as u64,
            BodySource::File(reader) => reader.len(),
        }
    }
}

impl FileReader {
    fn len(&self) -> u64 {
        self.ready.len() as u64 + (self.range.end - self.range.start)
    }

    /// Waits until there are bytes to send or the range is finished.
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<io::Result<&mut Bytes>> {
        if self.ready.is_empty() && !self.range.is_empty() {
            let reading = self.reading.get_or_insert_with(|| {
                let (file, range) = (self.file.clone(), self.range.clone());
                spawn_blocking(move || file.read(range))
            });
            let read = ready!(Pin::new(reading).poll(context));
            self.reading = None;
            let bytes = read.map_err(io::Error::other).flatten();
            self.ready = bytes.inspect_err(|error| {
                let digest = self.file.digest().iter();
                let file: String = digest.map(|byte| format!("{byte:02x}")).collect();
                warn!(file, %error, "reading a large file failed; its response is cut off");
            })?;
            self.range.start += self.ready.len() as u64;
        }
        Poll::Ready(Ok(&mut self.ready))
    }
}

impl Body for SnapshotBody {
    type Data = BodyPiece;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<BodyPiece>>>> {
        let this = self.get_mut();
        let bytes = match &mut this.source {
            BodySource::Memory(rest) => {
                let limit = this.stream.as_ref().map_or(usize::MAX, |_| MAX_PIECE_BYTES);
                rest.split_to(rest.len().min(limit))
            }
            BodySource::File(reader) => std::mem::take(ready!(reader.poll_ready(context))?),
        };
        if let Some(stream) = &this.stream {
            stream.state.note_progress();
        }
        let stream = this.is_end_stream().then(|| this.stream.take()).flatten();
        let piece = BodyPiece { bytes, stream };
        let frame = (!piece.bytes.is_empty()).then(|| Ok(Frame::data(piece)));
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.len() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.len())
    }
}

/// An HTTP/2 request in flight. It ends when dropped.
#[derive(Debug)]
pub(crate) struct OpenStream {
    state: Rc<ConnectionState>,
    number: u32,
}

impl OpenStream {
    pub(crate) fn new(state: Rc<ConnectionState>, started: std::time::Instant) -> Self {
        let number = state.open_stream(started);
        Self { state, number }
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.state.close_stream(self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;
    use crate::connection::connection_state::Phase;

    fn pieces(stream: Option<OpenStream>) -> Vec<BodyPiece> {
        let bytes = Bytes::from(vec![0; 3 * MAX_PIECE_BYTES - 1]);
        let mut body = SnapshotBody::new(bytes.into(), stream);
        let mut context = Context::from_waker(Waker::noop());
        std::iter::from_fn(|| match Pin::new(&mut body).poll_frame(&mut context) {
            Poll::Ready(frame) => Some(frame?.unwrap().into_data().unwrap()),
            Poll::Pending => panic!("bytes in memory are not ready"),
        })
        .collect()
    }

    #[test]
    fn piece_has_limited_size_over_http2_and_the_last_ends_the_request() {
        let now = std::time::Instant::now();
        let state = Rc::new(ConnectionState::new(now, Phase::Streams));
        let mut pieces = pieces(Some(OpenStream::new(Rc::clone(&state), now)));
        let lengths: Vec<_> = pieces.iter().map(Buf::remaining).collect();
        let full = MAX_PIECE_BYTES;
        assert_eq!(lengths, [full, full, full - 1]);
        assert!(state.has_streams());
        pieces.pop();
        assert!(!state.has_streams());
    }

    #[test]
    fn bytes_in_memory_are_one_piece_over_http1() {
        assert_eq!(pieces(None).len(), 1);
    }
}
