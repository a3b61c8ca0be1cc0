//! How many orders may begin, and which first.
//!
//! The authority allows the account so many orders in all, and the program runs so many at once. A tenant may use no more of either than the tenant leaves free for the others (dynamic thresholds: Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998). A tenant alone gets half, two get a third each, and a tenant that has used nothing never waits for the share of another.
//!
//! **Invariant:** plain values and arithmetic: no clock, no disk, no network.

use std::collections::HashMap;
use std::time::SystemTime;

/// Orders that may begin together. Let's Encrypt allows an account 300.
const MAX_ORDERS: f64 = 280.0;
/// Seconds until an order that was used is free again. Let's Encrypt frees one every 36 seconds.
const SECONDS_PER_ORDER: f64 = 40.0;
/// Orders in flight at once.
const MAX_IN_FLIGHT: usize = 16;
/// The rest of an order below which a tenant counts as having used nothing.
const NEGLIGIBLE_USE: f64 = 0.001;

/// The purpose of an order, in the order in which orders begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Purpose {
    /// The host's certificate ends some day: needs no share.
    Renewal,
    /// The host has no certificate.
    First,
}

/// A host whose order may begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DueOrder {
    pub(super) purpose: Purpose,
    /// The tenant that has the host; empty for a host of the deployment.
    pub(super) tenant: Box<str>,
    pub(super) host: Box<str>,
}

/// Why an order does not begin yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuotaRefusal {
    /// Other orders of the tenant, or of all, are in flight: for seconds.
    InFlight,
    /// The tenant has used its share.
    Share,
    /// All tenants together have used what the authority allows.
    Total,
}

/// The use that each tenant has made of the orders.
#[derive(Debug, Clone)]
pub(super) struct OrderQuota {
    /// Orders that are not free again, by tenant.
    used: HashMap<Box<str>, f64>,
    /// Orders in flight, by tenant.
    in_flight: HashMap<Box<str>, usize>,
    /// When `used` was last brought up to date.
    at: SystemTime,
}

impl OrderQuota {
    pub(super) fn new(now: SystemTime) -> Self {
        Self {
            used: HashMap::new(),
            in_flight: HashMap::new(),
            at: now,
        }
    }

    /// Sorts orders: renewals first, then those of the tenants that have used the fewest orders.
    pub(super) fn sort(&self, due: &mut [DueOrder]) {
        due.sort_by(|one, other| {
            let [used, used_by_other] = [one, other].map(|order| self.used(&order.tenant));
            (one.purpose.cmp(&other.purpose))
                .then(used.total_cmp(&used_by_other))
                .then_with(|| one.host.cmp(&other.host))
        });
    }

    /// Begins an order of a tenant, which [`finish`](Self::finish) ends.
    ///
    /// # Errors
    /// When the order has to wait.
    pub(super) fn begin(
        &mut self,
        tenant: &str,
        purpose: Purpose,
        now: SystemTime,
    ) -> Result<(), QuotaRefusal> {
        self.free_used(now);
        let free_places = MAX_IN_FLIGHT.saturating_sub(self.in_flight.values().sum());
        let in_flight = self.in_flight.get(tenant).copied().unwrap_or_default();
        if free_places == 0 || in_flight >= free_places {
            return Err(QuotaRefusal::InFlight);
        }
        let free = MAX_ORDERS - self.used.values().sum::<f64>();
        if free < 1.0 {
            return Err(QuotaRefusal::Total);
        }
        if purpose == Purpose::First && self.used(tenant) >= free {
            return Err(QuotaRefusal::Share);
        }
        *self.used.entry(tenant.into()).or_default() += 1.0;
        *self.in_flight.entry(tenant.into()).or_default() += 1;
        Ok(())
    }

    /// Ends an order of a tenant.
    pub(super) fn finish(&mut self, tenant: &str) {
        if let Some(in_flight) = self.in_flight.get_mut(tenant) {
            *in_flight = in_flight.saturating_sub(1);
            if *in_flight == 0 {
                self.in_flight.remove(tenant);
            }
        }
    }

    fn used(&self, tenant: &str) -> f64 {
        self.used.get(tenant).copied().unwrap_or_default()
    }

    /// Frees what the passed time gives back, of each tenant in proportion to its use.
    fn free_used(&mut self, now: SystemTime) {
        // A clock that was set back frees nothing.
        let passed = now.duration_since(self.at).unwrap_or_default();
        self.at = now;
        let total: f64 = self.used.values().sum();
        if total <= 0.0 {
            return;
        }
        let rest = (1.0 - passed.as_secs_f64() / SECONDS_PER_ORDER / total).max(0.0);
        self.used.retain(|_, used| {
            *used *= rest;
            *used > NEGLIGIBLE_USE
        });
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    fn day(number: u32) -> SystemTime {
        UNIX_EPOCH + 20_000 * DAY + number * DAY
    }

    /// Orders of a tenant, each finished at once, until one is refused.
    fn exhaust(quota: &mut OrderQuota, tenant: &str, now: SystemTime) -> (usize, QuotaRefusal) {
        for count in 0.. {
            if let Err(refusal) = quota.begin(tenant, Purpose::First, now) {
                return (count, refusal);
            }
            quota.finish(tenant);
        }
        unreachable!("a quota without an end")
    }

    fn all_tenants(quota: &mut OrderQuota, now: SystemTime) -> usize {
        let one_each = |number: &usize| {
            let tenant = format!("tenant-{number}");
            let is_begun = quota.begin(&tenant, Purpose::First, now).is_ok();
            quota.finish(&tenant);
            is_begun
        };
        (0..1000).filter(one_each).count()
    }

    #[test]
    fn one_tenant_leaves_orders_for_other_tenants() {
        let mut quota = OrderQuota::new(day(0));
        assert_eq!(
            exhaust(&mut quota, "greedy", day(0)),
            (140, QuotaRefusal::Share)
        );
        assert_eq!(
            exhaust(&mut quota, "second", day(0)),
            (70, QuotaRefusal::Share)
        );
        // However long the first tenant goes on.
        let mut now = day(0);
        for _ in 0..10_000 {
            now += 20 * SECOND;
            exhaust(&mut quota, "greedy", now);
        }
        assert!(quota.begin("new", Purpose::First, now).is_ok());
    }

    #[test]
    fn renewals_need_no_share_and_begin_first() {
        let mut quota = OrderQuota::new(day(0));
        exhaust(&mut quota, "greedy", day(0));
        assert!(quota.begin("greedy", Purpose::Renewal, day(0)).is_ok());
        let order = |purpose, tenant: &str, host: &str| DueOrder {
            purpose,
            tenant: tenant.into(),
            host: host.into(),
        };
        let mut due = vec![
            order(Purpose::First, "greedy", "a.example"),
            order(Purpose::First, "new", "b.example"),
            order(Purpose::Renewal, "old", "c.example"),
        ];
        quota.sort(&mut due);
        let hosts: Vec<&str> = due.iter().map(|order| &*order.host).collect();
        assert_eq!(hosts, ["c.example", "b.example", "a.example"]);
    }

    #[test]
    fn orders_of_one_tenant_that_hang_leave_places_for_other_tenants() {
        let mut quota = OrderQuota::new(day(0));
        let begun = (0..20).filter(|_| quota.begin("slow", Purpose::First, day(0)).is_ok());
        assert_eq!(begun.count(), 8);
        assert!(quota.begin("other", Purpose::First, day(0)).is_ok());
        let refused = quota.begin("slow", Purpose::Renewal, day(0));
        assert_eq!(refused, Err(QuotaRefusal::InFlight));
        for _ in 0..8 {
            quota.finish("slow");
        }
        assert!(quota.begin("slow", Purpose::First, day(0)).is_ok());
    }

    #[test]
    fn orders_in_all_stay_below_what_the_authority_allows() {
        let mut quota = OrderQuota::new(day(0));
        assert_eq!(all_tenants(&mut quota, day(0)), 280);
        let refused = quota.begin("new", Purpose::Renewal, day(0) + 39 * SECOND);
        assert_eq!(refused, Err(QuotaRefusal::Total));
        assert_eq!(all_tenants(&mut quota, day(0) + 80 * SECOND), 2);
        assert_eq!(all_tenants(&mut quota, day(10)), 280);
        // A clock that jumps frees no more than there is, and one that is set back nothing.
        assert_eq!(all_tenants(&mut quota, day(400)), 280);
        assert_eq!(all_tenants(&mut quota, day(0)), 0);
    }

    proptest! {
        #[test]
        fn no_history_exceeds_the_limit_or_refuses_an_idle_tenant(
            steps in prop::collection::vec((0_u8..6, 0_u64..12), 1..1500),
        ) {
            let mut quota = OrderQuota::new(day(0));
            let mut now = day(0);
            let (mut begun, mut tenants) = (0.0, [0_u32; 6]);
            for (tenant, seconds) in steps {
                now += Duration::from_secs(seconds);
                let name = tenant.to_string();
                let result = quota.begin(&name, Purpose::First, now);
                let count = &mut tenants[usize::from(tenant)];
                prop_assert!(result.is_ok() || *count > 0, "an idle tenant waits");
                if result.is_ok() {
                    begun += 1.0;
                    *count += 1;
                    quota.finish(&name);
                }
                let passed = now.duration_since(day(0)).unwrap().as_secs_f64();
                prop_assert!(begun <= MAX_ORDERS + passed / SECONDS_PER_ORDER + 1.0);
            }
        }
    }
}
