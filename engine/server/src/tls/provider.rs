//! The cryptography of all of TLS here: AWS-LC, which has the key agreement that quantum computers do not break, and needs no more than a C compiler to build.
//!
//! **Invariant:** chooses, and does nothing else.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, aws_lc_rs};

/// The cryptography of all of TLS here.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}
