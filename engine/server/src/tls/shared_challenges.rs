//! Finds the answers to challenges that other replicas of a fleet have opened: the CA may ask any replica.
//!
//! Requests for a host wait for one look-up, so a flood of them costs the store one request at a time.
//!
//! **Invariant:** looks up only hosts in the snapshot, which the caller checks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Mutex as AsyncMutex;
use tokio::time::timeout;
use tracing::debug;

use crate::acme::shared::{SharedChallenge, SharedStore, challenge_name, read};

/// Maximum time of a look-up. The CA waits for about ten seconds.
const LOOK_UP_TIMEOUT: Duration = Duration::from_secs(5);

/// The last look-up of a host: when it began, and the answer it found.
type LastLookUp = Option<(Instant, Option<Arc<SharedChallenge>>)>;

/// The answers to challenges in the store of a fleet.
#[derive(Debug)]
pub struct SharedChallenges {
    store: Arc<dyn SharedStore>,
    /// The look-ups in flight, by host.
    look_ups: Mutex<HashMap<Box<str>, Arc<AsyncMutex<LastLookUp>>>>,
}

impl SharedChallenges {
    /// Returns the challenges in a store.
    #[must_use]
    pub fn new(store: Arc<dyn SharedStore>) -> Self {
        Self {
            store,
            look_ups: Mutex::default(),
        }
    }

    /// Returns the answer to the open challenge of a host. A store that fails has no answer.
    pub(crate) async fn find(&self, host: &str) -> Option<Arc<SharedChallenge>> {
        let arrived = Instant::now();
        let look_up = {
            let mut look_ups = self.look_ups.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(look_ups.entry(host.into()).or_default())
        };
        let mut last = look_up.lock().await;
        let found = match &*last {
            // An answer that was stored before this request came is in a look-up that began after it came.
            Some((began, found)) if *began >= arrived => found.clone(),
            _ => {
                let began = Instant::now();
                let found = self.look_up(host).await.map(Arc::new);
                *last = Some((began, found.clone()));
                found
            }
        };
        drop(last);
        drop(look_up);
        let mut look_ups = self.look_ups.lock().unwrap_or_else(PoisonError::into_inner);
        if look_ups
            .get(host)
            .is_some_and(|look_up| Arc::strong_count(look_up) == 1)
        {
            look_ups.remove(host);
        }
        found
    }

    async fn look_up(&self, host: &str) -> Option<SharedChallenge> {
        let name = challenge_name(host);
        match timeout(LOOK_UP_TIMEOUT, read(&*self.store, &name)).await {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => {
                debug!(host, %error, "looking for a challenge of another replica failed");
                None
            }
            Err(_) => {
                debug!(
                    host,
                    "looking for a challenge of another replica took too long"
                );
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use futures_util::future::join_all;

    use super::*;
    use crate::acme::shared::tests::MemoryStore;

    fn challenge(token: &str) -> SharedChallenge {
        SharedChallenge {
            token: token.to_owned(),
            text: format!("{token}.thumbprint"),
        }
    }

    #[tokio::test]
    async fn answer_that_was_stored_before_the_request_is_found() {
        let store = Arc::new(MemoryStore::default());
        let challenges = SharedChallenges::new(Arc::clone(&store) as Arc<dyn SharedStore>);
        assert_eq!(challenges.find("mill.example").await, None);
        for token in ["one", "two"] {
            let stored = serde_json::to_vec(&challenge(token)).expect("text");
            let put = store.put("acme/challenges/mill.example", stored).await;
            put.expect("the store is up");
            let found = challenges.find("mill.example").await;
            assert_eq!(found.as_deref(), Some(&challenge(token)));
        }
        assert!(challenges.look_ups.lock().expect("no panic").is_empty());
    }

    #[tokio::test]
    async fn flood_of_requests_for_a_host_reads_the_store_twice() {
        let store = Arc::new(MemoryStore::default());
        let challenges = SharedChallenges::new(Arc::clone(&store) as Arc<dyn SharedStore>);
        let found = join_all((0..1_000).map(|_| challenges.find("mill.example"))).await;
        assert!(found.iter().all(Option::is_none));
        let reads = store.reads.load(Relaxed);
        assert!((1..=2).contains(&reads), "{reads}");
    }
}
