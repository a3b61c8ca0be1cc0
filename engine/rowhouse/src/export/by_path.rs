//! What each path of a host answers, for web servers that are told it path by path: [`nginx`](super::nginx) and [`caddy`](super::caddy).
//!
//! Files with the same header fields share one set of them, by its number: there are few sets, and many files.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderValue};
use indexmap::IndexSet;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use super::rules::{encoded_target, text, title_case};

/// What begins a variable, ends a word or stands for something else in a configuration.
const IN_A_CONFIGURATION: &AsciiSet = &CONTROLS.add(b'$').add(b'`').add(b'{').add(b'}');

/// The header fields of an answer, by name.
pub(super) type PathFields = Vec<(String, String)>;

/// What a path answers.
#[derive(Debug)]
pub(super) enum PathResponse {
    /// A file of the host's folder, with the number of its fields.
    File { file: String, fields: usize },
    /// Another place.
    Elsewhere { target: String, status: u16 },
}

/// All answers of one host as they gather.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// By path.
    pub(super) paths: BTreeMap<String, PathResponse>,
    /// The file of what is not found and the number of its fields, by the part of the host that it speaks for.
    pub(super) not_found: BTreeMap<String, (String, usize)>,
    /// The sets of fields, by their numbers.
    pub(super) fields: IndexSet<PathFields>,
    /// The origin that every path leads to.
    pub(super) moved: Option<String>,
}

impl Answers {
    /// A path answers a file.
    pub(super) fn file(&mut self, path: &str, file: &str, fields: &HeaderMap) {
        let (file, fields) = (file.to_owned(), self.number(fields));
        // A page answers with a slash behind its path, too, and leads to it without.
        if file.ends_with(".html") && path != "/" && !path.ends_with(".html") {
            self.leads(&format!("{path}/"), path.to_owned(), 308);
        }
        self.paths
            .insert(path.to_owned(), PathResponse::File { file, fields });
    }

    /// A path leads elsewhere.
    pub(super) fn redirect(&mut self, path: &str, location: &HeaderValue, status: u16) {
        self.leads(
            path,
            in_configuration(&encoded_target(&text(location))),
            status,
        );
    }

    fn leads(&mut self, path: &str, target: String, status: u16) {
        let answer = PathResponse::Elsewhere { target, status };
        self.paths.insert(path.to_owned(), answer);
    }

    /// What is not found below `area` has a page of its own.
    pub(super) fn not_found(&mut self, area: &str, file: &str, fields: &HeaderMap) {
        let fields = self.number(fields);
        self.not_found
            .insert(area.to_owned(), (file.to_owned(), fields));
    }

    /// Every path leads to the same path of another origin.
    pub(super) fn move_all(&mut self, origin: &HeaderValue) {
        self.moved = Some(in_configuration(&encoded_target(&text(origin))));
    }

    /// The parts of the host with pages for what is not found, the deepest first.
    pub(super) fn areas(&self) -> Vec<(&str, &str, usize)> {
        let areas = self.not_found.iter();
        let mut areas: Vec<_> = areas
            .map(|(area, (file, fields))| (area.as_str(), file.as_str(), *fields))
            .collect();
        areas.sort_by_key(|(area, ..)| std::cmp::Reverse(area.matches('/').count()));
        areas
    }

    fn number(&mut self, fields: &HeaderMap) -> usize {
        let mut fields: PathFields = fields
            .iter()
            .map(|(name, value)| (title_case(name), text(value)))
            .collect();
        fields.sort();
        self.fields.insert_full(fields).0
    }
}

/// Returns the parts of a target that takes the query of a request: what precedes the query, the character that joins both, and the fragment. `None` for a target that is not a web address.
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

fn in_configuration(target: &str) -> String {
    utf8_percent_encode(target, IN_A_CONFIGURATION).to_string()
}
