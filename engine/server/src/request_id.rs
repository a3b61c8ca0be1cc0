//! What a request is called in the access log and in its response.
//!
//! A proxy that is trusted names requests, so that its log and this one can be laid side by side; others are given a name here: random bits for the worker, then a number, so that names are unique and making one costs next to nothing.
//!
//! **Invariant:** knows nothing of the request but the name it came with.

use std::cell::{Cell, RefCell};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

use http::header::HeaderValue;

/// Letters of a name that is taken from a proxy.
const LONGEST: usize = 64;

/// Where a worker's names come from.
#[derive(Debug)]
pub(super) struct RequestIds {
    /// The last name that was made, to be written over.
    name: RefCell<String>,
    /// Its letters that stand for the worker.
    worker: usize,
    next: Cell<u64>,
}

impl Default for RequestIds {
    fn default() -> Self {
        // Each `RandomState` has new keys, so that the hash of anything is random.
        let name = format!("{:016x}-", RandomState::new().hash_one(0_u8));
        Self {
            worker: name.len(),
            name: RefCell::new(name),
            next: Cell::new(0),
        }
    }
}

impl RequestIds {
    /// The name that a proxy gave the request, if it is one, or else a new one.
    pub(super) fn id_for(&self, named: Option<&HeaderValue>) -> HeaderValue {
        if let Some(name) = named.filter(|name| is_name(name.as_bytes())) {
            return name.clone();
        }
        let number = self.next.get();
        self.next.set(number + 1);
        let mut name = self.name.borrow_mut();
        name.truncate(self.worker);
        name.push_str(itoa::Buffer::new().format(number));
        HeaderValue::from_str(&name).unwrap_or(HeaderValue::from_static("-"))
    }
}

/// Whether a name can stand in a log as it is.
fn is_name(name: &[u8]) -> bool {
    (1..=LONGEST).contains(&name.len())
        && name
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_taken_or_made() {
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
