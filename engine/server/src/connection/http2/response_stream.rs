//! Passes one response to its stream.
//!
//! The last piece of a body is passed without waiting for the client's window: `h2` sends it as the window allows, and frees it when the client resets the stream. So a body in memory, which is one piece, needs no task.
//!
//! **Invariant:** knows no route; changes no field but `Date` and `Content-Length`.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::Buf;
use h2::server::SendResponse;
use h2::{Reason, SendStream};
use http::header::{CONTENT_LENGTH, DATE};
use http::{HeaderValue, Response};
use http_body::Body;
use tracing::debug;

use crate::connection::worker_context::WorkerContext;

/// A response, from its choice to its last byte.
pub(crate) struct ResponseStream<F, B: Body> {
    reply: SendResponse<B::Data>,
    context: Rc<WorkerContext>,
    stage: Stage<F, B>,
}

enum Stage<F, B: Body> {
    /// Waits for the response.
    Choosing(F),
    Sending {
        stream: SendStream<B::Data>,
        body: B,
        /// A piece that waits for the client's window.
        piece: Option<B::Data>,
    },
}

impl<F, B> ResponseStream<F, B>
where
    F: Future<Output = Result<Response<B>, Infallible>> + Unpin,
    B: Body + Unpin,
    B::Data: Default,
{
    pub(crate) fn new(answer: F, reply: SendResponse<B::Data>, context: Rc<WorkerContext>) -> Self {
        Self {
            reply,
            context,
            stage: Stage::Choosing(answer),
        }
    }

    /// Sends the header fields. Returns the next stage, if the response has a body.
    ///
    /// # Errors
    /// When the stream has ended, or `h2` refuses a field.
    fn send_head(&mut self, response: Response<B>) -> Result<Option<Stage<F, B>>, h2::Error> {
        let (mut head, body) = response.into_parts();
        let date = self.context.date.borrow_mut().at(Instant::now()).clone();
        head.headers.insert(DATE, date);
        let is_empty = body.is_end_stream();
        if !is_empty && let Some(length) = body.size_hint().exact() {
            let length = HeaderValue::from(length);
            head.headers.entry(CONTENT_LENGTH).or_insert(length);
        }
        let stream = self
            .reply
            .send_response(Response::from_parts(head, ()), is_empty)?;
        Ok((!is_empty).then_some(Stage::Sending {
            stream,
            body,
            piece: None,
        }))
    }

    /// Passes the response on until a wait or its end.
    ///
    /// # Errors
    /// When the client has reset the stream or the connection has ended.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), h2::Error>> {
        loop {
            match &mut self.stage {
                Stage::Choosing(answer) => match Pin::new(answer).poll(cx) {
                    Poll::Ready(Ok(response)) => match self.send_head(response)? {
                        Some(next) => self.stage = next,
                        None => return Poll::Ready(Ok(())),
                    },
                    Poll::Ready(Err(never)) => match never {},
                    Poll::Pending => return self.reply.poll_reset(cx).map_ok(drop),
                },
                Stage::Sending {
                    stream,
                    body,
                    piece,
                } => {
                    if piece.is_some() {
                        ready!(poll_window(stream, cx))?;
                        if let Some(piece) = piece.take() {
                            stream.send_data(piece, false)?;
                        }
                    }
                    let Poll::Ready(frame) = Pin::new(&mut *body).poll_frame(cx) else {
                        return stream.poll_reset(cx).map_ok(drop);
                    };
                    let is_last = frame.is_none() || body.is_end_stream();
                    let data = match frame {
                        // No body of the program has trailers.
                        Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
                        Some(Err(_)) => {
                            stream.send_reset(Reason::INTERNAL_ERROR);
                            return Poll::Ready(Ok(()));
                        }
                        None => B::Data::default(),
                    };
                    if is_last {
                        return Poll::Ready(stream.send_data(data, true));
                    }
                    *piece = Some(data);
                }
            }
        }
    }
}

impl<F, B> Future for ResponseStream<F, B>
where
    F: Future<Output = Result<Response<B>, Infallible>> + Unpin,
    B: Body + Unpin,
    B::Data: Default + Unpin,
{
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        if let Err(error) = ready!(this.poll_send(cx)) {
            debug!(%error, "response ended early");
            this.reply.send_reset(Reason::INTERNAL_ERROR);
        }
        Poll::Ready(())
    }
}

/// Waits until the client's window has room, so that few bytes wait in `h2`.
fn poll_window<D: Buf>(
    stream: &mut SendStream<D>,
    cx: &mut Context<'_>,
) -> Poll<Result<(), h2::Error>> {
    if let Poll::Ready(reset) = stream.poll_reset(cx) {
        return Poll::Ready(Err(reset?.into()));
    }
    stream.reserve_capacity(1);
    while stream.capacity() == 0 {
        match ready!(stream.poll_capacity(cx)) {
            Some(room) => drop(room?),
            None => return Poll::Ready(Err(Reason::CANCEL.into())),
        }
    }
    Poll::Ready(Ok(()))
}
