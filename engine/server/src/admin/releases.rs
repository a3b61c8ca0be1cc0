//! The routes for releases: list, compare, roll back, resume, restore a removed tenant, and read a folder again.
//!
//! # Commands
//! Without a token, a command needs the header field [`COMMAND`] and must not have `Origin`. A foreign web page in an operator's browser can send neither. For such a field, a browser first sends a CORS preflight request, which this listener refuses. Browsers therefore cannot give commands at all.
//! With a token, a command needs the token: as `Authorization: Bearer` (RFC 6750, section 2.1), or as the form field `token`, which the console sends. Requests of other origins are refused before this check.
//! A browser that sends a form is redirected to the tenant's page in the console, or shown the reason for the refusal.
//!
//! The operations block, so they run on separate threads: one list, one comparison and one command at a time. Operations of the same kind run in the order of arrival. A command never waits for a comparison.
//!
//! **Invariant:** knows no release; all content comes from the [`Control`].

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{Form, FromRequest as _, Path, RawPathParams, Request, State as Shared};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use http::header::{ACCEPT, AUTHORIZATION, ORIGIN, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use tower_http::limit::RequestBodyLimitLayer;

use super::access::token::AdminToken;
use super::query_number::{Parameters, number};
use super::refusal::refusal;
use crate::admin::console::Console;
use crate::admin::control::{Control, ControlError, Refusal, RollbackResponse};

/// The header field that a command must have, with the value `1`.
pub const COMMAND: HeaderName = HeaderName::from_static("x-rowhouse-command");

/// Maximum size of a form with a token, in bytes.
const MAX_FORM_BYTES: usize = 4096;

/// The control and its queues.
#[derive(Debug, Clone)]
struct ReleaseRoutes {
    control: Option<Arc<dyn Control>>,
    queues: Queues,
}

/// One queue for each kind of operation, so that no kind waits for another.
#[derive(Debug, Clone)]
struct Queues {
    lists: Arc<Semaphore>,
    comparisons: Arc<Semaphore>,
    commands: Arc<Semaphore>,
}

impl Queues {
    fn new() -> Self {
        let queue = || Arc::new(Semaphore::new(1));
        Self {
            lists: queue(),
            comparisons: queue(),
            commands: queue(),
        }
    }
}

/// The access rules for commands, and the console for browsers.
#[derive(Debug, Clone)]
pub(super) struct CommandAccess {
    pub(super) token: Option<AdminToken>,
    pub(super) console: Option<Arc<dyn Console>>,
}

/// Builds the routes. The router has its state, so it can be merged with any other.
pub(super) fn router<S: Clone + Send + Sync + 'static>(
    control: Option<Arc<dyn Control>>,
    access: CommandAccess,
) -> Router<S> {
    let max_bytes = if access.token.is_some() {
        MAX_FORM_BYTES
    } else {
        0
    };
    let commands = Router::new()
        .route("/tenants/{id}/rollback", post(roll_back))
        .route("/tenants/{id}/resume", post(resume))
        .route("/tenants/{id}/restore", post(restore))
        .route("/tenants/{id}/read", post(read_again))
        .route_layer(from_fn_with_state(access, require_permission))
        .layer(RequestBodyLimitLayer::new(max_bytes));
    Router::new()
        .route("/tenants/{id}/releases", get(list))
        .route("/tenants/{id}/diff", get(diff))
        .layer(RequestBodyLimitLayer::new(0))
        .merge(commands)
        .with_state(ReleaseRoutes {
            control,
            queues: Queues::new(),
        })
}

/// Passes only permitted commands, and answers browsers with pages.
async fn require_permission(
    Shared(access): Shared<CommandAccess>,
    parameters: RawPathParams,
    request: Request,
    next: Next,
) -> Response {
    let mut parameters = parameters.iter();
    let tenant = parameters.next().map_or("", |(_, id)| id).to_owned();
    let verb = request.uri().path().rsplit('/').next().unwrap_or_default();
    let verb = verb.to_owned();
    let console = access.console.filter(|_| is_form(request.headers()));
    let answer = match check_permission(access.token.as_ref(), request).await {
        Ok(request) => next.run(request).await,
        Err(answer) => answer,
    };
    let Some(console) = console else {
        return answer;
    };
    if answer.status().is_success() {
        return Redirect::to(&format!("/sites/{tenant}?done={verb}")).into_response();
    }
    let status = answer.status();
    let text = to_bytes(answer.into_body(), MAX_FORM_BYTES).await;
    let refusal = text
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok());
    let error = refusal.map_or_else(|| status.to_string(), |Refusal { error }| error);
    console.refusal(&tenant, status, &error).map(Body::from)
}

/// Returns whether a browser has sent a form and shows the response.
fn is_form(fields: &HeaderMap) -> bool {
    let accepts = fields.get(ACCEPT).and_then(|value| value.to_str().ok());
    fields.contains_key(ORIGIN) && accepts.is_some_and(|types| types.contains("text/html"))
}

#[derive(Debug, Deserialize)]
struct TokenForm {
    token: String,
}

/// Returns the request if it is a permitted command, or else the response that refuses it.
pub(super) async fn check_permission(
    token: Option<&AdminToken>,
    request: Request,
) -> Result<Request, Response> {
    let fields = request.headers();
    let Some(token) = token else {
        let is_command = fields.get(COMMAND).is_some_and(|value| value == "1");
        if is_command && !fields.contains_key(ORIGIN) {
            return Ok(request);
        }
        let why = format!(
            "a command must have the header field `{COMMAND}: 1` and no `Origin`, so that web pages cannot send commands"
        );
        return Err(refusal(StatusCode::FORBIDDEN, why));
    };
    let (head, body) = request.into_parts();
    let bearer = head.headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
    let bearer = bearer.and_then(|value| value.strip_prefix(b"Bearer "));
    let given = match bearer {
        Some(bearer) => Some(bearer.to_vec()),
        None => {
            let form = Request::from_parts(head.clone(), body);
            let form = Form::<TokenForm>::from_request(form, &()).await;
            let given = form.ok().map(|Form(form)| form.token.trim().to_owned());
            given
                .filter(|given| !given.is_empty())
                .map(String::into_bytes)
        }
    };
    let why = match given {
        Some(given) if token.matches(&given) => {
            return Ok(Request::from_parts(head, Body::empty()));
        }
        Some(_) => "the token is not valid for this server",
        None => {
            "a command needs the server's admin token: name its file with `--admin-token-file` (ROWHOUSE_ADMIN_TOKEN_FILE)"
        }
    };
    let mut answer = refusal(StatusCode::UNAUTHORIZED, why.to_owned());
    let scheme = HeaderValue::from_static("Bearer");
    answer.headers_mut().insert(WWW_AUTHENTICATE, scheme);
    Err(answer)
}

async fn list(Shared(releases): Shared<ReleaseRoutes>, Path(tenant): Path<String>) -> Response {
    let queue = Arc::clone(&releases.queues.lists);
    releases
        .run(queue, move |control| control.releases(&tenant))
        .await
}

async fn diff(
    Shared(releases): Shared<ReleaseRoutes>,
    Path(tenant): Path<String>,
    parameters: Parameters,
) -> Response {
    let number = |name| number(&parameters, name);
    let (from, to) = match number("from").and_then(|from| Ok((from, number("to")?))) {
        Ok(range) => range,
        Err(error) => return error.into_response(),
    };
    let queue = Arc::clone(&releases.queues.comparisons);
    releases
        .run(queue, move |control| control.diff(&tenant, from, to))
        .await
}

async fn roll_back(
    Shared(releases): Shared<ReleaseRoutes>,
    Path(tenant): Path<String>,
    parameters: Parameters,
) -> Response {
    let release = match number(&parameters, "release") {
        Ok(release) => release,
        Err(error) => return error.into_response(),
    };
    let roll_back = move |control: &dyn Control| {
        let release = control.roll_back(&tenant, release)?;
        Ok(RollbackResponse { release })
    };
    releases.command(roll_back).await
}

async fn resume(Shared(releases): Shared<ReleaseRoutes>, Path(tenant): Path<String>) -> Response {
    let resume = move |control: &dyn Control| {
        control.resume(&tenant)?;
        Ok(serde_json::Map::new())
    };
    releases.command(resume).await
}

async fn restore(Shared(releases): Shared<ReleaseRoutes>, Path(tenant): Path<String>) -> Response {
    let restore = move |control: &dyn Control| {
        control.restore(&tenant)?;
        Ok(serde_json::Map::new())
    };
    releases.command(restore).await
}

async fn read_again(
    Shared(releases): Shared<ReleaseRoutes>,
    Path(tenant): Path<String>,
) -> Response {
    let read_again = move |control: &dyn Control| {
        control.read_again(&tenant)?;
        Ok(serde_json::Map::new())
    };
    releases.command(read_again).await
}

impl ReleaseRoutes {
    async fn command<T, W>(self, work: W) -> Response
    where
        T: Serialize + Send + 'static,
        W: FnOnce(&dyn Control) -> Result<T, ControlError> + Send + 'static,
    {
        let queue = Arc::clone(&self.queues.commands);
        self.run(queue, work).await
    }

    /// Runs an operation when its queue is free. Once begun, the operation completes even if the client is gone.
    async fn run<T, W>(self, queue: Arc<Semaphore>, work: W) -> Response
    where
        T: Serialize + Send + 'static,
        W: FnOnce(&dyn Control) -> Result<T, ControlError> + Send + 'static,
    {
        let Some(control) = self.control else {
            return ControlError::NoState.into_response();
        };
        let Ok(permit) = queue.acquire_owned().await else {
            return ControlError::Failed("the server is shutting down".to_owned()).into_response();
        };
        let work = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work(&*control)
        });
        match work.await {
            Ok(Ok(answer)) => Json(answer).into_response(),
            Ok(Err(error)) => error.into_response(),
            // The panic is in the log.
            Err(_) => ControlError::Failed(
                "internal error: see the server's log for the cause".to_owned(),
            )
            .into_response(),
        }
    }
}

impl IntoResponse for ControlError {
    fn into_response(self) -> Response {
        refusal(self.status(), self.to_string())
    }
}
