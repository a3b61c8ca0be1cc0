//! A host for Caddy: what stands in the site block whose `root` is the host's folder.
//!
//! A map says what file or target each path has, with what status and what header fields; the first line that fits counts.

use std::fmt::Write as _;

use percent_encoding::utf8_percent_encode;

use super::by_path::{Answers, PathResponse, keeping_query};
use super::rules::IN_A_PATH;

const TITLE: &str = "# What `rowhouse export --for caddy` wrote. Import it in the site block of this host, whose `root` is the folder beside this file.";
/// What is looked up is looked up again wherever it is named, also once the path has become that of the file: so it is the path that was requested.
const MAP: &str = "map {http.request.orig_uri.path} {rowhouse_target} {rowhouse_status} {rowhouse_fields} {rowhouse_joint} {rowhouse_fragment} {\n";
/// The query of the request follows that of the target. The joint is only there for a target that takes one.
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

/// The directives. `compressed`: whether files have their compressed forms beside them.
pub(super) fn written(answers: &Answers, compressed: bool) -> String {
    let mut text = format!("{TITLE}\n");
    // Writing into a String cannot fail.
    if let Some(origin) = &answers.moved {
        let _ = writeln!(text, "redir {} 308", quoted(&format!("{origin}{{uri}}")));
        return text;
    }
    text.push_str(MAP);
    for (path, answer) in &answers.paths {
        let path = quoted(path);
        let _ = match answer {
            PathResponse::File { file, fields } => {
                writeln!(text, "\t{path} {} 200 {fields}", quoted(&address(file)))
            }
            PathResponse::Elsewhere { target, status } => {
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
    for (area, file, fields) in answers.areas() {
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
    for (number, fields) in answers.fields.iter().enumerate() {
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
