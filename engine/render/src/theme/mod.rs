//! A theme's templates, and the functions that they can call.
//!
//! Layouts and components are HTML; `social.svg` is an SVG.
//! Tera checks every template when it is loaded. An unknown filter, function or component is an error with its line.
//! While a page is rendered, its [`PageScope`] is in a thread-local cell, because all threads share Tera's functions.
//!
//! | module | content |
//! |---|---|
//! | [`load`] | loads templates from a theme's folder |
//! | [`section`] | turns the templates of section types into components |
//! | [`render`] | renders a template with a page's values |
//! | [`functions`] | the functions that templates can call |
//! | [`escaping`] | the filters by which UI strings stay text |
//! | [`ui_strings`] | the UI strings of a page |
//! | [`language`] | UI strings, dates, numbers and lists in a language |
//! | [`theme_files`] | the theme's public files and its styles |
//! | [`checks`] | warnings about a theme's own files |
//! | [`error`] | Tera's errors with places in the theme |

mod checks;
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
pub(crate) use render::{PageScope, asset_href};
pub(super) use render::{SOCIAL, asset_of};
pub(super) use section::EXAMPLE;
