//! `_headers` and `_redirects`: the header fields and redirects of a static host.
//!
//! Both files use the syntax that Cloudflare Pages and Netlify share. If several rules match a path, some hosts join the values of a field, and some send the field twice. So no two rules give a path the same field. The rule of a folder has the fields that all its files share, and the rule of a path has the remaining fields.
//!
//! A policy such as `Content-Security-Policy` applies to documents and has no effect on a stylesheet. So the rule of a folder may also give a policy to files that the server sends without a policy. This saves rules (Cloudflare reads at most 100), and gives 404 pages the policies of the pages beside them.
//!
//! For Netlify, `/blog/*` includes `/blog`; for Cloudflare, it does not. So a folder with a page of the same name gets `/blog/:page`, which both read as one more segment.
//!
//! The Markdown forms of pages share one rule (`/*.md`). The canonical URL of each form (`Link`) would need a rule of its own, and is left out: search engines do not index the forms anyway.
//!
//! **Invariant:** the order of the rules depends only on the paths, so equal hosts give equal files.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::ops::Bound;

use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LINK};
use indexmap::IndexSet;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use release::snapshot::redirects::{RedirectAction, RedirectRule};

use super::redirects::{HostRedirects, LocalRedirect, LocalResponse, depth};

/// The characters that a path must encode (WHATWG URL, path percent-encode set), and the pattern characters of rules.
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

/// The characters that the target of a rule must encode: characters that are not printable, and the space, which ends a target. All other characters are already encoded, since the target is a URL.
const IN_A_TARGET: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'\\');

/// The header fields that apply to documents only.
const POLICIES: [&str; 7] = [
    "Content-Security-Policy",
    "Cross-Origin-Opener-Policy",
    "Permissions-Policy",
    "Referrer-Policy",
    "Strict-Transport-Security",
    "X-Content-Type-Options",
    "X-Frame-Options",
];

/// The end of the names of Markdown files.
const MARKDOWN: &str = ".md";
/// The fields that the rule of all Markdown files has.
const MARKDOWN_FIELDS: [&str; 2] = ["Content-Type", "X-Robots-Tag"];

/// The number of rules of a host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RuleCounts {
    /// Blocks in `_headers`.
    pub headers: usize,
    /// Lines in `_redirects`.
    pub redirects: usize,
    /// Lines in `_redirects` with a `*`.
    pub wildcards: usize,
}

/// The texts of both files; empty without rules.
#[derive(Debug, Default)]
pub(super) struct RuleFiles {
    pub(super) headers: String,
    pub(super) redirects: String,
    pub(super) counts: RuleCounts,
    /// The redirects that a static host does not apply as the server does.
    pub(super) differences: Vec<String>,
}

/// Header fields by name.
type FieldTexts = BTreeMap<String, String>;

/// The distinct sets of header fields; the index of a set is its number. There are few sets and many paths.
type FieldSets = IndexSet<FieldTexts>;

/// The responses of a host, from which its rules are derived.
#[derive(Debug, Default)]
pub(super) struct HostRules {
    sets: FieldSets,
    /// The number of the header fields of each path.
    fields: BTreeMap<String, usize>,
    /// The paths of documents that are not pages, such as PDF files. They get only the policies that the server sends.
    documents: BTreeSet<String>,
    /// The target and the status of each redirect.
    redirects: BTreeMap<String, (String, u16)>,
    not_found: BTreeSet<String>,
    moved: Option<String>,
}

impl HostRules {
    /// Returns whether a path has a file or a redirect.
    pub(super) fn has_path(&self, path: &str) -> bool {
        self.fields.contains_key(path) || self.redirects.contains_key(path)
    }

    /// Adds a path with a file and its header fields.
    pub(super) fn file(&mut self, path: &str, file: &str, mut given: HeaderMap) {
        let media_type = given
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok());
        if !media_type.is_some_and(is_page_or_part) {
            self.documents.insert(path.to_owned());
        }
        // The hosts know the type of Markdown, but not its charset.
        let by_name = !file.ends_with(MARKDOWN)
            && given
                .get(CONTENT_TYPE)
                .is_some_and(|value| value.to_str().is_ok_and(|value| follows_from(file, value)));
        if by_name {
            given.remove(CONTENT_TYPE);
        }
        given.remove(LINK);
        let fields = given
            .iter()
            .map(|(name, value)| (title_case(name), text(value)));
        let (number, _) = self.sets.insert_full(fields.collect());
        self.fields.insert(path.to_owned(), number);
    }

    /// Adds a permanent redirect.
    pub(super) fn redirect(&mut self, path: &str, location: &HeaderValue) {
        self.add_redirect(path, location, 301);
    }

    /// Adds a temporary redirect.
    pub(super) fn redirect_temporarily(&mut self, path: &str, location: &HeaderValue) {
        self.add_redirect(path, location, 302);
    }

    fn add_redirect(&mut self, path: &str, location: &HeaderValue, status: u16) {
        let target = encoded_target(&text(location));
        self.redirects.insert(path.to_owned(), (target, status));
    }

    /// Adds the 404 page of the prefix `area`.
    pub(super) fn not_found(&mut self, area: &str) {
        self.not_found.insert(area.to_owned());
    }

    /// Redirects every path to the same path of another origin.
    pub(super) fn move_all(&mut self, origin: &HeaderValue) {
        self.moved = Some(encoded_target(&text(origin)));
    }

    /// Returns the texts of both files. `is_netlify`: whether only Netlify reads them.
    pub(super) fn write(&self, redirects: &HostRedirects, is_netlify: bool) -> RuleFiles {
        let mut written = RuleFiles::default();
        for (pattern, fields) in self.blocks() {
            written.counts.headers += 1;
            // Writing into a String cannot fail.
            let _ = writeln!(written.headers, "{pattern}");
            for (name, value) in fields {
                let _ = writeln!(written.headers, "  {name}: {value}");
            }
        }
        written.differences = self.differences(redirects, is_netlify);
        for line in self.lines(redirects, is_netlify) {
            written.counts.redirects += 1;
            written.counts.wildcards += usize::from(line.contains("/* "));
            written.redirects.push_str(&line);
            written.redirects.push('\n');
        }
        written
    }

    /// Returns the lines of `_redirects`. The first line that matches counts, so lines for single paths come before wildcards.
    ///
    /// A permanent redirect has status 301, which every host knows. The server sends 308, which means the same for GET and HEAD, and no other method reaches a file. Likewise, a temporary redirect has status 302.
    fn lines(&self, redirects: &HostRedirects, is_netlify: bool) -> Vec<String> {
        let moved = self.moved.iter();
        let mut lines: Vec<String> = moved
            .map(|origin| format!("/* {origin}/:splat 301"))
            .collect();
        for (path, (target, status)) in &self.redirects {
            lines.push(format!("{} {target} {status}", encoded(path)));
        }
        let usable = |redirect: &LocalRedirect<'_>| {
            let is_gone = matches!(redirect.response, LocalResponse::Gone);
            let is_shared = redirect.conditions.is_empty() && !is_gone;
            (is_netlify || is_shared) && !redirect.response.is_open()
        };
        for path in redirects.paths() {
            let is_taken = self.has_path(path);
            for redirect in redirects.at(path, is_taken, false) {
                if usable(&redirect) {
                    // Netlify serves an existing file unless the status has a `!`.
                    let force = if is_taken { "!" } else { "" };
                    lines.push(line(&encoded(path), &redirect, force));
                }
            }
        }
        // A wildcard comes before the 404 pages of its tenant, and after everything of tenants below.
        let mut ordered: Vec<(usize, bool, usize, String)> = Vec::new();
        for (prefix, redirect) in redirects.wildcards() {
            if usable(&redirect) {
                let line = line(&format!("{}/*", encoded(prefix)), &redirect, "");
                ordered.push((depth(redirect.mount), false, depth(prefix), line));
            }
        }
        for area in &self.not_found {
            let mount = redirects.owner(area).unwrap_or_default();
            let written = encoded(area);
            let line = format!("{written}/* {written}/404.html 404");
            ordered.push((depth(mount), true, depth(area), line));
        }
        // The deepest tenant first, and the deepest prefix of a tenant.
        ordered.sort_by_key(|(mount, is_area, prefix, _)| {
            (Reverse(*mount), *is_area, Reverse(*prefix))
        });
        lines.extend(ordered.into_iter().map(|(.., line)| line));
        lines
    }

    /// Returns the redirects that not every static host applies as the server does.
    fn differences(&self, redirects: &HostRedirects, is_netlify: bool) -> Vec<String> {
        let mut differences = Vec::new();
        for (prefix, redirect) in redirects.wildcards() {
            if redirect.response.is_open() {
                differences.push(format!("`{prefix}/*` is left out: a request such as `{prefix}//host` could choose another site"));
            }
        }
        if is_netlify {
            return differences;
        }
        for rule in redirects.written() {
            let pattern = request_pattern(rule);
            if !rule.conditions.is_empty() {
                differences.push(format!(
                    "`{pattern}` is left out: only Netlify reads the query"
                ));
            } else if rule.action == RedirectAction::Gone {
                differences.push(format!(
                    "`{pattern}` is left out: only Netlify sends status 410"
                ));
            } else if rule.is_wildcard {
                let begin = format!("{}/", rule.path);
                let mut taken = self.fields.keys();
                if let Some(page) = taken.find(|page| page.starts_with(&begin)) {
                    differences.push(format!("Cloudflare Pages also redirects `{page}` by `{pattern}`, although the path exists"));
                }
            }
        }
        differences
    }

    /// Returns the blocks of `_headers`: folders from the top down, then single paths.
    ///
    /// The block of a folder has the fields that are equal for everything in it and that no folder above has.
    fn blocks(&self) -> Vec<(String, FieldTexts)> {
        let mut sets = self.sets.clone();
        let fields = self.fields.iter();
        let mut left: BTreeMap<&str, usize> = fields
            .map(|(path, number)| (path.as_str(), *number))
            .collect();
        let mut blocks: Vec<(String, FieldTexts)> = Vec::new();
        let markdown = self.take_markdown(&mut left, &mut sets);
        for folder in folders(&self.fields) {
            // First all paths below the folder, then those directly in it.
            for deep in [true, false] {
                if deep && !folder.is_empty() && self.has_path(&folder) {
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
        blocks.extend(markdown);
        blocks
    }

    /// Returns the block of all Markdown files, and removes its fields from the sets of their paths. Returns `None` if the files differ in these fields.
    fn take_markdown(
        &self,
        left: &mut BTreeMap<&str, usize>,
        sets: &mut FieldSets,
    ) -> Option<(String, FieldTexts)> {
        let members = left.iter().filter(|(path, _)| path.ends_with(MARKDOWN));
        let members: Vec<(&str, usize)> = members.map(|(path, number)| (*path, *number)).collect();
        let mut common = self.in_common(&members, sets);
        common.retain(|name, _| MARKDOWN_FIELDS.contains(&name.as_str()));
        if common.is_empty() {
            return None;
        }
        for (path, number) in members {
            let mut rest = sets.get_index(number).cloned().unwrap_or_default();
            rest.retain(|name, _| !common.contains_key(name));
            let number = sets.insert_full(rest).0;
            left.entry(path).and_modify(|known| *known = number);
        }
        Some((format!("/*{MARKDOWN}"), common))
    }

    /// Returns the fields that at least two of the paths have with the same value, and that no path has with another value.
    fn in_common(&self, members: &[(&str, usize)], sets: &FieldSets) -> FieldTexts {
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

/// Returns the paths below a folder, or with `deep` false those directly in it, with the numbers of their fields.
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

/// Returns every folder above the paths, parents before children. The root is the empty string.
fn folders(paths: &BTreeMap<String, usize>) -> BTreeSet<String> {
    let above = |path: &String| {
        path.match_indices('/')
            .map(|(end, _)| path[..end].to_owned())
            .collect::<Vec<_>>()
    };
    paths.keys().flat_map(above).collect()
}

/// Returns whether a media type belongs to a page or to a part of pages, such as an image or a font.
fn is_page_or_part(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    let family = essence.split('/').next().unwrap_or_default();
    matches!(family, "font" | "image" | "text")
        || essence.ends_with("json")
        || essence.ends_with("xml")
}

/// Returns whether a static host would derive the media type from the name of the file, or derive a type that browsers treat alike.
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

/// Returns a field name such as `Content-Type`. Some hosts send their own value beside a field with a lower-case name.
pub(super) fn title_case(name: &HeaderName) -> String {
    let words = name.as_str().split('-').map(|word| {
        let (first, rest) = word.split_at(word.len().min(1));
        format!("{}{rest}", first.to_ascii_uppercase())
    });
    words.collect::<Vec<_>>().join("-")
}

/// Returns the value of a header field as text.
pub(super) fn text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// Returns the line of a redirect that an author wrote.
fn line(pattern: &str, redirect: &LocalRedirect<'_>, force: &str) -> String {
    let parameters = redirect.conditions.iter().map(|condition| {
        let [name, value] = [&condition.name, &condition.value].map(|text| encoded(text));
        format!(" {name}={value}")
    });
    let parameters: String = parameters.collect();
    let (target, status) = match &redirect.response {
        LocalResponse::Gone => ("/404.html".to_owned(), 410),
        LocalResponse::Redirect { status, start, end } => {
            let start = encoded_target(start);
            let target = match end {
                Some(end) => format!("{start}:splat{}", encoded_target(end)),
                None => start,
            };
            (
                target,
                match status {
                    302 | 307 => 302,
                    _ => 301,
                },
            )
        }
    };
    format!("{pattern}{parameters} {target} {status}{force}")
}

/// Returns the requests of a redirect as text.
fn request_pattern(rule: &RedirectRule) -> String {
    let pattern = rule.pattern();
    match pattern.starts_with('/') {
        true => pattern,
        false => format!("/{pattern}"),
    }
}

/// Encodes a path for a rule.
fn encoded(path: &str) -> String {
    utf8_percent_encode(path, IN_A_PATH).to_string()
}

/// Encodes a target as one word without placeholders. `:a` in its path or query would be a placeholder for a part of the requested path.
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
        .write(&HostRedirects::default(), false)
        .headers;
        let expected = "/*\n  X-All: 1\n\
                        /assets/*\n  X-File: 1\n\
                        /blog/:page\n  Content-Type: text/html\n  X-Page: 1\n\
                        /\n  Content-Type: text/html\n  X-Page: 1\n\
                        /blog\n  Content-Type: text/html\n  X-Page: 2\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn policy_of_a_folder_skips_documents_that_are_not_pages() {
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
            rules(&files)
                .write(&HostRedirects::default(), false)
                .headers,
            "/*\n  Content-Security-Policy: x\n"
        );
        files.push(("/a/4.pdf", paper));
        assert_eq!(
            rules(&files)
                .write(&HostRedirects::default(), false)
                .counts
                .headers,
            2
        );
    }

    #[test]
    fn markdown_files_share_one_rule_if_all_have_its_fields() {
        let page: &[_] = &[("content-type", "text/html"), ("x-page", "1")];
        let form: &[_] = &[
            ("content-type", "text/markdown; charset=utf-8"),
            ("link", "</>; rel=\"canonical\""),
            ("x-page", "1"),
            ("x-robots-tag", "noindex"),
        ];
        let mut files = vec![
            ("/terms.html", page),
            ("/terms.md", form),
            ("/blog/a.html", page),
            ("/blog/a.md", form),
        ];
        let written = |files: &[_]| rules(files).write(&HostRedirects::default(), false).headers;
        assert_eq!(
            written(&files),
            "/*\n  X-Page: 1\n\
             /*.md\n  Content-Type: text/markdown; charset=utf-8\n  X-Robots-Tag: noindex\n"
        );
        files.push(("/own.md", page));
        assert!(!written(&files).contains("/*.md"), "{}", written(&files));
    }

    #[test]
    fn media_type_is_written_unless_it_follows_from_the_name() {
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
    fn target_is_encoded_as_one_word() {
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
            assert_eq!(
                rules.write(&HostRedirects::default(), false).redirects,
                line
            );
        }
    }

    #[test]
    fn redirects_come_before_not_found_pages() {
        let mut rules = HostRules::default();
        rules.redirect("/old", &HeaderValue::from_static("/new#part"));
        rules.not_found("/blog");
        rules.not_found("/app/blog");
        assert_eq!(
            rules.write(&HostRedirects::default(), false).redirects,
            "/old /new#part 301\n/app/blog/* /app/blog/404.html 404\n/blog/* /blog/404.html 404\n"
        );
        let mut rules = HostRules::default();
        rules.move_all(&HeaderValue::from_static("https://studio.example"));
        assert_eq!(
            rules.write(&HostRedirects::default(), false).redirects,
            "/* https://studio.example/:splat 301\n"
        );
    }
}
