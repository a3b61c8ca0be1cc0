//! Serves the console's pages and the event stream that keeps an open page up to date.
//!
//! An event says only that something changed; the page then fetches itself again. A stream ends after 25 seconds, before its connection times out, and browsers reconnect by themselves.
//!
//! **Invariant:** knows no page; all content comes from the [`Console`].

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State as Shared};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Method, StatusCode};
use http_body_util::channel::{Channel, Sender};

use crate::admin::console::Console;
use crate::admin::status::StatusBoard;
use crate::snapshot_store::SnapshotStore;

/// Minimum interval between two events. Faster changes share one event.
const MIN_EVENT_INTERVAL: Duration = Duration::from_millis(500);

/// Duration of a stream, shorter than the timeout of its connection.
const STREAM_DURATION: Duration = Duration::from_secs(25);

/// Serves the console for all paths without a route.
pub(super) async fn page(
    Shared(console): Shared<Option<Arc<dyn Console>>>,
    request: Request,
) -> Response {
    let Some(console) = console else {
        return StatusCode::NOT_FOUND.into_response();
    };
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let methods = [(ALLOW, HeaderValue::from_static("GET, HEAD"))];
        return (StatusCode::METHOD_NOT_ALLOWED, methods).into_response();
    }
    let uri = request.uri().clone();
    let answer = move || console.page(uri.path(), uri.query().unwrap_or(""));
    match tokio::task::spawn_blocking(answer).await {
        Ok(answer) => answer.map(Body::from),
        // The panic is in the log.
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// The sources of events.
#[derive(Debug, Clone)]
pub(super) struct EventSources {
    pub(super) board: Arc<StatusBoard>,
    pub(super) snapshots: Arc<SnapshotStore>,
}

impl EventSources {
    /// Returns the version of the state that the console shows.
    fn version(&self) -> String {
        version(&self.board, &self.snapshots)
    }
}

/// Returns the version of the state that the console shows. Equal texts mean an equal state.
#[must_use]
pub fn version(board: &StatusBoard, snapshots: &SnapshotStore) -> String {
    let (changes, samples) = (board.changes(), snapshots.history.sample_count());
    format!("{}-{}", *changes.borrow(), *samples.borrow())
}

/// Streams server-sent events (WHATWG HTML, section 9.2).
pub(super) async fn events(Shared(sources): Shared<EventSources>) -> Response {
    let (sender, body) = Channel::new(1);
    tokio::spawn(tokio::time::timeout(STREAM_DURATION, send(sender, sources)));
    let fields = [(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"))];
    (fields, Body::new(body)).into_response()
}

/// Sends events until the client is gone.
async fn send(mut sender: Sender<Bytes>, sources: EventSources) {
    let mut changes = sources.board.changes();
    let mut samples = sources.snapshots.history.sample_count();
    loop {
        let event = format!("retry: 500\ndata: {}\n\n", sources.version());
        changes.mark_unchanged();
        samples.mark_unchanged();
        if sender.send_data(event.into()).await.is_err() {
            return;
        }
        tokio::time::sleep(MIN_EVENT_INTERVAL).await;
        // Both senders live as long as the server.
        let _ = tokio::select! {
            changed = changes.changed() => changed,
            changed = samples.changed() => changed,
        };
    }
}
