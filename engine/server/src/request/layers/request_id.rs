//! Gives each request an id, which stands in the access log and in its response (`X-Request-Id`).
//!
//! A trusted proxy may bring one, so that its log and this one can be laid side by side. All other requests get one here: random bits for the worker, then a number, so that ids are unique and making one costs next to nothing.
//!
//! **Invariant:** reads of the request only the id that a trusted proxy gave it.

use std::cell::{Cell, RefCell};
use std::collections::hash_map::RandomState;
use std::convert::Infallible;
use std::future::ready;
use std::hash::BuildHasher as _;
use std::task::{Context, Poll};

use http::header::HeaderValue;
use tower::Service;

use super::exchange::{Answered, Exchange, Inner};
use crate::request::preconditions::only;
use crate::response::answer::Answer;
use release::snapshot::fields::{X_REQUEST_ID, set};

/// The most letters of an id that is taken from a proxy.
const MAX_LENGTH: usize = 64;

/// Makes the ids of a worker's requests.
#[derive(Debug)]
pub(crate) struct RequestIds {
    /// The last id that was made, to be written over.
    last: RefCell<String>,
    /// How many of its letters stand for the worker.
    prefix: usize,
    next: Cell<u64>,
}

impl Default for RequestIds {
    fn default() -> Self {
        // Each `RandomState` has new keys, so that the hash of anything is random.
        let prefix = format!("{:016x}-", RandomState::new().hash_one(0_u8));
        Self {
            prefix: prefix.len(),
            last: RefCell::new(prefix),
            next: Cell::new(0),
        }
    }
}

impl RequestIds {
    /// The id that a proxy gave the request, if it can stand in a log, or else a new one.
    fn id_for(&self, given: Option<&HeaderValue>) -> HeaderValue {
        if let Some(id) = given.filter(|id| is_id(id.as_bytes())) {
            return id.clone();
        }
        let number = self.next.get();
        self.next.set(number + 1);
        let mut id = self.last.borrow_mut();
        id.truncate(self.prefix);
        id.push_str(itoa::Buffer::new().format(number));
        HeaderValue::from_str(&id).unwrap_or(HeaderValue::from_static("-"))
    }
}

/// Whether an id can stand in a log as it is.
fn is_id(id: &[u8]) -> bool {
    (1..=MAX_LENGTH).contains(&id.len())
        && id
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

/// Names each request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestId<'w, S> {
    pub(crate) ids: &'w RequestIds,
    pub(crate) inner: S,
}

impl<'a, S: Inner<'a>> Service<Exchange<'a>> for RequestId<'_, S> {
    type Response = Answer<'a>;
    type Error = Infallible;
    type Future = Answered<'a>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, exchange: Exchange<'a>) -> Self::Future {
        let mut answer = self.inner.answer(exchange);
        // Of two ids, one may be the client's.
        let given = exchange
            .peer
            .trusted
            .then(|| only(exchange.head.headers, &X_REQUEST_ID));
        let id = self.ids.id_for(given.flatten());
        set(answer.response.headers_mut(), &X_REQUEST_ID, id);
        ready(Ok(answer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_taken_or_made() {
        let ids = RequestIds::default();
        assert_eq!(
            ids.id_for(Some(&HeaderValue::from_static(
                "0af7651916cd43dd-8448_eb.1"
            ))),
            "0af7651916cd43dd-8448_eb.1"
        );
        let made = ids.id_for(None);
        assert_ne!(made, ids.id_for(None));
        for bad in [&b""[..], b"a b", b"a\"b", b"\xff", &[b'a'; 65]] {
            let bad = HeaderValue::from_bytes(bad).unwrap();
            assert_eq!(ids.id_for(Some(&bad)).len(), made.len(), "{bad:?}");
        }
        assert_ne!(made, RequestIds::default().id_for(None));
    }
}
