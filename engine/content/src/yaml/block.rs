//! Finds lines of block scalars (`text: |`) in the file that contains them.

use crate::report::{LineIndex, TextPosition};

/// Returns the position in the file of a line, from 1, of a block scalar (YAML 1.2.2, section 8.1).
///
/// `position` is the position of the value in `file`. For a value that is not a block scalar, returns `position`.
#[must_use]
pub fn position_in_block(
    file: &LineIndex<'_>,
    position: TextPosition,
    line: usize,
) -> TextPosition {
    let rest: String = file
        .get(position.line)
        .chars()
        .skip(position.column - 1)
        .collect();
    let above = file.get(position.line.saturating_sub(1));
    let (header, style) = match (rest.chars().next(), style_at_end(above)) {
        (Some(style @ ('|' | '>')), _) => (position.line, style),
        (_, Some(style)) => (position.line - 1, style),
        _ => return position,
    };
    let mut number = header + 1;
    let mut current = 1;
    if style == '|' {
        number = header + line;
    } else {
        // A folded paragraph is one line of text, on however many lines of the file.
        while current < line && number <= file.count() {
            number += 1;
            if file.get(number).trim().is_empty() {
                current += 1;
            }
        }
        while number < file.count() && file.get(number).trim().is_empty() {
            number += 1;
        }
    }
    let text = file.get(number);
    let indent = text.chars().take_while(|sign| *sign == ' ').count();
    TextPosition {
        line: number,
        column: indent + 1,
        length: text.trim().chars().count().max(1),
    }
}

/// Returns the style of a block scalar whose header ends the line: `text: |`, `- >-`.
fn style_at_end(line: &str) -> Option<char> {
    let header = match line.find(" #") {
        Some(comment) => &line[..comment],
        None => line,
    };
    let header = header.trim_end();
    let bare = header.trim_end_matches(|sign: char| sign.is_ascii_digit() || "+-".contains(sign));
    let style = bare
        .chars()
        .next_back()
        .filter(|sign| "|>".contains(*sign))?;
    let before = bare[..bare.len() - 1].trim_end();
    (before.ends_with([':', '-']) || before.is_empty()).then_some(style)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::{Node, Value, parse};

    fn line_of(yaml: &str, line: usize) -> usize {
        fn text(node: &Node) -> Option<TextPosition> {
            match &node.value {
                Value::Text(_) => Some(node.position),
                Value::Map(pairs) => pairs.iter().find_map(|(_, value)| text(value)),
                Value::List(items) => items.iter().find_map(text),
                _ => None,
            }
        }
        let node = parse(yaml, 1).expect("YAML");
        let position = text(&node).expect("a text");
        position_in_block(&LineIndex::of(yaml), position, line).line
    }

    #[test]
    fn line_of_a_block_maps_to_its_line_in_the_file() {
        let literal = "a:\n  - text: |\n      one\n\n      three\n      four\n";
        for line in [1, 3, 4] {
            assert_eq!(line_of(literal, line), line + 2, "{line}");
        }
        assert_eq!(line_of("text: |-  # why\n  one\n  two\n", 2), 3);
        let folded = "text: >\n  one\n  and one\n\n  two\n  and two\n";
        assert_eq!(line_of(folded, 1), 2);
        assert_eq!(line_of(folded, 2), 5);
        assert_eq!(line_of("text: \"one\\n\\ntwo\"\n", 3), 1);
    }
}
