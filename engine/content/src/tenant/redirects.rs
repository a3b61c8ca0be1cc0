//! Checks the redirects of a manifest: each has a path and conditions of its own, and a target unless its status is 410.
//!
//! Chains of redirects are found with the rendered pages, which decide where a wildcard applies.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::manifest::{Manifest, QueryValue, RedirectStatus};
use super::page::Page;
use crate::formats::old_path::{ParsedOldPath, SPLAT};
use crate::name::reserved::FEED;
use crate::report::{Code, Diagnostic, Report, Severity};
use crate::schema::FormattedText;

/// Reports redirects whose path has another use, that are written twice, or whose target does not fit.
pub(super) fn check(
    (manifest, formatted): (&Manifest, &[FormattedText]),
    pages: &[Page],
    (file, text): (&str, Option<&String>),
    report: &mut Report,
) {
    let paths = |page| Page::paths(page).map(move |path| (path, page));
    // The first page with a path is its owner.
    let owners: HashMap<&str, &Page> = pages.iter().rev().flat_map(paths).collect();
    let feeds: HashSet<String> = pages
        .iter()
        .filter(|page| {
            let collection = page.front.collection.as_ref();
            collection.is_some_and(|collection| collection.feed)
        })
        .map(|page| format!("{}{FEED}", page.path.trim_end_matches('/')))
        .collect();
    let mut seen: HashSet<(ParsedOldPath, &BTreeMap<String, QueryValue>)> = HashSet::new();
    // In the order of the file, as the redirects are.
    let of_format = |format| formatted.iter().filter(move |text| text.format == format);
    let (mut froms, mut targets) = (of_format("old-path"), of_format("redirect-target"));
    for redirect in &manifest.redirects {
        let from = froms.next();
        let to = redirect.to.as_ref().and_then(|_| targets.next());
        let old = redirect.old_path();
        let written = redirect.from.as_str();
        let is_gone = redirect.status == RedirectStatus::Gone;
        let own_path = redirect.own_path();
        let owner = own_path.as_deref().and_then(|path| owners.get(path));
        let has_splat = (redirect.to.as_ref()).is_some_and(|to| to.as_str().contains(SPLAT));
        let (code, message, hint, at) = if let Some(page) = owner {
            let message = format!("`{}` already has the path `{}`", page.file, old.path);
            (Code::PathTwice, message, UNUSED_HINT, from)
        } else if own_path.is_some_and(|path| feeds.contains(&path)) {
            let message = format!("`{}` is the feed of a collection", old.path);
            let hint = "choose another path, or remove `feed: true` from the collection";
            (Code::PathTwice, message, hint, from)
        } else if !seen.insert((old.clone(), &redirect.query)) {
            let message = format!("the path `{written}` is redirected twice");
            (Code::PathTwice, message, UNUSED_HINT, from)
        } else if redirect.to.is_none() && !is_gone {
            let message = format!("the redirect from `{written}` has no target");
            let hint = "add `to:`, or write `status: 410` for a page that was removed";
            (Code::MissingKey, message, hint, from)
        } else if redirect.to.is_some() && is_gone {
            let message = format!("`{written}` has status 410 and a target");
            let hint = "remove `to:`, or write another status";
            (Code::BadValue, message, hint, to)
        } else if has_splat && !old.is_wildcard {
            let message = format!("`{written}` has no `*` that `:splat` can stand for");
            let hint = "end `from` with `/*`, or write the complete target";
            (Code::BadValue, message, hint, to)
        } else {
            continue;
        };
        report.add(Severity::Error, code, file, || {
            let diagnostic = Diagnostic::error(code, file, message).hint(hint);
            match (at, text) {
                (Some(at), Some(text)) => diagnostic.at(at.position, text),
                _ => diagnostic,
            }
        });
    }
}

const UNUSED_HINT: &str =
    "redirect only unused paths, each path once; a page with a `query:` may be redirected";
