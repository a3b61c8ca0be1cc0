//! Streams the body of a response to hyper or `h2`.
//!
//! Bytes in memory are one piece. Over HTTP/2, `h2` splits the piece into frames, and sends a frame when the client has a window for it; the request is in flight until the last frame is written.
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
        let piece = match &mut this.source {
            BodySource::Memory(bytes) => BodyPiece {
                bytes: std::mem::take(bytes),
                stream: this.stream.take(),
            },
            BodySource::File(reader) => {
                let bytes = std::mem::take(ready!(reader.poll_ready(context))?);
                if let Some(stream) = &this.stream {
                    stream.state.note_progress();
                }
                bytes.into()
            }
        };
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
