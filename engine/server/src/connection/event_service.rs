//! Streams [`Events`] to whoever listens on [`PATH`]: server-sent events (WHATWG HTML, section 9.2), for authors with `--dev`.
//!
//! Whoever connects gets the latest text at once, and each new one after it. A comment now and then keeps the connection from being taken for idle, and shows when the reader is gone.
//! Only connections of a server that has [`Events`] in its settings are served this way; all others do not pay for it.
//!
//! **Invariant:** does not know what the texts mean.

use std::convert::Infallible;
use std::future::ready;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Method, Request, Response};
use http_body_util::Either;
use http_body_util::channel::{Channel, Sender};
use hyper::body::Incoming;
use hyper::service::Service;
use tokio::sync::watch;

use crate::connection::body_stream::SnapshotBody;
use crate::connection::connection_state::{ConnectionState, Phase};
use crate::connection::events::{Events, PATH};
use crate::connection::request_service::RequestService;
use crate::request::host::requested_host;

/// Less than any of the timeouts for connections.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Answers [`PATH`], and leaves everything else to what answers visitors.
pub(crate) struct EventService {
    pub(crate) visitors: RequestService,
    pub(crate) events: Events,
    pub(crate) draining: watch::Receiver<bool>,
}

impl Service<Request<Incoming>> for EventService {
    type Response = Response<Either<SnapshotBody, Channel<Bytes>>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>>>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        if request.method() == Method::GET
            && request.uri().path() == PATH
            && self.is_known_host(&request)
        {
            return Box::pin(ready(Ok(self.stream().map(Either::Right))));
        }
        let answer = self.visitors.call(request);
        Box::pin(async { Ok(answer.await?.map(Either::Left)) })
    }
}

impl EventService {
    fn is_known_host(&self, request: &Request<Incoming>) -> bool {
        let host = requested_host(request.uri(), request.headers(), request.version());
        host.is_ok_and(|host| {
            self.visitors
                .context
                .snapshots
                .current()
                .hosts
                .contains_key(&*host)
        })
    }

    fn stream(&self) -> Response<Channel<Bytes>> {
        let (sender, body) = Channel::new(1);
        let mut latest = self.events.latest.subscribe();
        latest.mark_changed();
        let state = Rc::clone(&self.visitors.state);
        if state.phase() != Phase::Streams {
            // A request in flight has to end after a while; this one is like waiting for the next.
            state.enter(Phase::Idle);
        }
        tokio::task::spawn_local(send(sender, latest, self.draining.clone(), state));
        let mut response = Response::new(body);
        let headers = response.headers_mut();
        for (name, value) in [
            (CONTENT_TYPE, "text/event-stream"),
            (CACHE_CONTROL, "no-store"),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

/// Sends until the reader is gone, or serving is to end: a stream without end would hold the drain up.
async fn send(
    mut sender: Sender<Bytes>,
    mut latest: watch::Receiver<Arc<str>>,
    mut draining: watch::Receiver<bool>,
    state: Rc<ConnectionState>,
) {
    let mut heartbeat = tokio::time::interval(HEARTBEAT);
    loop {
        let message = tokio::select! {
            changed = latest.changed() => match changed {
                Ok(()) => event(&latest.borrow_and_update()),
                Err(_) => return,
            },
            _ = heartbeat.tick() => Bytes::from_static(b":\n\n"),
            _ = draining.changed() => return,
        };
        if sender.send_data(message).await.is_err() {
            return;
        }
        state.moved();
    }
}

/// One event. Each line of the text is a field of its own; the browser joins them.
fn event(text: &str) -> Bytes {
    let mut event = String::with_capacity(text.len() + 32);
    event.push_str("retry: 500\n");
    for line in text.split('\n') {
        event.push_str("data: ");
        event.push_str(line);
        event.push('\n');
    }
    event.push('\n');
    event.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_two_lines_is_one_event() {
        assert_eq!(event("a\nb"), "retry: 500\ndata: a\ndata: b\n\n");
    }
}
