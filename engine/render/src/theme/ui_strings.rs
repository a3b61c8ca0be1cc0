//! The UI strings of one page, which must stay text in markup.
//!
//! **Invariant:** knows no theme and no key.

use std::collections::BTreeSet;

use crate::markdown::escape::escape;

/// The UI strings of one page that contain characters of HTML syntax.
#[derive(Debug, Clone, Default)]
pub(crate) struct UiStrings(BTreeSet<String>);

impl UiStrings {
    /// Adds a UI string that a template received.
    pub(super) fn add(&mut self, text: &str) {
        if text.contains(['<', '>', '&', '"']) {
            self.0.insert(text.to_owned());
        }
    }

    /// Escapes the UI strings within `markup`.
    pub(super) fn escaped(&self, markup: &str) -> String {
        let mut longest_first: Vec<&String> = self.0.iter().collect();
        longest_first.sort_by_key(|text| std::cmp::Reverse(text.len()));
        let texts = longest_first.into_iter();
        texts.fold(markup.to_owned(), |markup, text| {
            markup.replace(text, &escape(text))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ui_strings_in_markup_are_escaped() {
        let mut ui_strings = UiStrings::default();
        for text in ["Copy", "<b>", "Terms & <b>Conditions</b>"] {
            ui_strings.add(text);
        }
        for (markup, escaped) in [
            ("<p>Copy</p>", "<p>Copy</p>"),
            ("<p><b></p>", "<p>&lt;b&gt;</p>"),
            (
                "<p>Terms & <b>Conditions</b></p>",
                "<p>Terms &amp; &lt;b&gt;Conditions&lt;/b&gt;</p>",
            ),
        ] {
            assert_eq!(ui_strings.escaped(markup), escaped);
        }
    }
}
