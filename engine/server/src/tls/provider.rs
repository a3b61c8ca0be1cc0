//! The cryptography provider of all TLS code: AWS-LC, which supports post-quantum key agreement and needs only a C compiler to build.
//!
//! **Invariant:** only chooses the provider.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, aws_lc_rs};

/// Returns the cryptography provider of all TLS code.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}
