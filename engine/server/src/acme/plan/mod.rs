//! When what is tried next: for a name, and for the authority.
//!
//! **Invariant:** plain values and arithmetic: no clock, no random numbers, no disk, no network. `chance` is a number from 0 up to 1 that the caller draws.

use std::time::{Duration, SystemTime};

use crate::tls::attempts::{Attempts, FailureKind, OrderWait};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How an authority makes sure that a name leads here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChallengeMethod {
    /// A text at a path of the name (RFC 8555, section 8.3).
    Http,
    /// A certificate that the name shows (RFC 8737).
    TlsAlpn,
}

/// Why an order came to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) kind: FailureKind,
    /// For people.
    pub(super) detail: String,
    /// How long the authority does not want to be asked again.
    pub(super) retry_after: Option<Duration>,
}

impl Failure {
    pub(super) fn new(kind: FailureKind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            retry_after: None,
        }
    }
}

/// From when until when a certificate is valid.
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

    /// After two thirds, and up to a thirtieth earlier, so that what began together is not renewed together.
    fn renewal(self, chance: f64) -> SystemTime {
        let length = self.length();
        self.not_before + length.mul_f64(2.0 / 3.0 - chance / 30.0)
    }
}

/// A time that is waited for. A clock that is set back to before it began ends it, too: else a clock that was a year ahead once would make a name wait for a year.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wait {
    since: SystemTime,
    until: SystemTime,
}

impl Wait {
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

/// How it stands with one name.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NamePlan {
    certificate: Option<Lifetime>,
    /// When the certificate is to be renewed.
    renewal: Option<SystemTime>,
    /// When the authority is asked next whether to renew sooner or later (ARI).
    next_question: Option<Wait>,
    failures: u32,
    /// No order before the end of this.
    wait: Option<Wait>,
    last: Option<SystemTime>,
    failure: Option<Failure>,
    is_under_way: bool,
    /// Why an order that is due does not begin.
    order_wait: Option<OrderWait>,
}

impl NamePlan {
    /// A name with what is kept for it.
    pub(super) fn new(certificate: Option<Lifetime>, now: SystemTime, chance: f64) -> Self {
        let mut plan = Self {
            certificate: None,
            renewal: None,
            next_question: None,
            failures: 0,
            wait: None,
            last: None,
            failure: None,
            is_under_way: false,
            order_wait: None,
        };
        if let Some(certificate) = certificate {
            plan.set(certificate, now, chance);
        }
        plan
    }

    fn set(&mut self, certificate: Lifetime, now: SystemTime, chance: f64) {
        self.certificate = Some(certificate);
        self.renewal = Some(certificate.renewal(chance));
        // Soon, so that a certificate that was revoked is replaced within the hour; spread, so that a start asks no thousand questions.
        let soon = (certificate.length() / 100).min(HOUR);
        self.next_question = Some(Wait::new(now, soon.mul_f64(chance)));
    }

    /// Whether an order is to begin.
    pub(super) fn is_due(&self, now: SystemTime) -> bool {
        !self.is_under_way
            && self.wanted_at().is_none_or(|at| at <= now)
            && self.wait.is_none_or(|wait| wait.is_over(now))
    }

    /// When the certificate that there is has to be renewed.
    fn wanted_at(&self) -> Option<SystemTime> {
        self.certificate.and(self.renewal)
    }

    /// When an order is to begin; nothing where that is at once.
    fn order_at(&self) -> Option<SystemTime> {
        self.wanted_at().max(self.wait.map(|wait| wait.until))
    }

    /// Whether the authority is to be asked when it wants the certificate renewed.
    pub(super) fn is_question_due(&self, now: SystemTime) -> bool {
        !self.is_under_way && self.next_question.is_some_and(|wait| wait.is_over(now))
    }

    /// When there is something to do, at the latest.
    pub(super) fn next(&self) -> Option<SystemTime> {
        let order = self.order_at();
        match (order, self.next_question) {
            (Some(order), Some(question)) => Some(order.min(question.until)),
            (order, _) => order,
        }
    }

    /// How the authority is to make sure that the name leads here: another way after each failure. `methods` is not empty.
    pub(super) fn method(&self, methods: &[ChallengeMethod]) -> ChallengeMethod {
        let number = usize::try_from(self.failures).unwrap_or(0) % methods.len().max(1);
        methods
            .get(number)
            .copied()
            .unwrap_or(ChallengeMethod::TlsAlpn)
    }

    /// An order begins.
    pub(super) fn begin(&mut self, now: SystemTime) {
        self.is_under_way = true;
        self.order_wait = None;
        self.last = Some(now);
    }

    /// An order that is due does not begin, or may again.
    pub(super) fn set_order_wait(&mut self, wait: Option<OrderWait>) {
        self.order_wait = wait;
    }

    /// It gave a certificate.
    pub(super) fn succeed(&mut self, certificate: Lifetime, now: SystemTime, chance: f64) {
        self.is_under_way = false;
        self.failures = 0;
        self.failure = None;
        // Whatever the authority gives out, and however wrong the clock is: no name is requested twice within minutes.
        self.wait = Some(Wait::new(now, MINUTE.min(certificate.length() / 3)));
        self.set(certificate, now, chance);
    }

    /// It gave none. `methods`: in how many ways the authority can look; each is tried once before anything is waited for.
    pub(super) fn fail(&mut self, failure: Failure, now: SystemTime, chance: f64, methods: usize) {
        self.is_under_way = false;
        let is_of_the_name = !matches!(
            failure.kind,
            FailureKind::Authority | FailureKind::Account | FailureKind::Storage
        );
        if is_of_the_name {
            self.failures = self.failures.saturating_add(1);
        }
        let untried = u32::try_from(methods).unwrap_or(1);
        let other_way = matches!(
            failure.kind,
            FailureKind::Elsewhere | FailureKind::Unreachable
        );
        let pause = if !is_of_the_name || (other_way && self.failures < untried) {
            SECOND
        } else {
            let before = self.failures.saturating_sub(untried).min(16);
            let pause = 2 * MINUTE * 2_u32.saturating_pow(before);
            pause.min(DAY).mul_f64(0.75 + chance / 2.0)
        };
        let pause = pause.max(failure.retry_after.unwrap_or_default().min(7 * DAY));
        self.wait = Some(Wait::new(now, pause));
        self.failure = Some(failure);
    }

    /// The authority said when it wants the certificate renewed, and when to ask again.
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
        // A window that is the same as before gives the same moment: a new one each time would creep to its end.
        let chosen = self
            .renewal
            .filter(|renewal| (start..=end).contains(renewal));
        let renewal = chosen.unwrap_or_else(|| start + window.mul_f64(chance));
        // What an authority says never makes a certificate end.
        let latest = certificate.not_before + certificate.length().mul_f64(0.9);
        self.renewal = Some(renewal.min(latest));
        self.ask_again(again, now);
    }

    /// The authority said nothing of use.
    pub(super) fn ask_again(&mut self, after: Duration, now: SystemTime) {
        let least = self.certificate.map_or(MINUTE, |certificate| {
            (certificate.length() / 100).clamp(SECOND, MINUTE)
        });
        self.next_question = Some(Wait::new(now, after.clamp(least, DAY)));
    }

    /// What is to be told of it.
    pub(super) fn attempts(&self) -> Attempts {
        Attempts {
            is_under_way: self.is_under_way,
            last: self.last,
            next: self.order_at(),
            order_wait: self.order_wait,
            failure: self
                .failure
                .as_ref()
                .map(|failure| (failure.kind, failure.detail.clone())),
        }
    }

    /// The plan of a name that nobody asks about any more: nothing comes of an order that is in flight.
    pub(super) fn at_rest(self) -> Self {
        Self {
            is_under_way: false,
            order_wait: None,
            ..self
        }
    }

    /// The plan of a name whose certificate is lost: its failures count, and one is due once they allow it.
    pub(super) fn without_certificate(self) -> Self {
        Self {
            certificate: None,
            renewal: None,
            next_question: None,
            ..self
        }
    }

    /// Whether a host that left can be forgotten: what failed may be tried again since a day at least, or the certificate is on disk.
    pub(super) fn is_outdated(&self, now: SystemTime) -> bool {
        let is_outdated = |wait: Wait| now < wait.since || wait.until + DAY <= now;
        self.wait.is_none_or(is_outdated)
    }

    /// Whether there is nothing to tell.
    pub(super) fn is_quiet(&self) -> bool {
        self.last.is_none() && self.failure.is_none() && self.order_wait.is_none()
    }

    /// The last failure was of the disk, and is over.
    pub(super) fn is_stored(&mut self) {
        let is_of_disk = |failure: &Failure| failure.kind == FailureKind::Storage;
        if self.failure.as_ref().is_some_and(is_of_disk) {
            self.failure = None;
        }
    }

    /// The certificate is in force, and cannot be written to disk.
    pub(super) fn is_not_stored(&mut self, failure: Failure) {
        self.failure = Some(failure);
    }
}

/// How it stands with the authority.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct AuthorityPlan {
    failures: u32,
    wait: Option<Wait>,
}

impl AuthorityPlan {
    /// Whether it may be asked.
    pub(super) fn is_open(&self, now: SystemTime) -> bool {
        self.wait.is_none_or(|wait| wait.is_over(now))
    }

    /// When it may be asked again.
    pub(super) fn opens(&self) -> Option<SystemTime> {
        self.wait.map(|wait| wait.until)
    }

    /// It answered.
    pub(super) fn succeed(&mut self) {
        *self = Self::default();
    }

    /// An order failed. Where that is the authority's doing, nobody asks it for a while: seconds at first, a quarter of an hour at last.
    pub(super) fn fail(&mut self, failure: &Failure, now: SystemTime, chance: f64) {
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
            // It may be one limit of many: the next name is tried, but not at once.
            FailureKind::RateLimited => 10 * SECOND,
            _ => return self.succeed(),
        };
        let before = self.wait.filter(|wait| !wait.is_over(now));
        let is_later = before.is_none_or(|before| before.until < now + pause);
        if is_later {
            self.wait = Some(Wait::new(now, pause));
        }
    }
}

#[cfg(test)]
mod tests;
