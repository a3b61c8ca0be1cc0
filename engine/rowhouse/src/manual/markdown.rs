//! Parts of generated Markdown.
//!
//! **Invariant:** knows no page.

/// Escapes each `<` that would begin an HTML element. Code and URLs in angle brackets stay unchanged.
pub(super) fn prose(text: &str) -> String {
    let pieces = text.split('`').enumerate().map(|(index, piece)| {
        if index % 2 == 1 {
            return piece.to_owned();
        }
        piece.replace('<', "\\<").replace("\\<http", "<http")
    });
    pieces.collect::<Vec<_>>().join("`")
}

/// Returns a code block.
pub(super) fn block(language: &str, code: &str) -> String {
    format!("```{language}\n{}\n```\n\n", code.trim_end())
}

/// Returns an entry of a definition list.
pub(super) fn definition(term: &str, meaning: &str) -> String {
    let mut paragraphs = meaning.split("\n\n").map(|part| part.replace('\n', " "));
    let first = paragraphs.next().unwrap_or_default();
    let rest: String = paragraphs.map(|part| format!("\n\n    {part}")).collect();
    format!("{term}\n: {first}{rest}\n\n")
}

/// Removes the full stop at the end, so that the sentence can continue.
pub(super) fn open(text: &str) -> &str {
    text.strip_suffix('.').unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_html_is_escaped() {
        assert_eq!(prose("`<id>` of <id>"), "`<id>` of \\<id>");
        assert_eq!(prose("see <https://a.example>"), "see <https://a.example>");
    }

    #[test]
    fn definition_keeps_its_paragraphs() {
        assert_eq!(
            definition("a", "One\ntwo.\n\nThree."),
            "a\n: One two.\n\n    Three.\n\n"
        );
    }
}
