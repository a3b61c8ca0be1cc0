//! Markup within a line: shortcodes, variables, wiki links, formulas, emoji, directives.
//!
//! **Invariant:** goes through a run once, from its start to its end.

use content::report::Code;

use crate::markdown::foreign_markup::text_run::TextRun;
use crate::markdown::foreign_markup::{
    FORMULA_HINT, GENERATOR_HINT, MarkupFinder, shortened, table_of_contents,
};
use crate::media::DECORATIVE_MARK;

impl MarkupFinder<'_> {
    pub(super) fn run(&mut self, run: &TextRun) {
        self.bracket = None;
        if run.begins_block {
            self.is_script = false;
        }
        if run.begins_line && !run.is_html {
            self.line(run);
        }
        self.escaped_formula(run);
        let mut at = run.range.start.max(self.end);
        while at < run.range.end {
            let rest = &self.text[at..run.range.end];
            let Some(next) = rest.find(['{', '[', ']', '$', '^', '~', '=', ':', '*']) else {
                break;
            };
            at += next;
            let is_escaped = self.text[..at].ends_with('\\');
            if self.text[at..].starts_with('[') {
                self.bracket = Some(at);
            }
            at = match is_escaped {
                true => at + 1,
                false => self.sign(at, run).max(at + 1),
            };
        }
        self.end = self.end.max(at.min(run.range.end));
    }

    /// Checks the markup that begins at `at`, and returns its end.
    fn sign(&mut self, at: usize, run: &TextRun) -> usize {
        let rest = &self.text[at..];
        let here = &self.text[at..run.range.end];
        for (open, close, what) in [
            ("{{<", ">}}", "is a Hugo shortcode"),
            ("{{%", "%}}", "is a Hugo shortcode"),
            ("{{", "}}", "is a variable of another generator"),
            ("{%", "%}", "is a Liquid tag"),
        ] {
            if rest.starts_with(open)
                && let Some(end) = self.end_of(close, at + open.len())
            {
                self.as_text(at..end, what, GENERATOR_HINT);
                self.end = end;
                return end;
            }
        }
        if run.is_html {
            return at;
        }
        if here.starts_with('{') && !here.starts_with(DECORATIVE_MARK) {
            let end = self.end_of("}", at + 1);
            let end = end.filter(|end| *end <= run.range.end);
            if let Some(end) = end.filter(|end| is_attributes(&self.text[at + 1..*end - 1])) {
                let hint = "remove it; headings may have an id: `## Prices {#fees}`";
                self.as_text(at..end, "is an attribute list of another generator", hint);
                return end;
            }
        }
        if here.starts_with("[[")
            && let Some(end) = self.end_of("]]", at + 2)
        {
            let name = self.text[at + 2..end - 2].trim_matches('_');
            let (what, hint) = match name.to_lowercase().as_str() {
                "toc" => table_of_contents(),
                _ => {
                    let (page, words) = name.split_once('|').unwrap_or((name, name));
                    let page = shortened(page.trim()).replace(' ', "-");
                    let link = format!("[{}]({page}.md)", shortened(words.trim()));
                    ("is a wiki link", format!("write a Markdown link: `{link}`"))
                }
            };
            self.as_text(at..end, what, &hint);
            self.end = self.end.max(end);
            return end;
        }
        if here.starts_with("](") {
            return self.link(at, run);
        }
        if here.starts_with("^[")
            && let Some(end) = self.end_of("]", at + 2)
        {
            let hint = "write `[^1]` here, and the note on a line of its own: `[^1]: The note.`";
            self.as_text(at..end, "is an inline footnote", hint);
            return end;
        }
        let end = match here.as_bytes()[0] {
            b'$' => self.math(at, run),
            b'=' => self.mark(at, run),
            b'^' => self.script(
                at,
                run,
                "^",
                "is superscript in another Markdown dialect",
                "²",
            ),
            b'~' => self.script(
                at,
                run,
                "~",
                "is subscript in another Markdown dialect",
                "₂",
            ),
            b'*' => self.strong(at, run),
            b':' => self.emoji(at, run).or_else(|| self.directive(at, run)),
            _ => None,
        };
        end.unwrap_or(at)
    }

    /// Reports `](` that does not end a link, and returns the end of the markup.
    fn link(&mut self, at: usize, run: &TextRun) -> usize {
        let close = self.within(")", at + 2, run);
        let inner = close.map_or("", |close| &self.text[at + 2..close]);
        if inner.contains("{{") || inner.contains("{%") {
            return at + 2;
        }
        let begin = self.bracket.take().unwrap_or(at);
        let end = close.map_or(at + 2, |close| close + 1);
        let (what, hint) = match inner.trim() {
            name if name.contains(' ') && !name.contains(['"', '\'']) => (
                "is not a valid link: its address contains a space",
                match name.split_once(':') {
                    Some(("tel" | "sms", number)) => {
                        format!(
                            "write the number without spaces: `{}`",
                            shortened(&number.replace(' ', "-"))
                        )
                    }
                    _ => format!(
                        "write `%20` for each space, or `<{}>` with the angle brackets",
                        shortened(name)
                    ),
                },
            ),
            _ => (
                "is not a valid link",
                "write `[text](address)` on one line, without another link inside".to_owned(),
            ),
        };
        let what = format!("{what}; visitors see the markup as text");
        self.add(Code::MarkupAsText, begin..end, &what, &hint);
        end
    }

    /// Reports formulas: `$$E = mc^2$$`, also over several lines, and `$x^2$` if it cannot be an amount of money.
    fn math(&mut self, at: usize, run: &TextRun) -> Option<usize> {
        let here = &self.text[at..run.range.end];
        if here.starts_with("$$") {
            let end = self.end_of("$$", at + 2);
            let end = end.filter(|end| {
                let inner = &self.text[at + 2..*end - 2];
                let is_long = inner.contains('\n');
                !inner.is_empty() && (!is_long || inner.contains(['\\', '^', '_', '=', '+']))
            });
            // A formula that contains an empty line: only its opening `$$` is reported.
            let end = end.or_else(|| (here.trim_end() == "$$").then_some(at + 2))?;
            self.as_text(at..end, "is a formula", FORMULA_HINT);
            self.end = self.end.max(end);
            return Some(end);
        }
        let close = self.within("$", at + 1, run)?;
        let inner = &self.text[at + 1..close];
        let is_tight = !inner.starts_with(' ') && !inner.ends_with(' ');
        let is_math = is_tight && (inner.contains(['\\', '^']) || inner.contains("_{"));
        is_math.then(|| self.as_text(at..close + 1, "is a formula", FORMULA_HINT))?;
        Some(close + 1)
    }

    /// Reports formulas in `\(` and `\)`, or `\[` and `\]`. Markdown reads their brackets as escaped.
    fn escaped_formula(&mut self, run: &TextRun) {
        let at = run.range.start;
        let before = &self.text[..at];
        if run.is_html || at < self.end || !before.ends_with('\\') || before.ends_with("\\\\") {
            return;
        }
        let close = match self.text.as_bytes().get(at) {
            Some(b'[') => "\\]",
            Some(b'(') => "\\)",
            _ => return,
        };
        let Some(end) = self.end_of(close, at + 1) else {
            return;
        };
        let inner = &self.text[at + 1..end - 2];
        let commands = inner.split('\\').skip(1);
        let is_formula = inner.contains('^')
            || inner.contains("_{")
            || commands
                .into_iter()
                .any(|command| command.starts_with(|sign: char| sign.is_ascii_alphabetic()));
        if is_formula {
            self.as_text(at - 1..end, "is a formula", FORMULA_HINT);
            self.end = end;
        }
    }

    /// Reports highlighted words: `==so==`.
    fn mark(&mut self, at: usize, run: &TextRun) -> Option<usize> {
        if !self.text[at..].starts_with("==") {
            return None;
        }
        let close = self.within("==", at + 2, run)?;
        let inner = &self.text[at + 2..close];
        let is_mark = |sign: char| sign.is_whitespace() || sign == '=';
        let is_marked =
            !inner.is_empty() && !inner.starts_with(is_mark) && !inner.ends_with(is_mark);
        is_marked.then(|| {
            let hint = "write `**` around important words";
            self.as_text(
                at..close + 2,
                "is highlighted in another Markdown dialect",
                hint,
            );
        })?;
        Some(close + 2)
    }

    /// Reports superscripts and subscripts: `x^2^` and `H~2~O`.
    fn script(
        &mut self,
        at: usize,
        run: &TextRun,
        mark: &'static str,
        what: &str,
        sign: &str,
    ) -> Option<usize> {
        let close = self.within(mark, at + 1, run)?;
        let inner = &self.text[at + 1..close];
        let is_short = (1..=20).contains(&inner.len()) && inner.chars().all(char::is_alphanumeric);
        let before = self.text[..at].chars().next_back();
        (is_short && before.is_some_and(char::is_alphanumeric)).then(|| {
            let hint = format!("write the Unicode character, such as `{sign}`");
            self.as_text(at..close + 1, what, &hint);
        })?;
        Some(close + 1)
    }

    /// Reports `**` that makes nothing bold, because a space or punctuation is on the wrong side.
    fn strong(&mut self, at: usize, run: &TextRun) -> Option<usize> {
        if !self.text[at..].starts_with("**") {
            return None;
        }
        let close = self.within("**", at + 2, run)?;
        let inner = &self.text[at + 2..close];
        let before = self.text[run.range.start..at].chars().next_back();
        let behind = self.text[close + 2..run.range.end].chars().next();
        let is_space = |sign: Option<char>| sign.is_some_and(char::is_whitespace);
        let is_sum = is_space(before)
            && is_space(behind)
            && is_space(inner.chars().next())
            && is_space(inner.chars().next_back());
        let is_within = |sign: char| sign.is_ascii_alphanumeric() || sign == '*' || sign == '/';
        let is_words = inner.contains(char::is_alphabetic)
            && !inner.contains(['*', '/', '\\'])
            && !before.is_some_and(is_within)
            && !behind.is_some_and(|sign| matches!(sign, '*' | '/'));
        if is_sum {
            return Some(close + 2);
        }
        if !is_words {
            return None;
        }
        let hint = "put spaces outside the `**`, not inside; write `\\*` for an asterisk";
        self.as_text(at..close + 2, "is not bold", hint);
        Some(close + 2)
    }

    /// Reports emoji shortcodes: `:smile:`.
    fn emoji(&mut self, at: usize, run: &TextRun) -> Option<usize> {
        let close = self.within(":", at + 1, run)?;
        let name = &self.text[at + 1..close];
        let before = self.text[run.range.start..at].chars().next_back();
        let is_apart = !before.is_some_and(|sign| sign.is_alphanumeric() || ":/".contains(sign));
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_+-".contains(&byte);
        if !is_apart || name.len() > 60 || !name.bytes().all(is_name) {
            return None;
        }
        let emoji = emojis::get_by_shortcode(name)?;
        let hint = format!("write the emoji itself: {emoji}");
        self.as_text(at..close + 1, "is an emoji shortcode", &hint);
        Some(close + 1)
    }

    /// Reports directives of Astro and remark: `:name[words]`, and `::name{a=b}` at the start of a line.
    fn directive(&mut self, at: usize, run: &TextRun) -> Option<usize> {
        let before = self.text[run.range.start..at].chars().next_back();
        let rest = &self.text[at..run.range.end];
        let (name, is_leaf) = match rest.strip_prefix("::") {
            Some(name) => (name, true),
            None => (&rest[1..], false),
        };
        let is_apart = match is_leaf {
            true => run.begins_line && at == run.range.start,
            false => !before.is_some_and(|sign| sign.is_alphanumeric() || sign == ':'),
        };
        let is_name = |sign: char| sign.is_ascii_alphanumeric() || sign == '-';
        let inner = name.trim_start_matches(is_name);
        if !is_apart || !name.starts_with(|sign: char| sign.is_ascii_alphabetic()) {
            return None;
        }
        let close = match inner.as_bytes().first()? {
            b'[' => "]",
            b'{' => "}",
            _ => return None,
        };
        let end = self.end_of(close, run.range.end - inner.len() + 1)?;
        // Markdown reads the first colon behind a paragraph as the mark of a definition.
        let is_cut = at == run.range.start && self.text[..at].ends_with(':');
        let begin = at - usize::from(is_cut);
        self.as_text(
            begin..end,
            "is a directive of another generator",
            GENERATOR_HINT,
        );
        self.end = self.end.max(end);
        Some(end)
    }
}

/// Whether the text between braces is an attribute list of kramdown, Goldmark or Pandoc: `: .note #id`, `.note`, `width=300`.
fn is_attributes(inner: &str) -> bool {
    let is_part = |sign: char| sign.is_alphanumeric() || " -_.#:=%;,'\"/".contains(sign);
    let mut signs = inner.chars();
    let begins = match signs.next() {
        Some(':') => !inner[1..].trim().is_empty(),
        Some('.' | '#') => signs
            .next()
            .is_some_and(|sign| sign.is_alphabetic() || sign == '_'),
        Some(sign) if sign.is_ascii_alphabetic() => {
            inner.split_once('=').is_some_and(|(key, value)| {
                let is_key = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
                key.bytes().all(is_key) && !value.is_empty() && !value.starts_with(['=', ' '])
            })
        }
        _ => false,
    };
    begins && inner.chars().all(is_part)
}
