//! Assigns each request an id, which is in the access log and in the response (`X-Request-Id`).
//!
//! A trusted proxy may send an id, so that the lines of both logs can be matched. All other requests get a new id: random bits for the worker, then a counter. Such ids are unique and cheap to make.
//!
//! **Invariant:** reads nothing of the request but the id from a trusted proxy.

use std::cell::{Cell, RefCell};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

use bytes::BytesMut;
use http::header::HeaderValue;

use super::exchange::Exchange;
use crate::request::preconditions::single_value;
use crate::response::routed_response::RoutedResponse;
use release::snapshot::fields::X_REQUEST_ID;

/// Maximum length of a proxy's id.
const MAX_ID_BYTES: usize = 64;

/// Size of a block that many ids share.
const BLOCK_BYTES: usize = 4096;

/// Generates the ids of a worker's requests.
#[derive(Debug)]
pub(crate) struct RequestIds {
    /// The worker's random prefix.
    prefix: String,
    next: Cell<u64>,
    /// The free part of a block. An id is cut off at its front, so that it needs no allocation. The block is reused once all its responses are sent.
    block: RefCell<BytesMut>,
}

impl Default for RequestIds {
    fn default() -> Self {
        // Each `RandomState` has new keys, so its hash of any value is random.
        let prefix = format!("{:016x}-", RandomState::new().hash_one(0_u8));
        Self {
            prefix,
            next: Cell::new(0),
            block: RefCell::new(BytesMut::with_capacity(BLOCK_BYTES)),
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
        let mut number_text = itoa::Buffer::new();
        let mut block = self.block.borrow_mut();
        for part in [&self.prefix, number_text.format(number)] {
            block.extend_from_slice(part.as_bytes());
        }
        let id = block.split().freeze();
        let id = HeaderValue::from_maybe_shared(id);
        let mut id = id.unwrap_or(HeaderValue::from_static("-"));
        // HTTP/2 would add each id to the connection's table of fields (RFC 7541, section 7.1.3), which displaces fields that come again.
        id.set_sensitive(true);
        id
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
    answer.response.set_request_id(id);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_ids_share_a_block() {
        let ids = RequestIds::default();
        let first = ids.id_for(None);
        let second = ids.id_for(None);
        assert!(second.as_bytes().ends_with(b"-1"), "{second:?}");
        drop((first, second));
        let memory = allocation_counter::measure(|| {
            for _ in 0..2 * BLOCK_BYTES {
                ids.id_for(None);
            }
        });
        assert_eq!(memory.count_total, 0);
    }

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
