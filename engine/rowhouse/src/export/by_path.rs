//! The response of each path of a host, for the configurations of [`nginx`](super::nginx) and [`caddy`](super::caddy).
//!
//! Files with equal header fields share one numbered set of fields: there are few sets and many files.
//!
//! **Invariant:** knows no syntax of a configuration, except which characters a target must encode.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderValue};
use indexmap::IndexSet;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use super::redirects::{HostRedirects, ancestors};
use super::rules::{encoded_target, text, title_case};

/// The characters with a meaning in a configuration: variables and quotes.
const IN_A_CONFIGURATION: &AsciiSet = &CONTROLS.add(b'$').add(b'`').add(b'{').add(b'}');

/// The header fields of a response, sorted by name.
pub(super) type PathFields = Vec<(String, String)>;

/// The response of a path.
#[derive(Debug)]
pub(super) enum PathResponse {
    /// A file in the host's folder, with the number of its header fields.
    File { file: String, fields: usize },
    /// A redirect.
    Redirect { target: String, status: u16 },
}

/// The responses of all paths of a host.
#[derive(Debug, Default)]
pub(super) struct PathResponses {
    /// The responses by path.
    pub(super) paths: BTreeMap<String, PathResponse>,
    /// The file of each 404 page and the number of its header fields, by the prefix that the page applies to.
    pub(super) not_found: BTreeMap<String, (String, usize)>,
    /// The sets of header fields; the index of a set is its number.
    pub(super) fields: IndexSet<PathFields>,
    /// The redirects that authors wrote.
    pub(super) redirects: HostRedirects,
    /// The origin that the whole host redirects to.
    pub(super) moved: Option<String>,
}

impl PathResponses {
    /// Adds a path with a file.
    pub(super) fn file(&mut self, path: &str, file: &str, fields: &HeaderMap) {
        let (file, fields) = (file.to_owned(), self.number(fields));
        // As on the server, a page with a trailing slash redirects to the page without.
        if file.ends_with(".html") && path != "/" && !path.ends_with(".html") {
            self.add_redirect(&format!("{path}/"), path.to_owned(), 308);
        }
        self.paths
            .insert(path.to_owned(), PathResponse::File { file, fields });
    }

    /// Adds a path with a redirect.
    pub(super) fn redirect(&mut self, path: &str, location: &HeaderValue, status: u16) {
        self.add_redirect(
            path,
            in_configuration(&encoded_target(&text(location))),
            status,
        );
    }

    fn add_redirect(&mut self, path: &str, target: String, status: u16) {
        let response = PathResponse::Redirect { target, status };
        self.paths.insert(path.to_owned(), response);
    }

    /// Adds the 404 page of the prefix `area`.
    pub(super) fn not_found(&mut self, area: &str, file: &str, fields: &HeaderMap) {
        let fields = self.number(fields);
        self.not_found
            .insert(area.to_owned(), (file.to_owned(), fields));
    }

    /// Redirects every path to the same path of another origin.
    pub(super) fn move_all(&mut self, origin: &HeaderValue) {
        self.moved = Some(in_configuration(&encoded_target(&text(origin))));
    }

    /// Returns the prefixes with 404 pages, their files and the numbers of their header fields, the deepest prefix first.
    pub(super) fn areas(&self) -> Vec<(&str, &str, usize)> {
        let areas = self.not_found.iter();
        let mut areas: Vec<_> = areas
            .map(|(area, (file, fields))| (area.as_str(), file.as_str(), *fields))
            .collect();
        areas.sort_by_key(|(area, ..)| std::cmp::Reverse(area.matches('/').count()));
        areas
    }

    /// Returns the file of the 404 page of a path and the number of its header fields.
    pub(super) fn not_found_of(&self, path: &str) -> Option<(&str, usize)> {
        let (file, fields) = ancestors(path).find_map(|area| self.not_found.get(area))?;
        Some((file, *fields))
    }

    /// Returns the number of a set of header fields.
    fn number(&mut self, fields: &HeaderMap) -> usize {
        let mut fields: PathFields = fields
            .iter()
            .map(|(name, value)| (title_case(name), text(value)))
            .collect();
        fields.sort();
        self.fields.insert_full(fields).0
    }
}

/// Splits a target for appending the query of a request: the URL up to its query, the joint (`?` or `&`), and the fragment. Returns `None` for a target that is not a web address.
pub(super) fn keeping_query(target: &str) -> Option<(&str, char, &str)> {
    let is_web = ["/", "http:", "https:"];
    if !is_web.iter().any(|begin| target.starts_with(begin)) {
        return None;
    }
    let end = target.find('#').unwrap_or(target.len());
    let (address, fragment) = target.split_at(end);
    let joint = if address.contains('?') { '&' } else { '?' };
    Some((address, joint, fragment))
}

/// Encodes the target of an author for a configuration.
pub(super) fn author_target(target: &str) -> String {
    in_configuration(&encoded_target(target))
}

/// Encodes a target for a configuration.
fn in_configuration(target: &str) -> String {
    utf8_percent_encode(target, IN_A_CONFIGURATION).to_string()
}
