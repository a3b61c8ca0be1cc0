//! Checks a text against a `format` of the JSON Schemas.

use crate::formats::app_facts::check_app_format;
use crate::formats::link::parse_link;
use crate::formats::old_path::{check_splat, parse_old_path};
use crate::formats::reserved_path::{RESERVED_PATH_HINT, reserved_message};
use crate::formats::values::is_email;
use crate::name::reserved::{hides_reserved_path, is_reserved};
use crate::name::{ascii_host, exported, is_route_path};

/// Checks a text against its format.
///
/// # Errors
/// The problem, and the text to write instead.
pub fn check_format(format: &str, text: &str) -> Result<(), (String, Option<String>)> {
    let fail = |message: String, hint: &str| Err((message, Some(hint.to_owned())));
    match format {
        "date" => match text.parse::<jiff::civil::Date>() {
            Ok(_) if text.len() == 10 => Ok(()),
            _ => fail(
                format!("`{text}` is not a valid date"),
                "write it as year, month and day: 2025-07-21",
            ),
        },
        "date-time" if text.parse::<jiff::Timestamp>().is_err() => fail(
            format!("`{text}` is not a valid date-time"),
            "write it as date, time and offset from UTC: 2026-12-01T09:00:00-06:00",
        ),
        "colour" => {
            let digits = text.strip_prefix('#').unwrap_or("");
            if digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                Ok(())
            } else {
                fail(
                    format!("`{text}` is not a valid colour"),
                    "write it as \"#1f4fa3\", in quotes",
                )
            }
        }
        "hostname" if !text.contains('.') || ascii_host(text).is_none() => fail(
            format!("`{text}` is not a valid host name"),
            "write it without scheme, port or path: corner.example",
        ),
        "route" | "prefix" if !is_route_path(text) || text == "/" => fail(
            format!("`{text}` is not a valid path"),
            "begin with `/`, do not end with `/`, and use only letters, digits, `-`, `.`, `_` and `~`",
        ),
        "web-url" if text.contains(|sign: char| sign.is_whitespace() || sign.is_control()) => fail(
            format!("`{}` contains a space or a line break", text.escape_debug()),
            "write `%20` for a space",
        ),
        "route" if is_reserved(text) => fail(reserved_message(text), RESERVED_PATH_HINT),
        "prefix" if hides_reserved_path(text) => fail(reserved_message(text), RESERVED_PATH_HINT),
        "prefix" if exported::check_own(text).is_err() => fail(
            format!("`{text}` cannot be exported"),
            "choose another path; `404`, `index` and names that end in `.html` have a special meaning on static hosts",
        ),
        "web-url" => match url::Url::parse(text) {
            Ok(address) if matches!(address.scheme(), "http" | "https") => Ok(()),
            Ok(address) => fail(
                format!(
                    "`{text}` is not a valid web address: its scheme is `{}`",
                    address.scheme()
                ),
                "begin with `https://`",
            ),
            Err(error) => fail(
                format!("`{text}` is not a valid web address: {error}"),
                "begin with `https://`",
            ),
        },
        "email" if !is_email(text) => fail(
            format!("`{text}` is not a valid e-mail address"),
            "write it as name@domain",
        ),
        "user-name" if text.is_empty() || text.contains(':') || text.contains(char::is_control) => {
            fail(
                format!("`{}` is not a valid user name", text.escape_debug()),
                "write at least one character, without `:` and line breaks",
            )
        }
        "sha256" if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) => fail(
            // A token that was written in place of its hash must not be in a log.
            "the value is not a SHA-256".to_owned(),
            "write 64 hexadecimal digits, as `rowhouse token` prints them; the token itself does not belong in the file",
        ),
        "language" if !is_language(text) => fail(
            format!("`{text}` is not a valid language tag"),
            "write a tag such as `en`, `de` or `pt-BR`",
        ),
        "time-zone" if jiff::tz::TimeZone::get(text).is_err() => fail(
            format!("`{text}` is not a valid time zone"),
            "write an IANA name such as Europe/Berlin",
        ),
        "fragment" if text.is_empty() || text.contains(char::is_whitespace) => fail(
            format!("`{}` is not a valid fragment", text.escape_debug()),
            "write one word, or join words with hyphens: opening-hours",
        ),
        "link" => parse_link(text).map(drop),
        "old-path" => parse_old_path(text).map(drop),
        "redirect-target" => parse_link(text).and_then(|_| check_splat(text)),
        _ => check_app_format(format, text)
            .unwrap_or(Ok(()))
            .or_else(|(message, hint)| fail(message, hint)),
    }
}

/// Returns whether a text has the form of a language tag (RFC 5646, section 2.1): letters, then subtags of letters and digits.
fn is_language(text: &str) -> bool {
    let mut parts = text.split('-');
    let first = parts.next().unwrap_or_default();
    (2..=8).contains(&first.len())
        && first.bytes().all(|byte| byte.is_ascii_alphabetic())
        && parts.all(|part| {
            (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
}

/// Checks a text against a format of a theme's schemas, where each path must be the path of an existing page.
///
/// # Errors
/// The problem, and the text to write instead.
pub fn check_value(format: &str, text: &str) -> Result<(), (String, Option<String>)> {
    match format {
        "route" | "collection" if text != "/" && !is_route_path(text) => Err((
            format!("`{text}` is not a valid path"),
            Some("write the path of a page of this tenant: /blog".to_owned()),
        )),
        "route" | "collection" => Ok(()),
        _ => check_format(format, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_format_accepts_paths_tenants_company_facts_and_urls() {
        for good in [
            "/",
            "/terms#fees",
            "#top",
            "studio:/contact",
            "company:email",
            "https://a.example/x?y",
            "mailto:a@b.example",
            "tel:+1-312-555-0142",
        ] {
            assert_eq!(check_format("link", good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "terms",
            "//cdn.example/x",
            "#",
            "company:fax",
            "javascript:alert(1)",
            "javascript://%0aalert(1)",
            "vbscript://x",
            "data://x",
            "data:text/html,x",
            "https://",
            "mailto:nobody",
            "Studio:/x",
            "studio:contact",
        ] {
            assert!(check_format("link", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn date_is_a_day_that_exists() {
        assert!(check_format("date", "2024-02-29").is_ok());
        for bad in [
            "2025-02-29",
            "2025-7-1",
            "21.07.2025",
            "2025-07-21T00:00:00",
            "",
        ] {
            assert!(check_format("date", bad).is_err(), "{bad}");
        }
    }
}
