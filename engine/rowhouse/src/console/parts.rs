//! Where what the console shows comes from, and what is asked of it.
//!
//! **Invariant:** shows nothing itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use content::address::Origin;
use server::snapshot_store::SnapshotStore;
use server::tls::Tls;

use supervisor::Operator;

/// Where what is shown comes from.
#[derive(Debug)]
pub struct ConsoleParts {
    /// The owner of the tenants.
    pub operator: Arc<Operator>,
    /// What is served, and the counters.
    pub snapshots: Arc<SnapshotStore>,
    /// What HTTPS is spoken with.
    pub tls: Option<Arc<Tls>>,
    /// What visitors type to reach the sites.
    pub origin: Origin,
    /// Whether there is a token that commands may come with.
    pub has_token: bool,
}

impl ConsoleParts {
    /// The address of a host of this deployment, with a path behind it.
    pub(super) fn url(&self, address: &str) -> String {
        let (host, path) = match address.split_once('/') {
            Some((host, path)) => (host, format!("/{path}")),
            None => (address, "/".to_owned()),
        };
        format!("{}{path}", self.origin.at(host))
    }
}

/// What stands in a query: the last of each name.
#[derive(Debug, Default)]
pub(super) struct Asked(BTreeMap<String, String>);

impl Asked {
    pub(super) fn of(query: &str) -> Self {
        let pairs = url::form_urlencoded::parse(query.as_bytes());
        Self(pairs.into_owned().collect())
    }

    pub(super) fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", |value| value.trim())
    }

    pub(super) fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.text(name).parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_decoded() {
        let asked = Asked::of("q=a+b%20c&page=2&from=x&page=3");
        assert_eq!((asked.text("q"), asked.text("none")), ("a b c", ""));
        assert_eq!(asked.number::<usize>("page"), Some(3));
        assert_eq!(asked.number::<u64>("from"), None);
    }
}
