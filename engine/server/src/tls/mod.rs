//! TLS of visitors' connections: the choice of the certificate, and the handshake.
//!
//! ```text
//! files (of operators), acme --> certificate_store --> handshake --> stream of a visitor
//!                                                          ^
//!                                     handshake_gate (how many, how often)
//! ```
//! 1. The ClientHello is read before anything is decided. A name that no tenant claims, or a missing name, ends the handshake with the alert `unrecognized_name` (RFC 6066, section 3). No certificate is sent.
//! 2. TLS 1.3 and 1.2, with the cipher suites and groups of rustls. Clients that support post-quantum key agreement get it, and nothing is offered that RFC 9325 advises against. Session tickets are encrypted with keys that change every six hours.
//! 3. ALPN (RFC 7301) chooses HTTP/2 or HTTP/1.1, or answers a TLS-ALPN-01 challenge (RFC 8737).
//! 4. A request for another host than the host of the handshake gets 421, unless the certificate covers that host too (RFC 9110, section 7.4).
//!
//! **Invariant:** knows nothing of HTTP but its ALPN names; chooses no response.

pub mod certificate;
pub mod certificate_store;
mod config;
pub mod files;
pub(crate) mod handshake;
pub mod handshake_counters;
pub(crate) mod handshake_gate;
pub mod order_status;
pub mod overview;
pub mod probe;
pub(crate) mod provider;
mod shared_challenges;

pub use self::config::Tls;
pub use self::shared_challenges::SharedChallenges;
