//! The fast lane: answers plain HTTP/1.1 requests without hyper.
//!
//! Most requests are a GET whose header fields arrive in one read. The lane [parses](plain_request) such a request in place, looks the response up as hyper's service does, [encodes its head](response_head), and sends head and body with one write.
//!
//! hyper gets everything else, with the bytes that were read, and keeps the connection: a request that is incomplete or unusual, a response that must wait or is read from disk, the end of the input, a failed read, and the end of the connection. The rules about all of these exist once, in hyper and in [`request_service`](super::request_service).
//!
//! **Invariant:** chooses no response; sends the bytes that hyper would send. `tests` compares both.

pub(crate) mod lane_buffers;
mod plain_request;
mod response_head;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::{Buf as _, Bytes};
use http::{Method, Version};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tracing::debug;

use crate::connection::fast_lane::lane_buffers::LaneBuffers;
use crate::connection::request_service::RequestService;
use crate::connection::served_connection::ServedConnection;
use crate::connection::stream::Stream;
use crate::response::response_body::ResponseBody;
use crate::response::routed_response::RequestHead;
use crate::response::snapshot_response::SnapshotResponse;

/// hyper's connection.
type HyperConnection<S> = Box<http1::Connection<TokioIo<Stream<S>>, RequestService>>;

/// A connection in the fast lane, or at hyper after the lane has left it.
pub(crate) struct FastLane<S> {
    /// The socket, until hyper gets it.
    stream: Option<Stream<S>>,
    hyper: Option<HyperConnection<S>>,
    service: RequestService,
    http1: Rc<http1::Builder>,
    /// Bytes after the request in flight.
    unread: Bytes,
    unsent: Option<UnsentResponse>,
    has_answered: bool,
    /// Whether the connection ends after the response in flight.
    is_ending: bool,
}

/// A response on its way to the socket.
#[derive(Debug)]
struct UnsentResponse {
    head: Vec<u8>,
    /// Bytes of the head that are sent.
    sent: usize,
    /// The rest of the body.
    body: Bytes,
}

impl UnsentResponse {
    fn poll_write<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        stream: &mut Stream<S>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let mut stream = Pin::new(stream);
        while self.sent < self.head.len() || !self.body.is_empty() {
            let head = &self.head[self.sent..];
            let slices = [IoSlice::new(head), IoSlice::new(&self.body)];
            let written = ready!(stream.as_mut().poll_write_vectored(cx, &slices))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            let of_head = written.min(head.len());
            self.sent += of_head;
            self.body.advance(written - of_head);
        }
        stream.poll_flush(cx)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + 'static> FastLane<S> {
    pub(crate) fn new(
        stream: Stream<S>,
        service: RequestService,
        http1: Rc<http1::Builder>,
    ) -> Self {
        Self {
            stream: Some(stream),
            hyper: None,
            service,
            http1,
            unread: Bytes::new(),
            unsent: None,
            has_answered: false,
            is_ending: false,
        }
    }

    /// Answers plain requests until hyper must continue.
    ///
    /// # Errors
    /// When the socket fails while a response is sent, which ends the connection.
    fn poll_requests(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let context = Rc::clone(&self.service.context);
        let buffers = &mut *context.lane.borrow_mut();
        while let Some(stream) = &mut self.stream {
            if let Some(unsent) = &mut self.unsent {
                let written = unsent.poll_write(stream, cx);
                if written.is_pending() {
                    // A slice would hold the buffer that all connections share.
                    self.unread = Bytes::copy_from_slice(&self.unread);
                }
                ready!(written)?;
                if let Some(sent) = self.unsent.take() {
                    buffers.head = sent.head;
                }
                if self.is_ending {
                    self.unread.clear();
                    break;
                }
            }
            if self.unread.is_empty() {
                let mut input = buffers.input();
                let read = pin!(stream.read_buf(&mut input)).poll(cx);
                if read.is_pending()
                    && let Poll::Ready(flushed) = Pin::new(&mut *stream).poll_flush(cx)
                {
                    // TLS answers some records, such as a request to renegotiate, and writes the answer when it is flushed.
                    flushed?;
                }
                match ready!(read) {
                    Ok(length) if length > 0 => self.unread = input.get_mut().split().freeze(),
                    // hyper reads the end of the input, or the error, again.
                    _ => break,
                }
            }
            if context.is_draining.get() || !self.begin_response(buffers) {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Prepares the response to the next request. Returns whether the request was plain and could be answered at once.
    fn begin_response(&mut self, buffers: &mut LaneBuffers) -> bool {
        let started = Instant::now();
        let limits = &self.service.context.settings.limits;
        let Some(request) = plain_request::parse(&self.unread, limits, &mut buffers.fields) else {
            return false;
        };
        let (method, uri) = (&request.method, &request.uri);
        let head = RequestHead::new(method, uri, Version::HTTP_11, &buffers.fields, false);
        let (lines, mut date) = (&mut buffers.head, self.service.context.date.borrow_mut());
        let encode = |mut response: SnapshotResponse<'_>| {
            lines.clear();
            response_head::encode(lines, &mut response, method, date.at(started));
            let body = Some(response.take_body()).filter(|_| *method != Method::HEAD);
            body.and_then(ResponseBody::into_memory).unwrap_or_default()
        };
        let answered = self.service.respond_at_once(&head, started, encode);
        buffers.fields.clear();
        let Some(body) = answered else {
            return false;
        };
        self.unsent = Some(UnsentResponse {
            head: std::mem::take(&mut buffers.head),
            sent: 0,
            body,
        });
        // Unlike `advance`, `slice` releases the buffer with the last byte.
        self.unread = self.unread.slice(request.length..);
        self.has_answered = true;
        true
    }

    /// Passes the connection to hyper, with the bytes that are not answered.
    fn hand_over(&mut self) {
        if let Some(stream) = self.stream.take() {
            let unread = Bytes::copy_from_slice(&std::mem::take(&mut self.unread));
            let stream = TokioIo::new(stream.with_unread(unread));
            let connection = self.http1.serve_connection(stream, self.service.clone());
            self.hyper = Some(Box::new(connection));
        }
    }

    fn shut_down_hyper(&mut self) {
        if let Some(hyper) = &mut self.hyper {
            Pin::new(&mut **hyper).graceful_shutdown();
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + 'static> Future for FastLane<S> {
    type Output = hyper::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if this.hyper.is_none() {
            if let Err(error) = ready!(this.poll_requests(cx)) {
                debug!(%error, "connection ended early");
                return Poll::Ready(Ok(()));
            }
            this.hand_over();
            if this.is_ending {
                this.shut_down_hyper();
            }
        }
        match &mut this.hyper {
            Some(hyper) => Pin::new(&mut **hyper).poll(cx),
            None => Poll::Ready(Ok(())),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + 'static> ServedConnection for FastLane<S> {
    fn graceful_shutdown(self: Pin<&mut Self>) {
        let this = self.get_mut();
        if this.unsent.is_some() {
            this.is_ending = true;
            return;
        }
        if this.has_answered && this.service.state.awaits_request() {
            // hyper waits for the rest of a connection's first request only, and does not know the requests that the lane has answered.
            if let Some(hyper) = this.hyper.take() {
                let stream = hyper.into_parts().io.into_inner();
                this.stream = Some(stream.with_unread(Bytes::new()));
            }
        }
        this.hand_over();
        this.shut_down_hyper();
    }
}
