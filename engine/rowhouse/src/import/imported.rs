//! An imported redirect, and the checks that a manifest would make.
//!
//! **Invariant:** knows no syntax of another server.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use content::formats::check_format;
use content::formats::old_path::parse_old_path;
use serde_json::Value as Json;

/// The redirects of a file.
#[derive(Debug, Default)]
pub struct ImportedRedirects {
    /// The redirects, in the order of the file.
    pub redirects: Vec<ImportedRedirect>,
    /// The lines that a manifest cannot express, in the order of the file.
    pub problems: Vec<ImportProblem>,
}

/// A redirect for `redirects` of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedRedirect {
    /// The old path.
    pub from: String,
    /// The parameters that the query must have.
    pub query: BTreeMap<String, String>,
    /// The target; absent with status 410.
    pub to: Option<String>,
    /// The status.
    pub status: u16,
}

/// A line, or a part of a line, that a manifest cannot express.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportProblem {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The reason.
    pub message: String,
    /// The fix.
    pub hint: String,
}

/// The reason why a rule is not carried over, and the fix.
pub(super) type Refusal = (String, String);

/// The position of a rule in its file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spot {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl fmt::Display for ImportedRedirect {
    /// Writes the redirect as a line of YAML.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "  - {{from: {}", scalar(&self.from))?;
        if !self.query.is_empty() {
            let parameters: Vec<String> = self
                .query
                .iter()
                .map(|(name, value)| format!("{}: {}", scalar(name), quoted(value)))
                .collect();
            write!(formatter, ", query: {{{}}}", parameters.join(", "))?;
        }
        if let Some(to) = &self.to {
            write!(formatter, ", to: {}", scalar(to))?;
        }
        if self.status != 308 {
            write!(formatter, ", status: {}", self.status)?;
        }
        formatter.write_str("}")
    }
}

/// Returns a text as a scalar of a YAML flow mapping, quoted if needed (YAML 1.2, section 7.3).
fn scalar(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.".contains(&byte);
    match text.starts_with('/') && text.bytes().all(is_plain) {
        true => text.to_owned(),
        false => quoted(text),
    }
}

/// Returns a text in quotes. A JSON string is a double-quoted scalar of YAML.
fn quoted(text: &str) -> String {
    Json::from(text).to_string()
}

/// Collects redirects, and refuses those that a manifest would not accept.
#[derive(Debug, Default)]
pub(super) struct Importer {
    pub(super) imported: ImportedRedirects,
    seen: HashSet<(String, BTreeMap<String, String>)>,
}

impl Importer {
    pub(super) fn add(&mut self, spot: Spot, found: Result<ImportedRedirect, Refusal>) {
        match found.and_then(|redirect| self.checked(redirect)) {
            Ok(redirect) => self.imported.redirects.push(redirect),
            Err(refusal) => self.refuse(spot, refusal),
        }
    }

    pub(super) fn refuse(&mut self, Spot { line, column }: Spot, (message, hint): Refusal) {
        self.imported.problems.push(ImportProblem {
            line,
            column,
            message,
            hint,
        });
    }

    fn checked(&mut self, redirect: ImportedRedirect) -> Result<ImportedRedirect, Refusal> {
        let refused = |(message, hint): (String, Option<String>)| {
            let by_hand = || "write the redirect by hand".to_owned();
            (message, hint.unwrap_or_else(by_hand))
        };
        let old = parse_old_path(&redirect.from).map_err(refused)?;
        if let Some(to) = &redirect.to {
            check_format("redirect-target", to).map_err(refused)?;
            if to.contains(":splat") && !old.is_wildcard {
                let message = format!("`{}` has no `*` that `:splat` can stand for", redirect.from);
                return Err((message, "write the complete target".to_owned()));
            }
        }
        let key = format!("{}{}", old.path, if old.is_wildcard { "/*" } else { "" });
        if !self.seen.insert((key, redirect.query.clone())) {
            let message = format!("`{}` is redirected by an earlier line", redirect.from);
            let hint = "nothing is to be done: the first line counts";
            return Err((message, hint.to_owned()));
        }
        Ok(redirect)
    }
}

/// Returns the status of a redirect, if a manifest has it.
pub(super) fn status(code: &str) -> Result<u16, Refusal> {
    match code {
        "301" | "302" | "307" | "308" | "410" => Ok(code.parse().unwrap_or_default()),
        "303" => Err((
            "303 is the response to a form, which no page of rowhouse has".to_owned(),
            "redirect with status 302".to_owned(),
        )),
        "404" => Err((
            "a manifest has no rules for 404 pages".to_owned(),
            "remove the line; the theme has a 404 page".to_owned(),
        )),
        "200" => Err((
            "status 200 shows another page at the path, which is not a redirect".to_owned(),
            "add the path to `aliases:` of the page".to_owned(),
        )),
        code => Err((
            format!("a redirect cannot have the status `{code}`"),
            "use 301, 302, 307, 308 or 410".to_owned(),
        )),
    }
}
