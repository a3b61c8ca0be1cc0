//! Resolves the links that authors write, for the address that a page is rendered for.
//!
//! [`resolver`] resolves a link, [`text_context`] is what a text is rendered with, and [`link_base`] puts a page that was rendered once at each of its tenant's addresses.
//!
//! **Invariant:** of other tenants, only names and addresses are known.

pub(crate) mod link_base;
pub(crate) mod resolver;
pub(crate) mod text_context;
