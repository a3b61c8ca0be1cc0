//! Decides when to order a certificate for a host, and when to contact the CA.
//!
//! **Invariant:** plain values and arithmetic: no clock, no random numbers, no disk, no network. `chance` is a random number from 0 up to 1 that the caller draws.

use std::time::{Duration, SystemTime};

use crate::tls::order_status::{FailureKind, OrderStatus, OrderWait};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The way in which the CA validates a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChallengeMethod {
    /// A text at a path of the host (HTTP-01; RFC 8555, section 8.3).
    Http,
    /// A certificate in a handshake (TLS-ALPN-01; RFC 8737).
    TlsAlpn,
}

/// The failure of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OrderFailure {
    pub(super) kind: FailureKind,
    /// The reason, in words.
    pub(super) detail: String,
    /// The CA's `Retry-After`.
    pub(super) retry_after: Option<Duration>,
}

impl OrderFailure {
    pub(super) fn new(kind: FailureKind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            retry_after: None,
        }
    }
}

/// The validity of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lifetime {
    pub(super) not_before: SystemTime,
    pub(super) not_after: SystemTime,
}

impl Lifetime {
    fn length(self) -> Duration {
        let length = self.not_after.duration_since(self.not_before);
        length.unwrap_or_default()
    }

    /// Returns when to renew: after two thirds of the lifetime, minus up to a thirtieth. Certificates that were issued together are thus not renewed together.
    fn renewal(self, chance: f64) -> SystemTime {
        let length = self.length();
        self.not_before + length.mul_f64(2.0 / 3.0 - chance / 30.0)
    }
}

/// A pause until a given time.
///
/// The pause also ends if the clock is set back to before its start. Otherwise a clock that was once a year ahead would make a host wait for a year.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pause {
    since: SystemTime,
    until: SystemTime,
}

impl Pause {
    fn new(now: SystemTime, length: Duration) -> Self {
        Self {
            since: now,
            until: now + length,
        }
    }

    fn is_over(self, now: SystemTime) -> bool {
        now < self.since || self.until <= now
    }
}

/// The plan for one host.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NamePlan {
    certificate: Option<Lifetime>,
    /// When to renew the certificate.
    renewal: Option<SystemTime>,
    /// Pause until the next renewal query (ARI).
    next_query: Option<Pause>,
    failures: u32,
    /// Pause before the next order.
    wait: Option<Pause>,
    last: Option<SystemTime>,
    failure: Option<OrderFailure>,
    is_in_flight: bool,
    /// Why an order that is due has not begun.
    order_wait: Option<OrderWait>,
    /// When to replace the certificate, whatever the CA suggests: an operator requested a new one, or its file is lost.
    replacement: Option<SystemTime>,
    /// How often the file of a certificate was lost.
    losses: u32,
}

impl NamePlan {
    /// Creates the plan for a host, with the lifetime of its persisted certificate.
    pub(super) fn new(certificate: Option<Lifetime>, now: SystemTime, chance: f64) -> Self {
        let mut plan = Self {
            certificate: None,
            renewal: None,
            next_query: None,
            failures: 0,
            wait: None,
            last: None,
            failure: None,
            is_in_flight: false,
            order_wait: None,
            replacement: None,
            losses: 0,
        };
        if let Some(certificate) = certificate {
            plan.set(certificate, now, chance);
        }
        plan
    }

    fn set(&mut self, certificate: Lifetime, now: SystemTime, chance: f64) {
        self.certificate = Some(certificate);
        self.renewal = Some(certificate.renewal(chance));
        self.replacement = None;
        // The first query comes within the hour, so that a revoked certificate is replaced soon. The queries are spread, so that a startup does not send thousands at once.
        let soon = (certificate.length() / 100).min(HOUR);
        self.next_query = Some(Pause::new(now, soon.mul_f64(chance)));
    }

    /// Returns whether an order should begin now.
    pub(super) fn is_due(&self, now: SystemTime) -> bool {
        !self.is_in_flight
            && self.wanted_at().is_none_or(|at| at <= now)
            && self.wait.is_none_or(|wait| wait.is_over(now))
    }

    /// Returns when the current certificate must be renewed. `None` without a certificate: at once.
    fn wanted_at(&self) -> Option<SystemTime> {
        self.certificate?;
        let times = [self.renewal, self.replacement];
        times.into_iter().flatten().min()
    }

    /// Returns when an order should begin, or `None` for at once.
    fn order_at(&self) -> Option<SystemTime> {
        self.wanted_at().max(self.wait.map(|wait| wait.until))
    }

    /// Returns whether a renewal query should be sent now.
    pub(super) fn is_query_due(&self, now: SystemTime) -> bool {
        !self.is_in_flight && self.next_query.is_some_and(|wait| wait.is_over(now))
    }

    /// Returns when the plan needs attention next, or `None` for at once.
    pub(super) fn next(&self) -> Option<SystemTime> {
        let order = self.order_at();
        match (order, self.next_query) {
            (Some(order), Some(question)) => Some(order.min(question.until)),
            (order, _) => order,
        }
    }

    /// Returns the validation method of the next order. The method alternates after each failure. `methods` is not empty.
    pub(super) fn method(&self, methods: &[ChallengeMethod]) -> ChallengeMethod {
        let number = usize::try_from(self.failures).unwrap_or(0) % methods.len().max(1);
        methods
            .get(number)
            .copied()
            .unwrap_or(ChallengeMethod::TlsAlpn)
    }

    /// Records that an order begins.
    pub(super) fn begin(&mut self, now: SystemTime) {
        self.is_in_flight = true;
        self.order_wait = None;
        self.last = Some(now);
    }

    /// Sets or clears the reason why a due order does not begin.
    pub(super) fn set_order_wait(&mut self, wait: Option<OrderWait>) {
        self.order_wait = wait;
    }

    /// Records that the order succeeded.
    pub(super) fn succeed(&mut self, certificate: Lifetime, now: SystemTime, chance: f64) {
        self.is_in_flight = false;
        self.failures = 0;
        self.failure = None;
        // Whatever the CA issues, and however wrong the clock is, a host is not ordered twice within a minute.
        self.wait = Some(Pause::new(now, MINUTE.min(certificate.length() / 3)));
        self.set(certificate, now, chance);
    }

    /// Records that the order failed. `methods` is the number of validation methods; each is tried once before the host waits.
    pub(super) fn fail(
        &mut self,
        failure: OrderFailure,
        now: SystemTime,
        chance: f64,
        methods: usize,
    ) {
        self.is_in_flight = false;
        let concerns_host = !matches!(
            failure.kind,
            FailureKind::Authority | FailureKind::Account | FailureKind::Storage
        );
        if concerns_host {
            self.failures = self.failures.saturating_add(1);
        }
        let untried = u32::try_from(methods).unwrap_or(1);
        let may_try_other_method = matches!(
            failure.kind,
            FailureKind::Elsewhere | FailureKind::Unreachable
        );
        let pause = if !concerns_host || (may_try_other_method && self.failures < untried) {
            SECOND
        } else {
            let before = self.failures.saturating_sub(untried).min(16);
            let pause = 2 * MINUTE * 2_u32.saturating_pow(before);
            pause.min(DAY).mul_f64(0.75 + chance / 2.0)
        };
        let pause = pause.max(failure.retry_after.unwrap_or_default().min(7 * DAY));
        self.wait = Some(Pause::new(now, pause));
        self.failure = Some(failure);
    }

    /// Makes an order due now. A pause after a failure ends, unless the CA demanded the pause.
    ///
    /// # Errors
    /// The end of the pause, if the CA limits orders for the host or has just issued a certificate.
    pub(super) fn request(&mut self, now: SystemTime) -> Result<(), SystemTime> {
        let failure = self.failure.as_ref();
        let may_end = failure.is_some_and(|failure| {
            failure.kind != FailureKind::RateLimited && failure.retry_after.is_none()
        });
        if let Some(wait) = self.wait.filter(|wait| !may_end && !wait.is_over(now)) {
            return Err(wait.until);
        }
        self.wait = None;
        self.replacement = Some(now);
        Ok(())
    }

    /// Records that the file of the certificate is lost or damaged: an order is due. It waits longer after each further loss, since CAs limit how often they issue the same certificate.
    pub(super) fn lose_file(&mut self, now: SystemTime) {
        let pause = match self.losses {
            0 => Duration::ZERO,
            before => (HOUR * 2_u32.saturating_pow(before.min(5) - 1)).min(DAY),
        };
        self.losses = self.losses.saturating_add(1);
        self.replacement = Some(now + pause);
    }

    /// Records that a file has a valid certificate, which is in use from now on.
    pub(super) fn use_file(&mut self, certificate: Lifetime, now: SystemTime, chance: f64) {
        self.set(certificate, now, chance);
    }

    /// Applies the CA's suggested renewal window. `again` is the time until the next query.
    pub(super) fn suggest(
        &mut self,
        (start, end): (SystemTime, SystemTime),
        again: Duration,
        now: SystemTime,
        chance: f64,
    ) {
        let Some(certificate) = self.certificate else {
            return;
        };
        let window = end.duration_since(start).unwrap_or_default();
        // An unchanged window keeps the chosen time. Drawing again each time would drift towards the end of the window.
        let chosen = self
            .renewal
            .filter(|renewal| (start..=end).contains(renewal));
        let renewal = chosen.unwrap_or_else(|| start + window.mul_f64(chance));
        // A suggestion never lets a certificate expire.
        let latest = certificate.not_before + certificate.length().mul_f64(0.9);
        self.renewal = Some(renewal.min(latest));
        self.schedule_query(again, now);
    }

    /// Schedules the next renewal query.
    pub(super) fn schedule_query(&mut self, after: Duration, now: SystemTime) {
        let least = self.certificate.map_or(MINUTE, |certificate| {
            (certificate.length() / 100).clamp(SECOND, MINUTE)
        });
        self.next_query = Some(Pause::new(now, after.clamp(least, DAY)));
    }

    /// Returns the state to be reported.
    pub(super) fn attempts(&self) -> OrderStatus {
        OrderStatus {
            is_in_flight: self.is_in_flight,
            last: self.last,
            next: self.order_at(),
            order_wait: self.order_wait,
            failure: self
                .failure
                .as_ref()
                .map(|failure| (failure.kind, failure.detail.clone())),
        }
    }

    /// Returns the plan of a host that is no longer served: an order in flight has no effect.
    pub(super) fn without_order(self) -> Self {
        Self {
            is_in_flight: false,
            order_wait: None,
            ..self
        }
    }

    /// Returns the plan of a host whose certificate file is lost. Its failures still count; a new order is due once the pause is over.
    pub(super) fn without_certificate(self) -> Self {
        Self {
            certificate: None,
            renewal: None,
            next_query: None,
            replacement: None,
            ..self
        }
    }

    /// Returns whether a host that is no longer served can be forgotten: its pause ended at least a day ago, or it has none.
    pub(super) fn is_outdated(&self, now: SystemTime) -> bool {
        let is_outdated = |wait: Pause| now < wait.since || wait.until + DAY <= now;
        self.wait.is_none_or(is_outdated)
    }

    /// Returns whether there is nothing to report.
    pub(super) fn is_quiet(&self) -> bool {
        self.last.is_none()
            && self.failure.is_none()
            && self.order_wait.is_none()
            && self.replacement.is_none()
    }

    /// Records that the certificate is on disk, which ends a storage failure.
    pub(super) fn mark_stored(&mut self) {
        let is_of_disk = |failure: &OrderFailure| failure.kind == FailureKind::Storage;
        if self.failure.as_ref().is_some_and(is_of_disk) {
            self.failure = None;
        }
    }

    /// Records that the certificate is in use but cannot be written to disk.
    pub(super) fn mark_unstored(&mut self, failure: OrderFailure) {
        self.failure = Some(failure);
    }
}

/// The plan for the CA.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct AuthorityPlan {
    failures: u32,
    wait: Option<Pause>,
}

impl AuthorityPlan {
    /// Returns whether the CA may be contacted.
    pub(super) fn is_open(&self, now: SystemTime) -> bool {
        self.wait.is_none_or(|wait| wait.is_over(now))
    }

    /// Returns when the CA may be contacted again.
    pub(super) fn opens(&self) -> Option<SystemTime> {
        self.wait.map(|wait| wait.until)
    }

    /// Records that the CA responded.
    pub(super) fn succeed(&mut self) {
        *self = Self::default();
    }

    /// Records a failed order. If the CA is at fault, all orders pause: for seconds at first, for a quarter of an hour at most.
    pub(super) fn fail(&mut self, failure: &OrderFailure, now: SystemTime, chance: f64) {
        let pause = match failure.kind {
            FailureKind::Authority | FailureKind::Account => {
                // Orders that were in flight together fail together.
                if !self.is_open(now) {
                    return;
                }
                let pause = 2 * SECOND * 2_u32.saturating_pow(self.failures.min(12));
                self.failures = self.failures.saturating_add(1);
                let pause = pause.min(15 * MINUTE).mul_f64(0.75 + chance / 2.0);
                pause.max(failure.retry_after.unwrap_or_default().min(HOUR))
            }
            // The limit may apply to one host only: the next host is tried, but not at once.
            FailureKind::RateLimited => 10 * SECOND,
            // The CA was not asked.
            FailureKind::Storage => return,
            _ => return self.succeed(),
        };
        let before = self.wait.filter(|wait| !wait.is_over(now));
        let is_later = before.is_none_or(|before| before.until < now + pause);
        if is_later {
            self.wait = Some(Pause::new(now, pause));
        }
    }
}

#[cfg(test)]
mod tests;
