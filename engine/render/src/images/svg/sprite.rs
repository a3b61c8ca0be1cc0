//! Drawings of a page that come after its first view, in one file that browsers keep.
//!
//! In the page stands an `<svg>` that shows a part of the file (SVG 2, section 5.5, `use`). What it inherits it hands on, custom properties, too, but no rule of the page's style reaches into the part.

use bytes::Bytes;

use crate::resources::asset::Asset;

/// Stands in a page for the address of its file, until that is known.
pub(crate) const FILE_MARK: &str = "<!--drawings-->";

/// What the file is called.
const NAME: &str = "drawings.svg";

/// The drawings of a page that are shown so, each once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sprite(Vec<String>);

impl Sprite {
    /// Takes the parts out of a drawing. One that has none stays as it is.
    pub(crate) fn take(&mut self, drawing: &str) -> String {
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

    /// The file, if the page has such drawings.
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
    fn a_drawing_that_is_shown_twice_is_in_the_file_once() {
        let mut apart = Sprite::default();
        let house = "<svg class=\"a\" fill=\"none\">\n<path d=\"M0 0\"/>\n</svg>\n";
        let shown = "<svg class=\"a\" fill=\"none\"><use href=\"<!--drawings-->#d0\"/></svg>";
        assert_eq!(apart.take(house), shown);
        assert_eq!(
            apart.take("<svg><path/></svg>"),
            "<svg><use href=\"<!--drawings-->#d1\"/></svg>"
        );
        assert_eq!(apart.take(house), shown);
        let file = apart.file().expect("a file");
        assert!(file.hashed_name.starts_with("drawings.") && file.hashed_name.ends_with(".svg"));
        assert_eq!(
            file.bytes,
            "<svg xmlns=\"http://www.w3.org/2000/svg\"><g id=\"d0\">\n<path d=\"M0 0\"/>\n</g><g id=\"d1\"><path/></g></svg>\n"
        );
    }

    #[test]
    fn what_has_no_parts_stays_where_it_is() {
        let mut apart = Sprite::default();
        assert_eq!(apart.take("<svg class=\"a\"/>"), "<svg class=\"a\"/>");
        assert_eq!(apart.take(""), "");
        assert!(apart.file().is_none());
    }
}
