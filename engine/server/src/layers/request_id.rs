//! Gives each request an id, which its response names in `X-Request-Id`.
//!
//! **Invariant:** reads of the request only the id that a trusted proxy gave it.

use std::convert::Infallible;
use std::future::ready;
use std::task::{Context, Poll};

use tower::Service;

use super::exchange::{Answered, Exchange, Inner};
use crate::answer::Answer;
use crate::condition::only;
use crate::request_id::RequestIds;
use release::snapshot::fields::{X_REQUEST_ID, set};

/// Names each request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestId<'w, S> {
    pub(crate) ids: &'w RequestIds,
    pub(crate) inner: S,
}

impl<'a, S: Inner<'a>> Service<Exchange<'a>> for RequestId<'_, S> {
    type Response = Answer<'a>;
    type Error = Infallible;
    type Future = Answered<'a>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, exchange: Exchange<'a>) -> Self::Future {
        let mut answer = self.inner.answer(exchange);
        // Of two ids, one may be the client's.
        let given = exchange
            .peer
            .trusted
            .then(|| only(exchange.head.headers, &X_REQUEST_ID));
        let id = self.ids.id_for(given.flatten());
        set(answer.response.headers_mut(), &X_REQUEST_ID, id);
        ready(Ok(answer))
    }
}
