//! Minifies styles: removes comments and unneeded white space, because every page contains its style.
//!
//! Only the space between tokens is changed (CSS Syntax Level 3, section 4), so newer CSS passes unchanged.

use cssparser::{ParseError, Parser, ParserInput, SourceLocation, Token, serialize_string};

use content::report::{Code, Diagnostic, TextPosition};

/// A syntax error in a style, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CssError {
    code: Code,
    message: String,
    hint: Option<&'static str>,
    line: usize,
    column: usize,
    length: usize,
}

impl CssError {
    fn new(code: Code, message: impl Into<String>, at: SourceLocation, found: &str) -> Self {
        Self {
            code,
            message: message.into(),
            hint: None,
            line: at.line as usize + 1,
            column: at.column as usize,
            length: found.lines().next().map_or(1, |line| line.chars().count()),
        }
    }

    fn hint(mut self, hint: &'static str) -> Self {
        self.hint = Some(hint);
        self
    }

    /// Converts the error to a diagnostic. `text` is the content of `file`.
    pub(super) fn diagnostic(self, file: String, text: &str) -> Diagnostic {
        let place = TextPosition {
            line: self.line,
            column: self.column,
            length: self.length,
        };
        let diagnostic = Diagnostic::error(self.code, file, self.message).at(place, text);
        match self.hint {
            Some(hint) => diagnostic.hint(hint),
            None => diagnostic,
        }
    }
}

/// Minifies a style, and replaces each `url()` by the result of `resolve`.
pub(super) fn minify(
    css: &str,
    resolve: impl Fn(&str) -> Option<String>,
) -> Result<String, CssError> {
    let mut input = ParserInput::new(css);
    let mut minifier = Minifier {
        open: true,
        ..Minifier::default()
    };
    minifier.copy(&mut Parser::new(&mut input), &resolve, None)?;
    minifier.end_declarations();
    Ok(minifier.css)
}

/// An open block.
struct Block<'a> {
    opening: &'a str,
    closing: &'static str,
    at: SourceLocation,
}

impl<'a> Block<'a> {
    fn new(opening: &'a str, closing: &'static str, at: SourceLocation) -> Self {
        Self {
            opening,
            closing,
            at,
        }
    }

    fn is_url(&self) -> bool {
        self.opening.eq_ignore_ascii_case("url(")
    }

    fn never_closed(&self) -> CssError {
        let message = format!("`{}` is not closed", self.opening);
        CssError::new(Code::BadStyle, message, self.at, self.opening)
            .hint("add the closing bracket at the end of the block")
    }
}

/// The separation of two tokens in the source.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    #[default]
    Nothing,
    /// A comment: it separates two tokens, but is not a descendant combinator.
    Comment,
    Space,
}

/// The state of minifying a style.
#[derive(Debug, Default)]
struct Minifier {
    css: String,
    gap: Gap,
    /// Whether the next token needs no separator.
    open: bool,
    /// Pending semicolons. They are written if another token follows in the block.
    semicolons: usize,
    /// The number of open blocks.
    depth: usize,
}

/// Limit on nested blocks, because each takes stack space.
const MAX_BLOCK_DEPTH: usize = 64;

impl Minifier {
    /// Copies all tokens up to the end of a block.
    fn copy(
        &mut self,
        parser: &mut Parser<'_, '_>,
        resolve: &impl Fn(&str) -> Option<String>,
        inside: Option<&Block<'_>>,
    ) -> Result<(), CssError> {
        loop {
            let start = parser.position();
            let at = parser.current_source_location();
            let Ok(token) = parser.next_including_whitespace_and_comments().cloned() else {
                return Ok(());
            };
            let text = parser.slice_from(start);
            let error = |message: &str| CssError::new(Code::BadStyle, message, at, text);
            match token {
                Token::WhiteSpace(_) => self.gap = Gap::Space,
                Token::Comment(_) => self.gap = self.gap.max(Gap::Comment),
                Token::UnquotedUrl(target) => {
                    self.push("url(");
                    self.push(&url(&target, at, resolve)?);
                    self.push(")");
                }
                Token::QuotedString(target) if inside.is_some_and(Block::is_url) => {
                    self.push(&url(&target, at, resolve)?)
                }
                Token::BadString(_) => {
                    return Err(error("the string does not end on its line")
                        .hint("end the string with the same quotation mark on the same line"));
                }
                Token::BadUrl(_) => {
                    return Err(error("the address in `url()` is not valid")
                        .hint("put the address in quotation marks"));
                }
                Token::CloseParenthesis | Token::CloseSquareBracket | Token::CloseCurlyBracket => {
                    return Err(match inside {
                        Some(block) => block.never_closed(),
                        None => error(&format!("`{text}` has no opening bracket"))
                            .hint("remove it, or add the opening bracket"),
                    });
                }
                Token::Function(_) | Token::ParenthesisBlock => {
                    self.block(parser, resolve, &Block::new(text, ")", at))?
                }
                Token::SquareBracketBlock => {
                    self.block(parser, resolve, &Block::new(text, "]", at))?
                }
                Token::CurlyBracketBlock => {
                    self.block(parser, resolve, &Block::new(text, "}", at))?
                }
                _ => self.push(text),
            }
        }
    }

    fn block(
        &mut self,
        parser: &mut Parser<'_, '_>,
        resolve: &impl Fn(&str) -> Option<String>,
        block: &Block<'_>,
    ) -> Result<(), CssError> {
        if self.depth == MAX_BLOCK_DEPTH {
            let message = format!("more than {MAX_BLOCK_DEPTH} blocks are nested");
            return Err(CssError::new(
                Code::TooLarge,
                message,
                block.at,
                block.opening,
            ));
        }
        self.push(block.opening);
        self.open = true;
        self.depth += 1;
        let mut copied = Ok(());
        let mut inside_ends = None;
        let nested: Result<(), ParseError<'_, ()>> = parser.parse_nested_block(|inner| {
            copied = self.copy(inner, resolve, Some(block));
            inside_ends = Some(inner.position());
            // After an error, the rest of the block is skipped.
            while inner.next_including_whitespace_and_comments().is_ok() {}
            Ok(())
        });
        copied?;
        self.depth -= 1;
        if nested.is_err() || inside_ends == Some(parser.position()) {
            return Err(block.never_closed());
        }
        self.push(block.closing);
        Ok(())
    }

    fn push(&mut self, text: &str) {
        match text {
            ";" => {
                self.semicolons += 1;
                self.open = true;
                self.gap = Gap::Nothing;
                return;
            }
            "}" => self.semicolons = 0,
            _ => self.end_declarations(),
        }
        let closes = matches!(text, "{" | "}" | ")" | "]" | ",");
        if !self.open && !closes {
            match self.gap {
                Gap::Nothing => {}
                Gap::Comment => self.css.push_str("/**/"),
                Gap::Space => self.css.push(' '),
            }
        }
        self.css.push_str(text);
        self.gap = Gap::Nothing;
        self.open = matches!(text, "{" | "}" | "(" | "[" | "," | ":" | "url(");
    }

    fn end_declarations(&mut self) {
        for _ in 0..std::mem::take(&mut self.semicolons) {
            self.css.push(';');
        }
    }
}

/// Returns the resolved URL of a `url()` in quotes.
fn url(
    target: &str,
    at: SourceLocation,
    resolve: impl Fn(&str) -> Option<String>,
) -> Result<String, CssError> {
    let resolved = resolve(target).ok_or_else(|| {
        let message = format!("the theme has no file `{target}`");
        CssError::new(Code::MissingAsset, message, at, target)
            .hint("write the path relative to the stylesheet's own folder")
    })?;
    let mut quoted = String::new();
    // Writing into a String cannot fail.
    let _ = serialize_string(&resolved, &mut quoted);
    Ok(quoted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(css: &str) -> String {
        minify(css, |target| Some(target.replace(".woff2", ".1a2b.woff2"))).unwrap()
    }

    fn error(css: &str) -> (Code, String, usize, usize) {
        let error = minify(css, |_| None).unwrap_err();
        (error.code, error.message, error.line, error.column)
    }

    #[test]
    fn comments_and_unneeded_white_space_are_removed() {
        assert_eq!(
            short(
                "/* why */\n@layer a, b;\n\n.x > .y,\n.z {\n  color: red;\n  margin: 0 auto;\n}\n"
            ),
            "@layer a,b;.x > .y,.z{color:red;margin:0 auto}"
        );
    }

    #[test]
    fn significant_white_space_is_preserved() {
        for css in [
            "a :hover{}",
            "a:hover{}",
            ".a .b{}",
            ".a[b] [c]{}",
            "@media screen and (width >= 48rem) and (scripting:enabled){}",
            ".a{padding:calc(1px + (2px - -3px)) 0;background:url(\"#x\") no-repeat}",
            ".a\\, .b{}",
            ".a\\; .b{}",
            "@page :first{}",
            ".a{&:hover &{color:red}}",
            ".a{content:\"  a  /* b */ ; \"}",
        ] {
            assert_eq!(short(css), css);
        }
        assert_eq!(short(".a/**/.b{}"), ".a/**/.b{}");
        assert_eq!(short(".a /**/ .b{}"), ".a .b{}");
    }

    #[test]
    fn urls_get_hashed_names_except_in_comments() {
        assert_eq!(
            short("/* url(x) */@font-face{src:url( ../a.woff2 ), URL('b.woff2') format('woff2')}"),
            "@font-face{src:url(\"../a.1a2b.woff2\"),URL(\"b.1a2b.woff2\") format('woff2')}"
        );
    }

    #[test]
    fn error_has_its_place() {
        let style =
            |message: &str, line, column| (Code::BadStyle, message.to_owned(), line, column);
        assert_eq!(
            error("a{}\n.b {\n  color: red;\n"),
            style("`{` is not closed", 2, 4)
        );
        assert_eq!(error("a{b{c:d}"), style("`{` is not closed", 1, 2));
        assert_eq!(error("a{}\n}"), style("`}` has no opening bracket", 2, 1));
        assert_eq!(error("a{b:c)}"), style("`{` is not closed", 1, 2));
        assert_eq!(
            error("a{\n  b: calc(1px;\n}"),
            style("`calc(` is not closed", 2, 6)
        );
        assert_eq!(
            error("a{b:\"c\n}"),
            style("the string does not end on its line", 1, 5)
        );
        assert_eq!(
            error("a{b:url(c d)}"),
            style("the address in `url()` is not valid", 1, 5)
        );
        assert_eq!(
            error("a{b:url(c.png)}"),
            (
                Code::MissingAsset,
                "the theme has no file `c.png`".to_owned(),
                1,
                5
            )
        );
        assert_eq!(error(&"(".repeat(100_000)).0, Code::TooLarge);
    }

    proptest::proptest! {
        /// A minified style has the same tokens, and minifying it again changes nothing.
        #[test]
        fn tokens_are_preserved(css in "([a-z.:;,{}()\\[\\]+> \\n#\"'!@-]|/\\*|\\*/|[0-9]px|url\\(){0,40}") {
            let Ok(once) = minify(&css, |target| Some(target.to_owned())) else { return Ok(()) };
            let twice = minify(&once, |target| Some(target.to_owned()));
            proptest::prop_assert_eq!(twice, Ok(once.clone()));
            let (before, after) = (tokens(&css), tokens(&once));
            proptest::prop_assert_eq!(before, after);
        }
    }

    /// Returns all tokens, including nested tokens, without white space, comments, and the last semicolons of blocks.
    fn tokens(css: &str) -> Vec<String> {
        fn gather(parser: &mut Parser<'_, '_>, found: &mut Vec<String>) {
            while let Ok(token) = parser.next().cloned() {
                let closing = match token {
                    Token::Function(_) | Token::ParenthesisBlock => ")",
                    Token::SquareBracketBlock => "]",
                    Token::CurlyBracketBlock => "}",
                    _ => "",
                };
                if let Token::UnquotedUrl(target) = token {
                    found.extend([
                        "Function(\"url\")".to_owned(),
                        format!("QuotedString({target:?})"),
                        ")".to_owned(),
                    ]);
                    continue;
                }
                found.push(format!("{token:?}"));
                if !closing.is_empty() {
                    let nested: Result<(), ParseError<'_, ()>> =
                        parser.parse_nested_block(|inner| {
                            gather(inner, found);
                            Ok(())
                        });
                    nested.unwrap();
                    while closing == "}" && found.last().is_some_and(|last| last == "Semicolon") {
                        found.pop();
                    }
                    found.push(closing.to_owned());
                }
            }
        }
        let mut input = ParserInput::new(css);
        let mut found = Vec::new();
        gather(&mut Parser::new(&mut input), &mut found);
        found
    }
}
