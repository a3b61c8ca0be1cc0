//! What diagnostics say, in one line each.

/// So much of a line says which one it is.
const WIDTH: usize = 72;

/// For diagnostics of which a tenant has many at once: the file, the line's number, and `length` characters of the line from `column`, which counts from 1.
#[must_use]
pub(super) fn title(file: &str, line: usize, text: &str, column: usize, length: usize) -> String {
    let words = text.chars().skip(column.saturating_sub(1));
    let shown: String = words.take(length.min(WIDTH)).collect();
    let dots = if length > WIDTH { "..." } else { "" };
    format!("{file}:{line}: {shown}{dots}")
}

/// What an author wrote may hold line ends and other characters that a terminal or a log obeys.
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

/// A text that quotes a whole file would be no help.
pub(super) fn clipped(text: String) -> String {
    const WIDTH: usize = 1_000;
    match text.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
