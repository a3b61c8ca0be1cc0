//! The rules of access: which tenants need a credential, and which credentials open them.
//!
//! A preview without a rule of its own has the rule of its tenant.
//!
//! The rules are looked up by tenant and not by address. So every address of a tenant is protected from the first snapshot that has the tenant, and a rollback, an evicted tenant or a placeholder page is protected as well.
//!
//! **Invariant:** has hashes of tokens only; decides nothing.

use std::time::SystemTime;

use super::preview::tenant_of_preview;
use super::resources::LookupMap;

/// The rules of access by tenant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccessTable {
    rules: LookupMap<AccessRule>,
    /// The rule of tenants without a rule of their own, except those in `open`. `None` leaves them open.
    others: Option<AccessRule>,
    open: hashbrown::HashSet<Box<str>>,
}

/// The rule of one tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessRule {
    /// A request needs one of these credentials.
    Credentials(Box<[Credential]>),
    /// No credential is known, because `deployment.yaml` is not valid or missing, or may misspell the tenant's name. No request is answered with content.
    Closed,
}

/// A user name and the hash of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// The user name.
    pub user: Box<str>,
    /// The SHA-256 of the token.
    pub token_sha256: [u8; 32],
    /// The instant from which the credential is not valid. `None` if it does not expire.
    pub ends: Option<SystemTime>,
}

impl AccessTable {
    /// Returns a table with these rules. Other tenants are open.
    #[must_use]
    pub fn new(rules: impl IntoIterator<Item = (Box<str>, AccessRule)>) -> Self {
        Self {
            rules: rules.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Returns the table with every other tenant closed, except the tenants in `open`.
    #[must_use]
    pub fn with_others_closed(self, open: impl IntoIterator<Item = Box<str>>) -> Self {
        Self {
            others: Some(AccessRule::Closed),
            open: open.into_iter().collect(),
            ..self
        }
    }

    /// Returns the table with these tenants closed.
    #[must_use]
    pub fn with_closed(mut self, closed: impl IntoIterator<Item = Box<str>>) -> Self {
        let closed = closed.into_iter().map(|id| (id, AccessRule::Closed));
        self.rules.extend(closed);
        self
    }

    /// Returns the rule of a tenant, or `None` if the tenant is open.
    #[must_use]
    pub fn rule(&self, tenant: &str) -> Option<&AccessRule> {
        let others = || {
            let others = self.others.as_ref()?;
            (!self.open.contains(tenant)).then_some(others)
        };
        self.named_rule(tenant).or_else(others)
    }

    /// Returns the rule that the table names for a tenant, or for the tenant that a preview shows.
    fn named_rule(&self, tenant: &str) -> Option<&AccessRule> {
        let of_tenant = || self.rules.get(tenant_of_preview(tenant)?);
        self.rules.get(tenant).or_else(of_tenant)
    }

    /// Returns whether the table names a tenant, or the tenant that a preview shows. Pages and sitemaps of other tenants do not list such a tenant.
    #[must_use]
    pub fn names(&self, tenant: &str) -> bool {
        self.named_rule(tenant).is_some()
    }

    /// Returns the rules of the tenants that the table names, in arbitrary order.
    pub fn named(&self) -> impl Iterator<Item = (&str, &AccessRule)> {
        self.rules.iter().map(|(id, rule)| (&**id, rule))
    }

    /// Returns whether every tenant is open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.rules.is_empty() && self.others.is_none()
    }

    /// Returns whether tenants that the table does not name are closed.
    #[must_use]
    pub const fn closes_others(&self) -> bool {
        self.others.is_some()
    }

    /// Returns whether a tenant is open although other tenants are closed.
    #[must_use]
    pub fn has_open(&self) -> bool {
        !self.open.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenant_without_a_rule_is_open_unless_others_are_closed() {
        let credentials = AccessRule::Credentials(Box::new([]));
        let table = AccessTable::new([("a".into(), credentials.clone())]);
        assert_eq!(table.rule("a"), Some(&credentials));
        assert_eq!(table.rule("b"), None);
        let table = table.with_others_closed(["b".into()]);
        assert_eq!(table.rule("a"), Some(&credentials));
        assert_eq!(table.rule("b"), None);
        assert_eq!(table.rule("c"), Some(&AccessRule::Closed));
        assert!(!table.is_open() && AccessTable::default().is_open());
        let table = table.with_closed(["b".into()]);
        assert_eq!(table.rule("b"), Some(&AccessRule::Closed));
    }

    #[test]
    fn preview_has_the_rule_of_its_tenant_unless_it_has_its_own() {
        let credentials = AccessRule::Credentials(Box::new([]));
        let rules = [
            ("a".into(), credentials.clone()),
            ("a@own".into(), AccessRule::Closed),
            ("b@own".into(), credentials.clone()),
        ];
        let table = AccessTable::new(rules);
        for (tenant, expected) in [
            ("a@x", Some(&credentials)),
            ("a@own", Some(&AccessRule::Closed)),
            ("b", None),
            ("b@own", Some(&credentials)),
            ("b@x", None),
        ] {
            assert_eq!(table.rule(tenant), expected, "{tenant}");
            assert_eq!(table.names(tenant), expected.is_some(), "{tenant}");
        }
        // A preview that was added while the file was not valid is closed like any other tenant.
        let table = table.with_others_closed(["b".into()]);
        assert_eq!(table.rule("b@x"), Some(&AccessRule::Closed));
    }
}
