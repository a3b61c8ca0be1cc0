//! What answers the requests of one connection: the layers around the look-up, and what the connection has to know of a request.
//!
//! It is hyper's own `Service`, not tower's behind `TowerToHyperService`: that one copies its service for each request and moves the request once more.
//!
//! **Invariant:** decides no answer.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::Pin;
use std::rc::Rc;
use std::time::{Duration, Instant};

use futures_util::future::Either;
use http::{Request, Response, StatusCode, Version};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::service::Service;
use tokio::time::timeout;
use tower::ServiceBuilder;
use tower::layer::layer_fn;

use super::answer::{RequestHead, refused};
use super::body::{OpenStream, SnapshotBody};
use super::connection_state::ConnectionState;
use super::context::WorkerContext;
use super::host::requested_host;
use super::layers::access_log::AccessLogger;
use super::layers::exchange::{Answered, Exchange, Inner};
use super::layers::request_id::RequestId;
use super::layers::traffic::TrafficCounters;
use super::layers::uri_length::UriLength;
use super::peer::Peer;
use super::respond::{Awaited, awaited, finished, respond};
use super::snapshot_store::SnapshotStore;
use super::tls::Tls;
use super::tls::handshake::SecureName;
use super::to_https::to_https;

/// A connection as its requests see it.
#[derive(Debug)]
pub(super) struct RequestService {
    pub(super) context: Rc<WorkerContext>,
    pub(super) state: Rc<ConnectionState>,
    pub(super) peer: Peer,
    pub(super) channel: Channel,
}

/// What a connection is for.
#[derive(Debug, Clone)]
pub(super) enum Channel {
    /// All hosts.
    Clear,
    /// Those that the certificate covers, or the one that the handshake named.
    Secure(Rc<SecureName>),
    /// The way to HTTPS.
    Redirect,
}

/// The layers, outermost first. All of them are references, so that putting them together for each request costs nothing.
fn layered<'a>(context: &'a WorkerContext, channel: &'a Channel) -> impl Inner<'a> {
    let tls = context.settings.tls.as_deref();
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
        .service_fn(move |exchange| look_up(channel, tls, exchange))
}

/// The innermost service: the pure look-up, where the connection is for it.
fn look_up<'a>(channel: &Channel, tls: Option<&Tls>, exchange: Exchange<'a>) -> Answered<'a> {
    let (snapshot, head) = (exchange.snapshot, &exchange.head);
    ready(Ok(match (channel, tls) {
        (Channel::Secure(name), _) if !may_come(name, head) => {
            finished(refused(StatusCode::MISDIRECTED_REQUEST), head)
        }
        (Channel::Redirect, Some(tls)) => finished(to_https(snapshot, head, tls), head),
        _ => respond(snapshot, head),
    }))
}

/// Whether a request may come on a connection whose handshake named `name`. Who names no clear host is refused by the look-up.
fn may_come(name: &SecureName, head: &RequestHead<'_>) -> bool {
    match requested_host(head.uri, head.headers, head.version) {
        Ok(host) => name.covers(&host),
        Err(_) => true,
    }
}

/// How long a request waits for its tenant to be rendered, or a picture of it to be drawn.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often who waits looks whether there is another snapshot.
const LOOK: Duration = Duration::from_millis(50);

/// Waits until what a request asks for is made, or for [`PATIENCE`]. Others are answered meanwhile.
async fn wait(
    snapshots: &SnapshotStore,
    head: &RequestHead<'_>,
    mut what: Awaited,
    started: Instant,
) {
    while started.elapsed() < PATIENCE {
        snapshots.want(what.wanted());
        // It may be another one by now, which nobody makes this one for.
        let _ = timeout(LOOK, what.filled()).await;
        match awaited(&snapshots.current(), head) {
            Some(next) => what = next,
            None => break,
        }
    }
    snapshots.waits.observe(started.elapsed().as_secs_f64());
}

/// The answer to a request: ready at once, but where something of its tenant is still to be made.
type Answering = Either<
    Ready<Result<Response<SnapshotBody>, Infallible>>,
    Pin<Box<dyn Future<Output = Result<Response<SnapshotBody>, Infallible>>>>,
>;

/// What the look-up needs of a request.
fn head_of(request: &Request<Incoming>, content: bool) -> RequestHead<'_> {
    RequestHead {
        method: request.method(),
        uri: request.uri(),
        version: request.version(),
        headers: request.headers(),
        content,
    }
}

impl Service<Request<Incoming>> for RequestService {
    type Response = Response<SnapshotBody>;
    type Error = Infallible;
    type Future = Answering;

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
        let head = head_of(&request, content);
        if !matches!(self.channel, Channel::Redirect)
            && let Some(what) = awaited(&snapshot, &head)
        {
            let (context, channel) = (Rc::clone(&self.context), self.channel.clone());
            let peer = self.peer;
            return Either::Right(Box::pin(async move {
                let (snapshots, head) = (&context.snapshots, head_of(&request, content));
                wait(snapshots, &head, what, started).await;
                let exchange = Exchange {
                    head,
                    snapshot: &snapshots.current(),
                    peer,
                    started,
                };
                let response = layered(&context, &channel).answer(exchange).response;
                Ok(response.map(|bytes| SnapshotBody::new(bytes, stream)))
            }));
        }
        let exchange = Exchange {
            head,
            snapshot: &snapshot,
            peer: self.peer,
            started,
        };
        let layered = &mut layered(&self.context, &self.channel);
        let response = layered.answer(exchange).response;
        Either::Left(ready(Ok(
            response.map(|bytes| SnapshotBody::new(bytes, stream))
        )))
    }
}
