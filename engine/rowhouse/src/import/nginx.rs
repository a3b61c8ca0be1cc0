//! `rewrite` and `return` of nginx, also within `location` and `if ($arg_name = value)`.

use std::collections::BTreeMap;

use super::imported::{ImportedRedirect, Importer, Refusal, Spot, status};
use super::pattern;

/// Returns whether a word begins a directive of nginx that this module reads.
pub(super) fn is_directive(word: &str) -> bool {
    matches!(word, "rewrite" | "return" | "location" | "server" | "if")
}

/// The end of a directive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Semicolon,
    Open,
    Close,
}

/// A block around a directive.
#[derive(Debug)]
enum Block {
    Location(Location),
    /// A parameter that the query must have.
    Parameter(String, String),
    /// A condition that a manifest does not have.
    Condition(String),
    Other,
}

/// The requests of a `location`.
#[derive(Debug, Clone)]
struct Location {
    /// The old path and whether it has a group, or the reason why there is none.
    path: Result<(String, bool), Refusal>,
    /// The requests that the old path leaves out.
    difference: Option<Refusal>,
}

pub(super) fn read(text: &str, importer: &mut Importer) {
    let mut blocks: Vec<Block> = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut spot = Spot { line: 1, column: 1 };
    for (token, at) in tokens(text) {
        let end = match token {
            Token::Word(word) => {
                if words.is_empty() {
                    spot = at;
                }
                words.push(word);
                continue;
            }
            Token::End(end) => end,
        };
        let directive: Vec<&str> = words.iter().map(String::as_str).collect();
        match (end, directive.as_slice()) {
            (End::Semicolon, ["rewrite", pattern, target, flags @ ..]) => {
                rewrite(spot, (pattern, target, flags), importer);
            }
            (End::Semicolon, ["return", arguments @ ..]) => {
                returned(spot, arguments, &blocks, importer);
            }
            (End::Semicolon, _) => {}
            (End::Open, directive) => blocks.push(block(directive)),
            (End::Close, _) => drop(blocks.pop()),
        }
        words.clear();
    }
}

/// Returns the block that a directive opens.
fn block(directive: &[&str]) -> Block {
    match directive {
        ["location", "=", path] => Block::Location(exact(path)),
        ["location", "~", pattern] => Block::Location(Location {
            path: pattern::old_path(pattern),
            difference: None,
        }),
        ["location", "~*", pattern] => Block::Location(Location {
            path: pattern::old_path(pattern),
            difference: Some((
                format!("`location ~* {pattern}` ignores case; the line here does not"),
                "write a line for each spelling that visitors use".to_owned(),
            )),
        }),
        ["location", "^~", prefix] | ["location", prefix] => Block::Location(below(prefix)),
        ["if", condition @ ..] => parameter(&condition.join(" ")),
        _ => Block::Other,
    }
}

fn exact(path: &str) -> Location {
    Location {
        path: Ok((written(path), false)),
        difference: None,
    }
}

/// Returns the requests of a `location` with a prefix.
fn below(prefix: &str) -> Location {
    let folder = prefix.strip_suffix('/');
    let path = format!("{}/*", written(folder.unwrap_or(prefix)));
    let difference = (
        format!("`location {prefix}` also matches paths such as `{prefix}x`; `{path}` does not"),
        "write a line for each such path that visitors use".to_owned(),
    );
    Location {
        path: Ok((path, false)),
        difference: folder.is_none().then_some(difference),
    }
}

/// Writes a decoded path for a manifest.
fn written(path: &str) -> String {
    path.replace('%', "%25").replace('*', "%2A")
}

/// Returns the block of `if ($arg_name = value)`.
fn parameter(condition: &str) -> Block {
    let inner = condition.trim_start_matches('(').trim_end_matches(')');
    let parts = inner.trim().strip_prefix("$arg_");
    match parts.and_then(|parts| parts.split_once('=')) {
        Some((name, value)) if !name.contains(['~', '!']) => {
            let (name, value) = (name.trim(), value.trim().trim_matches(['"', '\'']));
            Block::Parameter(name.to_owned(), value.to_owned())
        }
        _ => Block::Condition(inner.to_owned()),
    }
}

/// Reads `rewrite PATTERN TARGET FLAG`.
fn rewrite(spot: Spot, (pattern, target, flags): (&str, &str, &[&str]), importer: &mut Importer) {
    let is_absolute = ["http://", "https://", "$scheme"]
        .iter()
        .any(|start| target.starts_with(start));
    let status = match flags.first() {
        Some(&"permanent") => 301,
        Some(&"redirect") => 302,
        None if is_absolute => 302,
        flag => {
            let flag = flag.map_or_else(
                || "without a flag".to_owned(),
                |flag| format!("with `{flag}`"),
            );
            let message =
                format!("`rewrite` {flag} shows another page at the path, which is not a redirect");
            let hint = "add the path to `aliases:` of the page";
            return importer.refuse(spot, (message, hint.to_owned()));
        }
    };
    let drops_query = target.strip_suffix('?');
    let found = pattern::old_path(pattern).and_then(|(from, has_group)| {
        let to = plain_target(drops_query.unwrap_or(target), has_group)?;
        Ok(ImportedRedirect {
            from,
            query: BTreeMap::new(),
            to: Some(to),
            status,
        })
    });
    let is_found = found.is_ok();
    importer.add(spot, found);
    if is_found && drops_query.is_some() {
        let message =
            "the `?` at the end drops the query of the request; a manifest keeps the query";
        let hint = "nothing is to be done, unless the target reads the query";
        importer.refuse(spot, (message.to_owned(), hint.to_owned()));
    }
}

/// Reads `return STATUS TARGET` within its blocks.
fn returned(spot: Spot, arguments: &[&str], blocks: &[Block], importer: &mut Importer) {
    let mut query = BTreeMap::new();
    let mut location = None;
    for block in blocks {
        match block {
            Block::Location(inner) => location = Some(inner),
            Block::Parameter(name, value) => {
                query.insert(name.clone(), value.clone());
            }
            Block::Condition(condition) => {
                let message =
                    format!("`if ({condition})` is a condition that a manifest does not have");
                let hint = "redirect by the path, or by parameters of the query";
                return importer.refuse(spot, (message, hint.to_owned()));
            }
            Block::Other => {}
        }
    }
    let (code, target) = match arguments {
        [code] if code.bytes().all(|byte| byte.is_ascii_digit()) => (*code, None),
        [code, target] => (*code, Some(*target)),
        // Nginx sends 302 for a URL without a status.
        [target] => ("302", Some(*target)),
        _ => return,
    };
    let Some(location) = location else {
        let message = "`return` outside of `location` redirects the complete host";
        let hint = "list the host under `hosts:` of a tenant, or redirect `/*`";
        return importer.refuse(spot, (message.to_owned(), hint.to_owned()));
    };
    let found = status(code).and_then(|status| {
        let (from, has_group) = location.path.clone()?;
        let to = match (status, target) {
            (410, _) => None,
            (_, Some(target)) => Some(plain_target(target, has_group)?),
            (_, None) => {
                let message = "`return` has no target".to_owned();
                return Err((message, "write the target behind the status".to_owned()));
            }
        };
        Ok(ImportedRedirect {
            from,
            query,
            to,
            status,
        })
    });
    let is_found = found.is_ok();
    importer.add(spot, found);
    if let (Some(difference), true) = (&location.difference, is_found) {
        importer.refuse(spot, difference.clone());
    }
}

/// Returns a target without the variables that a manifest does not need: its own host, and the query, which is kept.
fn plain_target(target: &str, has_group: bool) -> Result<String, Refusal> {
    let target = ["$scheme://$host", "$scheme://$http_host", "https://$host"]
        .iter()
        .find_map(|own| target.strip_prefix(own))
        .unwrap_or(target);
    let target = ["$is_args$args", "?$args", "?$query_string"]
        .iter()
        .find_map(|query| target.strip_suffix(query))
        .unwrap_or(target);
    pattern::target(target, has_group)
}

/// A part of a configuration.
#[derive(Debug)]
enum Token {
    Word(String),
    End(End),
}

/// Splits a configuration into words and the ends of directives, each with its position.
fn tokens(text: &str) -> Vec<(Token, Spot)> {
    let mut tokens = Vec::new();
    let mut word: Option<(String, Spot)> = None;
    let mut quote = None;
    let mut is_comment = false;
    let mut spot = Spot { line: 1, column: 0 };
    let mut signs = text.chars().peekable();
    while let Some(sign) = signs.next() {
        spot.column += 1;
        let at = spot;
        if sign == '\n' {
            spot = Spot {
                line: spot.line + 1,
                column: 0,
            };
            is_comment = false;
        }
        let begin = || (String::new(), at);
        match sign {
            _ if is_comment => {}
            sign if quote == Some(sign) => quote = None,
            sign if quote.is_some() => word.get_or_insert_with(begin).0.push(sign),
            '\\' => {
                let word = word.get_or_insert_with(begin);
                word.0.push(sign);
                if let Some(next) = signs.next_if(|next| *next != '\n') {
                    spot.column += 1;
                    word.0.push(next);
                }
            }
            '"' | '\'' if word.is_none() => {
                quote = Some(sign);
                word = Some(begin());
            }
            '#' if word.is_none() => is_comment = true,
            // A brace within a word is a part of a regular expression.
            '{' if word.is_some() => word.get_or_insert_with(begin).0.push(sign),
            ';' | '{' | '}' => {
                tokens.extend(word.take().map(|(word, at)| (Token::Word(word), at)));
                let end = match sign {
                    ';' => End::Semicolon,
                    '{' => End::Open,
                    _ => End::Close,
                };
                tokens.push((Token::End(end), at));
            }
            sign if sign.is_whitespace() => {
                tokens.extend(word.take().map(|(word, at)| (Token::Word(word), at)));
            }
            sign => word.get_or_insert_with(begin).0.push(sign),
        }
    }
    tokens
}
