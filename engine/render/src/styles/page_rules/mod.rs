//! Selects the rules of a style sheet that a page can use.
//!
//! - A `@font-face` is left out if the page shows no character of its `unicode-range` (CSS Fonts 4, section 4.5). A `@font-face` is also left out if the page uses another file of the font ([`FontFace::is_whole`]).
//! - A selector is left out if it names a class that the page does not have. A rule without selectors is left out.
//! - In `:is(.a,.b)`, at least one class must exist on the page; missing classes are left out. Other classes in parentheses, as in `:not(.a)`, are ignored.
//! - A selector with `[dir="rtl"]` is left out if no element of the page is written from right to left.

use std::collections::BTreeSet;

use cssparser::{Delimiter, ParseError, Parser, ParserInput, Token, UnicodeRange};

/// At-rules that contain rules.
const GROUPS: [&str; 5] = ["container", "layer", "media", "starting-style", "supports"];

/// The predicates by which a page selects rules.
#[derive(Clone, Copy)]
pub(super) struct RuleFilter<'a> {
    /// Whether an element may have a class.
    pub(super) has_class: &'a dyn Fn(&str) -> bool,
    /// Whether an element has `dir="rtl"`.
    pub(super) has_right_to_left: bool,
    /// Whether the page uses a custom property of `:root`.
    pub(super) uses_property: &'a dyn Fn(&str) -> bool,
    /// Whether the page needs a `@font-face`.
    pub(super) needs_face: &'a dyn Fn(&FontFace) -> bool,
}

/// A `@font-face` with a `unicode-range`.
#[derive(Debug)]
pub(super) struct FontFace {
    /// The ranges of its characters.
    pub(super) ranges: Vec<UnicodeRange>,
    /// The URL of its file; empty if it has only local sources.
    pub(super) file: String,
    /// Whether the font is italic.
    pub(super) is_italic: bool,
    text: String,
}

impl FontFace {
    /// Returns the name of the font that its file contains completely or in part.
    pub(super) fn font(&self) -> &str {
        font_of(&self.file)
    }

    /// Whether its file contains the complete font: `a.whole.woff2` beside `a.woff2` and `a.more.woff2`. Pages use it if their letters are in several parts.
    pub(super) fn is_whole(&self) -> bool {
        let name = self.file.rsplit('/').next().unwrap_or_default();
        name.split('.').nth(1) == Some("whole")
    }
}

/// Returns the font name of a file: its name up to the first dot.
pub(crate) fn font_of(file: &str) -> &str {
    let name = file.rsplit('/').next().unwrap_or_default();
    name.split('.').next().unwrap_or_default()
}

/// The rules of a style sheet in order.
#[derive(Debug, Default)]
pub(super) struct StyleRules(Vec<Rule>);

#[derive(Debug)]
enum Rule {
    /// A part that every page has: a statement, or an at-rule such as `@keyframes`.
    Always(String),
    /// A `@font-face` with a `unicode-range`.
    FontFace(FontFace),
    /// A style rule: its selectors, and its block with the braces.
    Style(Vec<Selector>, String),
    /// A group: its opening, such as `@media print{`, and its rules.
    Group(String, StyleRules),
}

impl StyleRules {
    /// Parses a style sheet. It must be minified, so it has no errors.
    pub(super) fn new(css: &str) -> Self {
        let mut input = ParserInput::new(css);
        Self::read(&mut Parser::new(&mut input))
    }

    fn read(parser: &mut Parser<'_, '_>) -> Self {
        let mut rules = Vec::new();
        let mut start = parser.position();
        // The name of the current at-rule.
        let mut at: Option<String> = None;
        while let Ok(token) = parser.next_including_whitespace().cloned() {
            match token {
                Token::Semicolon => {
                    rules.push(Rule::Always(parser.slice_from(start).to_owned()));
                }
                Token::CurlyBracketBlock => {
                    let opening = parser.slice_from(start).to_owned();
                    let inside = parser.position();
                    let is_group = at.as_deref().is_some_and(|at| GROUPS.contains(&at));
                    let is_face = at.as_deref() == Some("font-face");
                    let mut nested = Self::default();
                    let mut face = None;
                    // Minifying already refused unreadable blocks.
                    let _ = parser.parse_nested_block(|inner| {
                        if is_group {
                            nested = Self::read(inner);
                        } else if is_face {
                            face = FontFace::read(inner);
                        }
                        skip_to_end(inner)
                    });
                    let inside = parser.slice_from(inside);
                    rules.push(match (is_group, face, at.is_some()) {
                        (true, ..) => Rule::Group(opening, nested),
                        (_, Some(face), _) => Rule::FontFace(FontFace {
                            text: opening + inside,
                            ..face
                        }),
                        (_, None, true) => Rule::Always(opening + inside),
                        (_, None, false) => {
                            let written = opening.strip_suffix('{').unwrap_or(&opening);
                            Rule::Style(selectors(written), format!("{{{inside}"))
                        }
                    });
                }
                Token::AtKeyword(name) => {
                    at = Some(name.to_ascii_lowercase());
                    continue;
                }
                _ => continue,
            }
            at = None;
            start = parser.position();
        }
        Self(rules)
    }

    /// Adds the classes in the selectors of the rules.
    pub(super) fn add_classes(&self, classes: &mut BTreeSet<String>) {
        for rule in &self.0 {
            match rule {
                Rule::Always(_) | Rule::FontFace(_) => {}
                Rule::Style(selectors, _) => {
                    let named = selectors.iter().flat_map(Selector::classes);
                    classes.extend(named.map(ToOwned::to_owned));
                }
                Rule::Group(_, rules) => rules.add_classes(classes),
            }
        }
    }

    /// Adds the fonts that have a `unicode-range`.
    pub(super) fn add_faces<'r>(&'r self, faces: &mut Vec<&'r FontFace>) {
        for rule in &self.0 {
            match rule {
                Rule::FontFace(face) => faces.push(face),
                Rule::Group(_, rules) => rules.add_faces(faces),
                Rule::Always(_) | Rule::Style(..) => {}
            }
        }
    }

    /// Writes the rules that a page uses.
    ///
    /// Empty groups are left out. An empty layer stays if leaving it out would change the order of layers.
    pub(super) fn write(&self, page: RuleFilter<'_>, css: &mut String) {
        let RuleFilter {
            has_class,
            has_right_to_left,
            uses_property,
            needs_face,
        } = page;
        // The opening of the group written last. An equal group continues it.
        let mut last = "";
        for rule in &self.0 {
            match rule {
                Rule::Always(text) => css.push_str(text),
                Rule::FontFace(face) if needs_face(face) => css.push_str(&face.text),
                Rule::FontFace(_) => continue,
                Rule::Style(selectors, block) => {
                    let matching = selectors
                        .iter()
                        .filter(|selector| has_right_to_left || !selector.is_right_to_left())
                        .filter_map(|selector| selector.text(has_class));
                    let matching = matching.collect::<Vec<String>>().join(",");
                    if matching.is_empty() {
                        continue;
                    }
                    let at = css.len();
                    css.push_str(&matching);
                    match &*matching {
                        ":root" => {
                            let kept = used_declarations(block, uses_property);
                            match kept.is_empty() {
                                true => css.truncate(at),
                                false => css.push_str(&format!("{{{}}}", kept.join(";"))),
                            }
                        }
                        _ => css.push_str(block),
                    }
                }
                Rule::Group(opening, rules) => {
                    let before = css.len();
                    let goes_on = last == opening;
                    match goes_on {
                        true => css.truncate(before - 1),
                        false => css.push_str(opening),
                    }
                    let inside = css.len();
                    rules.write(page, css);
                    if css.len() == inside && !goes_on && !self.decides_layer_order(opening) {
                        css.truncate(before);
                        continue;
                    }
                    css.push('}');
                    last = opening;
                    continue;
                }
            }
            last = "";
        }
    }

    /// Whether a group is a layer that no statement names. Its first occurrence then decides its order.
    fn decides_layer_order(&self, opening: &str) -> bool {
        let Some(name) = opening.strip_prefix("@layer ") else {
            return opening.starts_with("@layer");
        };
        let name = name.trim_end_matches('{');
        let mut statements = self.0.iter().filter_map(|rule| match rule {
            Rule::Always(text) => text.strip_prefix("@layer ")?.strip_suffix(';'),
            _ => None,
        });
        !statements.any(|names| names.split(',').any(|named| named == name))
    }
}

/// Returns the declarations of a block without the custom properties that nothing uses.
fn used_declarations<'b>(block: &'b str, uses_property: &dyn Fn(&str) -> bool) -> Vec<&'b str> {
    let block = block.strip_prefix('{').unwrap_or(block);
    let block = block.strip_suffix('}').unwrap_or(block);
    let mut input = ParserInput::new(block);
    let mut parser = Parser::new(&mut input);
    let mut kept = Vec::new();
    let mut start = parser.position();
    loop {
        let end = parser.position();
        let token = parser.next_including_whitespace().cloned();
        if let Ok(token) = &token
            && *token != Token::Semicolon
        {
            skip_block(&mut parser, token);
            continue;
        }
        let declaration = parser.slice(start..end);
        let property = declaration.strip_prefix("--");
        let name = property.and_then(|property| property.split(':').next());
        if !declaration.is_empty() && name.is_none_or(uses_property) {
            kept.push(declaration);
        }
        if token.is_err() {
            return kept;
        }
        start = parser.position();
    }
}

/// A selector, split at the classes that decide whether it can match.
#[derive(Debug, Default)]
struct Selector(Vec<SelectorPiece>);

#[derive(Debug)]
enum SelectorPiece {
    /// Text that does not decide anything.
    Text(String),
    /// A class that an element must have: its name and its source text.
    Class(String, String),
    /// `:is(` or `:where(` with classes, one of which an element must have.
    Any(String, Vec<(String, String)>),
    /// `[dir="rtl"]`.
    RightToLeft(String),
}

impl Selector {
    /// Returns all classes in the selector.
    fn classes(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(|piece| match piece {
            SelectorPiece::Text(_) | SelectorPiece::RightToLeft(_) => Vec::new(),
            SelectorPiece::Class(name, _) => vec![name.as_str()],
            SelectorPiece::Any(_, classes) => {
                classes.iter().map(|(name, _)| name.as_str()).collect()
            }
        })
    }

    /// Whether an element must have `dir="rtl"`.
    fn is_right_to_left(&self) -> bool {
        let mut pieces = self.0.iter();
        pieces.any(|piece| matches!(piece, SelectorPiece::RightToLeft(_)))
    }

    /// Returns the selector for a page with these classes, or `None` if it cannot match.
    fn text(&self, has_class: &dyn Fn(&str) -> bool) -> Option<String> {
        let mut text = String::new();
        for piece in &self.0 {
            match piece {
                SelectorPiece::Text(written) | SelectorPiece::RightToLeft(written) => {
                    text.push_str(written);
                }
                SelectorPiece::Class(name, written) => {
                    text.push_str(has_class(name).then_some(written.as_str())?);
                }
                SelectorPiece::Any(opening, classes) => {
                    let there = classes.iter().filter(|(name, _)| has_class(name));
                    let there: Vec<&str> = there.map(|(_, written)| written.as_str()).collect();
                    match &*there {
                        [] => return None,
                        // The specificity is the same (Selectors Level 4, section 17), unlike that of `:where()`.
                        [only] if opening == ":is(" => text.push_str(only),
                        _ => text.push_str(&format!("{opening}{})", there.join(","))),
                    }
                }
            }
        }
        Some(text)
    }
}

/// Parses a list of selectors.
fn selectors(list: &str) -> Vec<Selector> {
    let mut input = ParserInput::new(list);
    let mut parser = Parser::new(&mut input);
    let mut selectors = Vec::new();
    let mut current = Selector::default();
    // The start of the text that is in no piece yet, and the position of the last colon or dot.
    let mut start = parser.position();
    let mut mark = None;
    loop {
        let before = parser.position();
        let token = parser.next_including_whitespace().cloned();
        let begins = mark.take().unwrap_or(before);
        let text =
            |parser: &Parser<'_, '_>, end| SelectorPiece::Text(parser.slice(start..end).to_owned());
        match token {
            Err(_) => {
                current.0.push(text(&parser, before));
                selectors.push(current);
                return selectors;
            }
            Ok(Token::Comma) => {
                current.0.push(text(&parser, before));
                selectors.push(std::mem::take(&mut current));
                start = parser.position();
            }
            Ok(Token::Delim('.') | Token::Colon) => mark = Some(before),
            Ok(Token::Ident(name)) if parser.slice(begins..before) == "." => {
                current.0.push(text(&parser, begins));
                let written = parser.slice_from(begins).to_owned();
                current
                    .0
                    .push(SelectorPiece::Class(name.to_string(), written));
                start = parser.position();
            }
            Ok(Token::Function(name)) if ["is", "where"].contains(&&*name) => {
                let opening = parser.slice_from(begins).to_owned();
                let text = text(&parser, begins);
                if let Ok(classes) = parser.parse_nested_block(class_list) {
                    current
                        .0
                        .extend([text, SelectorPiece::Any(opening, classes)]);
                    start = parser.position();
                }
            }
            Ok(Token::SquareBracketBlock) => {
                if parser.parse_nested_block(right_to_left).is_ok() {
                    let text = text(&parser, begins);
                    let written = parser.slice_from(begins).to_owned();
                    current
                        .0
                        .extend([text, SelectorPiece::RightToLeft(written)]);
                    start = parser.position();
                }
            }
            Ok(token) => skip_block(&mut parser, &token),
        }
    }
}

/// Parses the content of `[dir="rtl"]`.
fn right_to_left<'i>(parser: &mut Parser<'i, '_>) -> Result<(), ParseError<'i, ()>> {
    parser.expect_ident_matching("dir")?;
    parser.expect_delim('=')?;
    match parser.expect_ident_or_string()?.eq_ignore_ascii_case("rtl") {
        true => Ok(()),
        false => Err(parser.new_custom_error(())),
    }
}

/// Skips the content of the block that a token opens. Until then, the parser's position is behind the opening bracket.
fn skip_block(parser: &mut Parser<'_, '_>, token: &Token<'_>) {
    if matches!(
        token,
        Token::Function(_)
            | Token::ParenthesisBlock
            | Token::SquareBracketBlock
            | Token::CurlyBracketBlock
    ) {
        // Minifying already refused unreadable blocks.
        let _ = parser.parse_nested_block(skip_to_end);
    }
}

impl FontFace {
    /// Parses a `@font-face`. Returns `None` if it has no readable `unicode-range`.
    fn read(block: &mut Parser<'_, '_>) -> Option<Self> {
        let mut ranges = None;
        let mut file = String::new();
        let mut is_italic = false;
        while let Ok(token) = block.next().cloned() {
            let Token::Ident(name) = token else {
                skip_block(block, &token);
                continue;
            };
            block.expect_colon().ok()?;
            block
                .parse_until_before(Delimiter::Semicolon, |value| {
                    match name.to_ascii_lowercase().as_str() {
                        "unicode-range" => {
                            let list = value.parse_comma_separated(|range| {
                                UnicodeRange::parse(range).map_err(ParseError::<()>::from)
                            });
                            ranges = Some(list?);
                        }
                        "src" => file = first_file(value),
                        "font-style" => {
                            is_italic = !value.expect_ident()?.eq_ignore_ascii_case("normal");
                        }
                        _ => {}
                    }
                    skip_to_end(value)
                })
                .ok()?;
        }
        Some(Self {
            ranges: ranges?,
            file,
            is_italic,
            text: String::new(),
        })
    }
}

/// Returns the first URL in a list of sources; empty if there is none.
fn first_file(sources: &mut Parser<'_, '_>) -> String {
    while let Ok(token) = sources.next().cloned() {
        match token {
            Token::UnquotedUrl(address) => return address.to_string(),
            Token::Function(name) if name.eq_ignore_ascii_case("url") => {
                let address = sources.parse_nested_block(|inner| {
                    let address = inner.expect_string()?.to_string();
                    Ok::<_, ParseError<'_, ()>>(address)
                });
                return address.unwrap_or_default();
            }
            token => skip_block(sources, &token),
        }
    }
    String::new()
}

fn skip_to_end<'i>(parser: &mut Parser<'i, '_>) -> Result<(), ParseError<'i, ()>> {
    while parser.next().is_ok() {}
    Ok(())
}

/// Parses a list of classes and nothing else: their names and source texts. All have the same specificity.
fn class_list<'i>(
    parser: &mut Parser<'i, '_>,
) -> Result<Vec<(String, String)>, ParseError<'i, ()>> {
    parser.parse_comma_separated(|parser| {
        let before = parser.position();
        parser.expect_delim('.')?;
        let name = match parser.next_including_whitespace()? {
            Token::Ident(name) => name.to_string(),
            _ => return Err(parser.new_custom_error(())),
        };
        Ok((name, parser.slice_from(before).trim().to_owned()))
    })
}

/// Returns the classes of all elements of a page. The set may contain words that only look like classes.
pub(super) fn classes(html: &str) -> BTreeSet<&str> {
    let values = html.split(" class=\"").skip(1);
    values
        .filter_map(|rest| rest.split('"').next())
        .flat_map(str::split_whitespace)
        .collect()
}

#[cfg(test)]
mod tests;
