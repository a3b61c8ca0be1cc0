//! Streams [`EventChannel`] at [`PATH`] as server-sent events (WHATWG HTML, section 9.2), for authors with `--dev`.
//!
//! A client gets the latest text at once, and then each new text. A comment line every ten seconds keeps the connection from counting as idle, and reveals a client that is gone.
//! Only a server with [`EventChannel`] in its settings uses this service, so other servers pay nothing for it.
//!
//! **Invariant:** does not know the meaning of the texts.

use std::convert::Infallible;
use std::future::ready;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Method, Request, Response};
use http_body::Body;
use http_body_util::Either;
use http_body_util::channel::{Channel, Sender};
use hyper::service::Service;
use tokio::sync::watch;

use crate::connection::body_stream::{BodyPiece, SnapshotBody};
use crate::connection::connection_state::{ConnectionState, Phase};
use crate::connection::events::{EventChannel, PATH};
use crate::connection::request_service::RequestService;
use crate::request::host::requested_host;

/// Interval of comment lines, shorter than all timeouts of connections.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Serves [`PATH`] and passes all other requests to the visitors' service.
pub(crate) struct EventService {
    pub(crate) visitors: RequestService,
    pub(crate) events: EventChannel,
    pub(crate) draining: watch::Receiver<Option<Duration>>,
}

impl<C: Body + 'static> Service<Request<C>> for EventService {
    type Response = Response<Either<SnapshotBody, Channel<BodyPiece>>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>>>>;

    fn call(&self, request: Request<C>) -> Self::Future {
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
    fn is_known_host<C>(&self, request: &Request<C>) -> bool {
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

    fn stream(&self) -> Response<Channel<BodyPiece>> {
        let (sender, body) = Channel::new(1);
        let mut latest = self.events.latest.subscribe();
        latest.mark_changed();
        let state = Rc::clone(&self.visitors.state);
        if state.phase() != Phase::Streams {
            // A request in flight would time out; an event stream counts as idle instead.
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

/// Sends events until the client is gone or the server drains. An endless stream would hold up the drain.
async fn send(
    mut sender: Sender<BodyPiece>,
    mut latest: watch::Receiver<Arc<str>>,
    mut draining: watch::Receiver<Option<Duration>>,
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
        if sender.send_data(message.into()).await.is_err() {
            return;
        }
        state.note_progress();
    }
}

/// Returns one event. Each line of the text becomes a `data` field; the browser joins the fields.
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
    fn text_of_two_lines_is_one_event() {
        assert_eq!(event("a\nb"), "retry: 500\ndata: a\ndata: b\n\n");
    }
}
