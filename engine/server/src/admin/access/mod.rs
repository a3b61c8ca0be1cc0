//! The checks that decide which clients may use the admin listener, and which may give commands.
//!
//! - [`guard`] refuses requests of foreign web pages.
//! - [`token`] authorises commands.
//!
//! **Invariant:** knows no tenant.

pub(super) mod guard;
pub(super) mod token;
