//! The configuration of a host for Caddy, to import in the site block whose `root` is the host's folder.
//!
//! A `map` has the file or target of each path, with its status and its header fields. The first line that matches counts.
//!
//! **Invariant:** knows no snapshot, only [`PathResponses`].

use std::fmt::Write as _;

use percent_encoding::utf8_percent_encode;

use super::by_path::{PathResponse, PathResponses, keeping_query};
use super::rules::IN_A_PATH;

const TITLE: &str = "# Written by `rowhouse export --for caddy`. Import it in the site block of this host, whose `root` is the folder beside this file.";
/// The first line of the map. Caddy evaluates a map at each use of its values, also after `rewrite` has changed the path. So the map uses the path of the original request.
const MAP: &str = "map {http.request.orig_uri.path} {rowhouse_target} {rowhouse_status} {rowhouse_fields} {rowhouse_joint} {rowhouse_fragment} {\n";
/// The directives after the map. A redirect appends the query of the request to its target, if the target may have a query: then it has a joint, `?` or `&`.
const REST: &str = "@moved vars {rowhouse_status} 302 308
@moved_with_query {
	vars {rowhouse_joint} ? &
	expression `{http.request.uri.query} != \"\"`
}
redir @moved_with_query {rowhouse_target}{rowhouse_joint}{http.request.uri.query}{rowhouse_fragment} 308
redir @moved {rowhouse_target}{rowhouse_fragment} {rowhouse_status}
@moved_for_now vars {rowhouse_status} 302
header @moved_for_now Cache-Control no-store
rewrite {rowhouse_target}
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
            PathResponse::Redirect { target, status } => {
                let (address, joint, fragment) = match keeping_query(target) {
                    Some((address, joint, fragment)) if *status == 308 => {
                        (address, joint, fragment)
                    }
                    _ => (target.as_str(), '-', ""),
                };
                let _ = write!(text, "\t{path} {} {status} - {joint}", quoted(address));
                match fragment {
                    "" => writeln!(text),
                    fragment => writeln!(text, " {}", quoted(fragment)),
                }
            }
        };
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
    text.push_str(REST);
    let precompressed = match compressed {
        true => "\tprecompressed br gzip\n",
        false => "",
    };
    for (matcher, status) in [("@lost ", "\tstatus 404\n"), ("", "")] {
        let _ = writeln!(
            text,
            "file_server {matcher}{{\n\tdisable_canonical_uris\n{precompressed}{status}}}"
        );
    }
    text
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
