//! The counts of one day of one tenant.
//!
//! **Invariant:** bounded for any sequence of requests.

use serde::{Deserialize, Serialize};

/// Maximum number of pages, and of referring hosts, of one tenant and day that are counted by name.
pub const MAX_NAMES_PER_DAY: usize = 32;

/// The counts of one day of one tenant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DayVisits {
    /// Page views: pages that were sent to browsers, in full or as unchanged.
    pub views: u64,
    /// Pages that browsers fetched before the visitor followed a link. The visitor may have seen them.
    pub ahead: u64,
    /// Pages that were sent to bots.
    pub bots: u64,
    /// Responses with status 404, to visitors and bots.
    pub not_found: u64,
    /// Bytes of response bodies, to visitors and bots.
    pub bytes: u64,
    /// Page views by page.
    pub pages: NameCounts,
    /// Page views by the other site that linked to the page.
    pub referrers: NameCounts,
}

impl DayVisits {
    /// Adds the counts of another day.
    pub fn add(&mut self, other: &Self) {
        self.views += other.views;
        self.ahead += other.ahead;
        self.bots += other.bots;
        self.not_found += other.not_found;
        self.bytes += other.bytes;
    }

    /// Returns the number of names.
    pub(super) fn names(&self) -> usize {
        self.pages.listed.len() + self.referrers.listed.len()
    }

    /// Restores the limits of persisted counts.
    pub(super) fn limit(&mut self) {
        self.pages.limit();
        self.referrers.limit();
    }
}

/// Counts by name. At most [`MAX_NAMES_PER_DAY`] names are counted apart.
///
/// A new name replaces the least frequent name and inherits its weight (the space-saving algorithm of Metwally, Agrawal and El Abbadi, 2005). So frequent names stay, even while others are invented.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameCounts {
    listed: Vec<NameCount>,
    /// The counts of all other names together.
    pub other: u64,
}

/// The count of a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameCount {
    /// The path of a page, or a host.
    pub name: Box<str>,
    /// The count. A lower bound.
    pub count: u64,
    /// The weight of the name that this name replaced.
    #[serde(default, skip_serializing_if = "is_zero")]
    inherited: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature of serde")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl NameCounts {
    /// Returns the names, most frequent first.
    #[must_use]
    pub fn by_count(&self) -> Vec<NameCount> {
        let mut all = self.listed.clone();
        all.sort_by(|one, other| {
            let by_count = other.count.cmp(&one.count);
            by_count.then_with(|| one.name.cmp(&other.name))
        });
        all
    }

    /// Returns the sums of several days, as [`by_count`](Self::by_count), and the sum of all other names.
    #[must_use]
    pub fn sum<'d>(days: impl Iterator<Item = &'d Self>) -> (Vec<NameCount>, u64) {
        let mut sums = std::collections::HashMap::<&str, u64>::new();
        let mut other = 0;
        for day in days {
            other += day.other;
            for NameCount { name, count, .. } in &day.listed {
                *sums.entry(name).or_default() += count;
            }
        }
        let listed = sums.into_iter().map(|(name, count)| NameCount {
            name: name.into(),
            count,
            inherited: 0,
        });
        let sum = Self {
            listed: listed.collect(),
            other,
        };
        (sum.by_count(), other)
    }

    /// Counts a name. Returns whether the number of names has grown, which needs `has_room`.
    pub(super) fn count(&mut self, name: &str, has_room: bool) -> bool {
        if let Some(known) = self.listed.iter_mut().find(|known| *known.name == *name) {
            known.count += 1;
            return false;
        }
        let new = |inherited| NameCount {
            name: name.into(),
            count: 1,
            inherited,
        };
        if name.is_empty() {
            self.other += 1;
        } else if self.listed.len() < MAX_NAMES_PER_DAY && has_room {
            self.listed.push(new(0));
            return true;
        } else if let Some(least) = self.listed.iter_mut().min_by_key(|known| known.weight()) {
            self.other += least.count;
            *least = new(least.weight());
        } else {
            self.other += 1;
        }
        false
    }

    /// Counts all names as others. Returns their number.
    pub(super) fn merge_names(&mut self) -> usize {
        let names = std::mem::take(&mut self.listed);
        self.other += names.iter().map(|known| known.count).sum::<u64>();
        names.len()
    }

    fn limit(&mut self) {
        let is_name = |known: &NameCount| known.name.len() <= super::page_request::MAX_NAME_BYTES;
        self.listed.retain(is_name);
        self.listed.truncate(MAX_NAMES_PER_DAY);
    }
}

impl NameCount {
    const fn weight(&self) -> u64 {
        self.count + self.inherited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_names_stay_among_a_million_invented_names() {
        let mut hosts = NameCounts::default();
        let mut grown = 0;
        for number in 0..1_000_000 {
            grown += usize::from(hosts.count(&format!("{number}.example"), true));
            if number % 10 == 0 {
                grown += usize::from(hosts.count("news.example", true));
            }
        }
        let all = hosts.by_count();
        assert_eq!((all.len(), grown), (MAX_NAMES_PER_DAY, MAX_NAMES_PER_DAY));
        assert_eq!((&*all[0].name, all[0].count), ("news.example", 100_000));
        // No request is lost.
        let listed: u64 = all.iter().map(|known| known.count).sum();
        assert_eq!(listed + hosts.other, 1_100_000);
    }

    #[test]
    fn names_of_several_days_are_added() {
        let day = |names: &[&str], other| {
            let mut day = NameCounts::default();
            for name in names {
                day.count(name, true);
            }
            day.other = other;
            day
        };
        let days = [day(&["a", "b", "b"], 1), day(&["a", "a", "c"], 2)];
        let (listed, other) = NameCounts::sum(days.iter());
        let listed: Vec<_> = listed
            .iter()
            .map(|known| (&*known.name, known.count))
            .collect();
        assert_eq!((listed, other), (vec![("a", 3), ("b", 2), ("c", 1)], 3));
    }

    #[test]
    fn without_room_names_are_others() {
        let mut hosts = NameCounts::default();
        assert!(!hosts.count("a", false) && hosts.count("b", true) && !hosts.count("", true));
        assert_eq!((hosts.other, hosts.merge_names()), (2, 1));
        assert_eq!(hosts.other, 3);
    }
}
