//! Highlights code blocks in the languages that documentation uses: comments, strings, names and keywords get a class.
//!
//! The highlighter scans characters and knows no grammars, which is enough for blocks of twenty lines.
//! A parsing crate would add tables for every language to the binary and to memory. None was found that has no C code, a compatible licence and maintained dependencies.
//!
//! **Invariant:** the output without its tags is the code, character by character.

use crate::markdown::escape::escape;

/// The lexical rules of a language.
struct CodeLanguage {
    /// The start of a comment that ends with its line; empty if there is none.
    line_comment: &'static str,
    /// The delimiters of a comment of several lines; empty if there is none.
    comment: (&'static str, &'static str),
    /// The delimiters of strings.
    quotes: &'static [char],
    /// The keywords.
    words: &'static [&'static str],
    /// The tokens that count as names.
    names: NameStyle,
}

#[derive(Clone, Copy, PartialEq)]
enum NameStyle {
    /// Words before a colon: `title: Home`, `"title": "Home"`.
    Keys,
    /// Words before an equals sign: `key = 1`.
    Assigned,
    /// Options and variables: `--help`, `$HOME`. The first word of a command counts as a keyword.
    Options,
    /// Element names: `<main>`.
    Elements,
    /// No names.
    None,
}

const NO_COMMENT: (&str, &str) = ("", "");
const CONSTANTS: &[&str] = &["true", "false", "null"];
const SCRIPT_KEYWORDS: &[&str] = &[
    "as",
    "async",
    "await",
    "break",
    "case",
    "class",
    "const",
    "continue",
    "default",
    "do",
    "else",
    "export",
    "extends",
    "false",
    "for",
    "from",
    "function",
    "if",
    "import",
    "in",
    "interface",
    "let",
    "new",
    "null",
    "of",
    "return",
    "switch",
    "this",
    "throw",
    "true",
    "try",
    "type",
    "typeof",
    "undefined",
    "while",
];
const RUST_KEYWORDS: &[&str] = &[
    "as", "async", "await", "break", "const", "continue", "crate", "else", "enum", "false", "fn",
    "for", "if", "impl", "in", "let", "loop", "match", "mod", "move", "mut", "pub", "ref",
    "return", "self", "static", "struct", "super", "trait", "true", "type", "use", "where",
    "while",
];

/// Returns the rules for the language name of a code block.
fn language(name: &str) -> Option<CodeLanguage> {
    let (line_comment, comment, quotes, words, names): (_, _, &'static [char], _, _) = match name {
        "yaml" | "yml" => ("#", NO_COMMENT, &['"', '\''], CONSTANTS, NameStyle::Keys),
        "json" => ("", NO_COMMENT, &['"'], CONSTANTS, NameStyle::Keys),
        "css" => ("", ("/*", "*/"), &['"', '\''], &[], NameStyle::Keys),
        "toml" | "ini" | "conf" => (
            "#",
            NO_COMMENT,
            &['"', '\''],
            CONSTANTS,
            NameStyle::Assigned,
        ),
        "sh" | "bash" | "console" => ("#", NO_COMMENT, &['"', '\''], &[], NameStyle::Options),
        "html" | "xml" | "svg" => ("", ("<!--", "-->"), &['"'], &[], NameStyle::Elements),
        "js" | "ts" | "jsx" | "tsx" => (
            "//",
            ("/*", "*/"),
            &['"', '\'', '`'],
            SCRIPT_KEYWORDS,
            NameStyle::None,
        ),
        "rust" => ("//", ("/*", "*/"), &['"'], RUST_KEYWORDS, NameStyle::None),
        _ => return None,
    };
    Some(CodeLanguage {
        line_comment,
        comment,
        quotes,
        words,
        names,
    })
}

/// Limit on a highlighted block, in bytes. Larger blocks are data and stay plain.
const MAX_BLOCK_BYTES: usize = 64 << 10;
/// Limit on a line of a highlighted block, in bytes, because the cost of a line grows with the square of its length.
const MAX_LINE_BYTES: usize = 1_000;

/// Returns code as HTML. The HTML is plain if the language is unknown or the code exceeds a limit.
#[must_use]
pub(crate) fn highlight(name: &str, code: &str) -> String {
    if code.len() > MAX_BLOCK_BYTES || code.lines().any(|line| line.len() > MAX_LINE_BYTES) {
        return escape(code);
    }
    if matches!(name, "markdown" | "md") {
        return markdown(code);
    }
    match language(name) {
        Some(language) => language.html(code),
        None => escape(code),
    }
}

/// Highlights Markdown, with YAML front matter if there is any.
fn markdown(code: &str) -> String {
    let rest = code.strip_prefix("---\n");
    let Some((front, body)) = rest.and_then(|rest| rest.split_once("---\n")) else {
        return code.split_inclusive('\n').map(markdown_line).collect();
    };
    let body: String = body.split_inclusive('\n').map(markdown_line).collect();
    format!("---\n{}---\n{body}", highlight("yaml", front))
}

fn markdown_line(line: &str) -> String {
    match line.starts_with('#') {
        true => marked("name", line),
        false => escape(line),
    }
}

/// Wraps a piece in a `span` of a class. A line break at its end stays outside.
fn marked(class: &str, piece: &str) -> String {
    let inner = piece.trim_end_matches('\n');
    let ends = &piece[inner.len()..];
    format!(
        "<span class=\"code-{class}\">{}</span>{ends}",
        escape(inner)
    )
}

impl CodeLanguage {
    fn html(&self, code: &str) -> String {
        let mut html = String::with_capacity(code.len() * 2);
        let mut at = 0;
        while at < code.len() {
            let (class, length) = self.piece(code, at);
            // At least one character, so that the loop ends.
            let length = length.max(code[at..].chars().next().map_or(1, char::len_utf8));
            let piece = &code[at..at + length];
            match class {
                Some(class) => html.push_str(&marked(class, piece)),
                None => html.push_str(&escape(piece)),
            }
            at += length;
        }
        html
    }

    /// Returns the class and the length in bytes of the token at `at`.
    fn piece(&self, code: &str, at: usize) -> (Option<&'static str>, usize) {
        let (before, rest) = code.split_at(at);
        let line = rest.split('\n').next().unwrap_or_default();
        let previous = before.chars().next_back();
        let is_apart = previous.is_none_or(char::is_whitespace);
        let (opens, closes) = self.comment;
        if !opens.is_empty() && rest.starts_with(opens) {
            let end = rest
                .find(closes)
                .map_or(rest.len(), |end| end + closes.len());
            return (Some("comment"), end);
        }
        if !self.line_comment.is_empty() && rest.starts_with(self.line_comment) && is_apart {
            return (Some("comment"), line.len());
        }
        let first = rest.chars().next().unwrap_or_default();
        if self.quotes.contains(&first) && !previous.is_some_and(char::is_alphanumeric) {
            let length = text_length(line, first);
            let is_key = self.names == NameStyle::Keys && line[length..].starts_with(':');
            return (Some(if is_key { "name" } else { "string" }), length);
        }
        if self.names == NameStyle::Elements && first == '<' {
            let name = line[1..].trim_start_matches('/');
            let skipped = line.len() - name.len();
            return (Some("name"), skipped + word_length(name));
        }
        let starts_option = matches!(first, '-' | '$') && (is_apart || first == '$');
        if self.names == NameStyle::Options && starts_option {
            let signs = line.len() - line.trim_start_matches(['-', '$']).len();
            return (Some("name"), signs + word_length(&line[signs..]));
        }
        let length = word_length(line);
        (
            self.class_of_word(before, &line[..length], &line[length..]),
            length,
        )
    }

    fn class_of_word(&self, before: &str, word: &str, after: &str) -> Option<&'static str> {
        if word.is_empty() {
            return None;
        }
        let begins_line = before
            .rsplit('\n')
            .next()
            .is_none_or(|line| line.trim().is_empty());
        let is_name = match self.names {
            // A URL scheme such as `https:` is not a key.
            NameStyle::Keys => after.starts_with(": ") || after.starts_with(":\n") || after == ":",
            NameStyle::Assigned => begins_line && after.trim_start().starts_with('='),
            _ => false,
        };
        let continues = before.trim_end_matches([' ', '\n']).ends_with('\\');
        let is_command = self.names == NameStyle::Options && begins_line && !continues;
        match word {
            _ if is_name => Some("name"),
            word if is_command || self.words.contains(&word) => Some("word"),
            _ => None,
        }
    }
}

/// Returns the length in bytes of the word that a piece begins with.
fn word_length(piece: &str) -> usize {
    let is_part = |sign: char| sign.is_alphanumeric() || matches!(sign, '-' | '_' | '.' | '@');
    piece.find(|sign| !is_part(sign)).unwrap_or(piece.len())
}

/// Returns the length in bytes of a string with its quotes. A quote without an end on its line is an apostrophe: its own length.
fn text_length(line: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, sign) in line.char_indices().skip(1) {
        match sign {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            sign if sign == quote => return at + sign.len_utf8(),
            _ => {}
        }
    }
    quote.len_utf8()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tokens_get_the_class_of_their_kind() {
        let name = |text: &str| format!("<span class=\"code-name\">{text}</span>");
        let string = |text: &str| format!("<span class=\"code-string\">{text}</span>");
        let word = |text: &str| format!("<span class=\"code-word\">{text}</span>");
        let comment = |text: &str| format!("<span class=\"code-comment\">{text}</span>");
        for (language, code, html) in [
            (
                "yaml",
                "a: {b: \"c\", d: true} # e\nf: https://x.example\n",
                format!(
                    "{}: {{{}: {}, {}: {}}} {}\n{}: https://x.example\n",
                    name("a"),
                    name("b"),
                    string("&quot;c&quot;"),
                    name("d"),
                    word("true"),
                    comment("# e"),
                    name("f")
                ),
            ),
            (
                "json",
                "{\"a\": 1}",
                format!("{{{}: 1}}", name("&quot;a&quot;")),
            ),
            (
                "sh",
                "rowhouse check --format json\n",
                format!("{} check {} json\n", word("rowhouse"), name("--format")),
            ),
            (
                "html",
                "<p>It's</p>",
                format!("{}&gt;It's{}&gt;", name("&lt;p"), name("&lt;/p")),
            ),
            (
                "markdown",
                "---\na: b\n---\n## C\nd: e\n",
                format!("---\n{}: b\n---\n{}\nd: e\n", name("a"), name("## C")),
            ),
            ("unknown", "a: <b>", "a: &lt;b&gt;".to_owned()),
        ] {
            assert_eq!(highlight(language, code), html, "{language}");
        }
    }

    #[test]
    fn code_above_the_limits_stays_plain() {
        let long = format!("a: {}", "b ".repeat(MAX_LINE_BYTES));
        assert_eq!(highlight("yaml", &long), long);
        let large = "a: b\n".repeat(MAX_BLOCK_BYTES);
        assert_eq!(highlight("yaml", &large), large);
    }

    proptest! {
        #[test]
        fn text_without_tags_is_the_code(
            code in "(?s)[-a-z:#'\"<>{}=$ \\\\\n/*`.é→]{0,60}",
            language in proptest::sample::select(vec!["yaml", "json", "css", "toml", "sh", "html", "ts", "rust", "markdown"]),
        ) {
            let html = highlight(language, &code);
            let mut shown = String::new();
            let mut rest = html.as_str();
            while let Some((before, tag)) = rest.split_once('<') {
                shown.push_str(before);
                rest = tag.split_once('>').map_or("", |(_, after)| after);
            }
            shown.push_str(rest);
            prop_assert_eq!(shown, escape(&code));
        }
    }
}
