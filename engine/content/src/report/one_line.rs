//! Single-line forms of the texts in diagnostics.

/// The number of characters of a line that suffice to recognise it.
const WIDTH: usize = 72;

/// Returns a one-line title for diagnostics that are numerous: the file, the line number, and `length` characters of the line from `column`, counted from 1.
#[must_use]
pub(super) fn title(file: &str, line: usize, text: &str, column: usize, length: usize) -> String {
    let words = text.chars().skip(column.saturating_sub(1));
    let shown: String = words.take(length.min(WIDTH)).collect();
    let dots = if length > WIDTH { "..." } else { "" };
    format!("{file}:{line}: {shown}{dots}")
}

/// Escapes control characters, so that an author's text cannot break lines or control a terminal.
pub(super) fn in_one_line(text: String) -> String {
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
pub(super) fn clipped(text: String) -> String {
    const WIDTH: usize = 1_000;
    match text.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
