//! Tests with SVGs that exceed the limits, and with realistic SVGs.

use super::*;
use crate::images::svg::fonts::Fonts;
use crate::images::{centred, check, read};

const FULL: &str = "d=\"M0 0H512V512H0z\"";

fn svg(inner: &str) -> String {
    format!("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 512 512\">\n{inner}</svg>")
}

fn nested(count: usize, opening: &str) -> String {
    let (begin, end) = (opening.repeat(count), "</g>".repeat(count));
    format!("{begin}<path {FULL}/>{end}")
}

fn problem(text: &str) -> Option<String> {
    let checked = check(&svg(text), &Fonts::default(), (512, 512));
    checked.err().map(|heavy| heavy.message)
}

#[test]
fn nested_layers_are_refused_in_every_notation() {
    for text in [
        nested(180, "<g opacity=\".9\">"),
        nested(180, "<g style=\"opacity:.9\">"),
        format!(
            "<style>.a{{opacity:.9}}</style>{}",
            nested(180, "<g class=\"a\">")
        ),
        format!(
            "<style>g{{mix-blend-mode:multiply}}</style>{}",
            nested(180, "<g>")
        ),
        format!(
            "<style>svg g{{isolation:isolate}}</style>{}",
            nested(180, "<g>")
        ),
        format!(
            "<clipPath id=\"a\"><path {FULL}/></clipPath><style>g{{clip-path:url(#a)}}</style>{}",
            nested(180, "<g>")
        ),
        format!(
            "<mask id=\"a\"><path {FULL}/></mask>{}",
            nested(80, "<g mask=\"url(#a)\">")
        ),
        // Few layers, but far larger than the image.
        format!(
            "<g opacity=\".9\"><g opacity=\".9\"><g opacity=\".9\"><path d=\"M-9999-9999H9999V9999z\"/><path {FULL}/></g></g></g>"
        ),
        // The tile of a pattern.
        format!(
            "<pattern id=\"a\" width=\"9000\" height=\"9000\" patternUnits=\"userSpaceOnUse\"><path {FULL}/></pattern><path fill=\"url(#a)\" {FULL}/>"
        ),
        format!(
            "<pattern id=\"a\" width=\"9\" height=\"9\" patternTransform=\"scale(1000)\" patternUnits=\"userSpaceOnUse\"><path {FULL}/></pattern><path fill=\"url(#a)\" {FULL}/>"
        ),
        // The primitives of a filter.
        format!(
            "<filter id=\"a\">{}</filter><path filter=\"url(#a)\" {FULL}/>",
            "<feOffset dx=\"1\"/>".repeat(70)
        ),
    ] {
        let message = problem(&text).unwrap_or_else(|| panic!("taken: {text}"));
        assert!(message.contains("more than 64 MiB"), "{message}\n{text}");
    }
}

#[test]
fn costly_paths_dashes_and_areas_are_refused() {
    let spikes: String = (0..20_000)
        .map(|step| format!("L{} {} ", step % 512, step % 2 * 512))
        .collect();
    let stops: String = (0..100)
        .map(|step| format!("<stop offset=\".{step:02}\"/>"))
        .collect();
    let many = |path: &str| format!("<path {path} {FULL}/>").repeat(4500);
    for text in [
        many(""),
        format!("<path d=\"M0 0{spikes}\"/>"),
        format!(
            "<path fill=\"none\" stroke=\"red\" stroke-width=\"90\" d=\"M0 0{}\"/>",
            &spikes[..spikes.len() / 2]
        ),
        format!("<path fill=\"none\" stroke=\"red\" stroke-dasharray=\".0001\" {FULL}/>"),
        format!(
            "<style>path{{fill:none;stroke:red;stroke-dasharray:.01 .01}}</style>{}",
            many("")
        ),
        format!(
            "<radialGradient id=\"a\">{stops}</radialGradient><g fill=\"url(#a)\">{}</g>",
            many("")
        ),
        format!(
            "<pattern id=\"a\" width=\"1\" height=\"1\" patternUnits=\"userSpaceOnUse\"><path d=\"M0 0h1v1z\"/></pattern><g fill=\"url(#a)\">{}</g>",
            format!("<path {FULL}/>").repeat(90)
        ) + &many(""),
        format!(
            "<filter id=\"a\"><feGaussianBlur stdDeviation=\"9\"/></filter>{}",
            format!("<path filter=\"url(#a)\" {FULL}/>").repeat(20)
        ),
    ] {
        let message = problem(&text).unwrap_or_else(|| panic!("taken: {text:.200}"));
        assert!(message.contains("million steps"), "{message}\n{text:.200}");
    }
}

#[test]
fn ordinary_svgs_are_accepted() {
    for text in [
            nested(10, "<g opacity=\".9\">"),
            format!("<path {FULL}/>").repeat(500),
            format!(
                "<clipPath id=\"a\"><circle r=\"9\"/></clipPath>{}",
                "<g clip-path=\"url(#a)\"><path d=\"M0 0h40v40\"/></g>".repeat(500)
            ),
            format!(
                "<filter id=\"a\"><feDropShadow stdDeviation=\"9\"/></filter><path filter=\"url(#a)\" {FULL}/>"
            ),
            "<path stroke=\"red\" stroke-width=\"4\" stroke-dasharray=\"4 2\" d=\"M0 0C512 0 0 512 512 512\"/>"
                .repeat(20),
            // The renderer skips paths of infinite size.
            "<path stroke=\"red\" stroke-width=\"1e38\" transform=\"scale(1e30)\" d=\"M0 0H1e38V1e38\"/>".to_owned(),
        ] {
            assert_eq!(problem(&text), None, "{text:.200}");
        }
}

/// Compares the computed size of a layer with the memory that the renderer allocates, which is nearly all for pixels.
#[test]
fn computed_layer_size_equals_the_allocated_one() {
    let text = svg(&nested(2, "<g opacity=\".9\">"));
    let tree = read(&text, &Fonts::default()).expect("an SVG");
    let (width, height) = (300, 300);
    let place = centred(&tree, width, height);
    let mut pixmap = resvg::tiny_skia::Pixmap::new(width, height).expect("an image");
    let counted = allocation_counter::measure(|| {
        resvg::render(&tree, place, &mut pixmap.as_mut());
    });
    let layers = 2 * 304 * 304 * PIXEL_BYTES;
    assert!(counted.bytes_max >= layers, "{counted:?}");
    let (layer, ..) = tree
        .root()
        .children()
        .iter()
        .find_map(|node| match node {
            Node::Group(group) => layer(group, IntRect::from_xywh(-600, -600, 1500, 1500)?, place),
            _ => None,
        })
        .expect("a layer");
    assert_eq!((layer.width, layer.height), (304, 304));
}
