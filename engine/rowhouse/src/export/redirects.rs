//! The redirects that authors wrote, for all mounts of a host.
//!
//! A web server or static host gets for each location the redirects that apply there, the first of which counts, as [`RedirectTable`] decides. A tenant's wildcard ends at the prefix of another tenant.
//!
//! **Invariant:** knows no syntax of a configuration, except regular expressions that nginx and Caddy share. A location never contains a decoded part of a request: a decoded line break would end a header field.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use release::snapshot::redirects::{
    QueryCondition, RedirectAction, RedirectRule, RedirectTable, RedirectTarget,
};

/// A redirect at its complete path on the host.
#[derive(Debug, Clone)]
struct HostRedirect {
    /// The prefix of the tenant.
    mount: String,
    /// The redirect. Its path begins with the prefix.
    rule: RedirectRule,
}

/// The redirects of a host.
#[derive(Debug, Default)]
pub(super) struct HostRedirects {
    /// By path, within a path in the order in which they are tried.
    redirects: BTreeMap<String, Vec<HostRedirect>>,
    /// The prefixes of all tenants.
    mounts: BTreeSet<String>,
}

/// A redirect at a location.
#[derive(Debug, Clone)]
pub(super) struct LocalRedirect<'r> {
    /// The prefix of the tenant.
    pub(super) mount: &'r str,
    /// The number of segments of the redirect's path.
    pub(super) depth: usize,
    /// The parameters that the query must have.
    pub(super) conditions: &'r [QueryCondition],
    /// The response.
    pub(super) response: LocalResponse,
}

/// The response of a redirect at a location.
#[derive(Debug, Clone)]
pub(super) enum LocalResponse {
    /// The 404 page with status 410.
    Gone,
    /// A redirect.
    Redirect {
        status: u16,
        /// The target, or the part of it before the inserted path.
        start: String,
        /// The part behind the inserted path.
        end: Option<String>,
    },
}

impl LocalRedirect<'_> {
    /// Returns whether the redirect applies to every request of its location.
    pub(super) const fn is_last(&self) -> bool {
        self.conditions.is_empty()
    }
}

impl LocalResponse {
    /// Returns whether a path that begins with a slash, inserted without a check, would make the location another host.
    pub(super) fn is_open(&self) -> bool {
        matches!(self, Self::Redirect { start, end: Some(_), .. } if start == "/")
    }

    /// Returns whether the target is on another site, which may tell paths with a trailing slash from paths without.
    pub(super) fn keeps_slash(&self) -> bool {
        matches!(self, Self::Redirect { start, end: Some(_), .. } if !start.starts_with('/'))
    }
}

impl HostRedirects {
    /// Adds the redirects of a tenant at the prefix `mount`. `is_owned_below`: whether a path belongs to a tenant with a longer prefix.
    pub(super) fn add(
        &mut self,
        mount: &str,
        table: &RedirectTable,
        is_owned_below: impl Fn(&str) -> bool,
    ) {
        self.mounts.insert(mount.to_owned());
        for rule in table.rules() {
            let path = match &*rule.path {
                "/" => mount.to_owned(),
                path => format!("{mount}{path}"),
            };
            if !is_owned_below(&path) {
                let same = self.redirects.entry(path.clone()).or_default();
                same.push(HostRedirect {
                    mount: mount.to_owned(),
                    rule: RedirectRule {
                        path: path.into(),
                        ..rule.clone()
                    },
                });
            }
        }
    }

    /// Returns the paths with redirects of exactly this path, and the prefixes of wildcards.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.redirects.keys().map(|path| request_path(path))
    }

    /// Returns the prefixes of wildcards.
    pub(super) fn prefixes(&self) -> BTreeSet<&str> {
        self.wildcards().into_iter().map(|(path, _)| path).collect()
    }

    /// Returns the prefixes of the tenants below a prefix.
    pub(super) fn mounts_below(&self, mount: &str) -> impl Iterator<Item = &str> {
        let begin = format!("{mount}/");
        let from = self.mounts.range(begin.clone()..);
        from.map(String::as_str)
            .take_while(move |below| below.starts_with(&begin))
    }

    /// Returns the prefix of the tenant that a path belongs to.
    pub(super) fn owner(&self, path: &str) -> Option<&str> {
        ancestors(path).find_map(|prefix| self.mounts.get(prefix).map(String::as_str))
    }

    /// Returns the redirects for requests of exactly `path`, in order. `is_taken`: whether the path has a page or a file. `has_slash`: whether a slash follows the path.
    pub(super) fn at(&self, path: &str, is_taken: bool, has_slash: bool) -> Vec<LocalRedirect<'_>> {
        let path = path.strip_suffix('/').unwrap_or(path);
        let exact = self.redirects.get(path).into_iter().flatten();
        let exact = exact.filter(|one| !one.rule.is_wildcard);
        let exact = exact.filter(|one| !is_taken || !one.rule.conditions.is_empty());
        let exact = exact.map(|one| local(one, Some(("", false))));
        let wildcards = self.wildcards_of(path).filter(|_| !is_taken);
        let wildcards = wildcards.map(|one| {
            let rest = path.strip_prefix(&*one.rule.path).unwrap_or_default();
            local(one, Some((rest.trim_start_matches('/'), has_slash)))
        });
        up_to_unconditional(exact.chain(wildcards))
    }

    /// Returns the redirects for requests of paths below `prefix` that have no location of their own, in order.
    pub(super) fn below(&self, prefix: &str) -> Vec<LocalRedirect<'_>> {
        up_to_unconditional(self.wildcards_of(prefix).map(|one| local(one, None)))
    }

    /// Returns the wildcards for a path and everything below it, the longest first, of the tenant that the path belongs to.
    fn wildcards_of(&self, path: &str) -> impl Iterator<Item = &HostRedirect> {
        let owner = self.owner(path);
        let redirects = ancestors(path).filter_map(|prefix| self.redirects.get(prefix));
        redirects
            .flatten()
            .filter(move |one| one.rule.is_wildcard && owner == Some(&one.mount))
    }

    /// Returns each wildcard with its prefix, the longest first.
    pub(super) fn wildcards(&self) -> Vec<(&str, LocalRedirect<'_>)> {
        let wildcards = self.redirects.values().flatten();
        let wildcards = wildcards.filter(|one| one.rule.is_wildcard);
        let mut all: Vec<_> = wildcards
            .map(|one| (&*one.rule.path, local(one, None)))
            .collect();
        all.sort_by_key(|(prefix, _)| Reverse(depth(prefix)));
        all
    }

    /// Returns each redirect as the author wrote it, at its complete path.
    pub(super) fn written(&self) -> impl Iterator<Item = &RedirectRule> {
        let all = self.redirects.values().flatten();
        all.map(|one| &one.rule)
    }
}

/// Returns a path and its prefixes of complete segments, the longest first. The last is empty.
pub(super) fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    let shorter = |prefix: &&str| prefix.rfind('/').map(|slash| &path[..slash]);
    std::iter::successors(Some(path), move |prefix| shorter(prefix))
}

/// Returns the path that a request has for the root of a host.
pub(super) fn request_path(path: &str) -> &str {
    if path.is_empty() { "/" } else { path }
}

/// Returns the number of segments of a path.
pub(super) fn depth(path: &str) -> usize {
    path.matches('/').count()
}

/// Returns a redirect at a location, for the known rest of the path or for any.
fn local<'r>(redirect: &'r HostRedirect, rest: Option<(&str, bool)>) -> LocalRedirect<'r> {
    let response = match (&redirect.rule.action, rest) {
        (RedirectAction::Gone, _) => LocalResponse::Gone,
        (RedirectAction::Redirect { status, target }, Some((rest, has_slash))) => {
            LocalResponse::Redirect {
                status: status.as_u16(),
                start: target.location(rest, has_slash),
                end: None,
            }
        }
        (RedirectAction::Redirect { status, target }, None) => of_target(status.as_u16(), target),
    };
    LocalRedirect {
        mount: &redirect.mount,
        depth: depth(&redirect.rule.path),
        conditions: &redirect.rule.conditions,
        response,
    }
}

fn of_target(status: u16, target: &RedirectTarget) -> LocalResponse {
    let (start, end) = target.parts();
    LocalResponse::Redirect {
        status,
        start: start.to_owned(),
        end: end.map(str::to_owned),
    }
}

/// Returns the items up to the first without conditions, which ends the search.
fn up_to_unconditional<'r>(
    redirects: impl Iterator<Item = LocalRedirect<'r>>,
) -> Vec<LocalRedirect<'r>> {
    let mut found = Vec::new();
    for redirect in redirects {
        let is_last = redirect.is_last();
        found.push(redirect);
        if is_last {
            break;
        }
    }
    found
}

/// Returns a regular expression for a requested target whose path has `depth` segments and a rest, which is the first group. `keeps_slash`: whether the group includes a trailing slash.
///
/// The target is not decoded. The names before the rest are not repeated, since a request may encode them differently.
pub(super) fn rest_pattern(depth: usize, keeps_slash: bool) -> String {
    let segment = r"[^/?\\]+";
    let names = format!("/{segment}").repeat(depth);
    let end = if keeps_slash { "/?)" } else { ")/*" };
    format!("^{names}/((?:{segment}/)*{segment}{end}")
}

/// A regular expression for requested targets that no wildcard accepts: with an encoded slash or control character, or with a dot segment. An empty segment and a `\` do not match [`rest_pattern`].
pub(super) const UNSAFE_REST: &str =
    r"^[^?]*(?:%2[fF]|%[01][0-9a-fA-F]|%7[fF]|/(?:\.|%2[eE])(?:\.|%2[eE])?(?:[/?]|$))";

/// Returns a regular expression for a parameter in a query as browsers and other programs write it.
pub(super) fn parameter_pattern(condition: &QueryCondition) -> String {
    let value = written_pattern(&condition.value, b"&+%#");
    let name = written_pattern(&condition.name, b"&+%#=");
    match &*condition.value {
        "" => format!("{name}=?"),
        _ => format!("{name}={value}"),
    }
}

/// Returns a regular expression for a text of a query. `encoded` has the characters that are always encoded.
fn written_pattern(text: &str, encoded: &[u8]) -> String {
    let mut pattern = String::new();
    for byte in text.bytes() {
        let hexadecimal: String = format!("{byte:02X}")
            .chars()
            .map(|digit| match digit {
                'A'..='F' => format!("[{digit}{}]", digit.to_ascii_lowercase()),
                digit => digit.to_string(),
            })
            .collect();
        // Writing into a String cannot fail.
        let _ = match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'~' => {
                write!(pattern, "{}", char::from(byte))
            }
            b' ' => write!(pattern, r"(?:\+|%20)"),
            byte if byte.is_ascii_graphic() && !encoded.contains(&byte) => {
                write!(pattern, r"(?:\{}|%{hexadecimal})", char::from(byte))
            }
            _ => write!(pattern, "%{hexadecimal}"),
        };
    }
    pattern
}
