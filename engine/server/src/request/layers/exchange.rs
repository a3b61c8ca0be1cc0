//! What passes through the layers.
//!
//! **Invariant:** plain values.

use std::convert::Infallible;
use std::future::Ready;
use std::time::Instant;

use tower::Service;

use crate::listen::admission::Peer;
use crate::response::answer::{Answer, RequestHead};
use release::snapshot::Snapshot;

/// A request on its way through the layers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exchange<'a> {
    pub(crate) head: RequestHead<'a>,
    /// What it is answered from.
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) peer: Peer,
    /// When its header fields were complete.
    pub(crate) started: Instant,
}

/// What comes back: nothing fails, and nothing waits.
pub(crate) type Answered<'a> = Ready<Result<Answer<'a>, Infallible>>;

/// A service that a layer can stand around. It is always ready, so that nobody has to ask it.
pub(crate) trait Inner<'a>:
    Service<Exchange<'a>, Response = Answer<'a>, Error = Infallible, Future = Answered<'a>>
{
    /// The answer itself.
    fn answer(&mut self, exchange: Exchange<'a>) -> Answer<'a> {
        let Ok(answer) = self.call(exchange).into_inner();
        answer
    }
}

impl<'a, S> Inner<'a> for S where
    S: Service<Exchange<'a>, Response = Answer<'a>, Error = Infallible, Future = Answered<'a>>
{
}
