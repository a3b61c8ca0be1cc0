//! The request and response types of the layers.
//!
//! **Invariant:** plain values.

use std::convert::Infallible;
use std::future::Ready;
use std::time::Instant;

use tower::Service;

use crate::listen::admission::Peer;
use crate::response::routed_response::{RequestHead, RoutedResponse};
use release::snapshot::Snapshot;

/// A request on its way through the layers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exchange<'a> {
    pub(crate) head: RequestHead<'a>,
    /// The snapshot from which the request is answered.
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) peer: Peer,
    /// When the header fields were complete.
    pub(crate) started: Instant,
}

/// The result of a layer: always ready, and never an error.
pub(crate) type LayerFuture<'a> = Ready<Result<RoutedResponse<'a>, Infallible>>;

/// A service that a layer can wrap. The service is always ready, so `poll_ready` need not be called.
pub(crate) trait LayerService<'a>:
    Service<Exchange<'a>, Response = RoutedResponse<'a>, Error = Infallible, Future = LayerFuture<'a>>
{
    /// Returns the answer without the future around it.
    fn respond(&mut self, exchange: Exchange<'a>) -> RoutedResponse<'a> {
        let Ok(answer) = self.call(exchange).into_inner();
        answer
    }
}

impl<'a, S> LayerService<'a> for S where
    S: Service<
            Exchange<'a>,
            Response = RoutedResponse<'a>,
            Error = Infallible,
            Future = LayerFuture<'a>,
        >
{
}
