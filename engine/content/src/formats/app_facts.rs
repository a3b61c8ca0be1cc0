//! Checks the formats of app data: identifiers of app stores, fingerprints and lines of `app-ads.txt`.
//!
//! **Invariant:** knows no tenant and no page.

/// Checks a text against a format of app data. The error is a message and a hint. Returns `None` for any other format.
pub(super) fn check_app_format(
    format: &str,
    text: &str,
) -> Option<Result<(), (String, &'static str)>> {
    let (fits, what, hint) = match format {
        "apple-team" => (
            is_team(text),
            "team ID",
            "write the 10 capital letters and digits from the membership page of the developer account: A1B2C3D4E5",
        ),
        "bundle-id" => (
            is_reverse_domain(text, |byte| byte.is_ascii_alphanumeric() || byte == b'-'),
            "bundle ID",
            "use letters, digits and `-` in at least two parts, with dots between the parts: com.example.app",
        ),
        "app-store-id" => (
            (6..=12).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit()),
            "App Store ID",
            "write only the digits after `id` in the app's address, in quotes: \"1234567890\"",
        ),
        "link-pattern" => (
            text.starts_with(['/', '*']) && text.bytes().all(|byte| byte.is_ascii_graphic()),
            "path pattern",
            "begin with `/`, and write `*` for any text: /invite/*",
        ),
        "android-package" => (
            is_package(text),
            "application ID",
            "use letters, digits and `_` in at least two parts that begin with a letter, with dots between the parts: com.example.app",
        ),
        "sha256-fingerprint" => (
            is_fingerprint(text),
            "SHA-256 fingerprint",
            "write 32 pairs of hexadecimal digits in capitals with `:` between the pairs, as printed by `keytool -list -v`",
        ),
        "ads-record" => (
            is_ads_record(text),
            "line of app-ads.txt",
            "write domain, account, `DIRECT` or `RESELLER`, and optionally a certification ID: ads.example, 1234, DIRECT",
        ),
        _ => return None,
    };
    Some(if fits {
        Ok(())
    } else {
        Err((format!("`{text}` is not a valid {what}"), hint))
    })
}

fn is_team(text: &str) -> bool {
    text.len() == 10
        && text
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
}

fn is_reverse_domain(text: &str, allowed: impl Fn(u8) -> bool) -> bool {
    text.contains('.')
        && text
            .split('.')
            .all(|part| !part.is_empty() && part.bytes().all(&allowed))
}

fn is_package(text: &str) -> bool {
    is_reverse_domain(text, |byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && text
            .split('.')
            .all(|part| part.starts_with(|first: char| first.is_ascii_alphabetic()))
}

fn is_fingerprint(text: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'A'..=b'F').contains(&byte);
    text.split(':').count() == 32
        && text
            .split(':')
            .all(|pair| pair.len() == 2 && pair.bytes().all(is_digit))
}

/// Returns whether a text is a record (app-ads.txt 1.0, section 3.4.1) or a variable such as `contact=`.
fn is_ads_record(text: &str) -> bool {
    let one_line = !text.contains(char::is_control);
    let fields: Vec<&str> = text.split(',').map(str::trim).collect();
    let record = (3..=4).contains(&fields.len())
        && fields.iter().all(|field| !field.is_empty())
        && fields[0].contains('.')
        && ["DIRECT", "RESELLER"].contains(&fields[2].to_ascii_uppercase().as_str());
    let variable = text.split_once('=').is_some_and(|(name, value)| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphabetic()) && !value.is_empty()
    });
    one_line && (record || variable)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(format: &str, text: &str) -> bool {
        check_app_format(format, text)
            .expect("a known format")
            .is_ok()
    }

    #[test]
    fn app_store_identifiers_are_checked() {
        let fingerprint = ["0F"; 32].join(":");
        for (format, good, bad) in [
            (
                "apple-team",
                vec!["A1B2C3D4E5"],
                vec!["a1b2c3d4e5", "A1B2C3D4E", "A1B2C3D4E5F", "A1B2-3D4E5"],
            ),
            (
                "bundle-id",
                vec!["com.example.app", "com.my-studio.App2"],
                vec![
                    "app",
                    "com..app",
                    "com.example.my_app",
                    ".com.app",
                    "com.app ",
                ],
            ),
            (
                "app-store-id",
                vec!["1234567890"],
                vec!["id1234567890", "12", "", "12345678901234"],
            ),
            (
                "link-pattern",
                vec!["/invite/*", "*"],
                vec!["invite", "/a b", ""],
            ),
            (
                "android-package",
                vec!["com.example.app", "com.example.my_app"],
                vec!["app", "com.1app.x", "com.my-studio.app", "com.app."],
            ),
            (
                "sha256-fingerprint",
                vec![fingerprint.as_str()],
                vec!["0F:0F", &fingerprint[1..], "0f:0f"],
            ),
            (
                "ads-record",
                vec![
                    "google.com, pub-123, DIRECT, f08c47fec0942fa0",
                    "ads.example,1,reseller",
                    "contact=ads@studio.example",
                ],
                vec![
                    "google.com",
                    "google.com, 1, MAYBE",
                    "a.example, , DIRECT",
                    "x\ny=1",
                ],
            ),
        ] {
            for text in good {
                assert!(fits(format, text), "{format}: {text}");
            }
            for text in bad {
                assert!(!fits(format, text), "{format}: {text}");
            }
        }
        assert!(check_app_format("colour", "#000000").is_none());
    }
}
