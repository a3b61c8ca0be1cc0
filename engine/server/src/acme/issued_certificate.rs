//! A certificate that the CA issued.

use serde::{Deserialize, Serialize};

/// A certificate that the CA issued, as PEM.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct IssuedCertificate {
    pub(super) chain: String,
    pub(super) key: String,
    /// Whether another replica has ordered it.
    #[serde(skip)]
    pub(super) is_shared: bool,
}
