//! The body of a response on its way out.
//!
//! Bytes in memory go to the socket in one piece over HTTP/1.1. Over HTTP/2 they go in pieces as the client makes room for them, so that a body is alive for as long as its client has not taken it, and its connection knows which requests are in flight.
//! A file that is too large for memory is read a block at a time, on a thread that serves no requests. A block that cannot be read, or is not as it was, ends that response alone.
//!
//! **Invariant:** copies nothing that is in memory; holds a part of the snapshot's bytes.

use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use release::large::LargeFile;
use release::payload::Payload;
use tokio::task::{JoinHandle, spawn_blocking};
use tracing::warn;

use crate::connection::connection_state::ConnectionState;
use crate::response::response_body::ResponseBody;

/// Bytes of a piece: a frame of HTTP/2 as large as every client takes (RFC 9113, section 4.2).
const PIECE: usize = 16 * 1024;

/// What is left of a body.
#[derive(Debug)]
pub(crate) struct SnapshotBody {
    rest: Rest,
    stream: Option<OpenStream>,
}

#[derive(Debug)]
enum Rest {
    Memory(Bytes),
    File(Box<FileReader>),
}

/// A part of a file while it is read.
#[derive(Debug)]
struct FileReader {
    file: LargeFile,
    /// What is still to be read.
    range: Range<u64>,
    /// What was read and is not sent yet.
    ready: Bytes,
    reading: Option<JoinHandle<io::Result<Bytes>>>,
}

impl SnapshotBody {
    pub(crate) fn new(body: ResponseBody, stream: Option<OpenStream>) -> Self {
        let ResponseBody { payload, range } = body;
        let rest = match payload {
            Payload::Memory(bytes) => Rest::Memory(bytes),
            Payload::Large(file) => Rest::File(Box::new(FileReader {
                file: *file,
                range,
                ready: Bytes::new(),
                reading: None,
            })),
        };
        Self { rest, stream }
    }

    fn len(&self) -> u64 {
        match &self.rest {
            Rest::Memory(bytes) => bytes.len() as u64,
            Rest::File(reader) => reader.len(),
        }
    }
}

impl FileReader {
    fn len(&self) -> u64 {
        self.ready.len() as u64 + (self.range.end - self.range.start)
    }

    /// Waits until there is something to send, or nothing is left.
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
                warn!(file, %error, "a large file cannot be read; its response ends early");
            })?;
            self.range.start += self.ready.len() as u64;
        }
        Poll::Ready(Ok(&mut self.ready))
    }
}

impl Body for SnapshotBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = self.get_mut();
        let rest = match &mut this.rest {
            Rest::Memory(bytes) => bytes,
            Rest::File(reader) => ready!(reader.poll_ready(context))?,
        };
        if rest.is_empty() {
            return Poll::Ready(None);
        }
        let piece = match &this.stream {
            Some(stream) => {
                stream.state.moved();
                rest.split_to(PIECE.min(rest.len()))
            }
            None => std::mem::take(rest),
        };
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.len() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.len())
    }
}

/// A request of HTTP/2 that is in flight; over when dropped.
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
