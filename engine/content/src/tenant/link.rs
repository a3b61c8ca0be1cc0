//! What a link says, as authors write it: `/terms`, `#fees`, `shop:/contact`, `company:email`, `https://...`, `mailto:...`, `tel:...`.
//!
//! **Invariant:** there is one reader of links. What it refuses is told to the author, and never reaches an `href`.

use url::Url;

use super::values::is_email;
use crate::name::is_host_label;
use crate::report::hint_for;

/// The facts of the company that a `company:` link can name.
pub const COMPANY_LINKS: [&str; 4] = ["email", "home", "network", "scheduling"];

/// Schemes that a browser would follow or run, and that no link may name. So no link leads to a tenant of such a name.
const SCHEMES: [&str; 10] = [
    "about",
    "blob",
    "data",
    "file",
    "filesystem",
    "ftp",
    "javascript",
    "vbscript",
    "ws",
    "wss",
];

/// Where a link leads, as far as it can be checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A page of this tenant: path and fragment. The path is empty for a fragment of the same page.
    Own(String, Option<String>),
    /// A page of another tenant: its id, path and fragment.
    Neighbour(String, String, Option<String>),
    /// A fact of the company.
    Company(String),
    /// Somewhere else: a whole URL.
    Outside,
}

/// Reads a link.
///
/// # Errors
/// What is wrong with it, and what to write instead.
pub fn target(link: &str) -> Result<Target, (String, Option<String>)> {
    let bad = |message: String, hint: &str| Err((message, Some(hint.to_owned())));
    // Browsers drop tabs and line ends from a URL, cut spaces off, and take `\` for `/` (WHATWG URL, section 4.4).
    let strange =
        |character: char| character.is_whitespace() || character.is_control() || character == '\\';
    if link.contains(strange) {
        return bad(
            format!(
                "`{}` holds a space, a line end or a `\\`",
                link.escape_debug()
            ),
            "write `%20` for a space, and `/` between the parts of a path",
        );
    }
    if link.starts_with("//") {
        return bad(
            format!("`{link}` has no scheme"),
            "write `https:` before it",
        );
    }
    let (place, fragment) = match link.split_once('#') {
        Some((place, fragment)) => (place, Some(fragment.to_owned())),
        None => (link, None),
    };
    let path = place.split('?').next().unwrap_or_default();
    let is_fragment = place.is_empty() && fragment.as_ref().is_some_and(|id| !id.is_empty());
    if path.starts_with('/') || is_fragment {
        return Ok(Target::Own(path.to_owned(), fragment));
    }
    let Some((scheme, rest)) = link.split_once(':') else {
        return bad(
            format!("`{link}` leads nowhere that can be told"),
            "begin with `/` for a page of this tenant, or with `https://`",
        );
    };
    match scheme {
        "https" | "http" if rest.starts_with("//") => match Url::parse(link) {
            Ok(_) => Ok(Target::Outside),
            Err(error) => bad(
                format!("`{link}` is no URL: {error}"),
                "write it as https://host/path",
            ),
        },
        "https" | "http" => bad(
            format!("`{link}` is no URL: it names no host"),
            "write it as https://host/path",
        ),
        "mailto" if is_email(rest.split('?').next().unwrap_or("")) => Ok(Target::Outside),
        "tel" if is_number(rest) => Ok(Target::Outside),
        "mailto" | "tel" => bad(
            format!("`{link}` has no address"),
            "write it without spaces",
        ),
        "company" if COMPANY_LINKS.contains(&rest) => Ok(Target::Company(rest.to_owned())),
        "company" => Err((
            format!("the company has no `{rest}`"),
            Some(hint_for(rest, COMPANY_LINKS)),
        )),
        _ if SCHEMES.contains(&scheme) || rest.starts_with("//") => bad(
            format!("`{link}` has the scheme `{scheme}`, which a page may not link to"),
            "use `https://`, or `tenant:/path` with one slash for another tenant",
        ),
        tenant if is_host_label(tenant) && rest.starts_with('/') => {
            let path = path.split_once(':').map_or("/", |(_, path)| path);
            Ok(Target::Neighbour(
                tenant.to_owned(),
                path.to_owned(),
                fragment,
            ))
        }
        _ => bad(
            format!("`{link}` is no link that a page may hold"),
            "use a path, `tenant:/path`, `https://`, `mailto:` or `tel:`",
        ),
    }
}

fn is_number(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_digit() || b"+-.()".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_neighbour_is_a_label_and_a_path_with_one_slash() {
        let neighbour = |tenant: &str, path: &str, fragment: Option<&str>| {
            Ok(Target::Neighbour(
                tenant.to_owned(),
                path.to_owned(),
                fragment.map(str::to_owned),
            ))
        };
        assert_eq!(target("studio:/"), neighbour("studio", "/", None));
        assert_eq!(target("a:/b?c:/d#e"), neighbour("a", "/b", Some("e")));
        for bad in [
            "javascript://%0aalert(1)",
            "javascript:/alert(1)",
            "vbscript://x",
            "vbscript:/x",
            "data://x",
            "data:/text/html,x",
            "foo://x",
            "ftp://a.example/",
            "studio://contact",
            "studio:/\\evil.example",
            "https:evil.example",
            "/\\evil.example",
            "/\t/evil.example",
            " javascript:alert(1)",
            "java\nscript:alert(1)",
            "a?b:/c",
            "",
        ] {
            assert!(target(bad).is_err(), "{bad}");
        }
    }
}
