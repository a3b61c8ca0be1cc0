//! Access to protected tenants: HTTP Basic (RFC 7617) with tokens.
//!
//! ```text
//! AccessTable (snapshot) ─► look-up: a rule covers the path's tenant
//!                                      │
//! gate: transport, credential, limit ──┴─► decision ─► content, or a refusal
//! ```
//! 1. The look-up asks for a decision before anything of the tenant is answered: its methods, redirects, pages, files and missing pages, and before a request waits for rendering.
//! 2. A credential is accepted over TLS, from a proxy that ends TLS, and at loopback names. Elsewhere the request is redirected to HTTPS, or refused.
//! 3. Failed attempts are limited per client subnet. Beyond the limit no token is compared.
//!
//! **Invariant:** a token never appears in a log or a response. The duration of a comparison reveals nothing about the token.

pub(crate) mod basic;
pub(crate) mod decision;
pub(crate) mod failed_attempts;
pub(crate) mod gate;
pub mod token;
