//! How much work a drawing is, told before it is drawn: a drawing of a few lines can ask for more than a machine can do.
//!
//! Elements may refer to others (`<use href="#a">`, `fill="url(#b)"`), which may refer on, so that each step doubles what is drawn. The weight of an element is one, and that of its children, and that of what it refers to.
//! Effects that look at many pixels for each one are refused, since no weight bounds them.

use std::collections::HashMap;

use resvg::usvg::roxmltree::{Document, Node, NodeId};

/// The most that a drawing may weigh. The largest of the theme's has some two hundred elements.
const HEAVIEST: u64 = 10_000;
/// The most characters of a drawing.
const LONGEST: usize = 1 << 20;
/// How many elements may stand or refer within one another.
const DEEPEST: usize = 200;
/// What an effect on a whole area weighs, compared to a shape.
const AREA: u64 = 50;
const REFUSED: [&str; 4] = [
    "feConvolveMatrix",
    "feImage",
    "feMorphology",
    "feTurbulence",
];

/// Why a drawing is too much work, with the line and column of the element, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::compile) struct TooHeavy {
    pub(in crate::compile) message: String,
    pub(in crate::compile) place: Option<(usize, usize)>,
}

/// Weighs a drawing.
pub(in crate::compile) fn check(svg: &str) -> Result<(), TooHeavy> {
    let whole = |message: String| TooHeavy {
        message,
        place: None,
    };
    if svg.len() > LONGEST {
        return Err(whole(format!(
            "the drawing has {} bytes, more than the {LONGEST} that one may have",
            svg.len()
        )));
    }
    let document = Document::parse(svg).map_err(|error| TooHeavy {
        message: format!("the drawing is no XML: {error}"),
        place: Some((error.pos().row as usize, error.pos().col as usize)),
    })?;
    let elements = || document.descendants().filter(Node::is_element);
    let mut scale = Scale {
        by_id: elements()
            .filter_map(|node| Some((node.attribute("id")?, node)))
            .collect(),
        by_style: elements()
            .filter(|node| node.has_tag_name("style") || node.tag_name().name() == "style")
            .flat_map(|node| references(node.text().unwrap_or_default()))
            .collect(),
        known: HashMap::new(),
    };
    let at = |node: Node<'_, '_>, message: String| {
        let place = document.text_pos_at(node.range().start);
        TooHeavy {
            message,
            place: Some((place.row as usize, place.col as usize)),
        }
    };
    for node in elements() {
        let name = node.tag_name().name();
        if REFUSED.contains(&name) {
            return Err(at(
                node,
                format!("`{name}` is more work than a drawing may ask for"),
            ));
        }
    }
    match scale.weigh(document.root_element(), 0) {
        Ok(weight) if weight <= HEAVIEST => Ok(()),
        Ok(weight) => Err(at(
            document.root_element(),
            format!(
                "the drawing comes to {weight} elements with what they refer to, more than {HEAVIEST}"
            ),
        )),
        Err(node) => Err(at(
            node,
            format!(
                "more than {DEEPEST} elements stand in or refer to one another here, or they do so in a circle"
            ),
        )),
    }
}

struct Scale<'d, 'i> {
    by_id: HashMap<&'d str, Node<'d, 'i>>,
    /// What the style sheet refers to: any element with a class may.
    by_style: Vec<&'d str>,
    known: HashMap<NodeId, u64>,
}

impl<'d, 'i> Scale<'d, 'i> {
    fn weigh(&mut self, node: Node<'d, 'i>, depth: usize) -> Result<u64, Node<'d, 'i>> {
        if let Some(weight) = self.known.get(&node.id()) {
            return Ok(*weight);
        }
        if depth > DEEPEST {
            return Err(node);
        }
        let is_effect = node.tag_name().name().starts_with("fe");
        let has_area = ["filter", "mask", "opacity", "stroke-dasharray"]
            .iter()
            .any(|name| node.has_attribute(*name));
        let mut weight = if is_effect || has_area { AREA } else { 1 };
        for child in node.children().filter(Node::is_element) {
            weight = weight.saturating_add(self.weigh(child, depth + 1)?);
        }
        let mut named: Vec<&'d str> = Vec::new();
        for attribute in node.attributes() {
            let value = attribute.value();
            match value.strip_prefix('#') {
                Some(id) if attribute.name() == "href" => named.push(id),
                _ => named.extend(references(value)),
            }
        }
        if node.has_attribute("class") {
            named.extend(&self.by_style);
        }
        for id in named {
            if let Some(target) = self.by_id.get(id).copied() {
                weight = weight.saturating_add(self.weigh(target, depth + 1)?);
            }
        }
        self.known.insert(node.id(), weight);
        Ok(weight)
    }
}

/// Every `url(#id)` in a text.
fn references(text: &str) -> impl Iterator<Item = &str> {
    text.split("url(").skip(1).filter_map(|rest| {
        let inside = rest.split(')').next()?;
        inside.trim().trim_matches(['"', '\'']).strip_prefix('#')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn svg(inner: &str) -> String {
        format!("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 9 9\">\n{inner}</svg>")
    }

    /// Elements of which each draws the one before twice.
    fn doubled(reference: impl Fn(usize) -> String) -> String {
        let steps =
            (1..40).map(|step| format!("<g id=\"a{step}\">{0}{0}</g>\n", reference(step - 1)));
        svg(&format!(
            "<path id=\"a0\" d=\"M0 0h9\"/>{}",
            steps.collect::<String>()
        ))
    }

    #[test]
    fn what_doubles_at_every_step_is_too_heavy() {
        for text in [
            doubled(|step| format!("<use href=\"#a{step}\"/>")),
            doubled(|step| format!("<path fill=\"url(#a{step})\" d=\"M0 0h9\"/>")),
            doubled(|step| format!("<path style=\"fill: url('#a{step}')\" d=\"M0 0h9\"/>")),
        ] {
            let problem = check(&text).expect_err("too heavy");
            assert!(problem.message.contains("more than 10000"), "{problem:?}");
        }
    }

    #[test]
    fn circles_deep_nests_and_wide_effects_are_refused_where_they_stand() {
        let circle = svg("<g id=\"a\"><use href=\"#a\"/></g>");
        assert_eq!(
            check(&circle)
                .expect_err("a circle")
                .place
                .map(|place| place.0),
            Some(2)
        );
        let deep = svg(&format!("{}{}", "<g>".repeat(300), "</g>".repeat(300)));
        assert!(check(&deep).is_err());
        let wide = svg("<filter id=\"a\"><feMorphology radius=\"999\"/></filter>");
        assert!(
            check(&wide)
                .expect_err("wide")
                .message
                .contains("`feMorphology`")
        );
        let laughs = "<!DOCTYPE svg [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\"><!ENTITY c \"&b;&b;&b;&b;&b;&b;&b;&b;\"><!ENTITY d \"&c;&c;&c;&c;&c;&c;&c;&c;\"><!ENTITY e \"&d;&d;&d;&d;&d;&d;&d;&d;\">]><svg xmlns=\"http://www.w3.org/2000/svg\"><text>&e;&e;&e;</text></svg>";
        assert!(check(laughs).is_err());
    }

    #[test]
    fn a_drawing_with_gradients_is_light() {
        let text = svg(
            "<style>.a{fill:url(#g)}</style><linearGradient id=\"g\"><stop/></linearGradient><path class=\"a\" d=\"M0 0h9\"/><use href=\"#none\"/>",
        );
        assert_eq!(check(&text), Ok(()));
    }
}
