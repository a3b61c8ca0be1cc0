//! The configuration of a host for nginx, to include in the `server` whose `root` is the host's folder.
//!
//! Each path has a location, which rewrites to the internal location of its header fields, such as `/:3/`. No exported path has a colon, so the two never collide.
//!
//! **Invariant:** knows no snapshot, only [`PathResponses`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::by_path::{PathResponse, PathResponses, author_target, keeping_query};
use super::redirects::{
    LocalRedirect, LocalResponse, UNSAFE_REST, parameter_pattern, rest_pattern,
};

const TITLE: &str = "# Written by `rowhouse export --for nginx`. Include it in the `server` of this host, whose `root` is the folder beside this file.";

/// Returns the configuration. `compressed` says whether files have compressed forms beside them.
pub(super) fn written(responses: &PathResponses, compressed: bool) -> String {
    let mut text = format!("{TITLE}\nabsolute_redirect off;\n");
    // Writing into a String cannot fail.
    if let Some(origin) = &responses.moved {
        let _ = writeln!(text, "return 308 \"{origin}$request_uri\";");
        return text;
    }
    for (path, response) in locations(responses) {
        let directives = match response {
            Some(PathResponse::File { file, fields }) => {
                let own = path.strip_prefix('/').unwrap_or(&path);
                // The path is captured and not repeated, since it may have a `$`, which begins a variable.
                match file.strip_prefix(own) {
                    Some(rest) if !own.is_empty() => {
                        format!("rewrite ^(.*)$ /:{fields}$1{rest} last;")
                    }
                    _ => format!("rewrite ^ /:{fields}/{file} last;"),
                }
            }
            Some(PathResponse::Redirect { target, status }) => redirect(target, *status),
            None => error(404, &path, responses),
        };
        let directives = after_redirects(exact_redirects(&path, responses), directives);
        let _ = writeln!(text, "location = {} {{ {directives} }}", quoted(&path));
    }
    for prefix in prefixes(responses) {
        let redirects = responses.redirects.below(prefix);
        // None is the last: a path with an empty segment matches no wildcard.
        let redirects = redirects.iter();
        let redirects = redirects.map(|redirect| (below(redirect, prefix, responses), false));
        let directives = after_redirects(redirects.collect(), error(404, prefix, responses));
        let location = quoted(&format!("{prefix}/"));
        let _ = writeln!(text, "location {location} {{ {directives} }}");
    }
    for (number, fields) in responses.fields.iter().enumerate() {
        let _ = writeln!(text, "location ^~ /:{number}/ {{");
        let _ = writeln!(text, "  internal;\n  rewrite ^/:{number}(/.*)$ $1 break;");
        if compressed {
            text.push_str("  gzip_static on;\n  gzip_vary on;\n");
        }
        for (name, value) in fields {
            let value = quoted(value);
            let _ = match name.as_str() {
                "Content-Type" => writeln!(text, "  types {{}}\n  default_type {value};"),
                name => writeln!(text, "  add_header {name} {value} always;"),
            };
        }
        text.push_str("}\n");
    }
    text
}

/// Returns all paths with a location of their own, with the response after their redirects; `None` is the 404 page.
///
/// A prefix has a location with and one without the slash, in which the rest of the requested path is empty.
fn locations(responses: &PathResponses) -> BTreeMap<String, Option<&PathResponse>> {
    let paths = responses.paths.iter();
    let mut locations: BTreeMap<String, Option<&PathResponse>> = paths
        .map(|(path, response)| (path.clone(), Some(response)))
        .collect();
    let areas = responses.not_found.keys().map(String::as_str);
    let areas = areas.filter(|area| !area.is_empty());
    for path in responses.redirects.paths().chain(areas) {
        locations.entry(path.to_owned()).or_default();
        if path != "/" {
            locations.entry(format!("{path}/")).or_default();
        }
    }
    locations
}

/// Returns the prefixes of all 404 pages and wildcards.
fn prefixes(responses: &PathResponses) -> BTreeSet<&str> {
    let mut prefixes = responses.redirects.prefixes();
    prefixes.extend(responses.not_found.keys().map(String::as_str));
    prefixes
}

/// Returns the directives for the redirects of exactly a path, each with whether it is the last.
fn exact_redirects(path: &str, responses: &PathResponses) -> Vec<(String, bool)> {
    let (own, has_slash) = match path.strip_suffix('/') {
        Some(own) if !own.is_empty() => (own, true),
        _ => (path, false),
    };
    let is_taken = responses.paths.contains_key(own);
    let redirects = responses.redirects.at(own, is_taken, has_slash);
    let directives = redirects.iter().map(|redirect| {
        let (conditions, is_last) = (query_pattern(redirect), redirect.is_last());
        let directives = match &redirect.response {
            LocalResponse::Gone => error(410, path, responses),
            LocalResponse::Redirect { status, start, .. } => {
                author_redirect(&author_target(start), *status, !is_last)
            }
        };
        let directives = match is_last {
            true => directives,
            false => format!(
                "if ($args ~ {}) {{ {directives} }}",
                quoted(&format!("^{conditions}"))
            ),
        };
        (directives, is_last)
    });
    directives.collect()
}

/// Returns the directives for a redirect of the paths below its prefix.
fn below(redirect: &LocalRedirect<'_>, prefix: &str, responses: &PathResponses) -> String {
    let safe = format!("^(?!{})", UNSAFE_REST.trim_start_matches('^'));
    let rest = rest_pattern(redirect.depth, redirect.response.keeps_slash());
    let path = safe + rest.trim_start_matches('^');
    let when = |end: &str, directives: String| {
        let pattern = quoted(&format!("{path}{end}"));
        format!("if ($request_uri ~ {pattern}) {{ {directives} }}")
    };
    let (status, target) = match &redirect.response {
        LocalResponse::Gone => return when(END, error(410, prefix, responses)),
        LocalResponse::Redirect { status, start, end } => {
            let start = author_target(start);
            let target = match end {
                Some(end) => format!("{start}$1{}", author_target(end)),
                None => start,
            };
            (*status, target)
        }
    };
    if !redirect.is_last() {
        let end = format!(r"\?{}", query_pattern(redirect));
        return when(&end, author_redirect(&target, status, true));
    }
    match keeping_query(&target) {
        // Two directives, since `if` cannot be nested.
        Some((_, '&', _)) => [
            when(r"\?.", author_redirect(&target, status, true)),
            when(END, answer(status, &target)),
        ]
        .join(" "),
        _ => when(END, author_redirect(&target, status, false)),
    }
}

/// The end of a path in a requested target.
const END: &str = r"(?:\?|$)";

/// Returns a regular expression that looks ahead for all parameters, at the start of a query.
fn query_pattern(redirect: &LocalRedirect<'_>) -> String {
    let conditions = redirect.conditions.iter();
    let conditions = conditions.map(|condition| {
        let parameter = parameter_pattern(condition);
        format!("(?=(?:.*&)?{parameter}(?:&|$))")
    });
    conditions.collect()
}

/// Joins the directives of redirects with the response after them, unless one of them is the last.
fn after_redirects(redirects: Vec<(String, bool)>, response: String) -> String {
    let is_complete = redirects.iter().any(|(_, is_last)| *is_last);
    let mut all: Vec<String> = redirects.into_iter().map(|(text, _)| text).collect();
    if !is_complete {
        all.push(response);
    }
    all.join(" ")
}

/// Returns the directives for the error page of a path.
fn error(status: u16, path: &str, responses: &PathResponses) -> String {
    match responses.not_found_of(path) {
        Some((file, fields)) => {
            format!("error_page {status} /:{fields}/{file}; return {status};")
        }
        None => format!("return {status};"),
    }
}

/// Returns the directives for a redirect that an author wrote. `has_query`: whether the query of the request is known not to be empty.
fn author_redirect(target: &str, status: u16, has_query: bool) -> String {
    match keeping_query(target) {
        Some((address, joint, fragment)) if has_query => {
            answer(status, &format!("{address}{joint}$args{fragment}"))
        }
        Some((address, '?', fragment)) => {
            answer(status, &format!("{address}$is_args$args{fragment}"))
        }
        Some((address, joint, fragment)) => {
            let with_query = answer(status, &format!("{address}{joint}$args{fragment}"));
            format!("if ($args) {{ {with_query} }} {}", answer(status, target))
        }
        None => answer(status, target),
    }
}

/// Returns the directives for a redirect. Caches do not store a temporary redirect.
fn answer(status: u16, target: &str) -> String {
    let no_store = match status {
        302 | 307 => "add_header Cache-Control no-store always; ",
        _ => "",
    };
    format!("{no_store}return {status} {};", quoted(target))
}

/// Returns the directives for a redirect of rowhouse itself. The target of a temporary redirect is a file, which needs no query.
fn redirect(target: &str, status: u16) -> String {
    match status {
        302 => answer(status, target),
        status => author_redirect(target, status, false),
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
