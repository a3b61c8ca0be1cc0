//! The sources of the values in the console, and the query of a request.
//!
//! **Invariant:** renders nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use content::address::Origin;
use server::metrics::process_memory::ProcessMemory;
use server::snapshot_store::SnapshotStore;
use server::tls::Tls;

use supervisor::Operator;

/// The sources of the values in the console.
#[derive(Debug)]
pub struct ConsoleParts {
    /// The interface to the reload loop.
    pub operator: Arc<Operator>,
    /// The current snapshot and the traffic counters.
    pub snapshots: Arc<SnapshotStore>,
    /// The TLS configuration; `None` if HTTPS is off.
    pub tls: Option<Arc<Tls>>,
    /// The origin of the sites.
    pub origin: Origin,
    /// Whether commands are possible: the server has a token.
    pub has_token: bool,
    /// The sources of the memory figures of the process.
    pub memory: ProcessMemory,
}

impl ConsoleParts {
    /// Returns the URL of an address: a host of this deployment, with or without a path.
    pub(super) fn url(&self, address: &str) -> String {
        let (host, path) = match address.split_once('/') {
            Some((host, path)) => (host, format!("/{path}")),
            None => (address, "/".to_owned()),
        };
        format!("{}{path}", self.origin.at(host))
    }
}

/// The fields of a query. Of a repeated name, the last value counts.
#[derive(Debug, Default)]
pub(super) struct QueryFields(BTreeMap<String, String>);

impl QueryFields {
    /// Parses a query.
    pub(super) fn of(query: &str) -> Self {
        let pairs = url::form_urlencoded::parse(query.as_bytes());
        Self(pairs.into_owned().collect())
    }

    /// Returns a value without white space around it; empty if the field is missing.
    pub(super) fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", |value| value.trim())
    }

    /// Returns a value as a number; `None` if it is not one.
    pub(super) fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.text(name).parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_is_decoded() {
        let fields = QueryFields::of("q=a+b%20c&page=2&from=x&page=3");
        assert_eq!((fields.text("q"), fields.text("none")), ("a b c", ""));
        assert_eq!(fields.number::<usize>("page"), Some(3));
        assert_eq!(fields.number::<u64>("from"), None);
    }
}
