//! Regular expressions that only name a path: `^/old/?$`, `^/old/(.*)$`, `^/old\.php$`.

use super::imported::Refusal;

/// Returns the old path that a regular expression names, and whether its first group is the rest of a wildcard.
pub(super) fn old_path(pattern: &str) -> Result<(String, bool), Refusal> {
    let refusal = || {
        let message = format!("`{pattern}` is not a path, or the start of paths, from `^` to `$`");
        (message, "write each path, or `*` at its end".to_owned())
    };
    let rest = pattern.strip_prefix('^').ok_or_else(refusal)?;
    let (rest, is_closed) = match rest.strip_suffix('$') {
        Some(rest) if !rest.ends_with('\\') => (rest, true),
        _ => (rest, false),
    };
    let (path, is_wildcard, has_group) = if let Some(path) = rest.strip_suffix("/(.*)") {
        (path, true, true)
    } else if let Some(path) = rest.strip_suffix("/(.+)") {
        (path, true, true)
    } else if let Some(path) = rest.strip_suffix("/.*") {
        (path, true, false)
    } else if let (Some(path), false) = (rest.strip_suffix('/'), is_closed) {
        (path, true, false)
    } else if is_closed {
        (rest.strip_suffix("/?").unwrap_or(rest), false, false)
    } else {
        // Without `$`, `^/old` also matches `/older`.
        return Err(refusal());
    };
    let literal = literal(path).ok_or_else(refusal)?;
    // A character of a path that a manifest reads otherwise.
    let literal = literal.replace('%', "%25").replace('*', "%2A");
    Ok(match is_wildcard {
        true => (format!("{literal}/*"), has_group),
        false => (literal, false),
    })
}

/// Returns the text that a regular expression without operators matches.
fn literal(pattern: &str) -> Option<String> {
    let mut text = String::new();
    let mut signs = pattern.chars();
    while let Some(sign) = signs.next() {
        match sign {
            '\\' => text.push(signs.next().filter(|sign| !sign.is_alphanumeric())?),
            // Authors forget to escape dots: a dot in a path stands for itself.
            '(' | ')' | '[' | ']' | '{' | '}' | '*' | '+' | '?' | '|' | '^' | '$' => return None,
            sign => text.push(sign),
        }
    }
    Some(text)
}

/// Returns a target with `:splat` in place of the first group.
pub(super) fn target(written: &str, has_group: bool) -> Result<String, Refusal> {
    let refusal = || {
        let message = format!("`{written}` has a variable or group that a manifest does not have");
        (message, "write the complete target".to_owned())
    };
    let target = match written.matches('$').count() {
        0 => written.to_owned(),
        1 if has_group => written.replacen("$1", ":splat", 1),
        _ => return Err(refusal()),
    };
    match target.contains('$') {
        true => Err(refusal()),
        false => Ok(target),
    }
}
