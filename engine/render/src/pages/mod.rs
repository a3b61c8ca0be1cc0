//! Renders pages: the values that templates see, the head, the links, and the bytes of each page at an address.
//!
//! [`page`] renders one page, [`rendered`] all pages of a tenant. [`view`] holds the values that templates see; [`describe`] and [`resolve`] make them of what authors wrote. [`structure`] tells how pages belong together. [`gallery`] and [`dev`] are pages that `--dev` adds.
//!
//! **Invariant:** knows no request and no disk; a page is rendered once for all addresses of its tenant.

pub(crate) mod describe;
pub mod dev;
pub(crate) mod gallery;
pub(crate) mod head;
pub(crate) mod links;
pub(crate) mod page;
pub(crate) mod rendered;
pub(crate) mod resolve;
pub(crate) mod structure;
pub(crate) mod values;
pub(crate) mod view;
