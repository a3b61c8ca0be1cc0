//! The head: a hint from which replicas learn what has changed, without listing all pointers.
//!
//! Publishers replace the head after each swap. A head that was not written costs time and not truth: replicas list the pointers now and then.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// The number of changes that a replica may miss before it lists all pointers.
const RING: usize = 64;

/// The hint of the last changes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Head {
    /// The number of changes so far.
    pub sequence: u64,
    /// The tenants of the last changes, newest first.
    pub changed: Vec<String>,
    /// The newest announced versions of these tenants. Publishers of an earlier program remove them.
    #[serde(default)]
    pub versions: BTreeMap<String, u64>,
}

/// The pointers that a replica reads after the head has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangedPointers {
    /// The pointers of these tenants.
    Of(Vec<String>),
    /// All pointers, because the replica has missed changes.
    All,
}

impl Head {
    /// Returns the head with these bytes, or `None` if they are not a head.
    #[must_use]
    pub fn of_bytes(bytes: &Bytes) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    /// Returns the bytes of the head.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        // Serialising text and numbers into memory cannot fail.
        serde_json::to_vec(self).unwrap_or_default().into()
    }

    /// Returns the head after a change of a tenant to this version.
    #[must_use]
    pub fn after(&self, tenant: &str, version: u64) -> Self {
        let changed = std::iter::once(tenant.to_owned()).chain(self.changed.iter().cloned());
        let changed: Vec<String> = changed.take(RING).collect();
        let mut versions = self.versions.clone();
        let newest = versions.entry(tenant.to_owned()).or_default();
        *newest = version.max(*newest);
        versions.retain(|tenant, _| changed.contains(tenant));
        Self {
            sequence: self.sequence + 1,
            changed,
            versions,
        }
    }

    /// Returns whether the head shows that a version of a tenant was announced.
    #[must_use]
    pub fn announces(&self, tenant: &str, version: u64) -> bool {
        let newest = self.versions.get(tenant);
        newest.is_some_and(|newest| *newest >= version)
    }

    /// Returns the pointers that have changed since the replica has seen the sequence number `seen`.
    #[must_use]
    pub fn changed_since(&self, seen: u64) -> ChangedPointers {
        let missed = self.sequence.checked_sub(seen);
        let missed = missed.and_then(|missed| usize::try_from(missed).ok());
        match missed.and_then(|missed| self.changed.get(..missed)) {
            Some(changed) => {
                let mut changed = changed.to_vec();
                changed.sort();
                changed.dedup();
                ChangedPointers::Of(changed)
            }
            // The ring is too short, or the bucket was replaced by an older copy.
            None => ChangedPointers::All,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_since_a_known_sequence_number_name_each_tenant_once() {
        let head = ["mill", "corner", "mill"]
            .iter()
            .fold(Head::default(), |head, tenant| head.after(tenant, 1));
        let of = |tenants: &[&str]| {
            ChangedPointers::Of(tenants.iter().map(|tenant| (*tenant).to_owned()).collect())
        };
        assert_eq!(head.changed_since(3), of(&[]));
        assert_eq!(head.changed_since(2), of(&["mill"]));
        assert_eq!(head.changed_since(0), of(&["corner", "mill"]));
    }

    #[test]
    fn missed_ring_or_older_copy_of_the_bucket_reads_all_pointers() {
        let changes = u64::try_from(RING).expect("a small number") + 1;
        let head = (0..changes).fold(Head::default(), |head, _| head.after("mill", 1));
        assert_eq!(head.changed_since(0), ChangedPointers::All);
        assert_ne!(head.changed_since(1), ChangedPointers::All);
        assert_eq!(head.changed_since(changes + 1), ChangedPointers::All);
    }

    #[test]
    fn head_announces_versions_up_to_the_newest_of_its_ring() {
        let head = Head::default().after("mill", 2).after("mill", 1);
        assert!(head.announces("mill", 1) && head.announces("mill", 2));
        assert!(!head.announces("mill", 3) && !head.announces("corner", 1));
        let full = (0..RING).fold(head, |head, _| head.after("corner", 1));
        assert!(!full.announces("mill", 2), "the ring has other tenants");
        assert_eq!(full.versions.len(), 1);
    }

    #[test]
    fn head_of_an_earlier_program_announces_no_version() {
        let text = r#"{"sequence":1,"changed":["mill"]}"#;
        let head = Head::of_bytes(&Bytes::from(text)).expect("a head");
        assert!(!head.announces("mill", 1));
        assert!(head.after("mill", 1).announces("mill", 1));
    }
}
