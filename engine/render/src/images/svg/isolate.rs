//! Isolates a tenant's SVGs within pages that also contain SVGs of other tenants and the theme's elements.
//!
//! Ids and classes are shared by a complete page. An SVG must neither clash with the ids of another SVG nor match the theme's rules for the page.
//!
//! **Invariant:** accepts sanitised SVGs only ([`super::sanitise`]), and adds nothing but a prefix.

use resvg::usvg::roxmltree::{Document, Node, NodeType};

use super::{XML, text};
use crate::images::svg::weight;
use crate::markdown::escape;

/// The pages that show an SVG.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SvgContext {
    /// Pages of the SVG's own tenant.
    Own,
    /// Pages of all tenants. Their visitors bear the cost of drawing it.
    Others,
}

/// Elements refused on pages of other tenants. Their cost in a browser is not bounded, or they affect more than the SVG.
const REFUSED_ELEMENTS: [&str; 7] = [
    "animate",
    "animateMotion",
    "animateTransform",
    "filter",
    "set",
    "style",
    "textPath",
];

/// Attributes that are removed from the root, because the theme's rules could match them.
const ROOT_ATTRIBUTES: [&str; 4] = ["class", "id", "overflow", "style"];

/// Attributes that contain ids of other elements, separated by spaces (WAI-ARIA 1.2, section 6.6).
const ID_LISTS: [&str; 5] = [
    "aria-controls",
    "aria-describedby",
    "aria-details",
    "aria-labelledby",
    "aria-owns",
];

/// Rewrites an SVG for use inline in a page. `prefix` is added to its ids and to references to them.
///
/// # Errors
/// Returns the reason why pages of other tenants cannot show it.
pub(crate) fn isolate(svg: &str, prefix: &str, page: SvgContext) -> Result<String, String> {
    let is_own = page == SvgContext::Own;
    if is_own && !svg.contains(" id=\"") {
        return Ok(svg.to_owned());
    }
    let document = Document::parse(svg).map_err(|error| error.to_string())?;
    if !is_own {
        let mut elements = document.descendants().filter(Node::is_element);
        let refused = elements.find(|node| REFUSED_ELEMENTS.contains(&node.tag_name().name()));
        if let Some(node) = refused {
            return Err(format!("the SVG contains a `<{}>`", node.tag_name().name()));
        }
        weight::check(svg).map_err(|heavy| heavy.message)?;
    }
    let root = document.root_element();
    let mut written = String::with_capacity(svg.len());
    let mut open: Vec<(Node<'_, '_>, Option<Node<'_, '_>>)> = Vec::new();
    start(&mut written, root, prefix, !is_own);
    open.push((root, root.first_child()));
    while let Some((element, next)) = open.last_mut() {
        let Some(node) = *next else {
            if element.has_children() {
                written.push_str(&format!("</{}>", element.tag_name().name()));
            }
            open.pop();
            continue;
        };
        *next = node.next_sibling();
        match node.node_type() {
            NodeType::Text => written.push_str(&text(node.text().unwrap_or_default())),
            NodeType::Element => {
                start(&mut written, node, prefix, false);
                open.push((node, node.first_child()));
            }
            NodeType::Root | NodeType::Comment | NodeType::PI => {}
        }
    }
    if svg.ends_with('\n') {
        written.push('\n');
    }
    Ok(written)
}

/// Writes a start tag; a complete element if it is empty. `is_plain` drops [`ROOT_ATTRIBUTES`].
fn start(written: &mut String, node: Node<'_, '_>, prefix: &str, is_plain: bool) {
    written.push_str(&format!("<{}", node.tag_name().name()));
    for attribute in node.attributes() {
        let (name, value) = (attribute.name(), attribute.value());
        let is_xml = attribute.namespace() == Some(XML);
        if is_plain && !is_xml && ROOT_ATTRIBUTES.contains(&name) {
            continue;
        }
        let space = if is_xml { "xml:" } else { "" };
        let value = escape(&prefixed(name, value, prefix));
        written.push_str(&format!(" {space}{name}=\"{value}\""));
    }
    written.push_str(if node.has_children() { ">" } else { "/>" });
}

/// Returns an attribute value with the prefix before each id that it contains or refers to.
fn prefixed(name: &str, value: &str, prefix: &str) -> String {
    match (name, value.strip_prefix('#')) {
        ("id", _) => format!("{prefix}{value}"),
        ("href", Some(id)) => format!("#{prefix}{id}"),
        (name, _) if ID_LISTS.contains(&name) => {
            let ids = value.split_whitespace();
            let ids: Vec<String> = ids.map(|id| format!("{prefix}{id}")).collect();
            ids.join(" ")
        }
        // Times relative to events of other elements (SVG Animations, section 2.7.1).
        ("begin" | "end", _) => {
            let moments = value.split(';').map(|moment| {
                let moment = moment.trim();
                let is_of_element = moment.contains('.') && moment.starts_with(char::is_alphabetic);
                if is_of_element {
                    format!("{prefix}{moment}")
                } else {
                    moment.to_owned()
                }
            });
            moments.collect::<Vec<_>>().join(";")
        }
        _ => references(value, prefix),
    }
}

/// Adds the prefix to each `url(#id)` in a value.
fn references(value: &str, prefix: &str) -> String {
    let mut parts = value.split("url(");
    let mut written = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let id = part.trim_start().trim_start_matches(['"', '\'']);
        let before = &part[..part.len() - id.len()];
        written.push_str("url(");
        written.push_str(before);
        match id.strip_prefix('#') {
            Some(id) => written.push_str(&format!("#{prefix}{id}")),
            None => written.push_str(id),
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    const XMLNS: &str = "xmlns=\"http://www.w3.org/2000/svg\"";

    #[test]
    fn ids_and_references_get_the_prefix_of_the_tenant() {
        let svg = format!(
            "<svg {XMLNS}><linearGradient id=\"a\"/><path fill=\"url('#a') red\" stroke=\"url( #a )\"/><use href=\"#a\"/><g aria-labelledby=\"a b\">1 &lt; 2</g></svg>\n"
        );
        let written = isolate(&svg, "verses-", SvgContext::Others).expect("it is shown");
        assert_eq!(
            written,
            "<svg><linearGradient id=\"verses-a\"/><path fill=\"url('#verses-a') red\" stroke=\"url( #verses-a )\"/><use href=\"#verses-a\"/><g aria-labelledby=\"verses-a verses-b\">1 &lt; 2</g></svg>\n"
        );
    }

    #[test]
    fn root_on_pages_of_others_has_no_class_id_or_style() {
        let svg = format!(
            "<svg {XMLNS} class=\"site-header\" id=\"main\" style=\"top:0\" overflow=\"visible\" viewBox=\"0 0 9 9\"><g class=\"a\"/></svg>"
        );
        let written = isolate(&svg, "x-", SvgContext::Others).expect("it is shown");
        assert_eq!(written, "<svg viewBox=\"0 0 9 9\"><g class=\"a\"/></svg>");
        let own = isolate(&svg, "x-", SvgContext::Own).expect("it is shown");
        assert!(own.contains("class=\"site-header\" id=\"x-main\""), "{own}");
    }

    #[test]
    fn costly_svg_is_refused_on_pages_of_others() {
        let of = |inner: &str| {
            let svg = format!("<svg {XMLNS}>{inner}</svg>");
            isolate(&svg, "x-", SvgContext::Others).expect_err("refused")
        };
        assert!(of("<filter id=\"f\"><feTurbulence/></filter>").contains("`<filter>`"));
        assert!(of("<style>.site-header{display:none}</style>").contains("`<style>`"));
        assert!(of("<g><animate attributeName=\"x\"/></g>").contains("`<animate>`"));
        assert!(of(&"<path/>".repeat(10_001)).contains("more than 10000"));
    }

    #[test]
    fn own_svg_without_ids_is_unchanged() {
        let svg = "<svg class=\"house\"><path d=\"M0 0\" /></svg>";
        assert_eq!(isolate(svg, "x-", SvgContext::Own).as_deref(), Ok(svg));
    }
}
