//! How much work a drawing is, told before it is drawn: a drawing of a few lines can ask for more than a machine can do.
//!
//! This looks at the text, before the renderer reads it: elements may refer to others (`<use href="#a">`, `fill="url(#b)"`, a rule of a style sheet), which may refer on, so that each step doubles what is read. The weight of an element is one, and something for its text and its attributes, and that of its children, and that of what it refers to.
//! Effects that look at many pixels for each one are refused, since no weight bounds them. What the drawing takes in pixels is weighed after that, by [`cost`](crate::images::svg::cost).

use std::collections::HashMap;

use resvg::usvg::roxmltree::{Document, Node, NodeId};
use simplecss::{AttributeOperator, Element, PseudoClass, StyleSheet};

/// The most that a drawing may weigh. The largest of the theme's has some two hundred elements.
const MAX_WEIGHT: u64 = 10_000;
/// The most characters of a drawing.
const MAX_CHARACTERS: usize = 1 << 20;
/// How many elements may stand or refer within one another.
const MAX_DEPTH: usize = 200;
/// What an effect on a whole area weighs, compared to a shape.
const AREA: u64 = 50;
/// How many bytes of an element's attributes weigh as much as an element: the points of a path are drawn, too.
const ATTRIBUTES: usize = 256;
/// The same for characters of text, each of which becomes a path.
const TEXT: usize = 8;
/// The most stops of a gradient: every pixel looks at them all.
const STOPS: usize = 100;
/// The most comparisons of a style sheet's rules with elements.
const COMPARISONS: u64 = 20_000_000;
/// Markers are copied to each corner of each path below the element that names them.
const REFUSED: [&str; 5] = [
    "feConvolveMatrix",
    "feImage",
    "feMorphology",
    "feTurbulence",
    "marker",
];

/// Why a drawing is too much work, with the line and column of the element, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TooHeavy {
    pub(crate) message: String,
    pub(crate) place: Option<(usize, usize)>,
}

/// Weighs a drawing.
pub(crate) fn check(svg: &str) -> Result<(), TooHeavy> {
    let whole = |message: String| TooHeavy {
        message,
        place: None,
    };
    if svg.len() > MAX_CHARACTERS {
        return Err(whole(format!(
            "the drawing has {} bytes, more than the {MAX_CHARACTERS} that one may have",
            svg.len()
        )));
    }
    let document = Document::parse(svg).map_err(|error| TooHeavy {
        message: format!("the drawing is no XML: {error}"),
        place: Some((error.pos().row as usize, error.pos().col as usize)),
    })?;
    let elements = || document.descendants().filter(Node::is_element);
    let mut style = StyleSheet::new();
    for node in elements().filter(|node| node.tag_name().name() == "style") {
        style.parse_more(node.text().unwrap_or_default());
    }
    let mut scale = Scale {
        by_id: HashMap::new(),
        style,
        known: HashMap::new(),
    };
    for node in elements() {
        if let Some(id) = node.attribute("id") {
            scale.by_id.entry(id).or_default().push(node);
        }
    }
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
        let stops = node.children().filter(Node::is_element).count();
        if name.ends_with("Gradient") && stops > STOPS {
            return Err(at(
                node,
                format!("the gradient has {stops} stops, more than the {STOPS} that one may have"),
            ));
        }
    }
    let root = document.root_element();
    let comparisons = scale.comparisons(elements().count());
    if comparisons > COMPARISONS {
        return Err(at(
            root,
            format!(
                "the drawing's style sheet comes to {comparisons} comparisons with its elements, more than {COMPARISONS}: give it fewer and shorter rules"
            ),
        ));
    }
    match scale.weigh(root, 0) {
        Ok(weight) if weight <= MAX_WEIGHT => Ok(()),
        Ok(weight) => Err(at(
            root,
            format!(
                "the drawing comes to {weight} elements with what they refer to, more than {MAX_WEIGHT}"
            ),
        )),
        Err(node) => Err(at(
            node,
            format!(
                "more than {MAX_DEPTH} elements stand in or refer to one another here, or they do so in a circle"
            ),
        )),
    }
}

struct Scale<'d, 'i> {
    /// Of several elements with one id, each may be the one that counts.
    by_id: HashMap<&'d str, Vec<Node<'d, 'i>>>,
    style: StyleSheet<'d>,
    known: HashMap<NodeId, u64>,
}

impl<'d, 'i> Scale<'d, 'i> {
    /// How often a rule is held against an element, at most: one that names what stands around (`g path`) against all of that, too.
    fn comparisons(&self, elements: usize) -> u64 {
        let rules = self.style.rules.iter().map(|rule| {
            let context = rule.selector.to_string();
            let context = context
                .split([' ', '>', '+'])
                .filter(|part| !part.is_empty());
            let context =
                (MAX_DEPTH as u64).saturating_pow(context.count().saturating_sub(1) as u32);
            context.saturating_add(rule.declarations.len() as u64)
        });
        let rules = rules.fold(0, u64::saturating_add);
        rules.saturating_mul(elements as u64)
    }

    fn weigh(&mut self, node: Node<'d, 'i>, depth: usize) -> Result<u64, Node<'d, 'i>> {
        if let Some(weight) = self.known.get(&node.id()) {
            return Ok(*weight);
        }
        if depth > MAX_DEPTH {
            return Err(node);
        }
        let is_effect = node.tag_name().name().starts_with("fe");
        let has_area = ["filter", "mask", "opacity", "stroke-dasharray"]
            .iter()
            .any(|name| node.has_attribute(*name));
        let mut weight = if is_effect || has_area { AREA } else { 1 };
        let attributes: usize = node.attributes().map(|own| own.value().len()).sum();
        let text = node.children().filter_map(|child| child.text());
        let text: usize = match node.tag_name().name() {
            "style" => 0,
            _ => text.map(|text| text.trim().len()).sum(),
        };
        weight += (attributes / ATTRIBUTES + text / TEXT) as u64;
        for child in node.children().filter(Node::is_element) {
            weight = weight.saturating_add(self.weigh(child, depth + 1)?);
        }
        let below = weight;
        for id in self.named(node) {
            for target in self.by_id.get(id).cloned().unwrap_or_default() {
                let mut added = self.weigh(target, depth + 1)?;
                // Everything below inherits it, and has a copy of its own.
                if target.tag_name().name() == "pattern" {
                    added = added.saturating_mul(below);
                }
                weight = weight.saturating_add(added);
            }
        }
        self.known.insert(node.id(), weight);
        Ok(weight)
    }

    /// What an element refers to, by its attributes or by the style sheet.
    fn named(&self, node: Node<'d, 'i>) -> Vec<&'d str> {
        let mut named: Vec<&'d str> = Vec::new();
        for attribute in node.attributes() {
            let value = attribute.value();
            match value.strip_prefix('#') {
                Some(id) if attribute.name() == "href" => named.push(id),
                _ => named.extend(references(value)),
            }
        }
        for rule in &self.style.rules {
            let declarations = rule.declarations.iter();
            let mut found = declarations
                .flat_map(|declaration| references(declaration.value))
                .peekable();
            if found.peek().is_some() && rule.selector.matches(&Styled(node)) {
                named.extend(found);
            }
        }
        named
    }
}

/// An element as a style sheet sees it, in the way of the renderer.
struct Styled<'d, 'i>(Node<'d, 'i>);

impl Element for Styled<'_, '_> {
    fn parent_element(&self) -> Option<Self> {
        self.0.parent_element().map(Styled)
    }

    fn prev_sibling_element(&self) -> Option<Self> {
        self.0.prev_sibling_element().map(Styled)
    }

    fn has_local_name(&self, name: &str) -> bool {
        self.0.tag_name().name() == name
    }

    fn attribute_matches(&self, name: &str, operator: AttributeOperator<'_>) -> bool {
        let value = self.0.attribute(name);
        value.is_some_and(|value| operator.matches(value))
    }

    fn pseudo_class_matches(&self, class: PseudoClass<'_>) -> bool {
        class == PseudoClass::FirstChild && self.prev_sibling_element().is_none()
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
        let rules: String = (1..40)
            .map(|step| format!("#a{step} path{{fill:url(#a{})}}", step - 1))
            .collect();
        let styled = doubled(|_| "<path d=\"M0 0h9\"/>".to_owned()).replace(
            "viewBox=\"0 0 9 9\">",
            &format!("viewBox=\"0 0 9 9\"><style>{rules}</style>"),
        );
        for text in [
            doubled(|step| format!("<use href=\"#a{step}\"/>")),
            doubled(|step| format!("<path fill=\"url(#a{step})\" d=\"M0 0h9\"/>")),
            doubled(|step| format!("<path style=\"fill: url('#a{step}')\" d=\"M0 0h9\"/>")),
            styled,
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

    #[test]
    fn long_texts_and_paths_that_are_drawn_again_and_again_are_too_heavy() {
        let path = format!("<path id=\"a\" d=\"M0 0{}\"/>", "h9v9".repeat(10_000));
        assert_eq!(check(&svg(&path)), Ok(()));
        let copies = "<use href=\"#a\"/>".repeat(100);
        let text = format!("<text>{}</text>", "word ".repeat(50_000));
        let pattern = "<pattern id=\"p\"><path d=\"M0 0h9\"/><path d=\"M0 0h9\"/></pattern>";
        let inherited = format!(
            "{pattern}<g fill=\"url(#p)\">{}</g>",
            "<path d=\"M0 0h9\"/>".repeat(5000)
        );
        for text in [format!("{path}{copies}"), text, inherited] {
            let problem = check(&svg(&text)).expect_err("too heavy");
            assert!(problem.message.contains("more than 10000"), "{problem:?}");
        }
    }

    #[test]
    fn markers_long_gradients_and_endless_style_sheets_are_refused() {
        let marker = svg("<marker id=\"a\"><path d=\"M0 0h9\"/></marker>");
        let gradient = svg(&format!(
            "<linearGradient>{}</linearGradient>",
            "<stop/>".repeat(101)
        ));
        let rules = svg(&format!(
            "<style>{}</style>{}",
            "a b c d{fill:red}".repeat(1000),
            "<g/>".repeat(1000)
        ));
        for (text, words) in [
            (marker, "`marker`"),
            (gradient, "101 stops"),
            (rules, "comparisons"),
        ] {
            let problem = check(&text).expect_err("too heavy");
            assert!(problem.message.contains(words), "{problem:?}");
            assert!(problem.place.is_some());
        }
    }

    #[test]
    fn of_two_elements_with_one_id_each_counts() {
        let heavy = format!("<g id=\"a\">{}</g>", "<path d=\"M0 0h9\"/>".repeat(1000));
        let light = "<g id=\"a\"/>";
        let uses = "<use href=\"#a\"/>".repeat(20);
        assert!(check(&svg(&format!("{heavy}{light}{uses}"))).is_err());
        assert!(check(&svg(&format!("{light}{heavy}{uses}"))).is_err());
    }
}
