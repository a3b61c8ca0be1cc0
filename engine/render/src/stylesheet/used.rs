//! The rules of a stylesheet, and those of them that a page can use.
//!
//! A rule is left out only where it cannot match: each of its selectors names a class that occurs nowhere in the page. A class that stands in parentheses, as in `:not(.a)`, decides nothing.

use std::collections::BTreeSet;

use cssparser::{Parser, ParserInput, Token};

/// At-rules that hold rules.
const GROUPS: [&str; 5] = ["container", "layer", "media", "starting-style", "supports"];

/// The rules of a stylesheet in their order.
#[derive(Debug, Default)]
pub(super) struct Rules(Vec<Rule>);

#[derive(Debug)]
enum Rule {
    /// What every page has: statements, and at-rules such as `@font-face`.
    Always(String),
    /// A style rule, with the classes of each of its selectors.
    Style(String, Vec<Vec<String>>),
    /// What it opens with, such as `@media print{`, and the rules inside.
    Group(String, Rules),
}

impl Rules {
    /// Reads a stylesheet that is minified, and so without errors.
    pub(super) fn new(css: &str) -> Self {
        let mut input = ParserInput::new(css);
        Self::read(&mut Parser::new(&mut input))
    }

    fn read(parser: &mut Parser<'_, '_>) -> Self {
        let mut rules = Vec::new();
        let mut start = parser.position();
        let mut prelude = Prelude::default();
        while let Ok(token) = parser.next_including_whitespace().cloned() {
            match token {
                Token::Semicolon => {
                    rules.push(Rule::Always(parser.slice_from(start).to_owned()));
                }
                Token::CurlyBracketBlock => {
                    let opening = parser.slice_from(start).to_owned();
                    let inside = parser.position();
                    let is_group = (prelude.at.as_deref()).is_some_and(|at| GROUPS.contains(&at));
                    let mut nested = Self::default();
                    // What cannot be read was refused when the style was minified.
                    let _ = parser.parse_nested_block(|inner| {
                        if is_group {
                            nested = Self::read(inner);
                        }
                        while inner.next().is_ok() {}
                        Ok::<(), cssparser::ParseError<'_, ()>>(())
                    });
                    let whole = || format!("{opening}{}", parser.slice_from(inside));
                    rules.push(match (is_group, prelude.at.is_some()) {
                        (true, _) => Rule::Group(opening, nested),
                        (false, true) => Rule::Always(whole()),
                        (false, false) => {
                            Rule::Style(whole(), std::mem::take(&mut prelude).ended())
                        }
                    });
                }
                token => {
                    prelude.take(&token);
                    continue;
                }
            }
            prelude = Prelude::default();
            start = parser.position();
        }
        Self(rules)
    }

    /// Adds the classes that some rule asks for.
    pub(super) fn add_classes(&self, classes: &mut BTreeSet<String>) {
        for rule in &self.0 {
            match rule {
                Rule::Always(_) => {}
                Rule::Style(_, selectors) => classes.extend(selectors.iter().flatten().cloned()),
                Rule::Group(_, rules) => rules.add_classes(classes),
            }
        }
    }

    /// Writes the rules for a page that has these classes. Groups without any are left out; a layer stays where its place among the others would change, for layers have an order.
    pub(super) fn write(&self, has: &dyn Fn(&str) -> bool, css: &mut String) {
        // The group that was written last, which goes on where the next is the same.
        let mut last = "";
        for rule in &self.0 {
            match rule {
                Rule::Always(text) => css.push_str(text),
                Rule::Style(text, selectors) => {
                    let mut selectors = selectors.iter();
                    if !selectors.any(|classes| classes.iter().all(|class| has(class))) {
                        continue;
                    }
                    css.push_str(text);
                }
                Rule::Group(opening, rules) => {
                    let before = css.len();
                    let goes_on = last == opening;
                    match goes_on {
                        true => css.truncate(before - 1),
                        false => css.push_str(opening),
                    }
                    let inside = css.len();
                    rules.write(has, css);
                    if css.len() == inside && !goes_on && !self.gives_a_place(opening) {
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

    /// Whether a group is a layer that no statement names: its place is then where it first stands.
    fn gives_a_place(&self, opening: &str) -> bool {
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

/// What stands before a block: the name of an at-rule, or selectors with the classes that each asks for.
#[derive(Debug, Default)]
struct Prelude {
    at: Option<String>,
    selectors: Vec<Vec<String>>,
    current: Vec<String>,
    after_dot: bool,
}

impl Prelude {
    fn take(&mut self, token: &Token<'_>) {
        match token {
            Token::AtKeyword(name) => self.at = Some(name.to_ascii_lowercase()),
            Token::Comma => self.selectors.push(std::mem::take(&mut self.current)),
            Token::Ident(name) if self.after_dot => self.current.push(name.to_string()),
            _ => {}
        }
        self.after_dot = matches!(token, Token::Delim('.'));
    }

    fn ended(mut self) -> Vec<Vec<String>> {
        self.selectors.push(self.current);
        self.selectors
    }
}

/// The classes of all elements of a page, and some words more that only look like them.
pub(super) fn classes(html: &str) -> BTreeSet<&str> {
    let values = html.split(" class=\"").skip(1);
    values
        .filter_map(|rest| rest.split('"').next())
        .flat_map(str::split_whitespace)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(css: &str, classes: &[&str]) -> String {
        let mut used = String::new();
        Rules::new(css).write(&|class| classes.contains(&class), &mut used);
        used
    }

    #[test]
    fn a_rule_goes_where_none_of_its_selectors_can_match() {
        let css = ".a{b:c}.d .e{f:g}.a,.d{h:i}p{j:k}.a:not(.d){l:m}:is(.d,.e){n:o}[x=\".d\"]{q:r}";
        assert_eq!(
            used(css, &["a"]),
            ".a{b:c}.a,.d{h:i}p{j:k}.a:not(.d){l:m}:is(.d,.e){n:o}[x=\".d\"]{q:r}"
        );
        assert_eq!(used(css, &["a", "d", "e"]), css);
    }

    #[test]
    fn groups_without_rules_go_and_layers_stay_where_they_are() {
        let css = "@layer a,b;@media print{.x{b:c}@supports (a:b){.x{d:e}}}@layer b{.x{f:g}}@layer c{.x{f:g}}@layer{.x{f:g}}@layer a{.y{h:i}}";
        assert_eq!(
            used(css, &["y"]),
            "@layer a,b;@layer c{}@layer{}@layer a{.y{h:i}}"
        );
        assert_eq!(used(css, &["x", "y"]), css);
    }

    #[test]
    fn a_group_goes_on_in_the_next_that_is_the_same() {
        let css = "@layer a{p{b:c}}@layer a{.x{d:e}}@layer a{.y{f:g}@media print{p{h:i}}@media print{q{j:k}}}.y{l:m}@layer a{q{n:o}}";
        assert_eq!(
            used(css, &[]),
            "@layer a{p{b:c}@media print{p{h:i}q{j:k}}q{n:o}}"
        );
        assert_eq!(
            used(css, &["y"]),
            "@layer a{p{b:c}.y{f:g}@media print{p{h:i}q{j:k}}}.y{l:m}@layer a{q{n:o}}"
        );
    }

    #[test]
    fn what_is_no_style_rule_stays_whole() {
        let css = "@font-face{src:url(\"a.woff2\")}@keyframes k{from{a:b}to{c:d}}.x{color:red;.y &{e:f}@media print{g:h}}";
        assert_eq!(used(css, &["x"]), css);
        assert_eq!(
            used(css, &[]),
            "@font-face{src:url(\"a.woff2\")}@keyframes k{from{a:b}to{c:d}}"
        );
    }

    #[test]
    fn escaped_names_and_braces_in_strings_are_read_as_they_are() {
        let css = ".a\\.b{content:\"}.z{\"}.z{c:d}";
        assert_eq!(used(css, &["a.b"]), ".a\\.b{content:\"}.z{\"}");
    }

    #[test]
    fn classes_are_those_of_attributes() {
        let found = classes("<p class=\"a b\">x</p><svg class=\"c\n d\"><b class=\"\">");
        assert_eq!(found, BTreeSet::from(["a", "b", "c", "d"]));
    }

    proptest::proptest! {
        /// With all of its classes a style is what it was.
        #[test]
        fn nothing_is_lost(css in "([a-z.:;,{}()\\[\\]+> \"@-]|@media |[0-9]px){0,40}") {
            let Ok(style) = super::super::minify::minified(&css, |target| Some(target.to_owned())) else { return Ok(()) };
            let mut all = String::new();
            Rules::new(&style).write(&|_| true, &mut all);
            let empty_groups_are_gone = all.len() <= style.len();
            proptest::prop_assert!(empty_groups_are_gone);
        }
    }
}
