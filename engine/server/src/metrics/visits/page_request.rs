//! Requests for pages on their way from the workers to the counts.
//!
//! A worker appends each request to a buffer of its own. The buffer is passed on when it is full, and each time the worker checks its connections.
//!
//! **Invariant:** holds a host, but no address, of a visitor's request. A request is appended without a lock and without an allocation; a full buffer takes one of each.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use http::header::HOST;
use http::{HeaderValue, Method, StatusCode};

use crate::response::routed_response::{RequestHead, ResponseOwner, RoutedResponse};

/// Buffered bytes at which a worker passes its requests on.
const BUFFER_BYTES: usize = 16 * 1024;
/// Maximum number of buffers that wait to be counted. Beyond it, buffers are dropped. They take at most 2 MB, and hold about 14,000 requests.
pub(super) const MAX_QUEUED_BUFFERS: usize = 128;
/// Maximum length of a user agent that is compared with the list of bots. The user agent of a browser has half of that length.
const MAX_AGENT_BYTES: usize = 512;
/// Maximum length of a path or of a host that is counted by name.
pub(super) const MAX_NAME_BYTES: usize = 120;

/// A request that was answered with a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageRequest<'r> {
    pub(super) tenant: &'r str,
    /// The path below the tenant's root; empty if it is too long.
    pub(super) path: &'r str,
    pub(super) agent: &'r [u8],
    /// The host of another site that linked to the page, as the browser wrote it; empty if there is none.
    pub(super) referrer: &'r [u8],
    /// Whether a browser fetched the page before the visitor followed a link.
    pub(super) is_ahead: bool,
}

impl<'r> PageRequest<'r> {
    /// Returns the request, if it is a GET that was answered with a page of a tenant, in full or as 304.
    pub(super) fn of(head: &RequestHead<'r>, answer: &RoutedResponse<'r>) -> Option<Self> {
        let ResponseOwner::Tenant(mount) = answer.owner else {
            return None;
        };
        let route = answer.route;
        let status = answer.response.status();
        let is_page = matches!(status, StatusCode::OK | StatusCode::NOT_MODIFIED)
            && head.method == Method::GET
            && route.rest.is_empty()
            // Paths of files have a dot, and those of pages have none.
            && !route.path.bytes().any(|byte| byte == b'.');
        if !is_page {
            return None;
        }
        let fields = &head.fields;
        let agent = (fields.user_agent).map_or(&[][..], HeaderValue::as_bytes);
        Some(Self {
            tenant: &mount.tenant,
            path: match route.path.len() <= MAX_NAME_BYTES {
                true => route.path,
                false => "",
            },
            agent: &agent[..agent.len().min(MAX_AGENT_BYTES)],
            referrer: (fields.referrer)
                .and_then(|referrer| foreign_host(referrer.as_bytes(), head))
                .unwrap_or_default(),
            is_ahead: fields.purpose.is_some_and(is_fetched_ahead),
        })
    }

    /// Appends the request to `buffer`.
    fn write(&self, buffer: &mut Vec<u8>) {
        for part in self.parts() {
            // No part is longer than a `u16`.
            let length = u16::try_from(part.len()).unwrap_or_default();
            buffer.extend_from_slice(&length.to_le_bytes());
            buffer.extend_from_slice(&part[..usize::from(length)]);
        }
        buffer.push(u8::from(self.is_ahead));
    }

    fn parts(&self) -> [&'r [u8]; 4] {
        [
            self.tenant.as_bytes(),
            self.path.as_bytes(),
            self.agent,
            self.referrer,
        ]
    }

    /// Removes the first request from `buffer`.
    pub(super) fn read(buffer: &mut &'r [u8]) -> Option<Self> {
        let mut part = || {
            let (length, rest) = buffer.split_first_chunk::<2>()?;
            let (part, rest) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
            *buffer = rest;
            Some(part)
        };
        let (tenant, path, agent, referrer) = (part()?, part()?, part()?, part()?);
        let (is_ahead, rest) = buffer.split_first()?;
        *buffer = rest;
        Some(Self {
            tenant: str::from_utf8(tenant).ok()?,
            path: str::from_utf8(path).ok()?,
            agent,
            referrer,
            is_ahead: *is_ahead == 1,
        })
    }
}

/// Returns whether a browser fetches a page ahead (`prefetch`, `prefetch;prerender`; Fetch, section 3.6).
fn is_fetched_ahead(purpose: &HeaderValue) -> bool {
    purpose.as_bytes().starts_with(b"prefetch")
}

/// Returns the host of a referrer, without its port, if it is not the host of the request.
fn foreign_host<'r>(referrer: &'r [u8], head: &RequestHead<'_>) -> Option<&'r [u8]> {
    let rest = referrer
        .strip_prefix(b"https://")
        .or_else(|| referrer.strip_prefix(b"http://"))?;
    let host = without_port(rest);
    let own = match head.uri.authority() {
        Some(authority) => authority.as_str().as_bytes(),
        None => head.headers.get(HOST)?.as_bytes(),
    };
    let is_own = without_port(own).eq_ignore_ascii_case(host);
    (!is_own && !host.is_empty() && host.len() <= MAX_NAME_BYTES).then_some(host)
}

/// Returns the bytes before the port or the path.
fn without_port(authority: &[u8]) -> &[u8] {
    let end = memchr::memchr3(b':', b'/', b'?', authority);
    &authority[..end.unwrap_or(authority.len())]
}

/// Buffers of requests for pages that wait to be counted.
#[derive(Debug, Default)]
pub(crate) struct PageRequestQueue {
    buffers: Mutex<Vec<Vec<u8>>>,
    /// The number of buffers that were dropped.
    lost: AtomicU64,
}

impl PageRequestQueue {
    /// Adds a buffer. Drops the buffer if too many are queued.
    pub(super) fn push(&self, buffer: Vec<u8>) {
        let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        if buffers.len() < MAX_QUEUED_BUFFERS {
            buffers.push(buffer);
        } else {
            self.lost.fetch_add(1, Relaxed);
        }
    }

    /// Removes and returns all buffers.
    pub(super) fn drain(&self) -> Vec<Vec<u8>> {
        let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *buffers)
    }

    /// Returns the number of buffers that were dropped, because too many were queued.
    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }
}

/// The requests for pages of a worker that are not passed on yet.
#[derive(Debug)]
pub(crate) struct PageRequestBuffer {
    queue: Arc<PageRequestQueue>,
    requests: Vec<u8>,
}

impl PageRequestBuffer {
    pub(crate) const fn new(queue: Arc<PageRequestQueue>) -> Self {
        Self {
            queue,
            requests: Vec::new(),
        }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Appends the request if it was answered with a page.
    pub(crate) fn push(&mut self, head: &RequestHead<'_>, answer: &RoutedResponse<'_>) {
        // The response borrows from the snapshot, which lives as long as the request.
        if let Some(request) = PageRequest::of(head, answer) {
            if self.requests.capacity() == 0 {
                self.requests.reserve_exact(BUFFER_BYTES + 1024);
            }
            request.write(&mut self.requests);
            if self.requests.len() >= BUFFER_BYTES {
                self.flush();
            }
        }
    }

    /// Passes the requests on.
    pub(crate) fn flush(&mut self) {
        if !self.is_empty() {
            self.queue.push(std::mem::take(&mut self.requests));
        }
    }
}

impl Drop for PageRequestBuffer {
    fn drop(&mut self) {
        self.flush();
    }
}

#[cfg(test)]
pub(super) fn buffer_of(requests: &[PageRequest<'_>]) -> Vec<u8> {
    let mut buffer = Vec::new();
    for request in requests {
        request.write(&mut buffer);
    }
    buffer
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Uri, Version};

    use super::*;

    #[test]
    fn requests_are_read_as_written() {
        let request = PageRequest {
            tenant: "app",
            path: "/terms",
            agent: b"Firefox",
            referrer: b"news.example",
            is_ahead: true,
        };
        let empty = PageRequest {
            path: "",
            agent: b"",
            referrer: b"",
            is_ahead: false,
            ..request
        };
        let buffer = buffer_of(&[request, empty]);
        let mut rest = &buffer[..];
        assert_eq!(PageRequest::read(&mut rest), Some(request));
        assert_eq!(PageRequest::read(&mut rest), Some(empty));
        assert_eq!(PageRequest::read(&mut rest), None);
        assert_eq!(PageRequest::read(&mut &buffer[..9]), None);
    }

    #[test]
    fn only_the_host_of_another_site_is_a_referrer() {
        let headers =
            HeaderMap::from_iter([(HOST, HeaderValue::from_static("Corner.example:8080"))]);
        let uri = Uri::from_static("/");
        let head = RequestHead::new(&Method::GET, &uri, Version::HTTP_11, &headers, false);
        let host = |referrer: &'static str| {
            foreign_host(referrer.as_bytes(), &head).map(|host| str::from_utf8(host).unwrap())
        };
        assert_eq!(
            host("https://news.example/a?q=secret"),
            Some("news.example")
        );
        assert_eq!(host("http://news.example:81"), Some("news.example"));
        assert_eq!(host("https://news.example?q=secret"), Some("news.example"));
        for none in [
            "https://corner.example/terms",
            "http://corner.example:9090/",
            "android-app://com.example/",
            "https://",
            "",
            "about:blank",
        ] {
            assert_eq!(host(none), None, "{none}");
        }
    }

    #[test]
    fn pages_that_are_fetched_ahead_are_recognised() {
        let is_ahead = |purpose| is_fetched_ahead(&HeaderValue::from_static(purpose));
        assert!(is_ahead("prefetch") && is_ahead("prefetch;prerender"));
        assert!(!is_ahead("other"));
    }
}
