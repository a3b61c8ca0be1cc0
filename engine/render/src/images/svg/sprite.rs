//! A file with the SVGs of a page that are below its first view, which browsers can cache.
//!
//! In their place the page has an `<svg>` that references a part of the file (SVG 2, section 5.5, `use`). The part inherits properties from that element, including custom properties, but no rule of the page's style matches inside it.

use bytes::Bytes;

use crate::resources::asset::Asset;

/// A placeholder in a page for the URL of the file, until that is known.
pub(crate) const FILE_MARK: &str = "<!--drawings-->";

/// The name of the file before hashing.
const NAME: &str = "drawings.svg";

/// The contents of the SVGs in the file, each once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sprite(Vec<String>);

impl Sprite {
    /// Moves the content of an SVG to the file. Returns the `<svg>` that references it, or the SVG itself if it is empty.
    pub(crate) fn extract(&mut self, drawing: &str) -> String {
        let parts = drawing.trim_end().strip_suffix("</svg>");
        let Some((element, parts)) = parts.and_then(|drawing| drawing.split_once('>')) else {
            return drawing.to_owned();
        };
        let known = self.0.iter().position(|known| known == parts);
        let place = known.unwrap_or_else(|| {
            self.0.push(parts.to_owned());
            self.0.len() - 1
        });
        format!("{element}><use href=\"{FILE_MARK}#d{place}\"/></svg>")
    }

    /// Returns the file, if the page has such SVGs.
    pub(crate) fn file(&self) -> Option<Asset> {
        let parts = self.0.iter().enumerate();
        let parts: String = parts
            .map(|(place, parts)| format!("<g id=\"d{place}\">{parts}</g>"))
            .collect();
        let svg = format!("<svg xmlns=\"http://www.w3.org/2000/svg\">{parts}</svg>\n");
        (!parts.is_empty()).then(|| Asset::new(NAME, Bytes::from(svg)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn svg_that_is_shown_twice_is_in_the_file_once() {
        let mut sprite = Sprite::default();
        let house = "<svg class=\"a\" fill=\"none\">\n<path d=\"M0 0\"/>\n</svg>\n";
        let shown = "<svg class=\"a\" fill=\"none\"><use href=\"<!--drawings-->#d0\"/></svg>";
        assert_eq!(sprite.extract(house), shown);
        assert_eq!(
            sprite.extract("<svg><path/></svg>"),
            "<svg><use href=\"<!--drawings-->#d1\"/></svg>"
        );
        assert_eq!(sprite.extract(house), shown);
        let file = sprite.file().expect("a file");
        assert!(file.hashed_name.starts_with("drawings.") && file.hashed_name.ends_with(".svg"));
        assert_eq!(
            file.bytes,
            "<svg xmlns=\"http://www.w3.org/2000/svg\"><g id=\"d0\">\n<path d=\"M0 0\"/>\n</g><g id=\"d1\"><path/></g></svg>\n"
        );
    }

    #[test]
    fn svg_without_content_stays_in_the_page() {
        let mut sprite = Sprite::default();
        assert_eq!(sprite.extract("<svg class=\"a\"/>"), "<svg class=\"a\"/>");
        assert_eq!(sprite.extract(""), "");
        assert!(sprite.file().is_none());
    }
}
