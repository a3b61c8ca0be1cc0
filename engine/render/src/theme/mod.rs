//! A theme's templates, and the functions that they can call.
//!
//! Layouts and components are HTML; `social.svg` is the one drawing among them.
//! Tera checks every template when it is added: an unknown filter, function or component is found at load, with its line.
//! While a page is rendered, its [`Scope`] lies in a thread-local cell, because Tera's functions are shared by all threads.
//!
//! | module | what |
//! |---|---|
//! | [`load`] | a theme's folder becomes templates |
//! | [`section`] | the templates of section types become components |
//! | [`render`] | a template and a view become a page |
//! | [`functions`] | what templates can call |
//! | [`escaping`] | UI strings stay text, whatever a template does |
//! | [`ui_strings`] | the UI strings of a page |
//! | [`error`] | Tera's errors with their places in the theme |

mod error;
mod escaping;
mod functions;
pub(crate) mod language;
mod load;
mod render;
mod section;
pub(crate) mod theme_files;
mod ui_strings;

pub(super) use functions::drawing_of;
pub use render::Templates;
pub(super) use render::{SOCIAL, asset_of};
pub(crate) use render::{Scope, asset_href};
pub(super) use section::EXAMPLE;
