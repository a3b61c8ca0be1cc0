//! A response whose header fields stay in the snapshot until one of them changes.
//!
//! Most responses are a page with the fields that were made for its class. Copying these fields takes longer than looking the page up, so they are copied only when a field changes, or when hyper gets the response.
//!
//! **Invariant:** has the same fields, in the same order, in every form.

use std::borrow::Cow;

use http::header::{HeaderMap, HeaderValue};
use http::{Response, StatusCode};

use crate::response::response_body::ResponseBody;
use release::snapshot::ContentEncoding;
use release::snapshot::fields::{CACHE_TAG, Fields, X_REQUEST_ID, set, write_line};

/// A response on its way through the layers.
#[derive(Debug)]
pub struct SnapshotResponse<'s> {
    status: StatusCode,
    fields: ResponseFields<'s>,
    request_id: Option<HeaderValue>,
    body: ResponseBody,
}

#[derive(Debug)]
enum ResponseFields<'s> {
    Shared(SharedFields<'s>),
    Own(HeaderMap),
}

impl ResponseFields<'_> {
    /// Copies shared fields, and returns the copy.
    fn own(&mut self) -> &mut HeaderMap {
        match self {
            Self::Own(fields) => fields,
            Self::Shared(shared) => {
                *self = Self::Own(shared.copy());
                self.own()
            }
        }
    }
}

/// The fields of a body in the snapshot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SharedFields<'s> {
    pub(crate) fields: &'s Fields,
    pub(crate) encoding: ContentEncoding,
    pub(crate) etag: &'s HeaderValue,
    pub(crate) cache_tag: Option<&'s HeaderValue>,
}

impl SharedFields<'_> {
    fn copy(self) -> HeaderMap {
        let mut copy = self.fields.for_body(self.encoding, self.etag);
        if let Some(cache_tag) = self.cache_tag {
            set(&mut copy, &CACHE_TAG, cache_tag.clone());
        }
        copy
    }
}

impl<'s> SnapshotResponse<'s> {
    /// Returns a response with a body of the snapshot and its fields.
    pub(crate) const fn new(
        status: StatusCode,
        fields: SharedFields<'s>,
        body: ResponseBody,
    ) -> Self {
        Self {
            status,
            fields: ResponseFields::Shared(fields),
            request_id: None,
            body,
        }
    }

    /// Returns the status.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    pub(crate) const fn set_status(&mut self, status: StatusCode) {
        self.status = status;
    }

    /// Returns the header fields. The request id is set later.
    #[must_use]
    pub fn headers(&self) -> Cow<'_, HeaderMap> {
        match &self.fields {
            ResponseFields::Shared(fields) => Cow::Owned(fields.copy()),
            ResponseFields::Own(fields) => Cow::Borrowed(fields),
        }
    }

    /// Returns fields of this response alone.
    pub(crate) fn headers_mut(&mut self) -> &mut HeaderMap {
        self.fields.own()
    }

    /// Returns the body.
    #[must_use]
    pub const fn body(&self) -> &ResponseBody {
        &self.body
    }

    pub(crate) const fn request_id(&self) -> Option<&HeaderValue> {
        self.request_id.as_ref()
    }

    pub(crate) fn set_request_id(&mut self, id: HeaderValue) {
        self.request_id = Some(id);
    }

    /// Removes the body and returns it.
    pub(crate) fn take_body(&mut self) -> ResponseBody {
        std::mem::replace(&mut self.body, bytes::Bytes::new().into())
    }

    /// Returns the response in hyper's form.
    #[must_use]
    pub fn into_response(mut self) -> Response<ResponseBody> {
        if let Some(id) = self.request_id.take() {
            set(self.headers_mut(), &X_REQUEST_ID, id);
        }
        let mut response = Response::new(self.take_body());
        *response.status_mut() = self.status;
        *response.headers_mut() = std::mem::take(self.headers_mut());
        response
    }

    /// Appends the fields as lines of HTTP/1.1.
    pub(crate) fn write_lines(&mut self, lines: &mut Vec<u8>) {
        let id = self.request_id.take();
        if let (ResponseFields::Shared(shared), Some(id)) = (&self.fields, &id) {
            let values = (shared.etag, id, shared.cache_tag);
            shared.fields.write_lines(lines, shared.encoding, values);
            return;
        }
        let fields = self.headers_mut();
        if let Some(id) = id {
            set(fields, &X_REQUEST_ID, id);
        }
        for (name, value) in &*fields {
            write_line(lines, name, value.as_bytes());
        }
    }
}

impl From<Response<ResponseBody>> for SnapshotResponse<'_> {
    fn from(response: Response<ResponseBody>) -> Self {
        let (parts, body) = response.into_parts();
        Self {
            status: parts.status,
            fields: ResponseFields::Own(parts.headers),
            request_id: None,
            body,
        }
    }
}
