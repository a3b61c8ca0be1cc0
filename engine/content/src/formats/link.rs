//! Parses links as authors write them: `/terms`, `terms.md`, `../assets/plan.pdf`, `#fees`, `shop:/contact`, `company:email`, `https://...`, `mailto:...`, `tel:...`, `sms:...`, `geo:...`.
//!
//! **Invariant:** this is the only parser of links. A link that it refuses is reported to the author and never reaches an `href`.

use std::borrow::Cow;

use url::Url;

use crate::formats::values::is_email;
use crate::name::is_host_label;
use crate::name::reserved::ASSETS;
use crate::report::hint_for;

/// The company facts that a `company:` link can name.
pub const COMPANY_LINKS: [&str; 4] = ["email", "home", "network", "scheduling"];

/// Schemes that browsers would follow or run. No link may use them, so links to a tenant with such a name are impossible.
const FORBIDDEN_SCHEMES: [&str; 10] = [
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

/// The target of a link, as far as it can be checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkTarget {
    /// A page of this tenant: path and fragment. The path is empty for a fragment of the same page.
    SameTenant(String, Option<String>),
    /// A path relative to the file that contains the link. [`rooted`] resolves it.
    Relative,
    /// A page of another tenant: its id, path and fragment.
    OtherTenant(String, String, Option<String>),
    /// A company fact.
    Company(String),
    /// Another site: a complete URL.
    External,
}

/// Resolves a relative link in `file` against the tenant's root.
///
/// In `pages/blog/first.md`, `../terms.md#fees` and `../terms#fees` become `/terms#fees`, and `../../assets/plan.pdf` becomes `/assets/plan.pdf`. A link that is not relative, or points outside the tenant's folder, is returned unchanged.
#[must_use]
pub fn rooted<'a>(link: &'a str, file: &str) -> Cow<'a, str> {
    if !is_relative(link) {
        return Cow::Borrowed(link);
    }
    let (path, tail) = link.split_at(link.find(['?', '#']).unwrap_or(link.len()));
    match beside(path, file) {
        Some(found) => {
            let page = path_of(&found).or_else(|| page_without_extension(&found));
            Cow::Owned(page.unwrap_or_else(|| format!("/{found}")) + tail)
        }
        None => Cow::Borrowed(link),
    }
}

/// Returns the path of a page's file: `pages/blog/index.md` has the path `/blog`.
#[must_use]
pub fn path_of(file: &str) -> Option<String> {
    let inner = file.strip_prefix("pages/")?.strip_suffix(".md")?;
    let inner = match inner.strip_suffix("index") {
        Some(folder) if folder.is_empty() || folder.ends_with('/') => folder.trim_end_matches('/'),
        _ => inner,
    };
    Some(format!("/{inner}"))
}

/// Returns the path of a page that a relative link names without `.md`: `./prices`.
fn page_without_extension(found: &str) -> Option<String> {
    let inner = found.strip_prefix("pages")?;
    let name = inner.rsplit('/').next().unwrap_or_default();
    let is_page = (inner.is_empty() || inner.starts_with('/')) && !name.contains('.');
    match inner {
        "" => Some("/".to_owned()),
        inner => is_page.then(|| inner.to_owned()),
    }
}

/// Resolves a relative path in `file` within the tenant's folder (RFC 3986, section 5.2). Returns `None` if the path points outside the folder.
#[must_use]
pub fn beside(path: &str, file: &str) -> Option<String> {
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Returns whether a link is relative to its file: `./x`, `../x`, or a name with an extension.
///
/// A `:` before the first `/` would end a scheme (RFC 3986, section 4.2).
fn is_relative(link: &str) -> bool {
    let path = link.split(['?', '#']).next().unwrap_or_default();
    let first = path.split('/').next().unwrap_or_default();
    let last = path.rsplit('/').next().unwrap_or_default();
    let has_extension = last
        .rsplit_once('.')
        .is_some_and(|(stem, extension)| !stem.is_empty() && !extension.is_empty());
    !first.is_empty() && !first.contains(':') && (matches!(first, "." | "..") || has_extension)
}

/// Parses a link.
///
/// # Errors
/// The problem, and the text to write instead.
pub fn parse_link(link: &str) -> Result<LinkTarget, (String, Option<String>)> {
    let fail = |message: String, hint: &str| Err((message, Some(hint.to_owned())));
    // Browsers remove tabs and line ends from a URL, trim spaces, and read `\` as `/` (WHATWG URL, section 4.4).
    // File names may contain spaces, because their URL differs from the name.
    let names_a_file = link.starts_with(ASSETS) || is_relative(link);
    let strange = |character: char| {
        let is_space = character.is_whitespace() && !(names_a_file && character == ' ');
        is_space || character.is_control() || character == '\\'
    };
    if link.contains(strange) {
        return fail(
            format!(
                "`{}` contains a space, a line break or a `\\`",
                link.escape_debug()
            ),
            "write `%20` for a space, and `/` between the parts of a path",
        );
    }
    if link.starts_with("//") {
        return fail(format!("`{link}` has no scheme"), "begin with `https://`");
    }
    let (place, fragment) = match link.split_once('#') {
        Some((place, fragment)) => (place, Some(fragment.to_owned())),
        None => (link, None),
    };
    let path = place.split('?').next().unwrap_or_default();
    if let Some(address) = address_within(link, path) {
        return Err((
            format!("`{link}` has other characters before the URL of another site"),
            Some(format!("write `{address}`")),
        ));
    }
    let is_fragment = place.is_empty() && fragment.as_ref().is_some_and(|id| !id.is_empty());
    if path.starts_with('/') || is_fragment {
        return Ok(LinkTarget::SameTenant(path.to_owned(), fragment));
    }
    if is_relative(link) {
        return Ok(LinkTarget::Relative);
    }
    let Some((scheme, rest)) = link.split_once(':') else {
        return fail(
            format!("`{link}` is not a valid link"),
            "begin with `/` for a page of this tenant, write the name of the page's file (`terms.md`), or begin with `https://`",
        );
    };
    // Schemes are case-insensitive (RFC 3986, section 3.1).
    match scheme.to_ascii_lowercase().as_str() {
        "https" | "http" if rest.starts_with("//") => match Url::parse(link) {
            Ok(_) => Ok(LinkTarget::External),
            Err(error) => fail(
                format!("`{link}` is not a valid URL: {error}"),
                "write it as https://host/path",
            ),
        },
        "https" | "http" => fail(
            format!("`{link}` is not a valid URL: the host is missing"),
            "write it as https://host/path",
        ),
        "mailto" if has_recipients(rest) => Ok(LinkTarget::External),
        "tel" if is_number(rest) => Ok(LinkTarget::External),
        "sms" if is_number(rest.split(['?', ';']).next().unwrap_or_default()) => {
            Ok(LinkTarget::External)
        }
        "geo" if is_position(rest) => Ok(LinkTarget::External),
        "geo" => fail(
            format!("`{link}` is not a valid position"),
            "write latitude and longitude: geo:41.8827,-87.6233",
        ),
        "mailto" | "sms" | "tel" => fail(
            format!("`{link}` has no valid address or phone number"),
            "write it as mailto:name@domain, tel:+49-30-1234 or sms:+49-30-1234",
        ),
        "company" if COMPANY_LINKS.contains(&rest) => Ok(LinkTarget::Company(rest.to_owned())),
        "company" => Err((
            format!("`{link}` is not a valid link to a company fact"),
            Some(hint_for(rest, COMPANY_LINKS)),
        )),
        name if FORBIDDEN_SCHEMES.contains(&name) || rest.starts_with("//") => fail(
            format!("`{link}` has the scheme `{scheme}`, which is not allowed in links"),
            "use `https://`, or `tenant:/path` with one slash for another tenant",
        ),
        _ if is_host_label(scheme) && rest.starts_with('/') => {
            let path = path.split_once(':').map_or("/", |(_, path)| path);
            Ok(LinkTarget::OtherTenant(
                scheme.to_owned(),
                path.to_owned(),
                fragment,
            ))
        }
        _ => fail(
            format!("`{link}` is not a valid link"),
            "use a path, `tenant:/path`, `https://`, `mailto:`, `tel:`, `sms:` or `geo:`",
        ),
    }
}

/// Finds the URL of another site within a link that begins with something else: `assets/https://a.example`. Ignores URLs that contain another URL, such as the URLs of web archives.
fn address_within<'a>(link: &'a str, path: &str) -> Option<&'a str> {
    let before = path.find("://").map(|at| &path[..at])?;
    let at = ["https", "http"]
        .iter()
        .find_map(|scheme| before.strip_suffix(scheme))?
        .len();
    (at > 0).then(|| &link[at..])
}

fn is_number(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_digit() || b"+-.(),".contains(&byte);
    text.bytes().all(is_part) && text.bytes().any(|byte| byte.is_ascii_digit())
}

/// Returns whether a `mailto:` link has addresses, or fields without addresses (RFC 6068, section 2).
fn has_recipients(rest: &str) -> bool {
    match rest.split_once('?') {
        Some(("", fields)) => !fields.is_empty(),
        _ => {
            let addresses = rest.split('?').next().unwrap_or_default();
            addresses.split(',').all(is_email)
        }
    }
}

/// Returns whether a `geo:` link has a latitude and a longitude (RFC 5870, section 3.3).
fn is_position(rest: &str) -> bool {
    let numbers = rest.split(['?', ';']).next().unwrap_or_default();
    let numbers: Vec<Option<f64>> = numbers
        .split(',')
        .map(|number| {
            number
                .parse()
                .ok()
                .filter(|number: &f64| number.is_finite())
        })
        .collect();
    matches!(
        numbers.as_slice(),
        [Some(_), Some(_)] | [Some(_), Some(_), Some(_)]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_name_of_a_page_is_its_path() {
        for (file, path) in [
            ("pages/index.md", Some("/")),
            ("pages/terms.md", Some("/terms")),
            ("pages/blog/index.md", Some("/blog")),
            ("pages/blog/first.md", Some("/blog/first")),
            ("pages/my-index.md", Some("/my-index")),
            ("assets/x.md", None),
            ("pages/x.txt", None),
        ] {
            assert_eq!(path_of(file).as_deref(), path, "{file}");
        }
    }

    #[test]
    fn relative_link_resolves_against_the_tenant_root() {
        for (link, file, meant) in [
            ("terms.md", "pages/index.md", "/terms"),
            ("./terms.md#fees", "pages/index.md", "/terms#fees"),
            ("../terms.md?a#b", "pages/blog/first.md", "/terms?a#b"),
            ("index.md", "pages/blog/first.md", "/blog"),
            ("pages/terms.md", "tenant.yaml", "/terms"),
            (
                "../assets/50% off.png",
                "pages/index.md",
                "/assets/50% off.png",
            ),
            ("hall.jpg", "pages/blog/first.md", "/pages/blog/hall.jpg"),
            ("/terms", "pages/index.md", "/terms"),
            ("#fees", "pages/index.md", "#fees"),
            ("shop:/a.b", "pages/index.md", "shop:/a.b"),
            ("../../x.md", "pages/index.md", "../../x.md"),
            ("./prices#a", "pages/index.md", "/prices#a"),
            ("../prices", "pages/blog/first.md", "/prices"),
            ("./", "pages/blog/index.md", "/blog"),
            ("..", "pages/blog/first.md", "/"),
        ] {
            assert_eq!(rooted(link, file), meant, "{link} in {file}");
            assert!(parse_link(link).is_ok(), "{link}");
        }
        for bad in ["terms", "a b", " /x", "/a b", "x.md\ny", ".", "a/b/"] {
            assert!(parse_link(bad).is_err() || bad == ".", "{bad}");
        }
    }

    #[test]
    fn external_schemes_are_links() {
        for good in [
            "HTTPS://A.example/B",
            "MAILTO:post@a.example",
            "mailto:post@a.example,other@a.example?subject=x",
            "mailto:?subject=x",
            "Tel:+49-30-1234",
            "sms:+15551234?body=x",
            "sms:+15551234,+15551235",
            "geo:41.8827,-87.6233",
            "geo:41.8827,-87.6233;u=35",
            "geo:0,0?q=Chicago",
        ] {
            assert_eq!(parse_link(good), Ok(LinkTarget::External), "{good}");
        }
        for bad in [
            "sms:",
            "sms:home",
            "tel:",
            "geo:",
            "geo:Chicago",
            "geo:1",
            "JavaScript:/x",
            "mailto:?",
            "mailto:a@b.example,c",
        ] {
            assert!(parse_link(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn url_behind_other_characters_is_named() {
        for link in [
            "assets/https://a.example",
            "/https://a.example/b?c",
            "./http://a.example#b",
        ] {
            let (_, hint) = parse_link(link).expect_err(link);
            let at = link.find("http").expect("an address");
            assert_eq!(hint, Some(format!("write `{}`", &link[at..])), "{link}");
        }
        let archived = "https://archive.example/2020/https://a.example";
        assert_eq!(parse_link(archived), Ok(LinkTarget::External));
        let query = "/go?to=https://a.example";
        assert!(matches!(parse_link(query), Ok(LinkTarget::SameTenant(..))));
    }

    #[test]
    fn link_to_another_tenant_is_a_label_and_a_path_with_one_slash() {
        let other_tenant = |tenant: &str, path: &str, fragment: Option<&str>| {
            Ok(LinkTarget::OtherTenant(
                tenant.to_owned(),
                path.to_owned(),
                fragment.map(str::to_owned),
            ))
        };
        assert_eq!(parse_link("studio:/"), other_tenant("studio", "/", None));
        assert_eq!(
            parse_link("a:/b?c:/d#e"),
            other_tenant("a", "/b", Some("e"))
        );
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
            assert!(parse_link(bad).is_err(), "{bad}");
        }
    }
}
