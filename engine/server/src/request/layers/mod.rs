//! Layers around the look-up, one file each. Each is a function of the request ([`exchange::Exchange`]) and its answer.
//!
//! ```text
//! uri_length -> the look-up -> traffic -> request_id -> access_log
//! ```
//! All layers work on one answer in place. Layers of tower pass the answer by value, which copies it once per layer. Those of tower-http also pass the request id in the extensions of request and response, which allocates two hash tables per request.
//!
//! **Invariant:** no layer knows the other layers; no layer waits, opens a file or sends bytes.

pub(crate) mod access_log;
pub(crate) mod exchange;
pub(crate) mod request_id;
pub(crate) mod traffic;
pub(crate) mod uri_length;
