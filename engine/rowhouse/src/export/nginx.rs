//! The configuration of a host for nginx, to include in the `server` whose `root` is the host's folder.
//!
//! Each path has a location, which rewrites to the internal location of its header fields, such as `/:3/`. No exported path has a colon, so the two never collide.
//!
//! **Invariant:** knows no snapshot, only [`PathResponses`].

use std::fmt::Write as _;

use super::by_path::{PathResponse, PathResponses, keeping_query};

const TITLE: &str = "# Written by `rowhouse export --for nginx`. Include it in the `server` of this host, whose `root` is the folder beside this file.";

/// Returns the configuration. `compressed` says whether files have compressed forms beside them.
pub(super) fn written(responses: &PathResponses, compressed: bool) -> String {
    let mut text = format!("{TITLE}\nabsolute_redirect off;\n");
    // Writing into a String cannot fail.
    if let Some(origin) = &responses.moved {
        let _ = writeln!(text, "return 308 \"{origin}$request_uri\";");
        return text;
    }
    for (path, response) in &responses.paths {
        let directives = match response {
            PathResponse::File { file, fields } => {
                let own = path.strip_prefix('/').unwrap_or(path);
                // The path is captured and not repeated, since it may have a `$`, which begins a variable.
                match file.strip_prefix(own) {
                    Some(rest) if !own.is_empty() => {
                        format!("rewrite ^(.*)$ /:{fields}$1{rest} last;")
                    }
                    _ => format!("rewrite ^ /:{fields}/{file} last;"),
                }
            }
            PathResponse::Redirect { target, status } => redirect(target, *status),
        };
        let _ = writeln!(text, "location = {} {{ {directives} }}", quoted(path));
    }
    for (area, file, fields) in responses.areas() {
        let not_found = format!("error_page 404 /:{fields}/{file}; return 404;");
        let _ = writeln!(
            text,
            "location {} {{ {not_found} }}",
            quoted(&format!("{area}/"))
        );
        if !area.is_empty() && !responses.paths.contains_key(area) {
            let _ = writeln!(text, "location = {} {{ {not_found} }}", quoted(area));
        }
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

fn redirect(target: &str, status: u16) -> String {
    match (status, keeping_query(target)) {
        (302, _) => {
            let target = quoted(target);
            format!("add_header Cache-Control no-store always; return 302 {target};")
        }
        (status, None) => format!("return {status} {};", quoted(target)),
        (status, Some((address, '?', fragment))) => {
            let target = quoted(&format!("{address}$is_args$args{fragment}"));
            format!("return {status} {target};")
        }
        (status, Some((address, joint, fragment))) => {
            let more = quoted(&format!("{address}{joint}$args{fragment}"));
            let target = quoted(target);
            format!("if ($args) {{ return {status} {more}; }} return {status} {target};")
        }
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
