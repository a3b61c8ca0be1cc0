//! Certificates from an authority (ACME, RFC 8555), for exactly the hosts that are served.
//!
//! ```text
//! snapshot_store --hosts--> manager --orders--> order --> account, client --> the authority
//!                              |                  |
//!                    plan (when, what next)       +--> tls::certificate_store: answers to challenges
//!                    quota (how many, which first)
//!                    tasks (what is in flight)
//!                    folder (what outlives the process)
//! ```
//! The [`manager`] looks at the hosts of each new snapshot. One without a good certificate gets an order at once, some at the same time; one whose certificate grows old is renewed when the authority says (ARI, RFC 9773), else after two thirds of its lifetime. What fails waits alone: from minutes to a day, longer each time. Where the authority itself fails, all wait, for seconds to a quarter of an hour.
//!
//! Nobody can make this program ask for a name: a visitor's handshake starts nothing.
//!
//! **Invariant:** [`plan`] decides, without clock, disk and network; the others do. Serves no visitor.

mod account;
mod certificate_folder;
mod client;
mod manager;
mod order;
mod plan;
mod quota;
mod tasks;

use std::path::PathBuf;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

pub use self::manager::start;

/// Which authority is asked, and how.
#[derive(Debug, Clone)]
pub struct AcmeSettings {
    /// The URL of its directory.
    pub directory: String,
    /// The roots that the authority's own HTTPS is checked against, as PEM. Default: those of Mozilla.
    pub roots: Option<Vec<u8>>,
    /// Who is written to, as an e-mail address.
    pub contact: String,
    /// The id and the key of an account with the authority's owner that this one belongs to (RFC 8555, section 7.3.4).
    pub external_account: Option<ExternalAccount>,
    /// Where account and certificates are kept.
    pub folder: PathBuf,
    /// Whether there is a listener for HTTP-01; TLS-ALPN-01 needs none besides that of HTTPS.
    pub http: bool,
}

/// A key of an [`ExternalAccount`] as its owner writes it: base64url (RFC 4648, section 5), with or without padding.
#[must_use]
pub fn decoded_key(text: &str) -> Option<Vec<u8>> {
    BASE64_URL_SAFE_NO_PAD
        .decode(text.trim().trim_end_matches('='))
        .ok()
}

/// An account with the authority's owner.
#[derive(Clone)]
pub struct ExternalAccount {
    /// Its id.
    pub id: String,
    /// Its key, decoded.
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
