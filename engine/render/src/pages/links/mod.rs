//! Resolves the links that authors write, for the address that a page is rendered for.
//!
//! [`link`] resolves a link, [`link_context`] is what a text is rendered with, and [`place`] puts a page that was rendered once at each of its tenant's addresses.
//!
//! **Invariant:** of other tenants, only names and addresses are known.

pub(crate) mod link;
pub(crate) mod link_context;
pub(crate) mod place;
