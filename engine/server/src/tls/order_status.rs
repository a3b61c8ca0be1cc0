//! The state of certificate orders, by host: the last attempt, its failure and the next attempt.
//!
//! **Invariant:** plain values; orders nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use arc_swap::ArcSwap;
use serde::{Deserialize, Serialize};

/// The kind of a failed certificate order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// The name has no address, or its name servers do not respond.
    Dns,
    /// The name resolves to another machine.
    Elsewhere,
    /// The CA cannot connect to the name's address.
    Unreachable,
    /// The CA's rate limit is reached.
    RateLimited,
    /// The CA does not issue certificates for the name.
    Refused,
    /// The CA does not respond, or its response cannot be used.
    Authority,
    /// The CA rejects the account.
    Account,
    /// The certificate cannot be written to disk, or the store of the fleet fails.
    Storage,
    /// The order failed because of an error in this program.
    Program,
}

impl FailureKind {
    /// All kinds.
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

    /// Returns the kind's name in `/tenants`, `/metrics` and the log.
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

/// The reason why an order that is due has not begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OrderWait {
    /// The tenant has used its share of the orders.
    Share,
    /// All tenants together have used the orders that the CA allows.
    Total,
}

/// The state of one host's orders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OrderStatus {
    /// Whether an order is in flight.
    pub is_in_flight: bool,
    /// Why an order that is due has not begun. Not set for waits of a few seconds.
    pub order_wait: Option<OrderWait>,
    /// When the last order began.
    pub last: Option<SystemTime>,
    /// When the next order may begin, if one is needed.
    pub next: Option<SystemTime>,
    /// The failure of the last order, if it failed: its kind, and the CA's message.
    pub failure: Option<(FailureKind, String)>,
}

/// The last reported state of every host's orders.
#[derive(Debug, Default)]
pub struct OrderBoard {
    current: ArcSwap<HashMap<Box<str>, OrderStatus>>,
}

impl OrderBoard {
    /// Returns the state of a host's orders. The default value means that no order has begun.
    #[must_use]
    pub fn get(&self, host: &str) -> OrderStatus {
        self.current.load().get(host).cloned().unwrap_or_default()
    }

    /// Replaces the state of all hosts.
    pub(crate) fn replace(&self, all: HashMap<Box<str>, OrderStatus>) {
        self.current.store(Arc::new(all));
    }
}
