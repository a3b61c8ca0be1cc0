//! TLS of visitors' connections: who is shown which certificate, and how a handshake goes.
//!
//! ```text
//! files (of operators), acme --> certificate_store --> handshake --> stream of a visitor
//!                                                          ^
//!                                     handshake_gate (how many, how often)
//! ```
//! 1. A ClientHello is read before anything is decided. A name that no tenant claims, or none at all, ends with the alert `unrecognized_name` (RFC 6066, section 3), and no certificate is shown.
//! 2. TLS 1.3 and 1.2, with the suites and groups of rustls: key agreement that quantum computers do not break where the client has it, and none of what RFC 9325 advises against. Session tickets are sealed with keys that change every six hours.
//! 3. ALPN (RFC 7301) chooses HTTP/2 or HTTP/1.1, or answers the challenge of an authority (RFC 8737).
//! 4. A request for another host than the handshake named is refused with 421, unless the certificate covers that host too (RFC 9110, section 7.4).
//!
//! **Invariant:** knows no HTTP besides the two names of its versions; decides no answer.

pub mod attempts;
pub mod certificate;
pub mod certificate_store;
mod config;
pub mod files;
pub(crate) mod handshake;
pub mod handshake_counters;
pub(crate) mod handshake_gate;
pub mod overview;
pub mod probe;
pub(crate) mod provider;

pub use self::config::Tls;
