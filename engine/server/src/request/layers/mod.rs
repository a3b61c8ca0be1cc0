//! Layers around the look-up, one file each. Each is a [`tower::Service`] around the next.
//!
//! ```text
//! Exchange -> access_log -> request_id -> traffic -> uri_length -> the look-up -> Answer
//! ```
//! A request is passed as references ([`exchange::Exchange`]), an answer carries its owner, and futures are always ready, since a look-up never waits. The compiler can therefore inline the layers into one function.
//! The layers of the same names in tower-http work on complete HTTP messages, and pass the request id in the extensions of request and response, which allocates two hash tables per request.
//!
//! **Invariant:** no layer knows the layers above it; no layer waits, opens a file or sends bytes.

pub(crate) mod access_log;
pub(crate) mod exchange;
pub(crate) mod request_id;
pub(crate) mod traffic;
pub(crate) mod uri_length;
