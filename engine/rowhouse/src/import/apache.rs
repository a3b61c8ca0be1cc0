//! `Redirect` and `RedirectMatch` of Apache's `mod_alias`.

use std::collections::BTreeMap;

use super::imported::{ImportedRedirect, Importer, Refusal, Spot, status};
use super::pattern;

/// The directives that redirect, in lower case.
const DIRECTIVES: [&str; 5] = [
    "redirect",
    "redirectmatch",
    "redirectpermanent",
    "redirecttemp",
    "rewriterule",
];

/// Returns whether a word is a directive that redirects. Apache ignores case.
pub(super) fn is_directive(word: &str) -> bool {
    DIRECTIVES.contains(&word.to_ascii_lowercase().as_str())
}

pub(super) fn read(text: &str, importer: &mut Importer) {
    for (index, line) in text.lines().enumerate() {
        let column = line.chars().take_while(|sign| sign.is_whitespace()).count() + 1;
        let spot = Spot {
            line: index + 1,
            column,
        };
        let words = words(line);
        let Some((name, arguments)) = words.split_first() else {
            continue;
        };
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        match name.to_ascii_lowercase().as_str() {
            "redirect" => with_status(spot, &arguments, "302", simple, importer),
            "redirectmatch" => with_status(spot, &arguments, "302", matching, importer),
            "redirectpermanent" => simple(spot, "301", &arguments, importer),
            "redirecttemp" => simple(spot, "302", &arguments, importer),
            "rewriterule" => importer.refuse(
                spot,
                (
                    "`RewriteRule` can do more than redirect".to_owned(),
                    "write the line as `RedirectMatch`, and import again".to_owned(),
                ),
            ),
            _ => {}
        }
    }
}

/// Splits a line into words, which may be in double quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = line.trim();
    while !rest.is_empty() {
        let (word, after) = match rest.strip_prefix('"') {
            Some(inner) => inner.split_once('"').unwrap_or((inner, "")),
            None => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
        };
        words.push(word.to_owned());
        rest = after.trim_start();
    }
    words
}

/// Splits the optional status from the arguments.
fn with_status(
    spot: Spot,
    arguments: &[&str],
    default: &str,
    read: fn(Spot, &str, &[&str], &mut Importer),
    importer: &mut Importer,
) {
    let code = match arguments.first().copied() {
        Some("permanent") => Some("301"),
        Some("temp") => Some("302"),
        Some("seeother") => Some("303"),
        Some("gone") => Some("410"),
        Some(code) if code.bytes().all(|byte| byte.is_ascii_digit()) => Some(code),
        _ => None,
    };
    match code {
        Some(code) => read(spot, code, &arguments[1..], importer),
        None => read(spot, default, arguments, importer),
    }
}

/// Returns the path and the target of a directive.
fn parts<'a>(
    code: &str,
    arguments: &[&'a str],
) -> Result<(u16, &'a str, Option<&'a str>), Refusal> {
    match (status(code)?, arguments) {
        (410, [from]) => Ok((410, from, None)),
        (status, [from, to]) if status != 410 => Ok((status, from, Some(to))),
        _ => Err((
            "the directive does not have a path and a target".to_owned(),
            "write `Redirect 301 /old /new`".to_owned(),
        )),
    }
}

/// Reads `Redirect`, which also redirects the paths below the path.
fn simple(spot: Spot, code: &str, arguments: &[&str], importer: &mut Importer) {
    let found = parts(code, arguments).map(|(status, from, to)| {
        // Both with a slash at the end: the rest of the path is inserted there.
        let folder = from.strip_suffix('/').filter(|_| from != "/");
        let redirect = |from: String, to: Option<String>| ImportedRedirect {
            from: from.replace('%', "%25").replace('*', "%2A"),
            query: BTreeMap::new(),
            to,
            status,
        };
        match (folder, to) {
            (Some(folder), Some(to)) if to.ends_with('/') => {
                let mut found = redirect(folder.to_owned(), Some(format!("{to}:splat")));
                found.from.push_str("/*");
                (found, false)
            }
            (_, to) => {
                let last = from.rsplit('/').next().unwrap_or_default();
                let is_file = last.contains('.');
                (
                    redirect(from.to_owned(), to.map(ToOwned::to_owned)),
                    !is_file,
                )
            }
        }
    });
    let below = found.as_ref().ok().filter(|(_, is_folder)| *is_folder);
    let below = below.map(|(redirect, _)| redirect.from.clone());
    importer.add(spot, found.map(|(redirect, _)| redirect));
    if let Some(from) = below {
        let message =
            format!("Apache also redirects the paths below `{from}`; the line here does not");
        let hint = format!(
            "if visitors request such paths, write `{}/*`",
            from.trim_end_matches('/')
        );
        importer.refuse(spot, (message, hint));
    }
}

/// Reads `RedirectMatch`.
fn matching(spot: Spot, code: &str, arguments: &[&str], importer: &mut Importer) {
    let found = parts(code, arguments).and_then(|(status, from, to)| {
        let (from, has_group) = pattern::old_path(from)?;
        let to = to.map(|to| pattern::target(to, has_group)).transpose()?;
        Ok(ImportedRedirect {
            from,
            query: BTreeMap::new(),
            to,
            status,
        })
    });
    importer.add(spot, found);
}
