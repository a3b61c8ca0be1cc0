//! The diagnostic for a path that the engine serves itself.

/// The hint for a path that the engine serves itself.
pub(crate) const RESERVED_PATH_HINT: &str = "choose another path; rowhouse itself serves `/assets`, names that begin with a dot, and files such as `/robots.txt` and `/feed.xml`";

/// Returns the message for a path that the engine serves itself.
pub(crate) fn reserved_message(path: &str) -> String {
    format!("`{path}` is reserved for rowhouse")
}
