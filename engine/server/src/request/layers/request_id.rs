//! Assigns each request an id, which is in the access log and in the response (`X-Request-Id`).
//!
//! A trusted proxy may send an id, so that the lines of both logs can be matched. All other requests get a new id: random bits for the worker, then a counter. Such ids are unique and cheap to make.
//!
//! **Invariant:** reads nothing of the request but the id from a trusted proxy.

use std::cell::{Cell, RefCell};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

use http::header::HeaderValue;

use super::exchange::Exchange;
use crate::request::preconditions::single_value;
use crate::response::routed_response::RoutedResponse;
use release::snapshot::fields::{X_REQUEST_ID, set};

/// Maximum length of a proxy's id.
const MAX_ID_BYTES: usize = 64;

/// Generates the ids of a worker's requests.
#[derive(Debug)]
pub(crate) struct RequestIds {
    /// The last generated id; its buffer is reused.
    last: RefCell<String>,
    /// The length of the worker's random prefix.
    prefix: usize,
    next: Cell<u64>,
}

impl Default for RequestIds {
    fn default() -> Self {
        // Each `RandomState` has new keys, so its hash of any value is random.
        let prefix = format!("{:016x}-", RandomState::new().hash_one(0_u8));
        Self {
            prefix: prefix.len(),
            last: RefCell::new(prefix),
            next: Cell::new(0),
        }
    }
}

impl RequestIds {
    /// Returns the proxy's id if it is valid, or else a new id.
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

/// Returns whether an id can be logged without escaping.
fn is_id(id: &[u8]) -> bool {
    (1..=MAX_ID_BYTES).contains(&id.len())
        && id
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

/// Sets the id of a request in its answer.
pub(crate) fn assign(ids: &RequestIds, exchange: &Exchange<'_>, answer: &mut RoutedResponse<'_>) {
    // If there are two ids, one may be the client's.
    let given = exchange
        .peer
        .is_trusted
        .then(|| single_value(exchange.head.headers, &X_REQUEST_ID));
    let id = ids.id_for(given.flatten());
    set(answer.response.headers_mut(), &X_REQUEST_ID, id);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_id_is_kept_and_invalid_id_is_replaced() {
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
