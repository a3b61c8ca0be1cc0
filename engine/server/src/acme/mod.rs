//! Orders certificates from a certificate authority (CA) by ACME (RFC 8555), for exactly the hosts in the snapshot.
//!
//! ```text
//! snapshot_store --hosts--> manager --orders--> order --> account, client --> the CA
//!                              |                  |
//!                    plan (when to order)         +--> tls::certificate_store: answers to challenges
//!                    quota (how many, which first)
//!                    tasks (jobs in flight)
//!                    certificate_folder (persisted files)
//!                    renewal (operators' requests)
//!                    shared (the other replicas of a fleet)
//! ```
//! The [`manager`] checks the hosts of each new snapshot:
//! * A host without a valid certificate gets an order at once; several orders are in flight at a time.
//! * A certificate is renewed when the CA suggests it (ARI, RFC 9773), or else after two thirds of its lifetime.
//! * An operator may request a new certificate. A host whose file is lost or damaged gets one, too; the old certificate stays in use until then.
//! * If an order fails, only its host waits: from minutes to a day, longer each time.
//! * If the CA itself fails, all orders wait: from seconds to a quarter of an hour.
//!
//! A client cannot trigger an order: a handshake for an unknown name starts nothing.
//!
//! **Invariant:** [`plan`] decides, without clock, disk and network; the other modules act. Serves no visitor.

mod account;
mod certificate_folder;
pub(crate) mod client;
mod issued_certificate;
mod manager;
mod order;
mod plan;
mod quota;
mod renewal;
pub(crate) mod shared;
mod tasks;

use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

pub use self::manager::start;
pub(crate) use self::order::proof_certificate;
pub use self::renewal::{RenewalRefusal, RenewalRequests};
pub use self::shared::{SharedFuture, SharedLease, SharedStore, SharedStoreError};

/// Settings of the CA and the account.
#[derive(Debug, Clone)]
pub struct AcmeSettings {
    /// The URL of the CA's directory.
    pub directory: String,
    /// Root certificates in PEM for HTTPS to the CA. Default: those of Mozilla.
    pub roots: Option<Vec<u8>>,
    /// The e-mail address to which the CA sends notices.
    pub contact: String,
    /// The external account that the ACME account is bound to (RFC 8555, section 7.3.4).
    pub external_account: Option<ExternalAccount>,
    /// The folder for the account and the certificates.
    pub folder: PathBuf,
    /// Whether a listener for HTTP-01 exists. TLS-ALPN-01 needs only the HTTPS listener.
    pub http: bool,
    /// Whether hosts of previews get certificates.
    pub includes_previews: bool,
    /// The store that all replicas of a fleet share; `None` for a server on its own.
    pub shared: Option<Arc<dyn SharedStore>>,
}

/// Decodes the key of an [`ExternalAccount`]: base64url (RFC 4648, section 5), with or without padding.
#[must_use]
pub fn decoded_key(text: &str) -> Option<Vec<u8>> {
    BASE64_URL_SAFE_NO_PAD
        .decode(text.trim().trim_end_matches('='))
        .ok()
}

/// An account with the operator of the CA (external account binding).
#[derive(Clone)]
pub struct ExternalAccount {
    /// The key identifier.
    pub id: String,
    /// The decoded MAC key.
    pub key: Vec<u8>,
}

impl std::fmt::Debug for ExternalAccount {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ExternalAccount")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
