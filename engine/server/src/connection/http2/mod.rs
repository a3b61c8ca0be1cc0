//! Serves a connection of HTTP/2 (RFC 9113) with the library `h2`.
//!
//! [`preface`] detects the protocol on a connection without TLS. [`response_stream`] passes a response to `h2`: at once if its body is in memory, otherwise in a task of its own. [`joined_writes`] joins the frames into fewer writes.
//!
//! **Invariant:** chooses no response. `h2` keeps the rules of the protocol, its windows and its limits.

pub(crate) mod joined_writes;
pub(crate) mod preface;
mod response_stream;

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::RecvStream;
use h2::server::{Builder, Connection, Handshake, SendResponse};
use http::{Method, Request, Response};
use http_body::{Body, Frame};
use hyper::service::Service;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::spawn_local;
use tracing::debug;

use crate::connection::http2::response_stream::ResponseStream;
use crate::connection::served_connection::ServedConnection;
use crate::connection::worker_context::WorkerContext;
use crate::settings::Limits;

/// Initial flow-control window of the protocol, in bytes (RFC 9113, section 6.9.2). Request content is refused, so a larger window would be of no use.
const WINDOW_BYTES: u32 = 65_535;

/// Maximum of requests that a connection answers before the other connections of its worker have their turn.
const MAX_REQUESTS_PER_TURN: usize = 128;

/// Returns a builder of connections with these limits.
pub(crate) fn builder(limits: &Limits) -> Builder {
    let mut builder = Builder::new();
    builder
        .max_concurrent_streams(limits.http2_streams)
        .max_pending_accept_reset_streams(limits.http2_resets)
        .max_local_error_reset_streams(Some(limits.http2_resets))
        .max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX))
        .initial_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES);
    builder
}

/// A connection of HTTP/2, and the service that answers its requests.
pub(crate) struct Http2Connection<I, S, B: Body> {
    stage: Stage<I, B>,
    service: S,
    context: Rc<WorkerContext>,
    /// Whether the connection ends once its streams have ended.
    is_ending: bool,
}

enum Stage<I, B: Body> {
    Handshake(Handshake<I, B::Data>),
    Open(Connection<I, B::Data>),
}

impl<I, S, B> Http2Connection<I, S, B>
where
    I: AsyncRead + AsyncWrite + Unpin,
    S: Service<Request<RequestContent>, Response = Response<B>, Error = Infallible>,
    S::Future: Unpin + 'static,
    B: Body + Unpin + 'static,
    B::Data: Default + Unpin,
{
    pub(crate) fn new(
        stream: I,
        builder: &Builder,
        service: S,
        context: Rc<WorkerContext>,
    ) -> Self {
        Self {
            stage: Stage::Handshake(builder.handshake(stream)),
            service,
            context,
            is_ending: false,
        }
    }

    fn poll_requests(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), h2::Error>> {
        for _ in 0..MAX_REQUESTS_PER_TURN {
            match &mut self.stage {
                Stage::Handshake(handshake) => {
                    let mut connection = ready!(Pin::new(handshake).poll(cx))?;
                    if self.is_ending {
                        connection.graceful_shutdown();
                    }
                    self.stage = Stage::Open(connection);
                }
                Stage::Open(connection) => match ready!(connection.poll_accept(cx)?) {
                    Some((request, reply)) => self.respond(request, reply, cx),
                    None => return Poll::Ready(Ok(())),
                },
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn respond(
        &self,
        request: Request<RecvStream>,
        reply: SendResponse<B::Data>,
        cx: &mut Context<'_>,
    ) {
        // The stream of a CONNECT request carries no content (RFC 9113, section 8.5).
        let is_connect = request.method() == Method::CONNECT;
        let request = request.map(|stream| RequestContent {
            is_empty: is_connect || stream.is_end_stream(),
            _stream: stream,
        });
        let answer = self.service.call(request);
        let mut response = ResponseStream::new(answer, reply, Rc::clone(&self.context));
        if Pin::new(&mut response).poll(cx).is_pending() {
            spawn_local(response);
        }
    }
}

impl<I, S, B> Future for Http2Connection<I, S, B>
where
    I: AsyncRead + AsyncWrite + Unpin,
    S: Service<Request<RequestContent>, Response = Response<B>, Error = Infallible> + Unpin,
    S::Future: Unpin + 'static,
    B: Body + Unpin + 'static,
    B::Data: Default + Unpin,
{
    type Output = hyper::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Err(error) = ready!(self.get_mut().poll_requests(cx)) {
            debug!(%error, "connection ended early");
        }
        Poll::Ready(Ok(()))
    }
}

impl<I, S, B> ServedConnection for Http2Connection<I, S, B>
where
    I: AsyncRead + AsyncWrite + Unpin,
    S: Service<Request<RequestContent>, Response = Response<B>, Error = Infallible> + Unpin,
    S::Future: Unpin + 'static,
    B: Body + Unpin + 'static,
    B::Data: Default + Unpin,
{
    fn graceful_shutdown(self: Pin<&mut Self>) {
        let this = self.get_mut();
        this.is_ending = true;
        if let Stage::Open(connection) = &mut this.stage {
            connection.graceful_shutdown();
        }
    }
}

/// The content of a request, which is never read. `h2` discards the content of a dropped stream.
pub(crate) struct RequestContent {
    is_empty: bool,
    _stream: RecvStream,
}

impl Body for RequestContent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.is_empty
    }
}
