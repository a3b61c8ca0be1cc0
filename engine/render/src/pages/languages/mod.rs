//! The languages of a page: its direction, its translations, and the languages of its links.
//!
//! - [`direction`] names the languages that are written from right to left.
//! - [`translations`] lists the translations of a page for search engines, and [`language_switcher`] for the theme.
//! - [`link_languages`] adds `hreflang` to links.
//!
//! **Invariant:** contains no UI string.

pub(crate) mod direction;
pub(crate) mod language_switcher;
pub(crate) mod link_languages;
pub(crate) mod translations;
