//! The redirects of a tenant at one address, and the decision which of them a request gets.
//!
//! [`RedirectTable::decide`] is the only place where a request meets a redirect: the server, the lints and the tests of exports all call it.
//!
//! 1. A redirect of exactly the path, with conditions on the query that the request meets. Only such a redirect comes before a page.
//! 2. A redirect of exactly the path, without conditions.
//! 3. A redirect of everything below a prefix: the longest prefix first, and within a prefix as above.
//!
//! The redirect with the most conditions comes first. Redirects with equally many conditions keep the order of the manifest.
//!
//! **Invariant:** pure. A location has the origin that the author wrote, whatever the request is. A decision costs a look-up for each path segment and each parameter, independent of the number of redirects.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;

use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use super::resources::LookupMap;

/// The place in a target where the rest of the requested path is inserted.
pub const SPLAT: &str = "/:splat";

/// The number of parameters of a query that are compared. More cost time, and no author needs them.
const MAX_PARAMETERS: usize = 64;

/// The characters of a decoded path that a location must encode: those that a path cannot contain (RFC 3986, section 3.3). Browsers read `\` as `/`.
const IN_A_LOCATION: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// The requests that a redirect applies to, and the response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedirectRule {
    /// The old path, decoded, without a trailing slash. The empty path is the prefix of all paths.
    pub path: Box<str>,
    /// Whether the redirect also applies to every path below the old path.
    pub is_wildcard: bool,
    /// The parameters that the query of the request must have.
    pub conditions: Box<[QueryCondition]>,
    /// The response.
    pub action: RedirectAction,
}

impl RedirectRule {
    /// Returns the requests that the redirect applies to, as text: `/old/*?p=12`.
    #[must_use]
    pub fn pattern(&self) -> String {
        let mut pattern = format!("{}{}", self.path, if self.is_wildcard { "/*" } else { "" });
        for (index, QueryCondition { name, value }) in self.conditions.iter().enumerate() {
            let joint = if index == 0 { '?' } else { '&' };
            pattern += &format!("{joint}{name}={value}");
        }
        pattern
    }
}

/// A parameter that the query of a request must have, decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryCondition {
    /// The name.
    pub name: Box<str>,
    /// The value.
    pub value: Box<str>,
}

/// The response of a redirect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedirectAction {
    /// A redirect to a target.
    Redirect {
        /// 301, 302, 307 or 308.
        status: StatusCode,
        /// The target.
        target: RedirectTarget,
    },
    /// The page was removed: status 410 with the 404 page of the path.
    Gone,
}

impl fmt::Display for RedirectAction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Redirect { status, target } if *status == StatusCode::PERMANENT_REDIRECT => {
                write!(formatter, "redirect to {}", target.written())
            }
            Self::Redirect { status, target } => {
                write!(
                    formatter,
                    "redirect {} to {}",
                    status.as_u16(),
                    target.written()
                )
            }
            Self::Gone => formatter.write_str("status 410"),
        }
    }
}

/// The target of a redirect: a `Location`, and the place for the rest of the requested path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedirectTarget {
    start: Box<str>,
    /// The query and the fragment behind the inserted rest.
    end: Option<Box<str>>,
}

impl RedirectTarget {
    /// Creates a target from a complete `Location`. Returns `None` if the text is not a valid header value.
    ///
    /// [`SPLAT`] in the path of the `Location` of a wildcard is the place for the rest of the requested path.
    #[must_use]
    pub fn new(location: &str, is_wildcard: bool) -> Option<Self> {
        HeaderValue::from_str(location).ok()?;
        Some(match location.split_once(SPLAT).filter(|_| is_wildcard) {
            Some((start, end)) => Self {
                start: format!("{start}/").into(),
                end: Some(end.into()),
            },
            None => Self {
                start: location.into(),
                end: None,
            },
        })
    }

    /// Returns the target as it was written.
    #[must_use]
    pub fn written(&self) -> Cow<'_, str> {
        match self.parts() {
            (start, Some(end)) => {
                format!("{}{SPLAT}{end}", start.strip_suffix('/').unwrap_or(start)).into()
            }
            (start, None) => start.into(),
        }
    }

    /// Returns the part before the inserted rest, and the part behind it. Without a place for the rest, the first part is the complete target.
    #[must_use]
    pub fn parts(&self) -> (&str, Option<&str>) {
        (&self.start, self.end.as_deref())
    }

    /// Returns whether the target is a path of the requested host.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.start.starts_with('/')
    }

    /// Returns the location for an empty rest of the requested path. A path of this host has no trailing slash, which would cause another redirect.
    fn without_rest(&self) -> String {
        let Some(end) = &self.end else {
            return self.start.clone().into();
        };
        let start = match self.start.strip_suffix('/') {
            Some(start) if self.is_local() && !start.is_empty() => start,
            _ => &self.start,
        };
        format!("{start}{end}")
    }

    /// Returns the location for the rest of the requested path, which is decoded. `has_slash`: whether a slash followed it.
    #[must_use]
    pub fn location(&self, rest: &str, has_slash: bool) -> String {
        match &self.end {
            Some(end) if !rest.is_empty() => {
                let rest = utf8_percent_encode(rest, IN_A_LOCATION);
                // Another server may require the slash. This one would redirect again.
                let slash = if has_slash && !self.is_local() {
                    "/"
                } else {
                    ""
                };
                format!("{}{rest}{slash}{end}", self.start)
            }
            _ => self.without_rest(),
        }
    }
}

/// The response to a request, as the table decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedirectDecision<'t> {
    /// The redirect that applies.
    pub rule: &'t RedirectRule,
    /// The status and the `Location` with the query of the request, or `None` for status 410.
    pub location: Option<(StatusCode, HeaderValue)>,
}

/// The redirects of one old path, as indices of rules.
#[derive(Debug, Clone, Default)]
struct PathRules {
    unconditional: Option<usize>,
    /// By one of the conditions, the one that the fewest redirects of the path have.
    conditional: LookupMap<Vec<usize>>,
}

/// The redirects of a tenant at one address.
#[derive(Debug, Clone, Default)]
pub struct RedirectTable {
    /// In the order of precedence within a path, sorted by path.
    rules: Vec<RedirectRule>,
    exact: LookupMap<PathRules>,
    below: LookupMap<PathRules>,
    /// The length of the longest prefix, in bytes. No longer prefix is looked up.
    longest_prefix: usize,
    has_conditions: bool,
}

impl RedirectTable {
    /// Creates the table from redirects in the order in which they were written.
    #[must_use]
    pub fn new(mut rules: Vec<RedirectRule>) -> Self {
        rules.sort_by(|one, other| {
            let key = |rule: &RedirectRule| (rule.is_wildcard, Reverse(rule.conditions.len()));
            (&one.path, key(one)).cmp(&(&other.path, key(other)))
        });
        let mut counts: HashMap<(&str, bool, String), usize> = HashMap::new();
        for rule in &rules {
            for condition in &rule.conditions {
                let key = (&*rule.path, rule.is_wildcard, condition.key());
                *counts.entry(key).or_default() += 1;
            }
        }
        let (mut exact, mut below): (LookupMap<PathRules>, LookupMap<PathRules>) =
            Default::default();
        for (index, rule) in rules.iter().enumerate() {
            let table = if rule.is_wildcard {
                &mut below
            } else {
                &mut exact
            };
            let of_path = table.entry(rule.path.clone()).or_default();
            let keys = rule.conditions.iter().map(QueryCondition::key);
            let count = |key: &String| {
                let key = (&*rule.path, rule.is_wildcard, key.clone());
                counts.get(&key).copied()
            };
            match keys.min_by_key(count) {
                None => {
                    of_path.unconditional.get_or_insert(index);
                }
                Some(key) => {
                    let same: &mut Vec<usize> = of_path.conditional.entry(key.into()).or_default();
                    same.push(index);
                }
            }
        }
        drop(counts);
        Self {
            longest_prefix: below
                .keys()
                .map(|path| path.len())
                .max()
                .unwrap_or_default(),
            has_conditions: rules.iter().any(|rule| !rule.conditions.is_empty()),
            rules,
            exact,
            below,
        }
    }

    /// Returns whether there are no redirects.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns all redirects, sorted by path, and within a path in the order of precedence.
    #[must_use]
    pub fn rules(&self) -> &[RedirectRule] {
        &self.rules
    }

    /// Returns the redirect for a request, if any.
    ///
    /// `path` is decoded and below the prefix of the mount. `query` is the query as requested. `is_taken`: whether the path has a page or a file, before which only an exact redirect with conditions comes.
    #[must_use]
    pub fn decide(
        &self,
        path: &str,
        query: Option<&str>,
        is_taken: bool,
    ) -> Option<RedirectDecision<'_>> {
        self.decide_counting(path, query, is_taken, &mut 0)
    }

    /// Decides as [`decide`](Self::decide) does, and adds the number of look-ups and of examined redirects to `steps`.
    fn decide_counting(
        &self,
        path: &str,
        query: Option<&str>,
        is_taken: bool,
        steps: &mut usize,
    ) -> Option<RedirectDecision<'_>> {
        let has_parameters = query.is_some_and(|query| !query.is_empty());
        if self.is_empty() || (is_taken && !(has_parameters && self.has_conditions)) {
            return None;
        }
        let trimmed = path.trim_end_matches('/');
        let has_slash = trimmed.len() < path.len();
        let decided = |index: usize, rest: &str| {
            let rule = self.rules.get(index)?;
            let location = match &rule.action {
                RedirectAction::Redirect { status, target } => {
                    let location = HeaderValue::try_from(target.location(rest, has_slash));
                    Some((*status, with_query(&location.ok()?, query)))
                }
                RedirectAction::Gone => None,
            };
            Some(RedirectDecision { rule, location })
        };
        let exact = if trimmed.is_empty() { "/" } else { trimmed };
        if let Some(index) = self.matching(&self.exact, exact, query, is_taken, steps) {
            return decided(index, "");
        }
        if is_taken || self.below.is_empty() {
            return None;
        }
        // From the longest prefix to the empty one.
        let mut end = trimmed.len();
        loop {
            if end <= self.longest_prefix {
                let (prefix, rest) = trimmed.split_at(end);
                if let Some(index) = self.matching(&self.below, prefix, query, false, steps) {
                    return decided(index, rest.trim_start_matches('/'));
                }
            }
            let slash = trimmed[..end].rfind('/')?;
            if !is_segment(&trimmed[slash + 1..end]) {
                return None;
            }
            end = slash;
        }
    }

    /// Returns the redirect of a path in one of the tables.
    fn matching(
        &self,
        table: &LookupMap<PathRules>,
        path: &str,
        query: Option<&str>,
        needs_conditions: bool,
        steps: &mut usize,
    ) -> Option<usize> {
        *steps += 1;
        let rules = table.get(path)?;
        let unconditional = rules.unconditional.filter(|_| !needs_conditions);
        let Some(query) = query.filter(|_| !rules.conditional.is_empty()) else {
            return unconditional;
        };
        let mut found: Option<usize> = None;
        for (name, value) in parameters(query) {
            *steps += 1;
            let Some(same) = rules.conditional.get(&*key_of(&name, &value)) else {
                continue;
            };
            // Indices are in the order of precedence.
            let met = same.iter().copied().find(|index| {
                *steps += 1;
                let rule = self.rules.get(*index);
                rule.is_some_and(|rule| rule.conditions.iter().all(|one| one.is_met(query)))
            });
            found = [found, met].into_iter().flatten().min();
        }
        found.or(unconditional)
    }
}

impl QueryCondition {
    fn key(&self) -> String {
        key_of(&self.name, &self.value)
    }

    /// Returns whether a query has the parameter.
    fn is_met(&self, query: &str) -> bool {
        parameters(query).any(|(name, value)| name == *self.name && value == *self.value)
    }
}

/// Returns the key of a parameter. Two parameters may have the same key; conditions are compared completely.
fn key_of(name: &str, value: &str) -> String {
    format!("{name}={value}")
}

/// Returns the parameters of a query, decoded.
fn parameters(query: &str) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    form_urlencoded::parse(query.as_bytes()).take(MAX_PARAMETERS)
}

/// Returns whether a target may end with this segment of a requested path. With an empty segment, a target could begin with `//` and be another host. NUL stands for an encoded slash.
fn is_segment(segment: &str) -> bool {
    !matches!(segment, "" | "." | "..") && !segment.contains(char::is_control)
}

/// Returns the target of a redirect with the query of the request, which follows the target's own query and precedes its fragment (RFC 9110, section 10.2.2).
///
/// A target that is not a web address, such as `mailto:`, stays unchanged, since its query has another meaning.
#[must_use]
pub fn with_query(target: &HeaderValue, query: Option<&str>) -> HeaderValue {
    let bytes = target.as_bytes();
    let is_web =
        bytes.starts_with(b"/") || bytes.starts_with(b"http:") || bytes.starts_with(b"https:");
    let Some(query) = query.filter(|query| is_web && !query.is_empty()) else {
        return target.clone();
    };
    let end = bytes
        .iter()
        .position(|byte| *byte == b'#')
        .unwrap_or(bytes.len());
    let (address, fragment) = bytes.split_at(end);
    let joint: &[u8] = match address {
        [.., b'?' | b'&'] => b"",
        address if address.contains(&b'?') => b"&",
        _ => b"?",
    };
    let location = [address, joint, query.as_bytes(), fragment].concat();
    HeaderValue::from_maybe_shared(Bytes::from(location)).unwrap_or_else(|_| target.clone())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns a table of redirects written as `PATTERN[?QUERY] -> TARGET[ STATUS]`.
    fn table(lines: &[&str]) -> RedirectTable {
        RedirectTable::new(lines.iter().map(|line| rule(line)).collect())
    }

    fn rule(line: &str) -> RedirectRule {
        let (pattern, rest) = line.split_once(" -> ").expect("an arrow");
        let (pattern, query) = pattern.split_once('?').unwrap_or((pattern, ""));
        let (target, status) = rest.split_once(' ').unwrap_or((rest, "308"));
        let is_wildcard = pattern.ends_with("/*");
        let condition = |(name, value): (Cow<'_, str>, Cow<'_, str>)| QueryCondition {
            name: name.into(),
            value: value.into(),
        };
        RedirectRule {
            path: pattern.trim_end_matches("/*").into(),
            is_wildcard,
            conditions: form_urlencoded::parse(query.as_bytes())
                .map(condition)
                .collect(),
            action: match target {
                "gone" => RedirectAction::Gone,
                target => RedirectAction::Redirect {
                    status: status.parse().expect("a status"),
                    target: RedirectTarget::new(target, is_wildcard).expect("a target"),
                },
            },
        }
    }

    /// Returns the decision for `PATH[?QUERY]` as `STATUS LOCATION`.
    fn decide(table: &RedirectTable, request: &str, is_taken: bool) -> String {
        let (path, query) = match request.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (request, None),
        };
        match table.decide(path, query, is_taken) {
            None => "-".to_owned(),
            Some(RedirectDecision { location: None, .. }) => "410".to_owned(),
            Some(RedirectDecision {
                location: Some((status, location)),
                ..
            }) => format!("{} {}", status.as_u16(), location.to_str().expect("text")),
        }
    }

    #[test]
    fn most_specific_redirect_decides() {
        let table = table(&[
            "/* -> /home",
            "/old/* -> /new/:splat#top",
            "/old/deep/* -> /deep/:splat 302",
            "/old/page -> /page 301",
            "/old/page?id=1 -> /one",
            "/old/page?id=1&lang=de -> /eins",
            "/old/*?draft=1 -> /drafts/:splat",
            "/old/gone -> gone",
            "/?p=12 -> /blog/first?own=1",
            "/away/* -> https://a.example/x/:splat",
            "/\u{fc}ber/* -> /about/:splat",
            "/post -> mailto:a@b.example",
        ]);
        for (request, expected) in [
            ("/nothing", "308 /home"),
            ("/old", "308 /new#top"),
            ("/old/", "308 /new#top"),
            ("/older", "308 /home"),
            ("/old/a/b", "308 /new/a/b#top"),
            ("/old/a/b/", "308 /new/a/b#top"),
            ("/old/a?x=1", "308 /new/a?x=1#top"),
            ("/old/a?draft=1", "308 /drafts/a?draft=1"),
            ("/old/deep/a", "302 /deep/a"),
            ("/old/deep", "302 /deep"),
            ("/old/page", "301 /page"),
            ("/old/page/", "301 /page"),
            ("/old/page?id=2", "301 /page?id=2"),
            ("/old/page?x&id=1", "308 /one?x&id=1"),
            ("/old/page?lang=de&id=%31", "308 /eins?lang=de&id=%31"),
            ("/old/gone?x", "410"),
            ("/?p=12", "308 /blog/first?own=1&p=12"),
            ("/away/a/", "308 https://a.example/x/a/"),
            ("/away/a", "308 https://a.example/x/a"),
            ("/away", "308 https://a.example/x/"),
            ("/\u{fc}ber/caf\u{e9} %", "308 /about/caf%C3%A9%20%25"),
            ("/post?x", "308 mailto:a@b.example"),
        ] {
            assert_eq!(decide(&table, request, false), expected, "{request}");
        }
    }

    #[test]
    fn only_exact_redirect_with_conditions_precedes_page() {
        let table = table(&[
            "/* -> /home",
            "/*?p=2 -> /two",
            "/page -> /other",
            "/page?p=1 -> /one",
        ]);
        for (request, expected) in [
            ("/page", "-"),
            ("/page?p=1", "308 /one?p=1"),
            ("/page?p=2", "-"),
            ("/other", "-"),
        ] {
            assert_eq!(decide(&table, request, true), expected, "{request}");
        }
    }

    #[test]
    fn rest_with_empty_segment_matches_no_wildcard() {
        let table = table(&["/old/* -> /:splat", "/away/* -> https://a.example/:splat"]);
        for (request, expected) in [
            ("/old//evil.example", "-"),
            ("/old/\0evil.example", "-"),
            ("/old/a//b", "-"),
            ("/old/../x", "-"),
            ("/old/\\evil.example", "308 /%5Cevil.example"),
            ("/old/\\\\evil.example", "308 /%5C%5Cevil.example"),
            ("/old/@evil.example", "308 /@evil.example"),
            ("/away/@evil.example", "308 https://a.example/@evil.example"),
            ("/away/\r\nset-cookie: a", "-"),
            ("/old", "308 /"),
        ] {
            assert_eq!(decide(&table, request, false), expected, "{request:?}");
        }
    }

    #[test]
    fn decision_examines_few_of_many_redirects() {
        let mut lines = Vec::new();
        for number in 0..10_000 {
            lines.push(format!("/?p={number} -> /post/{number}"));
            lines.push(format!(
                "/index.php?option=com&id={number} -> /item/{number}"
            ));
            lines.push(format!("/exact/{number} -> /new/{number}"));
            lines.push(format!("/below/{number}/* -> /new/{number}/:splat"));
        }
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let table = table(&lines);
        for (path, query, expected) in [
            ("/", Some("p=7777"), Some("/post/7777?p=7777")),
            (
                "/index.php",
                Some("option=com&id=9"),
                Some("/item/9?option=com&id=9"),
            ),
            ("/index.php", Some("option=com"), None),
            ("/exact/5000", None, Some("/new/5000")),
            ("/below/5000/a/b", None, Some("/new/5000/a/b")),
            ("/nothing/at/all", Some("p=1"), None),
        ] {
            let mut steps = 0;
            let decision = table.decide_counting(path, query, false, &mut steps);
            let location = decision.and_then(|decision| Some(decision.location?.1));
            let location = location.as_ref().map(|at| at.to_str().expect("text"));
            assert_eq!(location, expected);
            assert!(steps <= 8, "{path}: {steps}");
        }
    }

    #[test]
    fn query_of_request_is_appended_to_that_of_target() {
        for (target, query, location) in [
            ("/new", Some("a=1"), "/new?a=1"),
            ("/new#part", Some("a=1&b"), "/new?a=1&b#part"),
            ("/new?own=2", Some("a=1"), "/new?own=2&a=1"),
            ("/new?own=2#part", Some("a=1"), "/new?own=2&a=1#part"),
            ("/new?", Some("a=1"), "/new?a=1"),
            ("/new#what?", Some("a=1"), "/new?a=1#what?"),
            ("https://a.example", Some("a=1"), "https://a.example?a=1"),
            ("mailto:a@b.example", Some("a=1"), "mailto:a@b.example"),
            ("/new?own=2#part", None, "/new?own=2#part"),
            ("/new", Some(""), "/new"),
        ] {
            let target = HeaderValue::from_static(target);
            assert_eq!(with_query(&target, query), location);
        }
    }

    proptest! {
        #[test]
        fn request_never_chooses_the_origin(
            path in "(/old|/away|/page|/){0,2}[/\\\\@:.a?#%\0 \t\u{fc}\u{202e}-]{0,12}",
            query in proptest::option::of("[a-z=&/\\\\?:]{0,9}"),
            is_taken: bool,
        ) {
            let table = table(&[
                "/* -> /:splat",
                "/old/* -> /:splat?own",
                "/old/*?a=a -> /b/:splat",
                "/away/* -> https://a.example/:splat",
                "/page?a -> //own.example/x",
            ]);
            let decision = table.decide(&path, query.as_deref(), is_taken);
            prop_assert_eq!(&decision, &table.decide(&path, query.as_deref(), is_taken));
            let Some(RedirectDecision { rule, location: Some((_, location)) }) = decision else {
                return Ok(());
            };
            let RedirectAction::Redirect { target, .. } = &rule.action else {
                panic!("a redirect");
            };
            let (location, (start, _)) = (location.to_str().expect("visible characters"), target.parts());
            prop_assert!(location.bytes().all(|byte| byte.is_ascii_graphic()), "{location}");
            if target.is_local() && !start.starts_with("//") {
                let is_other_host = matches!(location.as_bytes().get(1), Some(b'/' | b'\\'));
                prop_assert!(location.starts_with('/') && !is_other_host, "{location}");
            } else {
                prop_assert!(location.starts_with(start), "{location}");
            }
        }
    }
}
