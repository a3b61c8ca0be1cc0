//! Holds a lease in the bucket.

use std::time::{Duration, Instant};

use fleet::exchange::{Answer, Request};
use fleet::key::ObjectKey;
use fleet::lease::LeaseSeeker;

use crate::store::{Bucket, StoreError, Uploads, random_nonce};

/// A lease that this process wants or holds.
#[derive(Debug)]
pub struct Lease {
    bucket: Bucket,
    key: ObjectKey,
    seeker: LeaseSeeker,
    since: Instant,
    /// Whether the metrics count the lease as held.
    is_counted: bool,
}

impl Lease {
    /// Returns a lease that this process does not hold yet.
    #[must_use]
    pub fn new(bucket: Bucket, name: &str, duration: Duration) -> Self {
        Self::with_key(bucket, ObjectKey::lease(name), duration)
    }

    /// Returns a lease with this object.
    pub(crate) fn with_key(bucket: Bucket, key: ObjectKey, duration: Duration) -> Self {
        Self {
            bucket,
            seeker: LeaseSeeker::new(key.clone(), random_nonce(), duration),
            key,
            since: Instant::now(),
            is_counted: false,
        }
    }

    /// Sends the requests that are due, and returns whether this process holds the lease. Called a few times in each third of the duration.
    ///
    /// # Errors
    /// Returns an error if the store did not answer, and this process does not hold the lease.
    pub async fn advance(&mut self) -> Result<bool, StoreError> {
        let mut error = None;
        let mut next = self.seeker.request(self.since.elapsed());
        while let Some(request) = next {
            let answer = self.bucket.send(&request, &Uploads::new()).await;
            let answer = answer.unwrap_or_else(|failure| {
                error = Some(failure);
                Answer::Unknown
            });
            next = self.seeker.step(answer, self.since.elapsed());
        }
        let is_holder = self.seeker.is_holder(self.since.elapsed());
        self.count(is_holder);
        match error {
            Some(error) if !is_holder => Err(error),
            _ => Ok(is_holder),
        }
    }

    /// Ends the lease if this process holds it, so that other processes do not wait for its duration. A delete that comes late ends the lease of another process: only for leases that save cost.
    pub async fn end(self) {
        if self.seeker.is_holder(self.since.elapsed()) {
            let delete = Request::Delete(self.key.clone());
            // Without an answer, the lease ends by itself.
            let _ = self.bucket.send(&delete, &Uploads::new()).await;
        }
    }

    fn count(&mut self, is_held: bool) {
        if self.is_counted != is_held {
            self.is_counted = is_held;
            self.bucket.metrics().record_lease(is_held);
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.count(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DURATION: Duration = Duration::from_secs(2);

    fn lease(bucket: &Bucket) -> Lease {
        Lease::new(bucket.clone(), "orders", DURATION)
    }

    #[tokio::test]
    async fn second_process_gets_the_lease_once_it_is_no_longer_renewed() {
        let bucket = Bucket::in_memory();
        let (mut one, mut two) = (lease(&bucket), lease(&bucket));
        assert!(one.advance().await.expect("answered"));
        assert!(!two.advance().await.expect("answered"));
        drop(one);
        let begin = Instant::now();
        while !two.advance().await.expect("answered") {
            assert!(begin.elapsed() < 5 * DURATION, "the lease is not free");
            tokio::time::sleep(DURATION / 20).await;
        }
        assert!(begin.elapsed() >= DURATION / 2, "taken too early");
    }

    #[tokio::test]
    async fn lease_is_counted_while_it_is_held() {
        let bucket = Bucket::in_memory();
        let mut lease = lease(&bucket);
        assert!(lease.advance().await.expect("answered"));
        assert!(lease.advance().await.expect("answered"));
        assert_eq!(bucket.metrics().counts().leases, 1);
        drop(lease);
        assert_eq!(bucket.metrics().counts().leases, 0);
    }
}
