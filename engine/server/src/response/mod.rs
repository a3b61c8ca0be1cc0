//! Chooses the response to a request, by look-up in the current snapshot alone.
//!
//! [`respond`] looks a request up and gives an [`answer`]. [`redirect`] and [`to_https`] make redirects. [`response_body`] is the body that was chosen.
//!
//! **Invariant:** builds no body, opens no file but those of large bodies, and takes no lock.

pub(crate) mod answer;
pub(crate) mod redirect;
pub mod respond;
pub(crate) mod response_body;
pub(crate) mod to_https;
