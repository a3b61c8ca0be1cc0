//! What answers the requests of one connection: the layers around the look-up, and what the connection has to know of a request.
//!
//! It is hyper's own `Service`, not tower's behind `TowerToHyperService`: that one copies its service for each request and moves the request once more.
//!
//! **Invariant:** decides no answer.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::rc::Rc;
use std::time::Instant;

use http::{Request, Response, Version};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::service::Service;
use tower::ServiceBuilder;
use tower::layer::layer_fn;

use super::answer::RequestHead;
use super::body::{OpenStream, SnapshotBody};
use super::command::Peer;
use super::connection_state::ConnectionState;
use super::context::WorkerContext;
use super::layers::access_log::AccessLogger;
use super::layers::exchange::{Answered, Exchange, Inner};
use super::layers::request_id::RequestId;
use super::layers::traffic::TrafficCounters;
use super::layers::uri_length::UriLength;
use super::respond::respond;

/// A connection as its requests see it.
#[derive(Debug)]
pub(super) struct RequestService {
    pub(super) context: Rc<WorkerContext>,
    pub(super) state: Rc<ConnectionState>,
    pub(super) peer: Peer,
}

/// The layers, outermost first. All of them are references, so that putting them together for each request costs nothing.
fn layered<'a>(context: &'a WorkerContext) -> impl Inner<'a> {
    ServiceBuilder::new()
        .layer(layer_fn(|inner| AccessLogger { context, inner }))
        .layer(layer_fn(|inner| RequestId {
            ids: &context.ids,
            inner,
        }))
        .layer(layer_fn(|inner| TrafficCounters {
            snapshots: &context.snapshots,
            inner,
        }))
        .layer(layer_fn(|inner| UriLength {
            limit: context.settings.limits.uri_bytes,
            inner,
        }))
        .service_fn(look_up)
}

/// The innermost service: the pure look-up.
fn look_up(exchange: Exchange<'_>) -> Answered<'_> {
    ready(Ok(respond(exchange.snapshot, &exchange.head)))
}

impl Service<Request<Incoming>> for RequestService {
    type Response = Response<SnapshotBody>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let started = Instant::now();
        let content = !request.body().is_end_stream();
        let stream = if request.version() < Version::HTTP_2 {
            self.state.respond();
            if content {
                self.state.leave_unread();
            }
            None
        } else {
            Some(OpenStream::new(Rc::clone(&self.state), started))
        };
        let snapshot = self.context.snapshots.current();
        let answer = layered(&self.context).answer(Exchange {
            head: RequestHead {
                method: request.method(),
                uri: request.uri(),
                version: request.version(),
                headers: request.headers(),
                content,
            },
            snapshot: &snapshot,
            peer: self.peer,
            started,
        });
        ready(Ok(answer
            .response
            .map(|bytes| SnapshotBody::new(bytes, stream))))
    }
}
