//! The file names of pages in an export: the page at `/terms` is the file `terms.html`.
//!
//! Static hosts give some file names a special meaning. A path with such a name would be another page there, or no page.

use super::folded;

/// The name of the 404 page in each folder of an export.
pub const NOT_FOUND: &str = "404";

/// The name of the page of a folder.
pub const INDEX: &str = "index";

/// The extension of page files.
const PAGE_EXTENSION: &str = ".html";

/// The largest length of a path segment in bytes. File systems allow 255, including the extensions `.html` and `.br`.
const MAX_SEGMENT_BYTES: usize = 240;

/// The largest length of a path in bytes.
const MAX_PATH_BYTES: usize = 1_000;

/// Returns the file of a page: `/` is `index.html`; `/terms` and `/terms.html` are `terms.html`.
#[must_use]
pub fn file_of_page(path: &str) -> String {
    match path.trim_start_matches('/') {
        "" => format!("{INDEX}{PAGE_EXTENSION}"),
        name if name.ends_with(PAGE_EXTENSION) => name.to_owned(),
        name => format!("{name}{PAGE_EXTENSION}"),
    }
}

/// Returns a key that two pages must not share: their file name on a case-insensitive file system.
#[must_use]
pub fn key(path: &str) -> String {
    folded(&file_of_page(path))
}

/// Checks whether a page can have `path` as an alias, for example its path on another server.
///
/// # Errors
/// The reason, as a clause that follows a colon.
pub fn check_alias(path: &str) -> Result<(), &'static str> {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let is_folder = |segment: &str| folded(segment).ends_with(PAGE_EXTENSION);
    if path.len() > MAX_PATH_BYTES
        || path
            .split('/')
            .any(|segment| segment.len() > MAX_SEGMENT_BYTES)
    {
        Err("it is too long for a file name in an export")
    } else if folded(name.strip_suffix(PAGE_EXTENSION).unwrap_or(name)) == NOT_FOUND {
        Err("an export uses this name for the 404 page")
    } else if folders.split('/').any(is_folder) {
        Err("a folder of an export cannot have a name that ends in `.html`")
    } else {
        Ok(())
    }
}

/// Checks whether a text file can have `path`. Its file in an export has the same name.
///
/// # Errors
/// The reason, as a clause that follows a colon.
pub fn check_text(path: &str) -> Result<(), &'static str> {
    check_alias(path)?;
    match path {
        "/_headers" | "/_redirects" => {
            Err("static hosts read this file of an export as configuration")
        }
        _ => Ok(()),
    }
}

/// Checks whether a page can have `path` as its own, or a tenant as its prefix.
///
/// # Errors
/// The reason, as a clause that follows a colon.
pub fn check_own(path: &str) -> Result<(), &'static str> {
    let name = path.rsplit('/').next().unwrap_or(path);
    check_alias(path)?;
    if folded(name) == INDEX {
        Err("an export uses this name for the page of the parent folder")
    } else if folded(name).ends_with(PAGE_EXTENSION) {
        Err("static hosts serve the page of an export without `.html`")
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_that_cannot_be_exported_is_refused() {
        for good in ["/", "/terms", "/a.b", "/404s", "/blog/first", "/html"] {
            assert_eq!(check_own(good), Ok(()), "{good}");
        }
        let long = format!("/{}", "x".repeat(241));
        for bad in [
            "/404",
            "/blog/404",
            "/index",
            "/a/Index",
            "/terms.html",
            "/a.html/b",
            &long,
        ] {
            assert!(check_own(bad).is_err(), "{bad}");
        }
        for text in ["/google1a2b.html", "/.well-known/x"] {
            assert_eq!(check_text(text), Ok(()), "{text}");
        }
        for bad in ["/_headers", "/_redirects", "/404.html"] {
            assert!(check_text(bad).is_err(), "{bad}");
        }
        for alias in ["/terms.html", "/index.html", "/old/index"] {
            assert_eq!(check_alias(alias), Ok(()), "{alias}");
        }
        for bad in ["/404", "/404.html", "/a.html/b", &long] {
            assert!(check_alias(bad).is_err(), "{bad}");
        }
    }
}
