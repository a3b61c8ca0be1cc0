//! Chooses the response to a request by look-up in the current snapshot.
//!
//! [`respond`] looks a request up and returns a [`routed_response`]. [`redirect`] and [`to_https`] build redirects. [`refusal`] refuses requests for protected tenants. [`snapshot_response`] and [`response_body`] are the chosen response and its body.
//!
//! **Invariant:** builds no body, opens no file except for large bodies, and takes no lock.

pub mod redirect;
pub(crate) mod refusal;
pub mod respond;
pub(crate) mod response_body;
pub(crate) mod routed_response;
pub(crate) mod snapshot_response;
pub(crate) mod to_https;
