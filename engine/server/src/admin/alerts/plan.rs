//! Decides which alerts are sent, and when.
//!
//! **Invariant:** no clock, no network, no disk. The size depends on the limits, not on how long the receiver is down.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::admin::conditions::{Condition, ConditionKind};

/// The wait after the first failure. Each further failure doubles the wait.
const MIN_RETRY_DELAY: Duration = Duration::from_secs(1);
/// The longest wait after a failure, unless the receiver asks for a longer wait.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(5 * 60);
/// The longest wait that a receiver may ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60 * 60);
/// The alerts in one message. Further alerts follow in the next message.
const MAX_ALERTS_PER_MESSAGE: usize = 20;
/// The ended alerts that wait for the receiver. The alerts that began first are dropped.
const MAX_ENDED_ALERTS: usize = 100;

/// A moment on both clocks: the clock for waits, and the clock that messages show.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) instant: Instant,
    pub(super) time: SystemTime,
}

/// The kind and the subject of a condition. An alert has the same key until it is resolved.
pub(super) type AlertKey = (ConditionKind, Option<Arc<str>>);

/// How far the receiver knows an alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Delivery {
    /// The condition has not lasted long enough.
    Early,
    /// The receiver must get the alert, or its end if the condition ends before.
    Owed,
    /// The receiver got the alert at this time.
    Sent(Instant),
}

/// A condition that is present, or that the receiver believes to be present.
#[derive(Debug)]
struct Alert {
    message: String,
    since: SystemTime,
    /// When the condition ended; `None` while it is present.
    ended: Option<SystemTime>,
    /// When the condition last began or ended.
    turned: Instant,
    delivery: Delivery,
}

/// An alert in a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AlertLine {
    pub(super) key: AlertKey,
    pub(super) message: String,
    pub(super) since: SystemTime,
    /// When the condition ended, if the alert is resolved.
    pub(super) ended: Option<SystemTime>,
}

/// The alerts that the receiver has, and those that it must get.
#[derive(Debug)]
pub(super) struct AlertPlan {
    /// How long a condition lasts before its alert, and how long it is gone before the alert is resolved.
    delay: Duration,
    /// The interval at which the receiver wants to hear of an alert again.
    repeat: Option<Duration>,
    alerts: BTreeMap<AlertKey, Alert>,
    /// The failures since the last success.
    failures: u32,
    /// When the receiver may be tried again after a failure.
    retry: Option<Instant>,
}

/// An alert in the state.
#[derive(Debug, Serialize, Deserialize)]
struct SavedAlert {
    name: String,
    subject: Option<String>,
    message: String,
    /// Seconds since 1970.
    since: u64,
    ended: Option<u64>,
    is_sent: bool,
}

impl AlertPlan {
    /// Creates a plan for a receiver without alerts.
    pub(super) fn new(delay: Duration, repeat: Option<Duration>) -> Self {
        Self {
            delay,
            repeat,
            alerts: BTreeMap::new(),
            failures: 0,
            retry: None,
        }
    }

    /// Compares the alerts with the current conditions. `is_unknown`: whether the condition of an alert cannot be known now, so that the alert stays as it is.
    pub(super) fn observe(
        &mut self,
        conditions: Vec<Condition>,
        is_unknown: impl Fn(&AlertKey) -> bool,
        now: Moment,
    ) {
        let mut present: BTreeMap<AlertKey, String> = conditions
            .into_iter()
            .map(|one| ((one.kind, one.subject), one.message))
            .collect();
        let delay = self.delay;
        self.alerts.retain(|key, alert| {
            match present.remove(key) {
                Some(message) => {
                    alert.message = message;
                    if alert.ended.take().is_some() {
                        alert.turned = now.instant;
                    }
                }
                None if is_unknown(key) => {}
                None if alert.delivery == Delivery::Early => return false,
                None if alert.ended.is_none() => {
                    alert.ended = Some(now.time);
                    alert.turned = now.instant;
                }
                None => {}
            }
            let lasted = now.instant.saturating_duration_since(alert.turned);
            if alert.delivery == Delivery::Early && lasted >= delay {
                alert.delivery = Delivery::Owed;
            }
            true
        });
        let delivery = match delay.is_zero() {
            true => Delivery::Owed,
            false => Delivery::Early,
        };
        let new = present.into_iter().map(|(key, message)| {
            let alert = Alert {
                message,
                since: now.time,
                ended: None,
                turned: now.instant,
                delivery,
            };
            (key, alert)
        });
        self.alerts.extend(new);
        self.drop_oldest_ended();
    }

    /// Limits the ended alerts that the receiver has not heard of.
    fn drop_oldest_ended(&mut self) {
        let ended = self
            .alerts
            .iter()
            .filter(|(_, alert)| alert.ended.is_some() && alert.delivery == Delivery::Owed);
        let mut ended: Vec<(SystemTime, AlertKey)> = ended
            .map(|(key, alert)| (alert.since, key.clone()))
            .collect();
        let Some(excess) = ended.len().checked_sub(MAX_ENDED_ALERTS) else {
            return;
        };
        ended.sort_unstable();
        for (_, key) in ended.into_iter().take(excess) {
            self.alerts.remove(&key);
        }
    }

    /// Returns when an alert must be sent, apart from failures of the receiver; `None` if the receiver has the alert.
    fn due(&self, alert: &Alert) -> Option<Instant> {
        match (alert.ended, alert.delivery) {
            (None, Delivery::Owed) => Some(alert.turned),
            (None, Delivery::Early) | (Some(_), _) => Some(alert.turned + self.delay),
            (None, Delivery::Sent(at)) => Some(at + self.repeat?),
        }
    }

    fn due_at(&self, now: Instant) -> impl Iterator<Item = (&AlertKey, &Alert)> {
        self.alerts
            .iter()
            .filter(move |(_, alert)| self.due(alert).is_some_and(|due| due <= now))
    }

    /// Returns the alerts of the next message; empty if nothing is due, or the receiver failed a moment ago.
    pub(super) fn next_message(&self, now: Moment) -> Vec<AlertLine> {
        if self.retry.is_some_and(|retry| retry > now.instant) {
            return Vec::new();
        }
        let lines = self.due_at(now.instant).map(|(key, alert)| AlertLine {
            key: key.clone(),
            message: alert.message.clone(),
            since: alert.since,
            ended: alert.ended,
        });
        lines.take(MAX_ALERTS_PER_MESSAGE).collect()
    }

    /// Returns the number of alerts that the receiver must get now.
    pub(super) fn unsent(&self, now: Moment) -> usize {
        self.due_at(now.instant).count()
    }

    /// Returns when the next message is due; `None` if no message is due until a condition changes.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let due = self.alerts.values().filter_map(|alert| self.due(alert));
        let due = due.min()?;
        Some(self.retry.map_or(due, |retry| retry.max(due)))
    }

    /// Records that the receiver has the alerts of a message.
    pub(super) fn delivered(&mut self, lines: &[AlertLine], now: Moment) {
        (self.failures, self.retry) = (0, None);
        for line in lines {
            if line.ended.is_some() {
                self.alerts.remove(&line.key);
            } else if let Some(alert) = self.alerts.get_mut(&line.key) {
                alert.delivery = Delivery::Sent(now.instant);
            }
        }
    }

    /// Records that the receiver could not be reached or refused a message. `retry_after`: the wait that the receiver asks for.
    pub(super) fn failed(&mut self, retry_after: Option<Duration>, now: Moment) {
        let doubled = MIN_RETRY_DELAY.saturating_mul(1_u32 << self.failures.min(16));
        let wanted = retry_after.unwrap_or_default().min(MAX_RETRY_AFTER);
        self.failures = self.failures.saturating_add(1);
        self.retry = Some(now.instant + doubled.min(MAX_RETRY_DELAY).max(wanted));
    }

    /// Returns the alerts that the receiver has or must get, for the state.
    pub(super) fn save(&self) -> Vec<u8> {
        let alerts = self.alerts.iter();
        let alerts = alerts.filter(|(_, alert)| alert.delivery != Delivery::Early);
        let saved: Vec<SavedAlert> = alerts
            .map(|((kind, subject), alert)| SavedAlert {
                name: kind.name().to_owned(),
                subject: subject.as_deref().map(ToOwned::to_owned),
                message: alert.message.clone(),
                since: seconds(alert.since),
                ended: alert.ended.map(seconds),
                is_sent: alert.delivery != Delivery::Owed,
            })
            .collect();
        serde_json::to_vec(&saved).unwrap_or_default()
    }

    /// Restores saved alerts. Bytes that are not saved alerts change nothing. An alert of an unknown name is dropped.
    pub(super) fn restore(&mut self, saved: &[u8], now: Moment) {
        let saved: Vec<SavedAlert> = serde_json::from_slice(saved).unwrap_or_default();
        let at = |seconds: u64| UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
        for alert in saved {
            let known = ConditionKind::ALL.into_iter();
            let Some(kind) = known.into_iter().find(|kind| kind.name() == alert.name) else {
                continue;
            };
            let restored = Alert {
                message: alert.message,
                since: at(alert.since).unwrap_or(now.time),
                ended: alert.ended.and_then(at),
                turned: now.instant,
                delivery: match alert.is_sent {
                    true => Delivery::Sent(now.instant),
                    false => Delivery::Owed,
                },
            };
            let subject = alert.subject.map(Arc::from);
            self.alerts.insert((kind, subject), restored);
        }
    }
}

fn seconds(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests;
