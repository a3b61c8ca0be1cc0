//! Reads `deployment.yaml`: the tenant at the root of the domain, the addresses that each tenant may claim beyond its own name, and the credentials that visitors of a tenant need.
//!
//! The operator writes the file. Tenants cannot, because it is outside their folders. If the file exists, addresses that it does not list are not assigned.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::formats::checked_by;
use crate::formats::values::{Date, HostName, Prefix, Sha256Digest, UserName};
use crate::name::preview::is_preview;
use crate::name::{TenantId, ascii_host};
use crate::report::{
    Code, Diagnostic, Report, Severity, TextPosition, all_nearest, hint_for, list,
};
use crate::schema::Schema;
use crate::tenant::manifest::{MAX_ALIASES, MAX_HOSTS};
use crate::yaml::{self, Node, Value};

/// The name of the file in the folder of tenants.
pub const FILE: &str = "deployment.yaml";

/// The content of `deployment.yaml`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    /// The tenant at the root of the domain. Without it, the root stays unassigned.
    #[serde(default)]
    pub root: Option<String>,
    /// The credentials with which visitors open protected tenants, each by a name of its own. `rowhouse token NAME` prints the lines.
    #[serde(default)]
    pub access: BTreeMap<String, Credential>,
    /// The addresses that tenants may claim, and the credentials that their visitors need, by tenant id. A tenant that is not listed has only its own name, and needs no credential. A preview (`<id>@<label>`) claims no addresses, and needs the credentials of its tenant unless it has `access` of its own.
    #[serde(default)]
    pub tenants: BTreeMap<String, Allowed>,
}

/// A credential for protected tenants.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Credential {
    /// The user name that the browser asks for.
    pub user: UserName,
    /// The SHA-256 of the token, which the browser asks for as the password. The token itself is not in the file.
    pub token_sha256: Sha256Digest,
    /// The last day of the credential (UTC). Without it, the credential does not expire.
    #[serde(default)]
    pub expires: Option<Date>,
}

impl Credential {
    /// Returns the instant from which the credential is no longer valid: the end of its last day (UTC).
    #[must_use]
    pub fn ends(&self) -> Option<Timestamp> {
        let next = self.expires?.day().saturating_add(Span::new().days(1));
        TimeZone::UTC.to_timestamp(next.at(0, 0, 0, 0)).ok()
    }
}

/// The addresses that a tenant may claim in its manifest, and the credentials that its visitors need.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Allowed {
    /// Path prefixes on the domain, at most 64.
    #[serde(default)]
    #[schemars(length(max = MAX_ALIASES))]
    pub aliases: Vec<Prefix>,
    /// The tenant's own domains, at most 16.
    #[serde(default)]
    #[schemars(length(max = MAX_HOSTS))]
    pub hosts: Vec<HostName>,
    /// Names of credentials in `access`. With this key, every address of the tenant needs one of these credentials.
    #[serde(default)]
    #[schemars(length(min = 1, max = MAX_CREDENTIALS))]
    pub access: Vec<String>,
}

/// The limit on the credentials of one tenant. A request is compared with each of them.
pub const MAX_CREDENTIALS: usize = 64;

/// The checked file, with its text and positions for hints about missing entries.
#[derive(Debug, Clone)]
pub struct DeploymentFile {
    /// The content of the file.
    pub claims: Claims,
    label: String,
    text: String,
    node: Node,
}

static SCHEMA: LazyLock<Schema> = LazyLock::new(checked_by::<Claims>);

impl DeploymentFile {
    /// Returns a file that lists nothing. It applies while the file cannot be read and no valid version was read before.
    #[must_use]
    pub fn empty(label: &str) -> Self {
        Self {
            claims: Claims::default(),
            label: label.to_owned(),
            text: String::new(),
            node: Node::from_json(&Json::Null),
        }
    }

    /// Reads the text of the file. Returns `None` if the report has errors.
    #[must_use]
    pub fn read(label: &str, text: &str) -> (Option<Self>, Report) {
        let mut report = Report::default();
        let located = |code, message, position: Option<TextPosition>| {
            let diagnostic = Diagnostic::error(code, label, message);
            position
                .into_iter()
                .fold(diagnostic, |diagnostic, position| {
                    diagnostic.at(position, text)
                })
        };
        let node = match yaml::parse(text, 1) {
            Ok(node) => node,
            Err(error) => {
                report.push(error.diagnostic(label, text));
                return (None, report);
            }
        };
        let (problems, _) = SCHEMA.check(&node);
        report.extend(problems.into_iter().map(|problem| Diagnostic {
            hint: problem.hint,
            ..located(problem.code, problem.message, Some(problem.position))
        }));
        if !report.is_servable() {
            return (None, report);
        }
        let claims: Claims = match serde_json::from_value(node.to_json()) {
            Ok(claims) => claims,
            Err(error) => {
                report.push(located(Code::WrongType, error.to_string(), None));
                return (None, report);
            }
        };
        let deployment = Self {
            claims,
            label: label.to_owned(),
            text: text.to_owned(),
            node,
        };
        report.extend(deployment.listed_twice());
        report.extend(deployment.unknown_credentials());
        (report.is_servable().then_some(deployment), report)
    }

    /// Returns whether a tenant may claim an alias or a host.
    #[must_use]
    pub fn allows(&self, tenant: &TenantId, key: &str, address: &str) -> bool {
        let allowed = self.claims.tenants.get(tenant.as_str());
        allowed.is_some_and(|allowed| match key {
            "aliases" => allowed
                .aliases
                .iter()
                .any(|alias| alias.as_str() == address),
            _ => allowed.hosts.iter().any(|host| host.as_str() == address),
        })
    }

    /// Returns a hint on how to allow a tenant an address: the text to write, the file and the line.
    #[must_use]
    pub fn how_to_allow(&self, tenant: &TenantId, key: &str, address: &str) -> String {
        let file = &self.label;
        if !self.is_valid() {
            return format!("correct `{file}` first: until then, no addresses are listed");
        }
        let at = |path: &[&str]| self.key(path).map(|position| position.line);
        let id = tenant.as_str();
        let (words, line) = if let Some(line) = at(&["tenants", id, key]) {
            (format!("`{address}` to `{key}` of `{id}`"), line)
        } else if let Some(line) = at(&["tenants", id]) {
            (format!("`{key}: [{address}]` below `{id}:`"), line)
        } else if let Some(line) = at(&["tenants"]) {
            (
                format!("`{id}: {{{key}: [{address}]}}` below `tenants:`"),
                line,
            )
        } else {
            return format!(
                "ask the operator to write `tenants: {{{id}: {{{key}: [{address}]}}}}` into `{file}`"
            );
        };
        format!("ask the operator to add {words} in `{file}`, line {line}")
    }

    /// Returns a hint on how to give a tenant the root of the domain.
    #[must_use]
    pub fn how_to_root(&self, tenant: &TenantId) -> String {
        let file = &self.label;
        match self.key(&["root"]) {
            _ if !self.is_valid() => {
                format!("correct `{file}` first: until then, no root tenant is set")
            }
            Some(position) => format!(
                "ask the operator to write `root: {tenant}` in `{file}`, line {}",
                position.line
            ),
            None => format!("ask the operator to write `root: {tenant}` into `{file}`"),
        }
    }

    /// Returns whether a valid file was read.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        !self.text.is_empty()
    }

    /// Returns the text of the file.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the name of the file in reports.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Returns the entries that protect a tenant that does not exist.
    pub fn unknown_protected(&self, is_known: impl Fn(&str) -> bool) -> impl Iterator<Item = &str> {
        let ids = self.protected().map(|(id, _)| id);
        ids.filter(move |id| !is_known(id))
    }

    /// Returns the tenants that an unknown entry may be meant for: of the tenants without an entry, those with the nearest names.
    #[must_use]
    pub fn meant_by<'a>(&self, entry: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
        let unlisted = known.filter(|id| !self.claims.tenants.contains_key(*id));
        all_nearest(&entry.to_lowercase(), unlisted)
    }

    /// Returns a diagnostic for each listed tenant that does not exist. An entry that may misspell a protected tenant is an error. Other entries are warnings, because the tenant may be added later. `closed`: the tenants that are closed because of an entry.
    #[must_use]
    pub fn unknown_tenants<'a>(
        &self,
        known: impl Iterator<Item = &'a str> + Clone,
        closed: &BTreeMap<Box<str>, BTreeSet<Box<str>>>,
    ) -> Vec<Diagnostic> {
        let unknown_tenant = |name: &str, position: Option<TextPosition>, is_root: bool| {
            // A preview is never at the domain's root.
            let may_be = |known: &str| known == name && !(is_root && is_preview(known));
            if known.clone().any(may_be) {
                return None;
            }
            let message = format!("unknown tenant `{name}`");
            let entry = self.claims.tenants.get(name);
            if entry.is_none_or(|entry| entry.access.is_empty()) {
                let warning = self.warning(Code::UnknownTenant, message, position);
                return Some(warning.hint(hint_for(name, known.clone())));
            }
            let message = format!("{message}: this entry protects no site");
            let warning = self.warning(Code::UnknownTenant, message, position);
            let Some(meant) = closed.get(name) else {
                let hint = "add the folder of the tenant, or remove the entry of a tenant that was removed";
                return Some(warning.hint(hint));
            };
            let severity = Severity::Error;
            Some(
                Diagnostic {
                    severity,
                    ..warning
                }
                .hint(misspelt_hint(meant)),
            )
        };
        let root = self.claims.root.as_deref();
        let root = root.map(|root| (root, self.value(&["root"]).map(|node| node.position)));
        let root = root.and_then(|(name, position)| unknown_tenant(name, position, true));
        let tenants = self.claims.tenants.keys();
        let tenants =
            tenants.filter_map(|id| unknown_tenant(id, self.key(&["tenants", id]), false));
        root.into_iter().chain(tenants).collect()
    }

    /// Returns the tenants that need a credential, each with its credentials.
    pub fn protected(&self) -> impl Iterator<Item = (&str, Vec<&Credential>)> {
        let tenants = self.claims.tenants.iter();
        let protected = tenants.filter(|(_, allowed)| !allowed.access.is_empty());
        protected.map(|(id, allowed)| {
            let names = allowed.access.iter();
            let credentials = names.filter_map(|name| self.claims.access.get(name));
            (id.as_str(), credentials.collect())
        })
    }

    /// Returns a warning for each credential that has expired. The file stays valid: an expired credential opens nothing.
    #[must_use]
    pub fn expired_credentials(&self, now: Timestamp) -> Vec<Diagnostic> {
        let expired = self.claims.access.iter().filter_map(|(name, credential)| {
            let day = credential.expires?.day();
            let position = self
                .value(&["access", name, "expires"])
                .map(|node| node.position);
            credential.ends().filter(|end| *end <= now)?;
            let message = format!("the credential `{name}` expired at the end of {day} (UTC)");
            let hint = format!(
                "create a new token with `rowhouse token {name}`, or remove the credential"
            );
            Some(
                self.warning(Code::ExpiredCredential, message, position)
                    .hint(hint),
            )
        });
        expired.collect()
    }

    /// Returns an error for each credential that a tenant needs and that `access` lacks.
    fn unknown_credentials(&self) -> Vec<Diagnostic> {
        let Some(Value::Map(tenants)) = self.value(&["tenants"]).map(|node| &node.value) else {
            return Vec::new();
        };
        let lists = tenants
            .iter()
            .filter_map(|(_, allowed)| find(allowed, &["access"]));
        let names = lists.flat_map(|(_, list)| match &list.value {
            Value::List(items) => items.as_slice(),
            _ => &[],
        });
        let unknown = names.filter_map(|item| match &item.value {
            Value::Text(name) if !self.claims.access.contains_key(name) => {
                let message = format!("unknown credential `{name}`");
                let hint = match self.claims.access.is_empty() {
                    true => format!("add the lines that `rowhouse token {name}` prints"),
                    false => hint_for(name, self.claims.access.keys().map(String::as_str)),
                };
                let diagnostic =
                    Diagnostic::error(Code::UnknownCredential, self.label.as_str(), message)
                        .at(item.position, &self.text);
                Some(diagnostic.hint(hint))
            }
            _ => None,
        });
        unknown.collect()
    }

    fn warning(&self, code: Code, message: String, position: Option<TextPosition>) -> Diagnostic {
        let diagnostic = Diagnostic::warning(code, self.label.as_str(), message);
        position
            .into_iter()
            .fold(diagnostic, |diagnostic, position| {
                diagnostic.at(position, &self.text)
            })
    }

    /// Returns an error for each address that is listed for two tenants.
    fn listed_twice(&self) -> Vec<Diagnostic> {
        let mut seen: BTreeMap<String, (&str, usize)> = BTreeMap::new();
        let mut found = Vec::new();
        let Some(Value::Map(tenants)) = self.value(&["tenants"]).map(|node| &node.value) else {
            return found;
        };
        let addresses = tenants.iter().flat_map(|(id, allowed)| {
            let lists = ["aliases", "hosts"].map(|key| find(allowed, &[key]).map(|(_, list)| list));
            let items = lists
                .into_iter()
                .flatten()
                .flat_map(|list| match &list.value {
                    Value::List(items) => items.as_slice(),
                    _ => &[],
                });
            items.map(move |item| (id.name.as_str(), item))
        });
        for (id, item) in addresses {
            let Value::Text(address) = &item.value else {
                continue;
            };
            let meant = ascii_host(address).unwrap_or_else(|| address.clone());
            match seen.get(&meant) {
                Some((owner, line)) if *owner != id => {
                    let message = format!("`{address}` is already listed for the tenant `{owner}`");
                    let diagnostic =
                        Diagnostic::error(Code::AddressTaken, self.label.as_str(), message)
                            .at(item.position, &self.text);
                    found.push(
                        diagnostic.hint(format!("remove the address here or in line {line}")),
                    );
                }
                _ => {
                    seen.insert(meant, (id, item.position.line));
                }
            }
        }
        found
    }

    fn key(&self, path: &[&str]) -> Option<TextPosition> {
        find(&self.node, path).map(|(position, _)| position)
    }

    fn value(&self, path: &[&str]) -> Option<&Node> {
        find(&self.node, path).map(|(_, node)| node)
    }
}

/// Returns a hint about an entry that may be meant for these tenants, which are closed.
fn misspelt_hint(meant: &BTreeSet<Box<str>>) -> String {
    let tenants = list(meant.iter().map(|id| &**id));
    let example = meant.first().map_or("", |id| id);
    let verb = match meant.len() {
        1 => "answers",
        _ => "answer",
    };
    format!(
        "did you mean {tenants}? Until the name is correct, {tenants} {verb} 503; an entry of its own, such as `{example}: {{}}`, opens a tenant"
    )
}

/// Returns whether a text that is not valid may be meant to protect tenants: it has a word of a credential.
#[must_use]
pub fn may_protect(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["access", "sha256", "token"]
        .iter()
        .any(|word| text.contains(word))
}

/// Finds the node at a path of keys. Returns the position of the last key, and its value.
pub(super) fn find<'a>(node: &'a Node, path: &[&str]) -> Option<(TextPosition, &'a Node)> {
    let (first, rest) = path.split_first()?;
    let Value::Map(pairs) = &node.value else {
        return None;
    };
    let (key, value) = pairs.iter().find(|(key, _)| key.name == *first)?;
    match rest {
        [] => Some((key.position, value)),
        rest => find(value, rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";

    fn read(text: &str) -> (Option<DeploymentFile>, Vec<Diagnostic>) {
        let (file, report) = DeploymentFile::read(FILE, &text.replace("HASH", HASH));
        (file, report.iter().cloned().collect())
    }

    #[test]
    fn mistake_in_access_is_an_error_at_its_place() {
        let access = "access: {a: {user: a, token_sha256: HASH}}";
        for (text, line, code) in [
            ("tenants: {x: {access: [b]}}", 2, Code::UnknownCredential),
            ("tenants: {x: {access: []}}", 2, Code::BadValue),
            ("tenants: {x: {access: }}", 2, Code::WrongType),
            ("tenants: {x: {access: a}}", 2, Code::WrongType),
            ("tenants: {x: {acess: [a]}}", 2, Code::UnknownKey),
        ] {
            let (file, report) = read(&format!("{access}\n{text}\n"));
            assert!(file.is_none(), "{text}");
            let first = report.first().unwrap();
            assert_eq!(first.code, code, "{text}: {first:?}");
            assert_eq!(first.position.map(|position| position.line), Some(line));
            assert!(first.hint.is_some(), "{text}");
        }
        for (credential, code) in [
            ("{user: a}", Code::MissingKey),
            ("{token_sha256: HASH}", Code::MissingKey),
            ("{user: a, token_sha256: secret}", Code::BadValue),
            ("{user: 'a:b', token_sha256: HASH}", Code::BadValue),
            ("{user: '', token_sha256: HASH}", Code::BadValue),
            (
                "{user: a, token_sha256: HASH, expires: soon}",
                Code::BadValue,
            ),
            ("{user: a, token_sha256: HASH, token: x}", Code::UnknownKey),
        ] {
            let (file, report) = read(&format!("access:\n  a: {credential}\n"));
            assert!(file.is_none(), "{credential}");
            let first = report.first().unwrap();
            assert_eq!(first.code, code, "{credential}: {first:?}");
            assert!(!first.message.contains("secret"), "{first:?}");
        }
    }

    #[test]
    fn credential_is_valid_to_the_end_of_its_last_day() {
        let text = "access: {a: {user: a, token_sha256: HASH, expires: 2026-11-30}}\ntenants: {x: {access: [a]}, y: {}}\n";
        let file = read(text).0.unwrap();
        let protected: Vec<_> = file.protected().collect();
        assert_eq!(protected.len(), 1);
        let (tenant, credentials) = &protected[0];
        assert_eq!((*tenant, credentials.len()), ("x", 1));
        let ends: Timestamp = "2026-12-01T00:00:00Z".parse().unwrap();
        assert_eq!(credentials[0].ends(), Some(ends));
        assert!(
            file.expired_credentials(ends - Span::new().seconds(1))
                .is_empty()
        );
        let expired = file.expired_credentials(ends);
        assert_eq!(expired.len(), 1);
        assert!(expired[0].position.is_some(), "{expired:?}");
        let bytes = credentials[0].token_sha256.bytes().unwrap();
        assert_eq!((bytes[0], bytes[31]), (0x2b, 0x5b));
    }

    #[test]
    fn text_without_words_of_credentials_protects_nothing() {
        for (text, expected) in [
            ("root: [", false),
            ("tenants: {a: {aliases: [x]}}", false),
            ("acces:\n  a: {token_sha256: 0}", true),
            ("ACCESS: [", true),
        ] {
            assert_eq!(may_protect(text), expected, "{text}");
        }
    }
}
