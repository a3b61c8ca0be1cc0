//! Refusals of the admin listener, as JSON.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::StatusCode;

use super::control::Refusal;

pub(super) fn refusal(status: StatusCode, error: String) -> Response {
    (status, Json(Refusal { error })).into_response()
}
