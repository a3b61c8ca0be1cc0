//! The routes for releases: list, compare, roll back, resume.
//!
//! Commands need the header field [`COMMAND`] and no `Origin`. A web page of somebody else in an operator's browser can send neither: for a field that is not on a short list, browsers first ask whether they may (a CORS preflight), and nobody here says yes.
//!
//! The work blocks and has a thread of its own, one request at a time, in the order in which they came.
//!
//! **Invariant:** knows no release; whatever it answers comes from the [`Control`].

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, Request, State as Shared};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use http::header::ORIGIN;
use http::{HeaderName, StatusCode};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use crate::control::{Control, ControlError, Refusal, RolledBack};

/// The header field that a command comes with, with the value `1`.
pub const COMMAND: HeaderName = HeaderName::from_static("x-rowhouse-command");

/// Who does the work, and whose turn it is.
#[derive(Debug, Clone)]
struct Releases {
    control: Option<Arc<dyn Control>>,
    turn: Arc<Semaphore>,
}

/// The routes. They are complete: what is merged with them need not know the control.
pub(super) fn router<S: Clone + Send + Sync + 'static>(
    control: Option<Arc<dyn Control>>,
) -> Router<S> {
    let commands = Router::new()
        .route("/tenants/{id}/rollback", post(roll_back))
        .route("/tenants/{id}/resume", post(resume))
        .route_layer(from_fn(no_web_page));
    Router::new()
        .route("/tenants/{id}/releases", get(list))
        .route("/tenants/{id}/diff", get(diff))
        .merge(commands)
        .with_state(Releases {
            control,
            turn: Arc::new(Semaphore::new(1)),
        })
}

/// Lets only commands through that no web page can have sent.
async fn no_web_page(request: Request, next: Next) -> Response {
    let fields = request.headers();
    let is_command = fields.get(COMMAND).is_some_and(|value| value == "1");
    if is_command && !fields.contains_key(ORIGIN) {
        return next.run(request).await;
    }
    let why = format!(
        "a command comes with the header field `{COMMAND}: 1` and without `Origin`, so that no web page can send one"
    );
    refusal(StatusCode::FORBIDDEN, why)
}

async fn list(Shared(releases): Shared<Releases>, Path(tenant): Path<String>) -> Response {
    releases.ask(move |control| control.releases(&tenant)).await
}

#[derive(Debug, Deserialize)]
struct Between {
    from: Option<u64>,
    to: Option<u64>,
}

async fn diff(
    Shared(releases): Shared<Releases>,
    Path(tenant): Path<String>,
    between: Result<Query<Between>, QueryRejection>,
) -> Response {
    let Query(Between { from, to }) = match between {
        Ok(between) => between,
        Err(error) => return refusal(error.status(), error.body_text()),
    };
    releases
        .ask(move |control| control.diff(&tenant, from, to))
        .await
}

#[derive(Debug, Deserialize)]
struct Target {
    release: Option<u64>,
}

async fn roll_back(
    Shared(releases): Shared<Releases>,
    Path(tenant): Path<String>,
    target: Result<Query<Target>, QueryRejection>,
) -> Response {
    let Query(Target { release }) = match target {
        Ok(target) => target,
        Err(error) => return refusal(error.status(), error.body_text()),
    };
    let roll_back = move |control: &dyn Control| {
        let release = control.roll_back(&tenant, release)?;
        Ok(RolledBack { release })
    };
    releases.ask(roll_back).await
}

async fn resume(Shared(releases): Shared<Releases>, Path(tenant): Path<String>) -> Response {
    let resume = move |control: &dyn Control| {
        control.resume(&tenant)?;
        Ok(serde_json::Map::new())
    };
    releases.ask(resume).await
}

impl Releases {
    /// Has the work done when its turn comes. Once begun it goes on to its end, also where nobody waits for the answer any longer.
    async fn ask<T, W>(self, work: W) -> Response
    where
        T: Serialize + Send + 'static,
        W: FnOnce(&dyn Control) -> Result<T, ControlError> + Send + 'static,
    {
        let Some(control) = self.control else {
            return ControlError::NoState.into_response();
        };
        let Ok(turn) = self.turn.acquire_owned().await else {
            return ControlError::Failed("the server is ending".to_owned()).into_response();
        };
        let work = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            work(&*control)
        });
        match work.await {
            Ok(Ok(answer)) => Json(answer).into_response(),
            Ok(Err(error)) => error.into_response(),
            // The thread has said why.
            Err(_) => ControlError::Failed("the work failed: the server's log says why".to_owned())
                .into_response(),
        }
    }
}

impl IntoResponse for ControlError {
    fn into_response(self) -> Response {
        refusal(self.status(), self.to_string())
    }
}

fn refusal(status: StatusCode, error: String) -> Response {
    (status, Json(Refusal { error })).into_response()
}
