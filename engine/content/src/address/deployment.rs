//! Reads `deployment.yaml`: the tenant at the root of the domain, and the addresses that each tenant may claim beyond its own name.
//!
//! The operator writes the file. Tenants cannot, because it is outside their folders. If the file exists, addresses that it does not list are not assigned.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::formats::checked_by;
use crate::formats::values::{HostName, Prefix};
use crate::name::{TenantId, ascii_host};
use crate::report::{Code, Diagnostic, Report, TextPosition, hint_for};
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
    /// The addresses that tenants may claim, by tenant id. A tenant that is not listed has only its own name.
    #[serde(default)]
    pub tenants: BTreeMap<String, Allowed>,
}

/// The addresses that a tenant may claim in its manifest.
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
}

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

    /// Returns a warning for each listed tenant that does not exist. These are warnings, because the tenant may be added later.
    #[must_use]
    pub fn unknown_tenants<'a>(
        &self,
        known: impl Iterator<Item = &'a str> + Clone,
    ) -> Vec<Diagnostic> {
        let unknown_tenant = |name: &str, position: Option<TextPosition>| {
            if known.clone().any(|known| known == name) {
                return None;
            }
            let message = format!("unknown tenant `{name}`");
            let diagnostic = Diagnostic::warning(Code::UnknownTenant, self.label.as_str(), message)
                .hint(hint_for(name, known.clone()));
            Some(
                position
                    .into_iter()
                    .fold(diagnostic, |diagnostic, position| {
                        diagnostic.at(position, &self.text)
                    }),
            )
        };
        let root = self.claims.root.as_deref();
        let root = root.map(|root| (root, self.value(&["root"]).map(|node| node.position)));
        let tenants = self.claims.tenants.keys();
        let tenants = tenants.map(|id| (id.as_str(), self.key(&["tenants", id])));
        root.into_iter()
            .chain(tenants)
            .filter_map(|(name, position)| unknown_tenant(name, position))
            .collect()
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
