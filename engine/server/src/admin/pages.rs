//! The console's pages, and the events that keep an open one as things are.
//!
//! An event says only that something changed; what that is, the page finds out by asking for itself again. A stream ends with its connection after half a minute, as all answers here have a time, and browsers ask again by themselves.
//!
//! **Invariant:** knows no page; whatever is shown comes from the [`Console`].

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

/// The least time between two events: what changes faster than that is looked at once.
const MIN_EVENT_INTERVAL: Duration = Duration::from_millis(500);

/// How long a stream lasts: it ends by itself before its connection is ended.
const STREAM: Duration = Duration::from_secs(25);

/// Answers what no other route does.
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
        // The thread has said why.
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// What events are made from.
#[derive(Debug, Clone)]
pub(super) struct Watched {
    pub(super) board: Arc<StatusBoard>,
    pub(super) snapshots: Arc<SnapshotStore>,
}

impl Watched {
    /// Another text is another state.
    fn version(&self) -> String {
        version(&self.board, &self.snapshots)
    }
}

/// What tells one state of what the console shows from another.
#[must_use]
pub fn version(board: &StatusBoard, snapshots: &SnapshotStore) -> String {
    let (changes, samples) = (board.changes(), snapshots.history.taken());
    format!("{}-{}", *changes.borrow(), *samples.borrow())
}

/// Server-sent events (WHATWG HTML, section 9.2).
pub(super) async fn events(Shared(watched): Shared<Watched>) -> Response {
    let (sender, body) = Channel::new(1);
    tokio::spawn(tokio::time::timeout(STREAM, send(sender, watched)));
    let fields = [(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"))];
    (fields, Body::new(body)).into_response()
}

/// Sends until the reader is gone.
async fn send(mut sender: Sender<Bytes>, watched: Watched) {
    let mut changes = watched.board.changes();
    let mut samples = watched.snapshots.history.taken();
    loop {
        let event = format!("retry: 500\ndata: {}\n\n", watched.version());
        changes.mark_unchanged();
        samples.mark_unchanged();
        if sender.send_data(event.into()).await.is_err() {
            return;
        }
        tokio::time::sleep(MIN_EVENT_INTERVAL).await;
        // Both live as long as the server.
        let _ = tokio::select! {
            changed = changes.changed() => changed,
            changed = samples.changed() => changed,
        };
    }
}
