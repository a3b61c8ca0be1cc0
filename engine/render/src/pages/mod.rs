//! Renders pages: the values that templates see, the head, the links, and the bytes of each page at an address.
//!
//! [`page`] renders one page, [`rendered_pages`] all pages of a tenant. [`view`] holds the values that templates see; [`site_view`] and [`resolve`] make them of what authors wrote. [`hierarchy`] tells how pages belong together. [`gallery`] and [`dev`] are pages that `--dev` adds.
//!
//! **Invariant:** knows no request and no disk; a page is rendered once for all addresses of its tenant.

pub(crate) mod data_walk;
pub mod dev;
pub(crate) mod gallery;
pub(crate) mod head;
pub(crate) mod hierarchy;
pub(crate) mod links;
pub(crate) mod page;
pub(crate) mod rendered_pages;
pub(crate) mod resolve;
pub(crate) mod site_view;
pub(crate) mod view;
