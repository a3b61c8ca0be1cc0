//! Renders pages: template values, the head, the links, and the HTML of each page for all addresses of its tenant.
//!
//! - [`page`] renders one page, [`rendered_pages`] all pages of a tenant.
//! - [`values`] has the values that templates see.
//! - [`head`] writes the head, and [`links`] resolves links. [`languages`] has the translations of a page and the languages of its links.
//! - [`hierarchy`] finds breadcrumbs and the entries of collections.
//! - [`gallery`] and [`dev`] make the pages that `--dev` adds.
//!
//! **Invariant:** knows no request and no disk. A page is rendered once for all addresses of its tenant.

pub mod dev;
pub(crate) mod gallery;
pub(crate) mod head;
pub(crate) mod hierarchy;
pub(crate) mod languages;
pub(crate) mod links;
mod markdown_form;
mod own_style;
pub(crate) mod page;
mod placeholder_colours;
pub(crate) mod rendered_pages;
pub(crate) mod values;
