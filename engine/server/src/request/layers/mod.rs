//! What stands around the look-up: one layer a file, each a [`tower::Service`] around the next.
//!
//! ```text
//! Exchange -> access_log -> request_id -> traffic -> uri_length -> the look-up -> Answer
//! ```
//! They are the services of tower with what passes through them made small: a request as references ([`exchange::Exchange`]), an answer with who gave it, and futures that are ready, since a look-up waits for nobody. So the compiler joins them into one function.
//! The layers of tower-http that have the same names work on whole HTTP messages and keep the request id in their extensions, which are two allocated tables for each request.
//!
//! **Invariant:** no layer knows what is above it; none waits, opens or sends anything.

pub(crate) mod access_log;
pub(crate) mod exchange;
pub(crate) mod request_id;
pub(crate) mod traffic;
pub(crate) mod uri_length;
