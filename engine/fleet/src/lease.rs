//! A lease lets one replica do work that all could do, such as rendering a release or ordering a certificate.
//!
//! Replicas do not compare clocks. A replica takes the lease of another one after it has watched the lease unchanged for its duration. The holder counts from the moment at which it sent its last renewal, so it gives up first.
//!
//! **Invariant:** at most one replica holds a lease, if all clocks run equally fast.

use std::time::Duration;

use bytes::Bytes;

use crate::exchange::{Answer, ObjectTag, Request};
use crate::key::{Nonce, ObjectKey};

/// A divisor of the duration: a holder renews its lease this often.
const RENEWALS: u32 = 3;

/// The state of a replica that wants a lease.
#[derive(Debug, Clone)]
pub struct LeaseSeeker {
    key: ObjectKey,
    /// The nonce of this process. A renewal number follows it in the lease, so that no two bodies are equal.
    nonce: Nonce,
    duration: Duration,
    renewals: u64,
    /// The lease as last seen, and since when it has not changed.
    seen: Option<(ObjectTag, Duration)>,
    /// When the write in flight was sent.
    sent: Option<Duration>,
    /// The end of the lease that this replica holds.
    held_until: Option<Duration>,
    /// The time of the next request.
    due: Duration,
}

impl LeaseSeeker {
    /// Returns a replica without the lease. All times are of its monotonic clock.
    #[must_use]
    pub const fn new(key: ObjectKey, nonce: Nonce, duration: Duration) -> Self {
        Self {
            key,
            nonce,
            duration,
            renewals: 0,
            seen: None,
            sent: None,
            held_until: None,
            due: Duration::ZERO,
        }
    }

    /// Returns whether this replica holds the lease.
    #[must_use]
    pub fn is_holder(&self, now: Duration) -> bool {
        self.held_until.is_some_and(|end| now < end)
    }

    /// Returns the next request, if one is due.
    #[must_use]
    pub fn request(&self, now: Duration) -> Option<Request> {
        (now >= self.due).then(|| Request::Get(self.key.clone()))
    }

    /// Handles the answer to the last request. Returns the request that follows at once.
    pub fn step(&mut self, answer: Answer, now: Duration) -> Option<Request> {
        match answer {
            Answer::Object(lease) => {
                let is_own = lease.body.starts_with(self.nonce.0.as_bytes());
                let is_same = self.seen.as_ref().is_some_and(|(tag, _)| *tag == lease.tag);
                if !is_same {
                    self.seen = Some((lease.tag.clone(), now));
                }
                let since = self.seen.as_ref().map_or(now, |(_, since)| *since);
                let is_over = now.saturating_sub(since) > self.duration;
                if is_own || is_over {
                    return Some(self.write(now, Some(lease.tag)));
                }
                self.due = now + self.duration / RENEWALS;
                None
            }
            Answer::Missing => Some(self.write(now, None)),
            Answer::Done => {
                // The lease lasts from the sending: other replicas see the write later, and watch it for longer.
                self.held_until = self.sent.take().map(|sent| sent + self.duration);
                self.due = now + self.duration / RENEWALS;
                None
            }
            Answer::Refused | Answer::Unknown | Answer::Listed(_) => {
                self.sent = None;
                self.due = now + self.duration / RENEWALS;
                None
            }
        }
    }

    fn write(&mut self, now: Duration, tag: Option<ObjectTag>) -> Request {
        self.sent = Some(now);
        self.renewals += 1;
        let body = Bytes::from(format!("{}:{}", self.nonce.0, self.renewals));
        match tag {
            Some(tag) => Request::Swap(self.key.clone(), tag, body),
            None => Request::Create(self.key.clone(), body),
        }
    }
}
