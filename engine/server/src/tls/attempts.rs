//! What was tried to get a certificate for a host, and what came of it.
//!
//! **Invariant:** plain values; tries nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use arc_swap::ArcSwap;
use serde::{Deserialize, Serialize};

/// Why there is no new certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// The name has no address yet, or its name servers do not answer.
    Dns,
    /// The name leads to another machine.
    Elsewhere,
    /// The authority cannot connect to where the name leads.
    Unreachable,
    /// The authority gives out no more for now.
    RateLimited,
    /// The authority gives out none for this name.
    Refused,
    /// The authority does not answer, or answers something that cannot be used.
    Authority,
    /// The authority does not take the account.
    Account,
    /// What was given out cannot be written to disk.
    Storage,
    /// The order failed in this program.
    Program,
}

impl FailureKind {
    /// Every kind.
    pub const ALL: [Self; 9] = [
        Self::Dns,
        Self::Elsewhere,
        Self::Unreachable,
        Self::RateLimited,
        Self::Refused,
        Self::Authority,
        Self::Account,
        Self::Storage,
        Self::Program,
    ];

    /// The word for it in `/tenants`, `/metrics` and the log.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Elsewhere => "elsewhere",
            Self::Unreachable => "unreachable",
            Self::RateLimited => "rate-limited",
            Self::Refused => "refused",
            Self::Authority => "authority",
            Self::Account => "account",
            Self::Storage => "storage",
            Self::Program => "program",
        }
    }
}

/// Why an order that is due does not begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OrderWait {
    /// The host's tenant has used its share of the orders.
    Share,
    /// All tenants together have used the orders that the authority allows.
    Total,
}

/// What was tried for one host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attempts {
    /// Whether an order is in flight.
    pub is_under_way: bool,
    /// Why an order that is due does not begin, where that takes longer than seconds.
    pub order_wait: Option<OrderWait>,
    /// When the last order began.
    pub last: Option<SystemTime>,
    /// When the next one may begin, where one is wanted.
    pub next: Option<SystemTime>,
    /// Why the last order failed, if it did: the kind, and the authority's words.
    pub failure: Option<(FailureKind, String)>,
}

/// What was tried for every host, as last reported.
#[derive(Debug, Default)]
pub struct AttemptBoard {
    current: ArcSwap<HashMap<Box<str>, Attempts>>,
}

impl AttemptBoard {
    /// What was tried for a host; nothing where nothing was.
    #[must_use]
    pub fn of(&self, host: &str) -> Attempts {
        self.current.load().get(host).cloned().unwrap_or_default()
    }

    /// Reports what was tried by now.
    pub(crate) fn replace(&self, all: HashMap<Box<str>, Attempts>) {
        self.current.store(Arc::new(all));
    }
}
