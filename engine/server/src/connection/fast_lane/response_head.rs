//! Encodes the status line and the header fields of a response, as hyper does.
//!
//! **Invariant:** decides nothing; the fields keep their order.

use http::header::{CONTENT_LENGTH, DATE};
use http::{HeaderValue, Method, StatusCode};
use release::snapshot::fields::write_line;

use crate::response::snapshot_response::SnapshotResponse;

/// Appends the head of a response to a request with this method.
pub(super) fn encode(
    head: &mut Vec<u8>,
    response: &mut SnapshotResponse<'_>,
    method: &Method,
    date: &HeaderValue,
) {
    let status = response.status();
    match status {
        StatusCode::OK => head.extend_from_slice(b"HTTP/1.1 200 OK\r\n"),
        _ => {
            let reason = status.canonical_reason().unwrap_or("<none>");
            for part in ["HTTP/1.1 ", status.as_str(), " ", reason, "\r\n"] {
                head.extend_from_slice(part.as_bytes());
            }
        }
    }
    response.write_lines(head);
    // The response to HEAD has the field already.
    let has_length = *method != Method::HEAD
        && !matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    if has_length {
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(response.body().len());
        write_line(head, &CONTENT_LENGTH, digits.as_bytes());
    }
    write_line(head, &DATE, date.as_bytes());
    head.extend_from_slice(b"\r\n");
}
