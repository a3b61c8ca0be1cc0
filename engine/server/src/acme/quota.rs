//! Limits how many orders may begin, and decides their order.
//!
//! The CA allows the account a number of orders in total, and the program runs a number at once. A tenant may use at most as many of each as it leaves free for other tenants (dynamic thresholds: Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998). A single tenant gets half, and two tenants get a third each. A tenant that has used nothing never waits for another tenant.
//!
//! **Invariant:** plain values and arithmetic: no clock, no disk, no network.

use std::collections::HashMap;
use std::time::SystemTime;

/// Maximum number of used orders. Let's Encrypt allows an account 300.
const MAX_ORDERS: f64 = 280.0;
/// Seconds until a used order is available again. Let's Encrypt restores one every 36 seconds.
const SECONDS_PER_ORDER: f64 = 40.0;
/// Maximum number of orders in flight.
const MAX_IN_FLIGHT: usize = 16;
/// Use below which a tenant counts as having used nothing.
const NEGLIGIBLE_USE: f64 = 0.001;

/// The purpose of an order. The variants are in the order in which orders begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Purpose {
    /// Renews a certificate before it expires. A renewal needs no share.
    Renewal,
    /// Orders the first certificate of a host.
    First,
}

/// An order that may begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DueOrder {
    pub(super) purpose: Purpose,
    /// The host's tenant; empty for a host of the deployment.
    pub(super) tenant: Box<str>,
    pub(super) host: Box<str>,
}

/// The reason why an order may not begin yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuotaRefusal {
    /// Other orders of the tenant, or of all tenants, are in flight. Lasts seconds.
    InFlight,
    /// The tenant has used its share.
    Share,
    /// All tenants together have used the orders that the CA allows.
    Total,
}

/// The used orders of each tenant.
#[derive(Debug, Clone)]
pub(super) struct OrderQuota {
    /// Used orders that are not available again, by tenant.
    used: HashMap<Box<str>, f64>,
    /// Orders in flight, by tenant.
    in_flight: HashMap<Box<str>, usize>,
    /// When `used` was last updated.
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

    /// Sorts orders: renewals first, then by the orders that the tenant has used, fewest first.
    pub(super) fn sort(&self, due: &mut [DueOrder]) {
        due.sort_by(|one, other| {
            let [used, used_by_other] = [one, other].map(|order| self.used(&order.tenant));
            (one.purpose.cmp(&other.purpose))
                .then(used.total_cmp(&used_by_other))
                .then_with(|| one.host.cmp(&other.host))
        });
    }

    /// Begins an order of a tenant. [`finish`](Self::finish) ends it.
    ///
    /// # Errors
    /// When the order must wait.
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

    /// Makes orders available again for the time that has passed, for each tenant in proportion to its use.
    fn free_used(&mut self, now: SystemTime) {
        // A clock that was set back restores nothing.
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

    /// Begins and finishes orders of a tenant until one is refused.
    fn exhaust(quota: &mut OrderQuota, tenant: &str, now: SystemTime) -> (usize, QuotaRefusal) {
        for count in 0.. {
            if let Err(refusal) = quota.begin(tenant, Purpose::First, now) {
                return (count, refusal);
            }
            quota.finish(tenant);
        }
        unreachable!("the quota has a limit")
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
        // The first tenant keeps ordering, and still cannot take a new tenant's share.
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
    fn orders_of_all_tenants_stay_below_the_limit_of_the_ca() {
        let mut quota = OrderQuota::new(day(0));
        assert_eq!(all_tenants(&mut quota, day(0)), 280);
        let refused = quota.begin("new", Purpose::Renewal, day(0) + 39 * SECOND);
        assert_eq!(refused, Err(QuotaRefusal::Total));
        assert_eq!(all_tenants(&mut quota, day(0) + 80 * SECOND), 2);
        assert_eq!(all_tenants(&mut quota, day(10)), 280);
        // A clock that jumps forward restores at most everything, and a clock that is set back restores nothing.
        assert_eq!(all_tenants(&mut quota, day(400)), 280);
        assert_eq!(all_tenants(&mut quota, day(0)), 0);
    }

    proptest! {
        #[test]
        fn orders_stay_below_the_limit_and_idle_tenant_is_never_refused(
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
