//! Resolves the links that authors write, for the address that a page is rendered for.
//!
//! - [`resolver`] resolves a link.
//! - [`text_context`] holds the context that a text is rendered in.
//! - [`link_base`] adapts a rendered page to each of its tenant's addresses.
//!
//! **Invariant:** of other tenants, only names and addresses are known.

pub(crate) mod link_base;
pub(crate) mod resolver;
pub(crate) mod text_context;
