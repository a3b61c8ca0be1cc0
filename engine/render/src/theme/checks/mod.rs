//! Warnings about the files of a theme's own folder. The files of a parent are checked with the parent.
//!
//! | module | checks |
//! |---|---|
//! | [`markup`] | the Content Security Policy of pages allows the markup of the templates |
//! | [`custom_properties`] | each custom property that a file uses is defined |
//! | [`manifest`] | preloaded fonts, and the contrast of roles |
//!
//! **Invariant:** knows no tenant. The theme stays valid.

mod custom_properties;
mod manifest;
mod markup;

use super::escaping;
use content::report::Diagnostic;
use content::theme::Theme;

/// Returns the warnings about a theme.
pub(super) fn check(theme: &Theme) -> Vec<Diagnostic> {
    let mut found = manifest::check(theme);
    found.extend(custom_properties::check(theme));
    let templates = theme.own_texts();
    for (path, text) in templates.filter(|(path, _)| path.ends_with(".html")) {
        let file = theme.name_of(path);
        found.extend(escaping::check(&file, text));
        found.extend(markup::check(&file, text));
    }
    found
}
