//! Single-line forms of the texts in diagnostics.

/// The number of characters of a line that suffice to recognise it.
const MAX_WIDTH: usize = 72;

/// Returns a one-line title for diagnostics that are numerous: the file, the line number, and `length` characters of the line from `column`, counted from 1.
#[must_use]
pub(super) fn title(file: &str, line: usize, text: &str, column: usize, length: usize) -> String {
    let words = text.chars().skip(column.saturating_sub(1));
    let shown: String = words.take(length.min(MAX_WIDTH)).collect();
    let dots = if length > MAX_WIDTH { "..." } else { "" };
    format!("{file}:{line}: {shown}{dots}")
}

/// Escapes control characters, so that an author's text cannot break lines or control a terminal.
pub(super) fn escape_control_characters(text: String) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        match character.is_control() {
            true => line.extend(character.escape_default()),
            false => line.push(character),
        }
    }
    line
}

/// Shortens a text to 1,000 characters. A message that quotes an entire file would not help.
pub(super) fn shorten(text: String) -> String {
    const MAX_CHARACTERS: usize = 1_000;
    match text.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
