//! Estimates the work of parsing an SVG from its text, before the renderer reads it. A few lines can demand more work than a machine can do.
//!
//! Elements may refer to other elements: `<use href="#a">`, `fill="url(#b)"`, or a rule of a style sheet. Chained references can double the work at each step.
//! The weight of an element is one plus an amount for its text and attributes. The weights of its children and of the elements that it refers to are added.
//!
//! Effects that read many pixels for each pixel are refused, because no weight bounds them. The cost in pixels is checked afterwards, by [`cost`](crate::images::svg::cost).

use std::collections::HashMap;

use content::report::size_text;
use resvg::usvg::roxmltree::{Document, Node, NodeId};
use simplecss::{AttributeOperator, Element, PseudoClass, StyleSheet};

/// Limit on the weight of an SVG. The largest of the theme has some two hundred elements.
const MAX_WEIGHT: u64 = 10_000;
/// Limit on the size of an SVG, in bytes.
const MAX_BYTES: usize = 1 << 20;
/// Limit on nested elements and chained references.
const MAX_DEPTH: usize = 200;
/// The weight of an effect on an area, where a shape weighs 1.
const AREA_WEIGHT: u64 = 50;
/// Bytes of attributes that weigh 1, because the points of a path are drawn, too.
const ATTRIBUTE_BYTES_PER_WEIGHT: usize = 256;
/// Bytes of text that weigh 1, because each character becomes a path.
const TEXT_BYTES_PER_WEIGHT: usize = 8;
/// Limit on the stops of a gradient. Drawing each pixel visits all of them.
const MAX_GRADIENT_STOPS: usize = 100;
/// Limit on comparisons of style rules with elements.
const MAX_COMPARISONS: u64 = 20_000_000;
/// Elements that are refused. Markers are copied to each corner of each path below the element that names them.
const REFUSED_ELEMENTS: [&str; 5] = [
    "feConvolveMatrix",
    "feImage",
    "feMorphology",
    "feTurbulence",
    "marker",
];

/// The reason why an SVG is too much work, with the line and column of the element, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WeightError {
    pub(crate) message: String,
    pub(crate) place: Option<(usize, usize)>,
}

/// Checks the weight of an SVG.
pub(crate) fn check(svg: &str) -> Result<(), WeightError> {
    let whole = |message: String| WeightError {
        message,
        place: None,
    };
    if svg.len() > MAX_BYTES {
        return Err(whole(format!(
            "the SVG has {}, more than {}",
            size_text(svg.len() as u64),
            size_text(MAX_BYTES as u64)
        )));
    }
    let document = Document::parse(svg).map_err(|error| WeightError {
        message: format!("the SVG is not valid XML: {error}"),
        place: Some((error.pos().row as usize, error.pos().col as usize)),
    })?;
    let elements = || document.descendants().filter(Node::is_element);
    let mut style = StyleSheet::new();
    for node in elements().filter(|node| node.tag_name().name() == "style") {
        style.parse_more(node.text().unwrap_or_default());
    }
    let mut scale = WeightMeter {
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
        WeightError {
            message,
            place: Some((place.row as usize, place.col as usize)),
        }
    };
    for node in elements() {
        let name = node.tag_name().name();
        if REFUSED_ELEMENTS.contains(&name) {
            return Err(at(node, format!("`{name}` takes too much work to draw")));
        }
        let stops = node.children().filter(Node::is_element).count();
        if name.ends_with("Gradient") && stops > MAX_GRADIENT_STOPS {
            return Err(at(
                node,
                format!("the gradient has {stops} stops, more than {MAX_GRADIENT_STOPS}"),
            ));
        }
    }
    let root = document.root_element();
    let comparisons = scale.comparisons(elements().count());
    if comparisons > MAX_COMPARISONS {
        return Err(at(
            root,
            format!(
                "the SVG's style sheet needs {comparisons} comparisons with elements, more than {MAX_COMPARISONS}: use fewer and shorter rules"
            ),
        ));
    }
    match scale.weigh(root, 0) {
        Ok(weight) if weight <= MAX_WEIGHT => Ok(()),
        Ok(weight) => Err(at(
            root,
            format!("the SVG has {weight} elements including references, more than {MAX_WEIGHT}"),
        )),
        Err(node) => Err(at(
            node,
            format!(
                "more than {MAX_DEPTH} elements are nested or refer to one another here, or their references are circular"
            ),
        )),
    }
}

struct WeightMeter<'d, 'i> {
    /// Elements by id. If several share an id, renderers may use any of them.
    by_id: HashMap<&'d str, Vec<Node<'d, 'i>>>,
    style: StyleSheet<'d>,
    known: HashMap<NodeId, u64>,
}

impl<'d, 'i> WeightMeter<'d, 'i> {
    /// Returns an upper bound of the comparisons of rules with elements. A rule with context, such as `g path`, is compared with the surrounding elements, too.
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
        let mut weight = if is_effect || has_area {
            AREA_WEIGHT
        } else {
            1
        };
        let attributes: usize = node.attributes().map(|own| own.value().len()).sum();
        let text = node.children().filter_map(|child| child.text());
        let text: usize = match node.tag_name().name() {
            "style" => 0,
            _ => text.map(|text| text.trim().len()).sum(),
        };
        weight += (attributes / ATTRIBUTE_BYTES_PER_WEIGHT + text / TEXT_BYTES_PER_WEIGHT) as u64;
        for child in node.children().filter(Node::is_element) {
            weight = weight.saturating_add(self.weigh(child, depth + 1)?);
        }
        let below = weight;
        for id in self.named(node) {
            for target in self.by_id.get(id).cloned().unwrap_or_default() {
                let mut added = self.weigh(target, depth + 1)?;
                // Every element below inherits the pattern and draws a copy of its own.
                if target.tag_name().name() == "pattern" {
                    added = added.saturating_mul(below);
                }
                weight = weight.saturating_add(added);
            }
        }
        self.known.insert(node.id(), weight);
        Ok(weight)
    }

    /// Returns the ids that an element refers to in its attributes or through the style sheet.
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
            if found.peek().is_some() && rule.selector.matches(&StyledElement(node)) {
                named.extend(found);
            }
        }
        named
    }
}

/// An element as style selectors see it, in the way of the renderer.
struct StyledElement<'d, 'i>(Node<'d, 'i>);

impl Element for StyledElement<'_, '_> {
    fn parent_element(&self) -> Option<Self> {
        self.0.parent_element().map(StyledElement)
    }

    fn prev_sibling_element(&self) -> Option<Self> {
        self.0.prev_sibling_element().map(StyledElement)
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

/// Returns the id of every `url(#id)` in a text.
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

    /// Builds elements that each draw the previous element twice.
    fn doubled(reference: impl Fn(usize) -> String) -> String {
        let steps =
            (1..40).map(|step| format!("<g id=\"a{step}\">{0}{0}</g>\n", reference(step - 1)));
        svg(&format!(
            "<path id=\"a0\" d=\"M0 0h9\"/>{}",
            steps.collect::<String>()
        ))
    }

    #[test]
    fn references_that_double_at_every_step_are_too_heavy() {
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
    fn cycles_deep_nesting_and_wide_effects_are_refused_with_their_place() {
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
    fn svg_with_gradients_is_light() {
        let text = svg(
            "<style>.a{fill:url(#g)}</style><linearGradient id=\"g\"><stop/></linearGradient><path class=\"a\" d=\"M0 0h9\"/><use href=\"#none\"/>",
        );
        assert_eq!(check(&text), Ok(()));
    }

    #[test]
    fn repeated_long_texts_and_paths_are_too_heavy() {
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
    fn every_element_with_a_shared_id_counts_towards_the_weight() {
        let heavy = format!("<g id=\"a\">{}</g>", "<path d=\"M0 0h9\"/>".repeat(1000));
        let light = "<g id=\"a\"/>";
        let uses = "<use href=\"#a\"/>".repeat(20);
        assert!(check(&svg(&format!("{heavy}{light}{uses}"))).is_err());
        assert!(check(&svg(&format!("{light}{heavy}{uses}"))).is_err());
    }
}
