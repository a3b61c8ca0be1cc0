//! `_redirects` of Netlify and Cloudflare Pages: `/old id=1 /new 301! Country=de`.

use std::collections::BTreeMap;

use super::imported::{ImportedRedirect, Importer, Refusal, Spot, status};

/// The status of a line without one, as Netlify reads it.
const DEFAULT_STATUS: u16 = 301;

pub(super) fn read(text: &str, importer: &mut Importer) {
    for (index, line) in text.lines().enumerate() {
        let words = line.split_whitespace();
        let words: Vec<&str> = words.take_while(|word| !word.starts_with('#')).collect();
        if words.is_empty() {
            continue;
        }
        let column = line.chars().take_while(|sign| sign.is_whitespace()).count() + 1;
        let line = index + 1;
        importer.add(Spot { line, column }, redirect(&words));
    }
}

fn redirect(words: &[&str]) -> Result<ImportedRedirect, Refusal> {
    let fail = |message: String, hint: &str| Err((message, hint.to_owned()));
    let (from, rest) = words.split_first().unwrap_or((&"", &[]));
    if !from.starts_with('/') {
        return fail(
            format!("`{from}` is a path of another host"),
            "list the host under `hosts:` of a tenant, and write the path only",
        );
    }
    if from.split('/').any(|segment| segment.starts_with(':')) {
        return fail(
            format!("`{from}` has a placeholder"),
            "write a redirect for each path, or `*` at the end",
        );
    }
    let is_target = |word: &&str| {
        word.starts_with('/') || word.starts_with("http://") || word.starts_with("https://")
    };
    let Some(at) = rest.iter().position(is_target) else {
        return fail(
            "the line has no target".to_owned(),
            "write the target behind the path",
        );
    };
    let mut query = BTreeMap::new();
    for parameter in &rest[..at] {
        match parameter.split_once('=') {
            Some((name, value)) if !value.starts_with(':') => {
                query.insert(name.to_owned(), value.to_owned());
            }
            _ => {
                return fail(
                    format!("`{parameter}` captures a parameter"),
                    "write a redirect for each value: query: {id: 1}",
                );
            }
        }
    }
    let mut after = rest[at + 1..].iter();
    let status = match after.next() {
        Some(code) => status(code.trim_end_matches('!'))?,
        None => DEFAULT_STATUS,
    };
    if let Some(condition) = after.next() {
        return fail(
            format!("`{condition}` is a condition on the visitor, which a manifest does not have"),
            "link to the page, or redirect all visitors",
        );
    }
    Ok(ImportedRedirect {
        from: (*from).to_owned(),
        query,
        to: (status != 410).then(|| rest[at].to_owned()),
        status,
    })
}
