//! Refuses request targets that are too long with 414.
//!
//! hyper enforces the other limits, since it refuses larger requests before they reach a layer.
//!
//! **Invariant:** knows no path and no tenant.

use std::convert::Infallible;
use std::future::ready;
use std::task::{Context, Poll};

use http::StatusCode;
use tower::Service;

use super::exchange::{Exchange, LayerFuture, LayerService};
use crate::response::routed_response::{RoutedResponse, refused};

/// The layer that refuses request targets of more than `limit` bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UriLength<S> {
    pub(crate) limit: usize,
    pub(crate) inner: S,
}

impl<'a, S: LayerService<'a>> Service<Exchange<'a>> for UriLength<S> {
    type Response = RoutedResponse<'a>;
    type Error = Infallible;
    type Future = LayerFuture<'a>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, exchange: Exchange<'a>) -> Self::Future {
        let target = exchange.head.uri.path_and_query();
        if target.is_some_and(|target| target.as_str().len() > self.limit) {
            return ready(Ok(refused(StatusCode::URI_TOO_LONG)));
        }
        self.inner.call(exchange)
    }
}
