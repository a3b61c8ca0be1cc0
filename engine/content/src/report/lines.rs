//! An index of the lines of a text, built once for many diagnostics.

use super::TextPosition;

/// The positions at which the lines of a text begin.
#[derive(Debug)]
pub struct LineIndex<'a> {
    text: &'a str,
    /// The byte offset at which each line begins.
    starts: Vec<usize>,
}

impl<'a> LineIndex<'a> {
    /// Builds the index of a text.
    #[must_use]
    pub fn of(text: &'a str) -> Self {
        let breaks = memchr::memchr_iter(b'\n', text.as_bytes());
        Self {
            text,
            starts: std::iter::once(0).chain(breaks.map(|at| at + 1)).collect(),
        }
    }

    /// Returns the number, from 1, of the line that contains a byte offset.
    #[must_use]
    pub fn number(&self, byte: usize) -> usize {
        self.starts.partition_point(|start| *start <= byte)
    }

    /// Returns the position of `length` characters from a byte offset.
    #[must_use]
    pub fn position(&self, byte: usize, length: usize) -> TextPosition {
        let line = self.number(byte);
        let start = self.starts.get(line - 1).copied().unwrap_or_default();
        let before = self.text.get(start..byte).unwrap_or_default();
        TextPosition {
            line,
            column: before.chars().count() + 1,
            length,
        }
    }

    /// Returns the number of lines.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.starts.len()
    }

    /// Returns a line by its number, from 1, without its line end. Returns an empty text if there is no such line.
    #[must_use]
    pub fn get(&self, number: usize) -> &'a str {
        let Some(start) = number.checked_sub(1).and_then(|at| self.starts.get(at)) else {
            return "";
        };
        let rest = match self.starts.get(number) {
            Some(end) => &self.text[*start..*end],
            None => &self.text[*start..],
        };
        match rest.strip_suffix('\n') {
            Some(line) => line.strip_suffix('\r').unwrap_or(line),
            None => rest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_index_matches_the_lines_of_the_text() {
        let text = "one\ntwo\r\n\nfour";
        let lines = LineIndex::of(text);
        for (index, line) in text.lines().enumerate() {
            assert_eq!(lines.get(index + 1), line);
        }
        assert_eq!((lines.get(0), lines.get(5)), ("", ""));
        for byte in 0..=text.len() {
            assert_eq!(
                lines.number(byte),
                text[..byte].matches('\n').count() + 1,
                "{byte}"
            );
        }
        let position = LineIndex::of("a\nü b").position(5, 1);
        assert_eq!((position.line, position.column), (2, 3));
    }
}
