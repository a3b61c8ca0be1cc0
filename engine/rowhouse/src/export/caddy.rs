//! The configuration of a host for Caddy, to import in the site block whose `root` is the host's folder.
//!
//! A `map` has the file or target of each path, with its status and its header fields. The first line that matches counts.
//!
//! **Invariant:** knows no snapshot, only [`PathResponses`].

use std::fmt::Write as _;

use percent_encoding::utf8_percent_encode;

use super::by_path::{PathResponse, PathResponses, author_target, keeping_query};
use super::redirects::{
    LocalRedirect, LocalResponse, UNSAFE_REST, parameter_pattern, rest_pattern,
};
use super::rules::IN_A_PATH;

const TITLE: &str = "# Written by `rowhouse export --for caddy`. Import it in the site block of this host, whose `root` is the folder beside this file.";
/// The first line of the map. Caddy evaluates a map at each use of its values, also after `rewrite` has changed the path. So the map uses the path of the original request.
const MAP: &str = "map {http.request.orig_uri.path} {rowhouse_target} {rowhouse_status} {rowhouse_fields} {rowhouse_joint} {rowhouse_fragment} {\n";
/// The directives after the map. A redirect appends the query of the request to its target, if the target may have a query: then it has a joint, `?` or `&`.
const REST: &str = "@moved vars {rowhouse_status} 301 302 307 308
@moved_with_query {
	vars {rowhouse_joint} ? &
	expression `{http.request.uri.query} != \"\"`
}
redir @moved_with_query {rowhouse_target}{rowhouse_joint}{http.request.uri.query}{rowhouse_fragment} {rowhouse_status}
redir @moved {rowhouse_target}{rowhouse_fragment} {rowhouse_status}
@moved_for_now vars {rowhouse_status} 302 307
header @moved_for_now Cache-Control no-store
rewrite {rowhouse_target}
@gone vars {rowhouse_status} 410
@lost vars {rowhouse_status} 404
";

/// Returns the configuration. `compressed` says whether files have compressed forms beside them.
pub(super) fn written(responses: &PathResponses, compressed: bool) -> String {
    let mut text = format!("{TITLE}\n");
    // Writing into a String cannot fail.
    if let Some(origin) = &responses.moved {
        let _ = writeln!(text, "redir {} 308", quoted(&format!("{origin}{{uri}}")));
        return text;
    }
    text.push_str(MAP);
    for (path, response) in &responses.paths {
        let path = quoted(path);
        let _ = match response {
            PathResponse::File { file, fields } => {
                writeln!(text, "\t{path} {} 200 {fields}", quoted(&address(file)))
            }
            // The target of a temporary redirect is a file, which needs no query.
            PathResponse::Redirect { target, status } => {
                writeln!(
                    text,
                    "\t{path} {}",
                    redirect_row(target, *status, *status == 308)
                )
            }
        };
    }
    for (path, row) in exact_rows(responses) {
        let _ = writeln!(text, "\t{} {row}", quoted(&path));
    }
    for (area, file, fields) in responses.areas() {
        let file = quoted(&address(file));
        let _ = match area {
            "" => writeln!(text, "\tdefault {file} 404 {fields}"),
            area => {
                let pattern = quoted(&format!("~^{}(/.*)?$", area.replace('.', r"\.")));
                writeln!(text, "\t{pattern} {file} 404 {fields}")
            }
        };
    }
    text.push_str("}\n");
    for (number, fields) in responses.fields.iter().enumerate() {
        let _ = writeln!(text, "@fields{number} vars {{rowhouse_fields}} {number}");
        let _ = writeln!(text, "header @fields{number} {{");
        for (name, value) in fields {
            let _ = writeln!(text, "\t{name} {}", quoted(value));
        }
        text.push_str("}\n");
    }
    let (before, gone) = author_redirects(responses);
    text.push_str(&before);
    text.push_str(REST);
    let precompressed = match compressed {
        true => "\tprecompressed br gzip\n",
        false => "",
    };
    let gone = gone.iter().map(String::as_str).chain(["@gone "]);
    let gone = gone.map(|matcher| (matcher, "\tstatus 410\n"));
    for (matcher, status) in gone.chain([("@lost ", "\tstatus 404\n"), ("", "")]) {
        let _ = writeln!(
            text,
            "file_server {matcher}{{\n\tdisable_canonical_uris\n{precompressed}{status}}}"
        );
    }
    text
}

/// Returns the values of a row of the map for a redirect. `keeps_query`: whether the query of the request is appended.
fn redirect_row(target: &str, status: u16, keeps_query: bool) -> String {
    let (address, joint, fragment) = match keeping_query(target) {
        Some(parts) if keeps_query => parts,
        _ => (target, '-', ""),
    };
    let row = format!("{} {status} - {joint}", quoted(address));
    match fragment {
        "" => row,
        fragment => format!("{row} {}", quoted(fragment)),
    }
}

/// Returns the paths with redirects of exactly this path, with and without a trailing slash, and whether they have a slash.
fn exact_paths(responses: &PathResponses) -> impl Iterator<Item = (&str, bool)> {
    let paths = responses.redirects.paths();
    paths.flat_map(|path| {
        let with_slash = (path != "/").then_some((path, true));
        [(path, false)].into_iter().chain(with_slash)
    })
}

/// Returns the path as requested, with its slash.
fn requested(path: &str, has_slash: bool) -> String {
    format!("{path}{}", if has_slash { "/" } else { "" })
}

/// Returns the rows of the map for redirects that authors wrote without conditions, by path.
fn exact_rows(responses: &PathResponses) -> Vec<(String, String)> {
    let rows = exact_paths(responses).filter_map(|(path, has_slash)| {
        let is_taken = responses.paths.contains_key(path);
        let redirects = responses.redirects.at(path, is_taken, has_slash);
        let last = redirects.last().filter(|redirect| redirect.is_last())?;
        let row = match &last.response {
            LocalResponse::Redirect { status, start, .. } => {
                redirect_row(&author_target(start), *status, true)
            }
            LocalResponse::Gone => {
                let (file, fields) = responses.not_found_of(path)?;
                format!("{} 410 {fields}", quoted(&address(file)))
            }
        };
        Some((requested(path, has_slash), row))
    });
    rows.collect()
}

/// Returns the matchers and directives of the redirects that are not in the map, and the matchers of responses with status 410.
///
/// First come exact redirects of a path with conditions, then wildcards, which apply only where the map has status 404. Caddy tries the directives in their order.
fn author_redirects(responses: &PathResponses) -> (String, Vec<String>) {
    let mut written = AuthorRedirects::default();
    for (path, has_slash) in exact_paths(responses) {
        let is_taken = responses.paths.contains_key(path);
        let requested = json(&requested(path, has_slash));
        let redirects = responses.redirects.at(path, is_taken, has_slash);
        for redirect in redirects.iter().filter(|redirect| !redirect.is_last()) {
            let matcher = Matcher {
                needs_404: false,
                expressions: vec![format!("{{http.request.orig_uri.path}} == {requested}")],
                rest: None,
            };
            written.add(matcher, redirect, path, responses);
        }
    }
    for (prefix, redirect) in responses.redirects.wildcards() {
        let begin = json(&format!("{prefix}/"));
        let mut expressions = vec![
            format!("{{http.request.orig_uri.path}}.startsWith({begin})"),
            format!("!{{http.request.orig_uri}}.matches({})", json(UNSAFE_REST)),
        ];
        for mount in responses.redirects.mounts_below(redirect.mount) {
            let [own, below] = [json(mount), json(&format!("{mount}/"))];
            expressions.push(format!("{{http.request.orig_uri.path}} != {own} && !{{http.request.orig_uri.path}}.startsWith({below})"));
        }
        let rest = rest_pattern(redirect.depth, redirect.response.keeps_slash());
        let matcher = Matcher {
            needs_404: true,
            expressions,
            rest: Some(format!(r"{rest}(?:\?|$)")),
        };
        written.add(matcher, &redirect, prefix, responses);
    }
    (written.text, written.gone)
}

/// The requests of a directive.
struct Matcher {
    /// Whether the map must have status 404 for the path.
    needs_404: bool,
    /// Conditions in the Common Expression Language, all of which must hold.
    expressions: Vec<String>,
    /// A regular expression for the requested target, whose first group is inserted into the redirect's target.
    rest: Option<String>,
}

/// The directives of redirects, as they are written.
#[derive(Default)]
struct AuthorRedirects {
    text: String,
    gone: Vec<String>,
    count: usize,
}

impl AuthorRedirects {
    fn add(
        &mut self,
        mut matcher: Matcher,
        redirect: &LocalRedirect<'_>,
        path: &str,
        responses: &PathResponses,
    ) {
        let query = "{http.request.orig_uri.query}";
        matcher
            .expressions
            .extend(redirect.conditions.iter().map(|condition| {
                let pattern = format!("(?:^|&){}(?:&|$)", parameter_pattern(condition));
                format!("{query}.matches({})", json(&pattern))
            }));
        let (status, start, end) = match &redirect.response {
            LocalResponse::Gone => {
                let name = self.matcher(&matcher, None);
                if let Some((file, _)) = responses.not_found_of(path) {
                    // Writing into a String cannot fail.
                    let _ = writeln!(self.text, "rewrite {name} {}", quoted(&address(file)));
                }
                return self.gone.push(format!("{name} "));
            }
            LocalResponse::Redirect { status, start, end } => (status, start, end),
        };
        let target = |name: &str| match end {
            Some(end) => {
                let rest = format!("{{re.{}.1}}", name.trim_start_matches('@'));
                (author_target(start), rest, author_target(end))
            }
            None => (author_target(start), String::new(), String::new()),
        };
        for has_query in [true, false] {
            if !has_query && !redirect.is_last() {
                continue;
            }
            let name = self.matcher(&matcher, has_query.then_some(query));
            let (start, rest, end) = target(&name);
            // The inserted rest has braces, but neither `?` nor `#`.
            let target = match keeping_query(&format!("{start}{rest}{end}")) {
                Some((address, joint, fragment)) if has_query => {
                    format!("{address}{joint}{query}{fragment}")
                }
                _ => format!("{start}{rest}{end}"),
            };
            if matches!(status, 302 | 307) {
                let _ = writeln!(self.text, "header {name} Cache-Control no-store");
            }
            let _ = writeln!(self.text, "redir {name} {} {status}", quoted(&target));
        }
    }

    /// Writes a matcher and returns its name. `query`: a text that must not be empty.
    fn matcher(&mut self, matcher: &Matcher, query: Option<&str>) -> String {
        let name = format!("redirect{}", self.count);
        self.count += 1;
        let mut expressions = matcher.expressions.clone();
        expressions.extend(query.map(|query| format!("{query} != \"\"")));
        let _ = writeln!(self.text, "@{name} {{");
        if matcher.needs_404 {
            self.text.push_str("\tvars {rowhouse_status} 404\n");
        }
        let _ = writeln!(
            self.text,
            "\texpression {}",
            quoted(&expressions.join(" && "))
        );
        if let Some(rest) = &matcher.rest {
            let target = "{http.request.orig_uri}";
            let _ = writeln!(self.text, "\tvars_regexp {name} {target} {}", quoted(rest));
        }
        self.text.push_str("}\n");
        format!("@{name}")
    }
}

/// Returns a text as a literal of the Common Expression Language, which has the escapes of JSON.
fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn address(file: &str) -> String {
    format!("/{}", utf8_percent_encode(file, IN_A_PATH))
}

fn quoted(text: &str) -> String {
    match text.contains('`') {
        true => format!("\"{}\"", text.replace('"', "\\\"")),
        false => format!("`{text}`"),
    }
}
