//! Answers the requests of one connection: runs the layers around the look-up, and reports requests to the connection's state.
//!
//! The type implements hyper's `Service` directly. tower's `TowerToHyperService` would clone its service for each request and move the request once more.
//!
//! **Invariant:** chooses no response.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::Guard;
use futures_util::future::{Either, OptionFuture};
use http::{HeaderValue, Request, Response, StatusCode, Version};
use http_body::Body;
use hyper::service::Service;
use release::snapshot::Snapshot;
use release::snapshot::access::AccessRule;
use tokio::time::timeout;

use crate::access::gate::Gate;
use crate::acme::shared::SharedChallenge;
use crate::connection::body_stream::{OpenStream, SnapshotBody};
use crate::connection::connection_state::ConnectionState;
use crate::connection::worker_context::WorkerContext;
use crate::listen::admission::Peer;
use crate::request::layers::exchange::Exchange;
use crate::request::layers::{access_log, request_id, traffic, uri_length};
use crate::request::path::normalise_path;
use crate::response::redirect;
use crate::response::respond::{
    AccessGate, PendingContent, close_after, dormant, finish, is_unclaimed, look_up_within,
    pending_content,
};
use crate::response::routed_response::{RequestHead, ResponseOwner, RoutedResponse, refused};
use crate::response::snapshot_response::SnapshotResponse;
use crate::response::to_https::{shared_challenge_host, to_https};
use crate::snapshot_store::{RequestedAddress, SnapshotStore};
use crate::tls::Tls;
use crate::tls::handshake::SecureName;

/// The service of one connection.
#[derive(Debug, Clone)]
pub(crate) struct RequestService {
    pub(crate) context: Rc<WorkerContext>,
    pub(crate) state: Rc<ConnectionState>,
    pub(crate) peer: Peer,
    pub(crate) channel: Channel,
}

/// The channel that a request arrives on, which limits the hosts that may be requested.
#[derive(Debug, Clone)]
pub(crate) enum Channel {
    /// Without TLS: any host.
    Clear,
    /// Over TLS: hosts that the certificate covers, and the host that the handshake named.
    Secure(Rc<SecureName>),
    /// The listener that redirects to HTTPS. With the challenge of the requested host that another replica has opened.
    Redirect(Option<Arc<SharedChallenge>>),
}

/// Chooses the response to a request that waits no longer.
fn choose_at_last<'a>(
    context: &WorkerContext,
    channel: &Channel,
    exchange: &Exchange<'a>,
) -> RoutedResponse<'a> {
    let answer = choose(context, channel, exchange);
    if sleeping(context, channel, exchange, &answer).is_none() {
        return answer;
    }
    let mut answer = dormant();
    finish(&mut answer, exchange.head);
    answer
}

/// Returns the content of a dormant tenant that the request must wait for, if `answer` says that no tenant of the snapshot has the address.
fn sleeping(
    context: &WorkerContext,
    channel: &Channel,
    exchange: &Exchange<'_>,
    answer: &RoutedResponse<'_>,
) -> Option<PendingContent> {
    let may_arrive = match channel {
        Channel::Clear => true,
        Channel::Secure(name) => is_host_allowed(name, exchange.head),
        Channel::Redirect(_) => false,
    };
    let is_wanted = may_arrive && is_unclaimed(answer);
    is_wanted
        .then(|| dormant_content(&context.snapshots, exchange.snapshot, exchange.head))
        .flatten()
}

/// Returns the content of the dormant tenant at the address of a request that no tenant of `snapshot` answers.
fn dormant_content(
    snapshots: &SnapshotStore,
    snapshot: &Snapshot,
    head: &RequestHead<'_>,
) -> Option<PendingContent> {
    let host = head.host().ok()?;
    let path = normalise_path(head.uri.path()).ok()?;
    let address = match snapshot.hosts.contains_key(host) {
        true => RequestedAddress::Prefix(host, &path),
        false => RequestedAddress::Host(host, &path),
    };
    snapshots.dormant(address).map(PendingContent::Tenant)
}

/// Chooses the response to a request.
fn choose<'a>(
    context: &WorkerContext,
    channel: &Channel,
    exchange: &Exchange<'a>,
) -> RoutedResponse<'a> {
    let limit = context.settings.limits.uri_bytes;
    let mut answer = uri_length::refusal(exchange.head.uri, limit)
        .unwrap_or_else(|| look_up(context, channel, exchange));
    finish(&mut answer, exchange.head);
    answer
}

/// Counts and logs an answer, and sets its request id.
fn record<'a>(context: &WorkerContext, exchange: &Exchange<'a>, answer: &mut RoutedResponse<'a>) {
    traffic::count(context, exchange, answer);
    request_id::assign(&context.ids, exchange, answer);
    access_log::log(context, exchange, answer);
}

/// Answers a request with a body that counts as open until it is sent.
fn respond<'a>(
    context: &WorkerContext,
    exchange: &Exchange<'a>,
    mut answer: RoutedResponse<'a>,
    stream: Option<OpenStream>,
) -> Response<SnapshotBody> {
    record(context, exchange, &mut answer);
    let response = answer.response.into_response();
    let mut response = response.map(|bytes| SnapshotBody::new(bytes, stream));
    let head = exchange.head;
    if head.has_content && head.version < Version::HTTP_2 {
        // Unread content makes the connection unusable for another request (RFC 9112, section 9.3).
        close_after(&mut response, head.version);
    }
    context.finish(&mut response, head.version);
    response
}

impl RequestService {
    /// Answers a request of HTTP/1.1 at once, and passes the response to `send`. Returns `None`, and counts nothing, if the response must wait or its body is not in memory.
    pub(crate) fn respond_at_once<T>(
        &self,
        head: &RequestHead<'_>,
        started: Instant,
        send: impl FnOnce(SnapshotResponse<'_>) -> T,
    ) -> Option<T> {
        let snapshot = self.context.snapshots.current();
        let access = gate(&self.context, &self.channel, self.peer);
        if pending_content(&snapshot, head, &|rule| access.decide(rule, head)).is_some() {
            return None;
        }
        let exchange = Exchange {
            head,
            snapshot: &snapshot,
            peer: self.peer,
            started,
        };
        let mut answer = choose(&self.context, &self.channel, &exchange);
        answer.response.body().in_memory()?;
        if sleeping(&self.context, &self.channel, &exchange, &answer).is_some() {
            return None;
        }
        self.state.begin_response();
        record(&self.context, &exchange, &mut answer);
        Some(send(answer.response))
    }
}

/// Returns the gate of protected tenants for requests of a connection.
fn gate<'a>(context: &'a WorkerContext, channel: &Channel, peer: Peer) -> Gate<'a> {
    Gate {
        settings: &context.settings,
        attempts: &context.admission.attempts,
        peer,
        is_encrypted: matches!(channel, Channel::Secure(_)),
    }
}

/// Looks the response up.
fn look_up<'a>(
    context: &WorkerContext,
    channel: &Channel,
    exchange: &Exchange<'a>,
) -> RoutedResponse<'a> {
    let (snapshot, head) = (exchange.snapshot, exchange.head);
    let tls = context.settings.tls.as_deref();
    let loopback_origin = context.settings.loopback_origin.as_ref();
    match (channel, tls) {
        (Channel::Secure(name), _) if !is_host_allowed(name, head) => {
            refused(StatusCode::MISDIRECTED_REQUEST)
        }
        (Channel::Redirect(shared), Some(tls)) => {
            let is_claimed = |host: &str| context.snapshots.is_claimed(host);
            to_https((snapshot, &is_claimed), head, tls, shared.as_deref())
        }
        _ => {
            let gate = gate(context, channel, exchange.peer);
            let answer = look_up_within(snapshot, head, &|rule| gate.pass(rule, head));
            // An empty snapshot does not have the origin either, which would redirect to itself.
            let origin = loopback_origin.filter(|_| !snapshot.hosts.is_empty());
            let moved = origin.and_then(|origin| loopback(&answer, origin, head));
            moved.unwrap_or(answer)
        }
    }
}

/// Returns the redirect of a request that named this machine by a name that no tenant has, if `answer` refused it for its host.
fn loopback<'s>(
    answer: &RoutedResponse<'_>,
    origin: &HeaderValue,
    head: &RequestHead<'_>,
) -> Option<RoutedResponse<'s>> {
    let is_unknown_host = matches!(answer.owner, ResponseOwner::Unknown)
        && answer.response.status() == StatusCode::MISDIRECTED_REQUEST;
    let host = is_unknown_host.then(|| head.host().ok()).flatten()?;
    redirect::is_loopback(host).then(|| redirect::from_loopback(origin, head))
}

/// Returns whether a request may arrive on a connection whose handshake named `name`. The look-up refuses a request without a clear host.
fn is_host_allowed(name: &SecureName, head: &RequestHead<'_>) -> bool {
    match head.host() {
        Ok(host) => name.covers(host),
        Err(_) => true,
    }
}

/// Time that a request waits for its tenant's pages or for an image.
const RENDER_TIMEOUT: Duration = Duration::from_secs(10);

/// How often a waiting request checks for a new snapshot.
const SNAPSHOT_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Waits until the requested tenant is awake, and the requested pages or image are rendered, or for [`RENDER_TIMEOUT`].
///
/// Other requests are answered meanwhile. Returns the snapshot that has the result, because the tenant may be evicted again in the next snapshot.
async fn wait(
    snapshots: &SnapshotStore,
    head: &RequestHead<'_>,
    gate: AccessGate<'_>,
    mut what: PendingContent,
    started: Instant,
) -> Guard<Arc<Snapshot>> {
    let found = loop {
        snapshots.send_notice(what.notice());
        // The slot may belong to a replaced snapshot and never be filled, so the wait is bounded.
        let _ = timeout(SNAPSHOT_CHECK_INTERVAL, what.wait()).await;
        let snapshot = snapshots.current();
        let next = pending_content(&snapshot, head, gate).or_else(|| {
            let answer = look_up_within(&snapshot, head, gate);
            is_unclaimed(&answer)
                .then(|| dormant_content(snapshots, &snapshot, head))
                .flatten()
        });
        match next {
            Some(next) if started.elapsed() < RENDER_TIMEOUT => what = next,
            _ => break snapshot,
        }
    };
    snapshots.waits.observe(started.elapsed().as_secs_f64());
    found
}

/// Returns the host whose challenge another replica of the fleet may have opened, if the request asks for such a challenge.
fn shared_challenge(
    context: &WorkerContext,
    head: &RequestHead<'_>,
) -> Option<(Arc<Tls>, Box<str>)> {
    let tls = context.settings.tls.as_ref()?;
    tls.shared.as_ref()?;
    let host = shared_challenge_host(head, tls)?;
    let host = Some(host).filter(|host| context.snapshots.is_claimed(host))?;
    Some((Arc::clone(tls), host.into()))
}

/// The future of a response: ready at once, unless pages or an image must be rendered first, or another replica may have opened the requested challenge.
type ResponseFuture = Either<
    Ready<Result<Response<SnapshotBody>, Infallible>>,
    Pin<Box<dyn Future<Output = Result<Response<SnapshotBody>, Infallible>>>>,
>;

/// Returns the parts of a request that the look-up needs.
fn head_of<C>(request: &Request<C>, has_content: bool) -> RequestHead<'_> {
    RequestHead::new(
        request.method(),
        request.uri(),
        request.version(),
        request.headers(),
        has_content,
    )
}

impl<C: Body + 'static> Service<Request<C>> for RequestService {
    type Response = Response<SnapshotBody>;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn call(&self, request: Request<C>) -> Self::Future {
        let started = Instant::now();
        let has_content = !request.body().is_end_stream();
        let version = request.version();
        let stream = if version < Version::HTTP_2 {
            self.state.begin_response();
            if has_content {
                self.state.mark_unread();
            }
            None
        } else {
            Some(OpenStream::new(Rc::clone(&self.state), started))
        };
        let snapshot = self.context.snapshots.current();
        let head = head_of(&request, has_content);
        let peer = self.peer;
        let access = gate(&self.context, &self.channel, peer);
        if matches!(self.channel, Channel::Redirect(_))
            && let Some((tls, host)) = shared_challenge(&self.context, &head)
        {
            drop(head);
            let context = Rc::clone(&self.context);
            return Either::Right(Box::pin(async move {
                let shared = tls.shared.as_ref().map(|shared| shared.find(&host));
                let shared = OptionFuture::from(shared).await.flatten();
                let channel = Channel::Redirect(shared);
                let (snapshot, head) =
                    (context.snapshots.current(), head_of(&request, has_content));
                let exchange = Exchange {
                    head: &head,
                    snapshot: &snapshot,
                    peer,
                    started,
                };
                let answer = choose(&context, &channel, &exchange);
                Ok(respond(&context, &exchange, answer, stream))
            }));
        }
        let exchange = Exchange {
            head: &head,
            snapshot: &snapshot,
            peer,
            started,
        };
        let what = match self.channel {
            Channel::Redirect(_) => None,
            _ => pending_content(&snapshot, &head, &|rule| access.decide(rule, &head)),
        };
        let what = match what {
            Some(what) => what,
            None => {
                let answer = choose(&self.context, &self.channel, &exchange);
                match sleeping(&self.context, &self.channel, &exchange, &answer) {
                    Some(what) => what,
                    None => {
                        let response = respond(&self.context, &exchange, answer, stream);
                        return Either::Left(ready(Ok(response)));
                    }
                }
            }
        };
        // The future reads the fields again, since it owns the request.
        drop(head);
        let (context, channel) = (Rc::clone(&self.context), self.channel.clone());
        Either::Right(Box::pin(async move {
            let (snapshots, head) = (&context.snapshots, head_of(&request, has_content));
            let access = gate(&context, &channel, peer);
            let allows = |rule: &AccessRule| access.decide(rule, &head);
            let snapshot = wait(snapshots, &head, &allows, what, started).await;
            let exchange = Exchange {
                head: &head,
                snapshot: &snapshot,
                peer,
                started,
            };
            let answer = choose_at_last(&context, &channel, &exchange);
            Ok(respond(&context, &exchange, answer, stream))
        }))
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, Method, Uri, header};
    use release::snapshot::{HostEntry, HostRoutes, Mount, Slot};

    use super::*;
    use crate::access::decision::AccessDecision;
    use crate::response::respond::respond;
    use crate::sample;
    use crate::snapshot_store::RequestNotice;

    const HOST: &str = "late.example";

    fn with(mount: &Arc<Mount>) -> Snapshot {
        let routes = HostRoutes {
            root: Some(Arc::clone(mount)),
            ..HostRoutes::default()
        };
        let entry = HostEntry::Site(Arc::new(routes));
        Snapshot {
            hosts: [(HOST.into(), entry)].into_iter().collect(),
            is_partial: true,
            ..Snapshot::default()
        }
    }

    fn open() -> Arc<Mount> {
        Arc::new(Mount {
            pages: Slot::default(),
            ..sample::mount("late", "", &[])
        })
    }

    #[tokio::test]
    async fn request_for_a_dormant_tenant_waits_until_a_snapshot_has_its_pages() {
        let snapshots = Arc::new(SnapshotStore::new(Snapshot::default()));
        let address = RequestedAddress::Host(HOST, "/terms");
        snapshots.set_dormant_lookup(move |wanted| (wanted == address).then(|| "late".into()));
        let notified = Arc::downgrade(&snapshots);
        snapshots.on_notice(move |notice| {
            assert_eq!(notice, RequestNotice::Dormant("late"));
            let mount = Arc::new(sample::mount("late", "", &["/terms"]));
            drop(notified.upgrade().unwrap().replace(with(&mount)));
        });
        let headers = HeaderMap::from_iter([(header::HOST, HeaderValue::from_static(HOST))]);
        let uri = Uri::from_static("/terms");
        let head = RequestHead::new(&Method::GET, &uri, Version::HTTP_11, &headers, false);
        let allow: AccessGate<'_> = &|_| AccessDecision::Allow;
        let none = Snapshot::default();
        let what = dormant_content(&snapshots, &none, &head).expect("a dormant tenant");
        let found = wait(&snapshots, &head, allow, what, Instant::now()).await;
        assert_eq!(respond(&found, &head).response.status(), StatusCode::OK);
        let other = HeaderMap::from_iter([(header::HOST, HeaderValue::from_static("no.example"))]);
        let head = RequestHead::new(&Method::GET, &uri, Version::HTTP_11, &other, false);
        assert!(dormant_content(&snapshots, &none, &head).is_none());
    }

    #[tokio::test]
    async fn waiting_request_is_answered_although_its_tenant_is_evicted_again() {
        let mount = open();
        let snapshots = SnapshotStore::new(with(&mount));
        let wanted = Arc::clone(&mount);
        snapshots.on_notice(move |_| {
            let made = sample::mount("late", "", &["/terms"]);
            wanted.pages.fill(made.pages.into_inner());
        });
        let headers = HeaderMap::from_iter([(header::HOST, HeaderValue::from_static(HOST))]);
        let uri = Uri::from_static("/terms");
        let head = RequestHead::new(&Method::GET, &uri, Version::HTTP_11, &headers, false);
        let allow: AccessGate<'_> = &|_| AccessDecision::Allow;
        let what = pending_content(&snapshots.current(), &head, allow).expect("an open mount");
        let found = wait(&snapshots, &head, allow, what, Instant::now()).await;
        snapshots.replace(with(&open()));
        assert_eq!(respond(&found, &head).response.status(), StatusCode::OK);
        let snapshot = snapshots.current();
        let now = respond(&snapshot, &head).response;
        assert_eq!(now.status(), StatusCode::SERVICE_UNAVAILABLE);
    }
}
