//! Renders pages: template values, the head, the links, and the HTML of each page for all addresses of its tenant.
//!
//! - [`page`] renders one page, [`rendered_pages`] all pages of a tenant.
//! - [`view`] defines the values that templates see. [`site_view`], [`resolve`] and [`data_walk`] create them from the content.
//! - [`head`] writes the head, and [`links`] resolves links. [`link_languages`] adds `hreflang` to them.
//! - [`hierarchy`] finds breadcrumbs and the entries of collections.
//! - [`gallery`] and [`dev`] make the pages that `--dev` adds.
//!
//! **Invariant:** knows no request and no disk. A page is rendered once for all addresses of its tenant.

pub(crate) mod data_walk;
pub mod dev;
mod direction;
pub(crate) mod gallery;
pub(crate) mod head;
pub(crate) mod hierarchy;
mod language_switcher;
pub(crate) mod link_languages;
pub(crate) mod links;
mod markdown_form;
mod own_style;
pub(crate) mod page;
mod placeholder_colours;
pub(crate) mod rendered_pages;
pub(crate) mod resolve;
pub(crate) mod site_view;
pub(crate) mod translations;
pub(crate) mod view;
