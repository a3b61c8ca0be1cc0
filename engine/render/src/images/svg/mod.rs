//! Sanitises SVGs of tenants. Everything that could run a script, load a resource or link elsewhere is removed before an SVG is served or put into a page.
//!
//! An SVG is parsed as XML and written again from an allow-list (SVG 2, Filter Effects, SVG Animations). So HTML and XML parsers read the output the same way.
//! `svg-hush` and `ammonia` do not report what they remove and where. `usvg` turns texts into outlines and loses styles of the surrounding page.
//!
//! **Invariant:** for every input, the output is one `<svg>` element of allowed elements and attributes. Themes are trusted, and their SVGs stay unchanged.

pub(crate) mod cost;
pub(crate) mod fonts;
mod isolate;
pub(crate) mod size;
pub(crate) mod sprite;
pub(crate) mod text_fit;
pub(crate) mod weight;

use std::collections::BTreeMap;

use cssparser::{ParseError, Parser, ParserInput, Token};
use resvg::usvg::roxmltree::{Document, Node, NodeType, ParsingOptions};

pub(crate) use self::isolate::{SvgContext, isolate};
use crate::markdown::escape;
use content::report::{Code, Diagnostic, TextPosition};

const SVG: &str = "http://www.w3.org/2000/svg";
const XHTML: &str = "http://www.w3.org/1999/xhtml";
const XLINK: &str = "http://www.w3.org/1999/xlink";
const XML: &str = "http://www.w3.org/XML/1998/namespace";
const HINT: &str = "remove this part from the file, or draw it another way";

/// Allowed elements: shapes, descriptions and animations. Sorted.
const ELEMENTS: [&str; 60] = [
    "a",
    "animate",
    "animateMotion",
    "animateTransform",
    "circle",
    "clipPath",
    "defs",
    "desc",
    "ellipse",
    "feBlend",
    "feColorMatrix",
    "feComponentTransfer",
    "feComposite",
    "feConvolveMatrix",
    "feDiffuseLighting",
    "feDisplacementMap",
    "feDistantLight",
    "feDropShadow",
    "feFlood",
    "feFuncA",
    "feFuncB",
    "feFuncG",
    "feFuncR",
    "feGaussianBlur",
    "feImage",
    "feMerge",
    "feMergeNode",
    "feMorphology",
    "feOffset",
    "fePointLight",
    "feSpecularLighting",
    "feSpotLight",
    "feTile",
    "feTurbulence",
    "filter",
    "g",
    "image",
    "line",
    "linearGradient",
    "marker",
    "mask",
    "mpath",
    "path",
    "pattern",
    "polygon",
    "polyline",
    "radialGradient",
    "rect",
    "set",
    "stop",
    "style",
    "svg",
    "switch",
    "symbol",
    "text",
    "textPath",
    "title",
    "tspan",
    "use",
    "view",
];

/// Allowed attributes: appearance, position and names. Sorted. `href` and `aria-*` are checked separately.
const ATTRIBUTES: &str = " accumulate additive alignment-baseline amplitude attributeName attributeType azimuth \
baseFrequency baseProfile baseline-shift begin bias by calcMode class clip clip-path clip-rule clipPathUnits color \
color-interpolation color-interpolation-filters cursor cx cy d diffuseConstant direction display divisor \
dominant-baseline dur dx dy edgeMode elevation enable-background end exponent fill fill-opacity fill-rule filter \
filterUnits flood-color flood-opacity focusable font-family font-size font-size-adjust font-stretch font-style \
font-variant font-weight fr from fx fy gradientTransform gradientUnits height id image-rendering in in2 intercept \
isolation k1 k2 k3 k4 kernelMatrix kernelUnitLength keyPoints keySplines keyTimes lang lengthAdjust letter-spacing \
lighting-color limitingConeAngle marker-end marker-mid marker-start markerHeight markerUnits markerWidth mask \
mask-type maskContentUnits maskUnits max media method min mix-blend-mode mode numOctaves offset opacity operator order \
orient origin overflow paint-order path pathLength patternContentUnits patternTransform patternUnits pointer-events \
points pointsAtX pointsAtY pointsAtZ preserveAlpha preserveAspectRatio primitiveUnits r radius refX refY repeatCount \
repeatDur restart result role rotate rx ry scale seed shape-rendering side slope spacing specularConstant \
specularExponent spreadMethod startOffset stdDeviation stitchTiles stop-color stop-opacity stroke stroke-dasharray \
stroke-dashoffset stroke-linecap stroke-linejoin stroke-miterlimit stroke-opacity stroke-width style surfaceScale \
systemLanguage tableValues targetX targetY text-anchor text-decoration text-rendering textLength title to transform \
transform-origin type unicode-bidi values vector-effect version viewBox visibility white-space width word-spacing \
writing-mode x x1 x2 xChannelSelector y y1 y2 yChannelSelector z zoomAndPan ";

/// Limit on nested brackets in a style.
const MAX_BRACKET_DEPTH: usize = 32;

/// A sanitised SVG, and the messages about removed parts. Each message has the line and column of the element, from 1.
#[derive(Debug)]
struct SanitisedSvg {
    svg: String,
    left_out: BTreeMap<String, (usize, usize)>,
}

/// Sanitises a tenant's SVG. Diagnostics name it `file`.
///
/// # Errors
/// Returns an error if the file is not UTF-8, not XML or not an SVG.
pub(crate) fn sanitise(
    bytes: &[u8],
    file: &str,
) -> Result<(String, Vec<Diagnostic>), Box<Diagnostic>> {
    let text = std::str::from_utf8(bytes).map_err(|_| {
        Box::new(
            Diagnostic::error(Code::NotUtf8, file, "the SVG is not UTF-8")
                .hint("save the file as UTF-8"),
        )
    })?;
    let place = |(line, column): (usize, usize)| TextPosition {
        line,
        column,
        length: 1,
    };
    let cleaned = sanitise_text(text).map_err(|(message, at)| {
        Box::new(
            Diagnostic::error(Code::UnsafeSvg, file, message)
                .at(place(at), text)
                .hint("write one well-formed `<svg xmlns=\"http://www.w3.org/2000/svg\">` element"),
        )
    })?;
    let left_out = cleaned.left_out.into_iter().map(|(message, at)| {
        Diagnostic::warning(Code::UnsafeSvg, file, message)
            .at(place(at), text)
            .hint(HINT)
    });
    Ok((cleaned.svg, left_out.collect()))
}

fn sanitise_text(text: &str) -> Result<SanitisedSvg, (String, (usize, usize))> {
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(text, options).map_err(|error| {
        let at = (error.pos().row as usize, error.pos().col as usize);
        (format!("the SVG is not valid XML: {error}"), at)
    })?;
    let root = document.root_element();
    let namespace = root.tag_name().namespace();
    if root.tag_name().name() != "svg" || namespace.is_some_and(|namespace| namespace != SVG) {
        let at = document.text_pos_at(root.range().start);
        let message = "the file is not an SVG: its root element is not `<svg>`".to_owned();
        return Err((message, (at.row as usize, at.col as usize)));
    }
    let mut writer = SvgWriter {
        document: &document,
        namespace,
        cleaned: SanitisedSvg {
            svg: String::with_capacity(text.len()),
            left_out: BTreeMap::new(),
        },
    };
    writer.write(root);
    if text.ends_with('\n') {
        writer.cleaned.svg.push('\n');
    }
    Ok(writer.cleaned)
}

struct SvgWriter<'d, 'i> {
    document: &'d Document<'i>,
    namespace: Option<&'d str>,
    cleaned: SanitisedSvg,
}

impl<'d, 'i> SvgWriter<'d, 'i> {
    /// Writes a tree without recursion, because elements may nest to any depth.
    fn write(&mut self, root: Node<'d, 'i>) {
        // Each open element with its next child and the start of its content.
        let mut open: Vec<(Node<'d, 'i>, Option<Node<'d, 'i>>, usize)> = Vec::new();
        open.push((root, root.first_child(), self.start(root)));
        while let Some((element, next, begin)) = open.last_mut() {
            let Some(node) = *next else {
                let svg = &mut self.cleaned.svg;
                if svg.len() == *begin {
                    svg.pop();
                    svg.push_str("/>");
                } else {
                    svg.push_str(&format!("</{}>", element.tag_name().name()));
                }
                open.pop();
                continue;
            };
            *next = node.next_sibling();
            match node.node_type() {
                NodeType::Text => self
                    .cleaned
                    .svg
                    .push_str(&text(node.text().unwrap_or_default())),
                NodeType::Element => {
                    let is_text = ["desc", "style", "title"].contains(&element.tag_name().name());
                    if self.is_allowed(node, is_text) {
                        open.push((node, node.first_child(), self.start(node)));
                    }
                }
                NodeType::Root | NodeType::Comment | NodeType::PI => {}
            }
        }
    }

    /// Whether an element is allowed. The notes of drawing programs are removed without a warning.
    fn is_allowed(&mut self, node: Node<'_, '_>, in_text: bool) -> bool {
        let (name, namespace) = (node.tag_name().name(), node.tag_name().namespace());
        let why = if namespace != self.namespace {
            if namespace != Some(XHTML) {
                return false;
            }
            "it is HTML"
        } else if name == "metadata" {
            return false;
        } else if in_text {
            "its parent may contain text only"
        } else if name == "style" && !is_local(&words_of(node)) {
            EXTERNAL_REFERENCE
        } else if ["animate", "set"].contains(&name) && !changes_listed_attribute(node) {
            "it animates an attribute that is not allowed"
        } else if ELEMENTS.contains(&name) {
            return true;
        } else {
            "it can contain scripts, or is not known to be safe"
        };
        self.leave_out(
            node,
            format!("the SVG is served without its `<{name}>`: {why}"),
        );
        false
    }

    /// Writes a start tag, and returns the position where the content begins.
    fn start(&mut self, node: Node<'_, '_>) -> usize {
        let name = node.tag_name().name();
        let mut tag = format!("<{name}");
        // Browsers do not show an SVG file without its namespace.
        if node == self.document.root_element() {
            tag.push_str(&format!(" xmlns=\"{SVG}\""));
        }
        for attribute in node.attributes() {
            let value = attribute.value();
            let (written, why) = match (attribute.namespace(), attribute.name()) {
                (None, "href") => ("href", is_reference(name, value)),
                // `href` replaces `xlink:href` (SVG 2, section 16.1.6).
                (Some(XLINK), "href") if own(node, "href").is_none() => {
                    ("href", is_reference(name, value))
                }
                (Some(XML), "space") => ("xml:space", Ok(())),
                (Some(XML), "lang") => ("xml:lang", Ok(())),
                (None, other) => (other, is_listed(other, value)),
                (Some(_), _) => continue,
            };
            match why {
                Ok(()) => tag.push_str(&format!(" {written}=\"{}\"", escape(value))),
                Err(_) if written.starts_with("data-") => {}
                Err(why) => self.leave_out(
                    node,
                    format!("the SVG is served without the attribute `{written}` of its `<{name}>`: {why}"),
                ),
            }
        }
        tag.push('>');
        self.cleaned.svg.push_str(&tag);
        self.cleaned.svg.len()
    }

    fn leave_out(&mut self, node: Node<'_, '_>, message: String) {
        let document = self.document;
        self.cleaned.left_out.entry(message).or_insert_with(|| {
            let at = document.text_pos_at(node.range().start);
            (at.row as usize, at.col as usize)
        });
    }
}

const EXTERNAL_REFERENCE: &str = "it loads or links to something outside the SVG";

fn is_listed(name: &str, value: &str) -> Result<(), &'static str> {
    if name.starts_with("on") {
        Err("it runs a script")
    } else if name.starts_with("aria-") {
        Ok(())
    } else if !ATTRIBUTES.contains(&format!(" {name} ")) {
        Err("it is not known to be safe")
    } else if is_local(value) {
        Ok(())
    } else {
        Err(EXTERNAL_REFERENCE)
    }
}

/// Checks that a `href` stays within the SVG: a fragment, or an image embedded in the file.
fn is_reference(element: &str, value: &str) -> Result<(), &'static str> {
    const PICTURES: [&str; 4] = ["png", "jpeg", "gif", "webp"];
    let is_picture = ["image", "feImage"].contains(&element)
        && value.strip_prefix("data:image/").is_some_and(|rest| {
            let kind = rest.split_once(";base64,").map(|(kind, _)| kind);
            kind.is_some_and(|kind| PICTURES.contains(&kind))
        });
    if value.starts_with('#') || is_picture {
        Ok(())
    } else {
        Err(EXTERNAL_REFERENCE)
    }
}

/// Whether an animation changes an attribute that is allowed itself (SVG Animations, section 2.5).
fn changes_listed_attribute(node: Node<'_, '_>) -> bool {
    let name = own(node, "attributeName").unwrap_or_default();
    !name.is_empty() && is_listed(name, "").is_ok()
}

/// Returns an attribute without a namespace.
fn own<'d>(node: Node<'d, '_>, name: &str) -> Option<&'d str> {
    let mut attributes = node.attributes();
    let found = attributes.find(|one| one.namespace().is_none() && one.name() == name);
    found.map(|one| one.value())
}

fn words_of(node: Node<'_, '_>) -> String {
    let texts = node
        .children()
        .filter(Node::is_text)
        .filter_map(|child| child.text());
    texts.collect()
}

/// Whether a style or an attribute value refers only to parts of the SVG itself.
fn is_local(css: &str) -> bool {
    let may_load = css.contains(['(', '\\', '@']);
    !may_load || {
        let mut input = ParserInput::new(css);
        all_local(&mut Parser::new(&mut input), 0).is_ok()
    }
}

fn all_local<'i>(parser: &mut Parser<'i, '_>, depth: usize) -> Result<(), ParseError<'i, ()>> {
    if depth > MAX_BRACKET_DEPTH {
        return Err(parser.new_custom_error(()));
    }
    while let Ok(token) = parser.next().cloned() {
        let is_local = match &token {
            Token::UnquotedUrl(url) => url.starts_with('#'),
            // cssparser and browsers may recover from the error differently.
            Token::BadUrl(_) | Token::BadString(_) => false,
            Token::AtKeyword(name) => {
                !["import", "namespace", "charset"].contains(&&*name.to_ascii_lowercase())
            }
            Token::Function(name) => match &*name.to_ascii_lowercase() {
                "url" => {
                    parser.parse_nested_block(|inside| {
                        let url = inside.expect_string()?.clone();
                        inside.expect_exhausted()?;
                        if url.starts_with('#') {
                            Ok(())
                        } else {
                            Err(inside.new_custom_error(()))
                        }
                    })?;
                    true
                }
                "src" | "image" | "image-set" | "-webkit-image-set" | "cross-fade"
                | "-webkit-cross-fade" | "element" | "expression" => false,
                _ => {
                    parser.parse_nested_block(|inside| all_local(inside, depth + 1))?;
                    true
                }
            },
            Token::ParenthesisBlock | Token::SquareBracketBlock | Token::CurlyBracketBlock => {
                parser.parse_nested_block(|inside| all_local(inside, depth + 1))?;
                true
            }
            _ => true,
        };
        if !is_local {
            return Err(parser.new_custom_error(()));
        }
    }
    Ok(())
}

/// Escapes text between tags. Quotes stay as they are.
fn text(words: &str) -> String {
    words
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod properties;
