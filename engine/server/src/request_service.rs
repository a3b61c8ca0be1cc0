//! What answers the requests of one connection.
//!
//! The answer itself is [`respond`]'s; here it is named, counted and logged.
//!
//! **Invariant:** decides nothing but the length of a request target.

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::IpAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use http::header::HeaderValue;
use http::{Request, Response, StatusCode, Version};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::service::Service;
use jiff::Timestamp;

use super::body::{OpenStream, Reply};
use super::condition::only;
use super::connection_state::ConnectionState;
use super::line::Entry;
use super::origin::{Trace, visitor};
use super::respond::{Answer, Owner, RequestHead, refused, respond};
use super::snapshot_store::{SHARED, UNKNOWN};
use super::span;
use super::worker::Worker;
use release::snapshot::fields::{X_REQUEST_ID, set};

/// A connection as its requests see it.
pub(super) struct RequestService {
    pub(super) worker: Rc<Worker>,
    pub(super) state: Rc<ConnectionState>,
    pub(super) peer: IpAddr,
    /// Whether the peer is a trusted proxy.
    pub(super) trusted: bool,
}

impl Service<Request<Incoming>> for RequestService {
    type Response = Response<Reply>;
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
        let request = RequestHead {
            method: request.method(),
            uri: request.uri(),
            version: request.version(),
            headers: request.headers(),
            content,
        };
        let snapshots = &self.worker.snapshots;
        let snapshot = snapshots.current();
        let target = request
            .uri
            .path_and_query()
            .map_or(0, |target| target.as_str().len());
        let mut answer = if target > self.worker.settings.limits.uri_bytes {
            refused(StatusCode::URI_TOO_LONG)
        } else {
            respond(&snapshot, &request)
        };
        // Of two names, one may be the client's.
        let named = self.trusted.then(|| only(request.headers, &X_REQUEST_ID));
        let id = self.worker.ids.id_for(named.flatten());
        let length = u64::try_from(answer.response.body().len()).unwrap_or(u64::MAX);
        let took = started.elapsed();
        let traffic = match answer.owner {
            Owner::Tenant(mount) => mount
                .traffic
                .get()
                .map_or(&snapshots.unknown, |traffic| traffic),
            Owner::Host => &snapshots.shared,
            Owner::Nobody => &snapshots.unknown,
        };
        traffic.record(answer.response.status(), answer.coding, length, took);
        self.log(&request, &answer, &id, length, took);
        set(answer.response.headers_mut(), &X_REQUEST_ID, id);
        ready(Ok(answer.response.map(|bytes| Reply::new(bytes, stream))))
    }
}

impl RequestService {
    fn log(
        &self,
        request: &RequestHead<'_>,
        answer: &Answer<'_>,
        id: &HeaderValue,
        bytes: u64,
        took: Duration,
    ) {
        let Worker {
            lines, settings, ..
        } = &*self.worker;
        if lines.is_none() && settings.spans.is_none() {
            return;
        }
        let mut lines = lines.as_ref().map(RefCell::borrow_mut);
        let with_visitor = lines.as_ref().is_some_and(|lines| lines.with_addresses());
        let mut entry = Entry {
            at: Timestamp::now(),
            tenant: match answer.owner {
                Owner::Tenant(mount) => &mount.tenant,
                Owner::Host => SHARED,
                Owner::Nobody => UNKNOWN,
            },
            method: request.method.as_str(),
            route: answer.route,
            status: answer.response.status(),
            bytes,
            coding: answer.coding,
            took,
            id: id.to_str().unwrap_or("-"),
            trace: self
                .trusted
                .then(|| Trace::named_by(request.headers))
                .flatten(),
            visitor: with_visitor.then(|| visitor(self.peer, request.headers, settings)),
        };
        if let Some(tracer) = &settings.spans {
            entry.trace = Some(span::record(tracer, &entry));
        }
        if let Some(lines) = &mut lines {
            lines.push(&entry);
        }
    }
}
