//! `_headers` and `_redirects`: what a static host has to be told beside the files.
//!
//! Both follow the syntax that Cloudflare Pages and Netlify share. Where several rules match a path, some hosts join the values of one field and others send it twice, so that no two rules here give one path the same field:
//! a rule for a folder says what everything in it has in common, and a rule for a path only what is left.
//!
//! A policy says what a document may do, and nothing to a stylesheet. So a folder's rule may hand it to files that the server sends without it; that makes a hundred rules of one (Cloudflare reads no more than a hundred), and gives the page for an unknown path the policies that its neighbours have.
//!
//! `/blog/*` is `/blog` too for Netlify, but not for Cloudflare. A folder with a page of its own name therefore gets `/blog/:page`, which both read as one more segment.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::ops::Bound;

use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use indexmap::IndexSet;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

/// What a path may not hold as it is (WHATWG URL, path percent-encode set), and what a rule would take for a pattern.
pub(super) const IN_A_PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'*')
    .add(b':')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'`')
    .add(b'{')
    .add(b'}');

/// What may not stand in the target of a rule: everything that is not printed, and the space that ends it. The rest of it is a URL already.
const IN_A_TARGET: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'\\');

/// What says something to documents alone.
const POLICIES: [&str; 7] = [
    "Content-Security-Policy",
    "Cross-Origin-Opener-Policy",
    "Permissions-Policy",
    "Referrer-Policy",
    "Strict-Transport-Security",
    "X-Content-Type-Options",
    "X-Frame-Options",
];

/// How many rules a host has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RuleCounts {
    /// Blocks in `_headers`.
    pub headers: usize,
    /// Lines in `_redirects`.
    pub redirects: usize,
}

/// Both files as text, empty where there is nothing to say.
#[derive(Debug, Default)]
pub(super) struct RuleFiles {
    pub(super) headers: String,
    pub(super) redirects: String,
    pub(super) counts: RuleCounts,
}

type FieldTexts = BTreeMap<String, String>;

/// Header fields by their numbers: there are few sets of them, and many paths.
type Sets = IndexSet<FieldTexts>;

/// The rules of one host as they gather.
#[derive(Debug, Default)]
pub(super) struct HostRules {
    sets: Sets,
    /// The number of the fields of each path.
    fields: BTreeMap<String, usize>,
    /// Files that a browser may open as a document that is no page, such as a PDF: no policy is theirs that the server does not send.
    documents: BTreeSet<String>,
    /// Targets with their statuses.
    redirects: BTreeMap<String, (String, u16)>,
    not_found: BTreeSet<String>,
    moved: Option<String>,
}

impl HostRules {
    /// Whether a path is spoken for.
    pub(super) fn knows(&self, path: &str) -> bool {
        self.fields.contains_key(path) || self.redirects.contains_key(path)
    }

    /// A path answers a file with these fields.
    pub(super) fn file(&mut self, path: &str, file: &str, mut given: HeaderMap) {
        let media_type = given
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok());
        if !media_type.is_some_and(is_page_or_part) {
            self.documents.insert(path.to_owned());
        }
        let by_name = given
            .get(CONTENT_TYPE)
            .is_some_and(|value| value.to_str().is_ok_and(|value| follows_from(file, value)));
        if by_name {
            given.remove(CONTENT_TYPE);
        }
        let fields = given
            .iter()
            .map(|(name, value)| (title_case(name), text(value)));
        let (number, _) = self.sets.insert_full(fields.collect());
        self.fields.insert(path.to_owned(), number);
    }

    /// A path leads elsewhere for good.
    pub(super) fn redirect(&mut self, path: &str, location: &HeaderValue) {
        self.leads(path, location, 301);
    }

    /// A path leads elsewhere, and may lead to another place tomorrow.
    pub(super) fn redirect_for_now(&mut self, path: &str, location: &HeaderValue) {
        self.leads(path, location, 302);
    }

    fn leads(&mut self, path: &str, location: &HeaderValue, status: u16) {
        let target = encoded_target(&text(location));
        self.redirects.insert(path.to_owned(), (target, status));
    }

    /// What is not found below `area` has a page of its own.
    pub(super) fn not_found(&mut self, area: &str) {
        self.not_found.insert(area.to_owned());
    }

    /// Every path leads to the same path of another origin.
    pub(super) fn move_all(&mut self, origin: &HeaderValue) {
        self.moved = Some(encoded_target(&text(origin)));
    }

    /// The texts of both files.
    pub(super) fn write(&self) -> RuleFiles {
        let mut written = RuleFiles::default();
        for (pattern, fields) in self.blocks() {
            written.counts.headers += 1;
            // Writing into a String cannot fail.
            let _ = writeln!(written.headers, "{pattern}");
            for (name, value) in fields {
                let _ = writeln!(written.headers, "  {name}: {value}");
            }
        }
        for line in self.lines() {
            written.counts.redirects += 1;
            written.redirects.push_str(&line);
            written.redirects.push('\n');
        }
        written
    }

    /// For good is 301, since every host knows it. The server says 308, which for GET and HEAD means the same, and nothing else reaches a file.
    fn lines(&self) -> Vec<String> {
        let moved = self.moved.iter();
        let mut lines: Vec<String> = moved
            .map(|origin| format!("/* {origin}/:splat 301"))
            .collect();
        for (path, (target, status)) in &self.redirects {
            lines.push(format!("{} {target} {status}", encoded(path)));
        }
        // The first that matches counts: the deepest comes first.
        let mut areas: Vec<&String> = self.not_found.iter().collect();
        areas.sort_by_key(|area| std::cmp::Reverse(area.matches('/').count()));
        for area in areas {
            let area = encoded(area);
            lines.push(format!("{area}/* {area}/404.html 404"));
        }
        lines
    }

    /// The folders from the top down, each with what nothing in it contradicts and no folder above has said, then single paths.
    fn blocks(&self) -> Vec<(String, FieldTexts)> {
        let mut sets = self.sets.clone();
        let fields = self.fields.iter();
        let mut left: BTreeMap<&str, usize> = fields
            .map(|(path, number)| (path.as_str(), *number))
            .collect();
        let mut blocks = Vec::new();
        for folder in folders(&self.fields) {
            // Everything below, then what lies directly in it.
            for deep in [true, false] {
                if deep && !folder.is_empty() && self.knows(&folder) {
                    continue;
                }
                let members = members(&left, &folder, deep);
                let common = self.in_common(&members, &sets);
                if common.is_empty() {
                    continue;
                }
                let mut rests: HashMap<usize, usize> = HashMap::new();
                for (path, number) in members {
                    let rest = rests.entry(number).or_insert_with(|| {
                        let mut rest = sets.get_index(number).cloned().unwrap_or_default();
                        rest.retain(|name, _| !common.contains_key(name));
                        sets.insert_full(rest).0
                    });
                    left.insert(path, *rest);
                }
                let last = if deep { "*" } else { ":page" };
                blocks.push((format!("{}/{last}", encoded(&folder)), common));
            }
        }
        let single = left.into_iter().filter_map(|(path, number)| {
            let fields = sets.get_index(number).filter(|fields| !fields.is_empty())?;
            Some((encoded(path), fields.clone()))
        });
        blocks.extend(single);
        blocks
    }

    /// The fields that at least two of some paths have and none contradicts.
    fn in_common(&self, members: &[(&str, usize)], sets: &Sets) -> FieldTexts {
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        for (_, number) in members {
            *counts.entry(*number).or_default() += 1;
        }
        let mut found: BTreeMap<&String, (&String, usize)> = BTreeMap::new();
        let mut contradicted = BTreeSet::new();
        for (number, paths) in &counts {
            for (name, value) in sets.get_index(*number).into_iter().flatten() {
                let (first, count) = found.entry(name).or_insert((value, 0));
                *count += paths;
                if *first != value {
                    contradicted.insert(name);
                }
            }
        }
        let may_have = |name: &String| {
            let is_policy = POLICIES.contains(&name.as_str());
            let has = |number| {
                let fields = sets.get_index(number);
                fields.is_some_and(|fields| fields.contains_key(name))
            };
            members.iter().all(|(path, number)| {
                has(*number) || (is_policy && !self.documents.contains(*path))
            })
        };
        found
            .into_iter()
            .filter(|(name, (_, count))| *count > 1 && !contradicted.contains(name))
            .filter(|(name, _)| may_have(name))
            .map(|(name, (value, _))| (name.clone(), value.clone()))
            .collect()
    }
}

/// The paths below a folder, or those that lie directly in it, with their numbers.
fn members<'a>(
    paths: &BTreeMap<&'a str, usize>,
    folder: &str,
    deep: bool,
) -> Vec<(&'a str, usize)> {
    let begin = format!("{folder}/");
    let below = paths.range::<str, _>((Bound::Included(begin.as_str()), Bound::Unbounded));
    let is_direct = |rest: &str| !rest.is_empty() && !rest.contains('/');
    below
        .map(|(path, number)| (*path, *number))
        .map_while(|(path, number)| Some((path, path.strip_prefix(&begin)?, number)))
        .filter(|(_, rest, _)| deep || is_direct(rest))
        .map(|(path, _, number)| (path, number))
        .collect()
}

/// Every folder above a path, the root as an empty text, parents before children.
fn folders(paths: &BTreeMap<String, usize>) -> BTreeSet<String> {
    let above = |path: &String| {
        path.match_indices('/')
            .map(|(end, _)| path[..end].to_owned())
            .collect::<Vec<_>>()
    };
    paths.keys().flat_map(above).collect()
}

/// Whether a type is that of a page, or of what pages are made of.
fn is_page_or_part(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    let family = essence.split('/').next().unwrap_or_default();
    matches!(family, "font" | "image" | "text")
        || essence.ends_with("json")
        || essence.ends_with("xml")
}

/// Whether a static host would say the same type, or one that browsers treat alike, from the file's name.
fn follows_from(file: &str, media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    let alike = |one: &str| match one {
        "application/javascript" => "text/javascript".to_owned(),
        "text/xml" => "application/xml".to_owned(),
        other => other.to_owned(),
    };
    let guessed = mime_guess::from_path(file);
    guessed
        .iter_raw()
        .any(|guess| alike(guess) == alike(essence))
}

/// `Content-Type`: some hosts send their own value beside a field whose name is in lower case.
pub(super) fn title_case(name: &HeaderName) -> String {
    let words = name.as_str().split('-').map(|word| {
        let (first, rest) = word.split_at(word.len().min(1));
        format!("{}{rest}", first.to_ascii_uppercase())
    });
    words.collect::<Vec<_>>().join("-")
}

pub(super) fn text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

fn encoded(path: &str) -> String {
    utf8_percent_encode(path, IN_A_PATH).to_string()
}

/// A target that is one word and names no placeholder: `:a` in its path or query would stand for a part of the path requested.
pub(super) fn encoded_target(target: &str) -> String {
    let encoded = utf8_percent_encode(target, IN_A_TARGET).to_string();
    // A scheme ends with the only colon before the first slash.
    let start = match encoded.split_once(':') {
        Some((scheme, _)) if !scheme.contains('/') => scheme.len() + 1,
        _ => 0,
    };
    let (scheme, rest) = encoded.split_at(start);
    let mut written = scheme.to_owned();
    let mut rest = rest.chars().peekable();
    while let Some(character) = rest.next() {
        if character == ':' && rest.peek().is_some_and(char::is_ascii_alphabetic) {
            written.push_str("%3A");
        } else {
            written.push(character);
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(files: &[(&str, &[(&'static str, &'static str)])]) -> HostRules {
        let mut rules = HostRules::default();
        for (path, fields) in files {
            let mut map = HeaderMap::new();
            for (name, value) in *fields {
                map.insert(*name, HeaderValue::from_static(value));
            }
            rules.file(path, path, map);
        }
        rules
    }

    #[test]
    fn no_two_rules_give_a_path_the_same_field() {
        let page: &[_] = &[
            ("content-type", "text/html"),
            ("x-all", "1"),
            ("x-page", "1"),
        ];
        let other: &[_] = &[
            ("content-type", "text/html"),
            ("x-all", "1"),
            ("x-page", "2"),
        ];
        let file: &[_] = &[
            ("content-type", "text/css"),
            ("x-all", "1"),
            ("x-file", "1"),
        ];
        let text = rules(&[
            ("/", page),
            ("/blog", other),
            ("/blog/a", page),
            ("/blog/b", page),
            ("/assets/a.css", file),
            ("/assets/b c.css", file),
        ])
        .write()
        .headers;
        let expected = "/*\n  X-All: 1\n\
                        /assets/*\n  X-File: 1\n\
                        /blog/:page\n  Content-Type: text/html\n  X-Page: 1\n\
                        /\n  Content-Type: text/html\n  X-Page: 1\n\
                        /blog\n  Content-Type: text/html\n  X-Page: 2\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_policy_reaches_what_it_says_nothing_to_but_no_other_document() {
        let drawing: &[_] = &[
            ("content-type", "image/svg+xml"),
            ("content-security-policy", "x"),
        ];
        let sheet: &[_] = &[("content-type", "text/css")];
        let paper: &[_] = &[("content-type", "application/pdf")];
        let mut files = vec![
            ("/a/1.svg", drawing),
            ("/a/2.svg", drawing),
            ("/a/3.css", sheet),
        ];
        assert_eq!(
            rules(&files).write().headers,
            "/*\n  Content-Security-Policy: x\n"
        );
        files.push(("/a/4.pdf", paper));
        assert_eq!(rules(&files).write().counts.headers, 2);
    }

    #[test]
    fn a_type_is_said_where_the_name_does_not_say_it() {
        assert!(follows_from("terms.html", "text/html; charset=utf-8"));
        assert!(follows_from("a.js", "text/javascript; charset=utf-8"));
        assert!(follows_from("sitemap.xml", "application/xml"));
        assert!(!follows_from("blog/feed.xml", "application/atom+xml"));
        assert!(!follows_from(
            ".well-known/apple-app-site-association",
            "application/json"
        ));
    }

    #[test]
    fn a_target_is_one_word_whatever_it_holds() {
        for (target, expected) in [
            ("/a b", "/a%20b"),
            (
                "https://a.example/x 200! # ",
                "https://a.example/x%20200!%20#%20",
            ),
            ("/a\t/b", "/a%09/b"),
            ("/gr\u{fc}n", "/gr%C3%BCn"),
            ("/:splat?a=:b", "/%3Asplat?a=%3Ab"),
            ("https://a.example:8080/x:1", "https://a.example:8080/x:1"),
            ("mailto:a@b.example", "mailto:a@b.example"),
        ] {
            let mut rules = HostRules::default();
            let value = HeaderValue::from_bytes(target.as_bytes()).expect("a value");
            rules.redirect("/old *:x", &value);
            let line = format!("/old%20%2A%3Ax {expected} 301\n");
            assert_eq!(rules.write().redirects, line);
        }
    }

    #[test]
    fn redirects_come_before_the_pages_for_what_is_not_found() {
        let mut rules = HostRules::default();
        rules.redirect("/old", &HeaderValue::from_static("/new#part"));
        rules.not_found("/blog");
        rules.not_found("/app/blog");
        assert_eq!(
            rules.write().redirects,
            "/old /new#part 301\n/app/blog/* /app/blog/404.html 404\n/blog/* /blog/404.html 404\n"
        );
        let mut rules = HostRules::default();
        rules.move_all(&HeaderValue::from_static("https://studio.example"));
        assert_eq!(
            rules.write().redirects,
            "/* https://studio.example/:splat 301\n"
        );
    }
}
