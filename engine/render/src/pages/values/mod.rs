//! The values that templates see.
//!
//! - [`view`] defines the values.
//! - [`site_view`], [`resolve`] and [`data_walk`] create them from the content.
//!
//! **Invariant:** knows no template.

pub(crate) mod data_walk;
pub(crate) mod resolve;
pub(crate) mod site_view;
pub(crate) mod view;
