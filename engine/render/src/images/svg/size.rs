//! Reads and writes the intrinsic size of an SVG at its root element (SVG 2, sections 8.2 and 8.6).

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// Limit on a side, in pixels. Larger values are ignored.
const MAX_SIDE_PIXELS: f64 = 100_000.0;

/// Returns width and height in pixels. A missing side, or one in per cent, follows from the `viewBox`.
#[must_use]
pub(crate) fn size(svg: &[u8]) -> Option<(u32, u32)> {
    let mut reader = Reader::from_str(std::str::from_utf8(svg).ok()?);
    let root = loop {
        match reader.read_event().ok()? {
            Event::Start(root) | Event::Empty(root) => break root,
            Event::Eof => return None,
            _ => {}
        }
    };
    if root.local_name().as_ref() != "svg" {
        return None;
    }
    let (width, height) = (side(&root, "width"), side(&root, "height"));
    let (box_width, box_height) = view_box(&root).unzip();
    let (width, height) = match (width, height) {
        (Some(width), Some(height)) => (width, height),
        (Some(width), None) => (width, width * box_height? / box_width?),
        (None, Some(height)) => (height * box_width? / box_height?, height),
        (None, None) => (box_width?, box_height?),
    };
    Some((whole(width)?, whole(height)?))
}

/// Writes width, height and `viewBox` to the root element of an inline SVG, so that its proportions are known at every size.
#[must_use]
pub(crate) fn with_size(svg: &str, (width, height): (u32, u32)) -> String {
    let (root, inside) = svg.split_once('>').unwrap_or((svg, ""));
    let root = without(&without(root, "width"), "height");
    let start = format!("<svg width=\"{width}\" height=\"{height}\"");
    let view_box = match root.contains(" viewBox=\"") {
        true => String::new(),
        false => format!(" viewBox=\"0 0 {width} {height}\""),
    };
    let own = root.strip_prefix("<svg").unwrap_or(&root);
    format!("{start}{view_box}{own}>{inside}")
}

/// Returns a start tag without one of its attributes.
fn without(tag: &str, attribute: &str) -> String {
    let start = format!(" {attribute}=\"");
    let parts = tag.split_once(&start).and_then(|(before, rest)| {
        let (_, after) = rest.split_once('"')?;
        Some(format!("{before}{after}"))
    });
    parts.unwrap_or_else(|| tag.to_owned())
}

fn text(root: &BytesStart<'_>, name: &str) -> Option<String> {
    let attribute = root.try_get_attribute(name).ok()??;
    Some(attribute.value.into_owned())
}

fn side(root: &BytesStart<'_>, name: &str) -> Option<f64> {
    let text = text(root, name)?;
    let text = text.trim();
    number(text.strip_suffix("px").unwrap_or(text))
}

fn view_box(root: &BytesStart<'_>) -> Option<(f64, f64)> {
    let text = text(root, "viewBox")?;
    let mut numbers = text
        .split(|sign: char| sign == ',' || sign.is_whitespace())
        .filter(|part| !part.is_empty())
        .skip(2);
    Some((number(numbers.next()?)?, number(numbers.next()?)?))
}

fn number(text: &str) -> Option<f64> {
    let number: f64 = text.parse().ok()?;
    (number > 0.0 && number <= MAX_SIDE_PIXELS).then_some(number)
}

fn whole(side: f64) -> Option<u32> {
    let side = side.round().max(1.0);
    // The cast is exact: the side is between 1 and the limit.
    (side <= MAX_SIDE_PIXELS).then_some(side as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_comes_from_the_attributes_or_the_view_box() {
        for (attributes, expected) in [
            ("width=\"390\" height=\"780px\"", Some((390, 780))),
            ("viewBox=\"0 0 24 12\"", Some((24, 12))),
            ("viewBox=\"-1,-1, 24.4,12\" width=\"100%\"", Some((24, 12))),
            ("viewBox=\"0 0 24 12\" width=\"48\"", Some((48, 24))),
            ("viewBox=\"0 0 24 12\" height=\"48\"", Some((96, 48))),
            ("width=\"10\"", None),
            ("width=\"10em\" height=\"1em\"", None),
            ("width=\"0\" height=\"-1\"", None),
            ("width=\"1e30\" height=\"NaN\" viewBox=\"0 0 1 inf\"", None),
            ("viewBox=\"0 0 1e-9 9\" width=\"9\"", None),
            ("viewBox=\"a b c\"", None),
            ("", None),
        ] {
            let svg = format!("<?xml version=\"1.0\"?><!-- <svg> --><svg {attributes}><g/></svg>");
            assert_eq!(size(svg.as_bytes()), expected, "{attributes}");
        }
        for none in ["", "words", "<p width=\"1\" height=\"1\"/>", "<svg width="] {
            assert_eq!(size(none.as_bytes()), None, "{none}");
        }
    }

    #[test]
    fn written_size_replaces_sides_and_completes_the_view_box() {
        for (before, after) in [
            (
                "<svg viewBox=\"0 0 4 2\" stroke-width=\"3\" width=\"100%\"><g width=\"1\"/></svg>",
                "<svg width=\"4\" height=\"2\" viewBox=\"0 0 4 2\" stroke-width=\"3\"><g width=\"1\"/></svg>",
            ),
            (
                "<svg width=\"4px\" height=\"2\"/>",
                "<svg width=\"4\" height=\"2\" viewBox=\"0 0 4 2\"/>",
            ),
        ] {
            assert_eq!(with_size(before, (4, 2)), after);
        }
    }
}
