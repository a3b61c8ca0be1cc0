//! Runs the state machines of the protocol against a store: adds time, repeats requests without an answer, and ends when the store stays away.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use fleet::collect::{self, Collector};
use fleet::exchange::{Answer, Request};
use fleet::head::Head;
use fleet::key::{Nonce, ObjectKey};
use fleet::publish::{self, Publication, Publisher};

use crate::replicas;
use crate::store::{Bucket, Change, StoreError, Uploads};

/// The time for which the store may leave requests without an answer. The client repeats each request, too.
const MAX_SILENCE: Duration = Duration::from_secs(20);

/// The wait after the first request without an answer. It doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(200);

/// The number of doublings of the wait.
const MAX_DOUBLINGS: u32 = 5;

/// The number of attempts to replace the head.
const HEAD_ATTEMPTS: u32 = 6;

/// Requests without an answer in a row.
#[derive(Debug, Default)]
struct Silence {
    since: Option<Instant>,
    requests: u32,
}

impl Silence {
    /// Sends a request. Waits before it reports an unknown answer.
    async fn send(
        &mut self,
        bucket: &Bucket,
        request: &Request,
        uploads: &Uploads,
    ) -> Result<Answer, StoreError> {
        let sent = Instant::now();
        match bucket.send(request, uploads).await {
            Ok(answer) => {
                *self = Self::default();
                Ok(answer)
            }
            Err(error) => {
                let since = *self.since.get_or_insert(sent);
                if error.is_permanent() || since.elapsed() > MAX_SILENCE {
                    return Err(error);
                }
                sleep(FIRST_WAIT * 2_u32.pow(self.requests.min(MAX_DOUBLINGS))).await;
                self.requests += 1;
                Ok(Answer::Unknown)
            }
        }
    }
}

/// Publishes a tenant, and tells the replicas by the head. `nonce` identifies this publication.
///
/// # Errors
/// Returns an error if the store did not answer for a while, or refuses the requests. The tenant may be published then or not; publishing again is safe.
pub async fn publish(
    bucket: &Bucket,
    publication: Publication,
    uploads: &Uploads,
    nonce: Nonce,
) -> Result<publish::Outcome, StoreError> {
    let clock = Instant::now();
    let tenant = publication.tenant.clone();
    let mut silence = Silence::default();
    let (mut publisher, mut request) = Publisher::new(publication, nonce);
    loop {
        let sent = clock.elapsed();
        let answer = silence.send(bucket, &request, uploads).await?;
        match publisher.step(answer, sent, clock.elapsed()) {
            publish::Step::Ask(next) => request = next,
            publish::Step::End(outcome) => {
                if matches!(outcome, publish::Outcome::Published(_)) {
                    announce(bucket, &tenant).await;
                }
                return Ok(outcome);
            }
        }
    }
}

/// Adds a change of a tenant to the head. Without it, replicas see the change when they list the pointers, so a failure is not an error.
async fn announce(bucket: &Bucket, tenant: &str) {
    let key = ObjectKey::head();
    for attempt in 0..HEAD_ATTEMPTS {
        let request = match bucket.get(&key, None).await {
            Ok(Change::Object(object)) => {
                let head = Head::of_bytes(&object.body).unwrap_or_default();
                Request::Swap(key.clone(), object.tag, head.after(tenant).to_bytes())
            }
            Ok(_) => Request::Create(key.clone(), Head::default().after(tenant).to_bytes()),
            Err(_) => return,
        };
        match bucket.send(&request, &Uploads::new()).await {
            // Another publisher was first.
            Ok(Answer::Refused) => sleep(FIRST_WAIT / 4 * attempt).await,
            _ => return,
        }
    }
}

/// Collects garbage once. `nonce` identifies the run.
///
/// # Errors
/// Returns an error if the store did not answer, or refuses the requests. A later run goes on.
pub async fn collect(bucket: &Bucket, nonce: Nonce) -> Result<collect::Outcome, StoreError> {
    let (mut collector, mut request) = Collector::new(nonce.clone());
    loop {
        let answer = bucket.send(&request, &Uploads::new()).await?;
        match collector.step(answer) {
            collect::Step::Ask(next) => request = next,
            collect::Step::End(outcome) => {
                if matches!(outcome, collect::Outcome::Deleted(_)) {
                    finish_collection(bucket, nonce).await?;
                }
                return Ok(outcome);
            }
        }
    }
}

/// Records the time of a collection by the store's clock, and deletes the heartbeats of replicas that are gone.
async fn finish_collection(bucket: &Bucket, nonce: Nonce) -> Result<(), StoreError> {
    let record = ObjectKey::collected();
    replicas::write(bucket, record.clone(), nonce.0.into()).await?;
    if let Change::Object(object) = bucket.get(&record, None).await? {
        replicas::delete_gone(bucket, object.modified).await?;
    }
    Ok(())
}

/// Returns the time of the last collection since 1970, by the store's clock.
///
/// # Errors
/// Returns an error if the store did not answer.
pub async fn last_collection(bucket: &Bucket) -> Result<Option<Duration>, StoreError> {
    Ok(match bucket.get(&ObjectKey::collected(), None).await? {
        Change::Object(object) => Some(Duration::from_millis(object.modified)),
        Change::None | Change::Missing => None,
    })
}

#[cfg(test)]
mod tests {
    use fleet::publish::Outcome;

    use super::*;
    use crate::packed::{compress, hash};

    /// Publishes one content object, over any version or over the expected one.
    async fn put(bucket: &Bucket, content: &str, expected: Option<u64>, nonce: &str) -> Outcome {
        let name = hash(content.as_bytes());
        let object = compress(content.as_bytes()).expect("compressed");
        let publication = Publication {
            tenant: "corner".to_owned(),
            content: vec![name.clone()],
            expected,
            at: 1,
            author: "ann@desk".to_owned(),
        };
        let uploads = Uploads::from([(name, object)]);
        let ended = publish(bucket, publication, &uploads, Nonce(nonce.to_owned())).await;
        ended.expect("the store in memory answers")
    }

    async fn head(bucket: &Bucket) -> Head {
        match bucket.get(&ObjectKey::head(), None).await {
            Ok(Change::Object(object)) => Head::of_bytes(&object.body).expect("a head"),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn head_names_each_new_version_and_no_unchanged_one() {
        let bucket = Bucket::in_memory();
        assert_eq!(put(&bucket, "a", None, "n1").await, Outcome::Published(1));
        assert_eq!(put(&bucket, "a", None, "n2").await, Outcome::Unchanged(1));
        assert_eq!(put(&bucket, "b", None, "n3").await, Outcome::Published(2));
        let head = head(&bucket).await;
        assert_eq!((head.sequence, head.changed.len()), (2, 2));
    }

    #[tokio::test]
    async fn publisher_with_an_old_expectation_is_told_the_current_version() {
        let bucket = Bucket::in_memory();
        put(&bucket, "a", None, "n1").await;
        match put(&bucket, "b", Some(0), "n2").await {
            Outcome::Conflict(pointer) => {
                assert_eq!((pointer.version(), &*pointer.author), (1, "ann@desk"));
            }
            outcome => panic!("{outcome:?}"),
        }
    }

    #[tokio::test]
    async fn first_run_of_a_collector_deletes_nothing() {
        let bucket = Bucket::in_memory();
        put(&bucket, "a", None, "n1").await;
        put(&bucket, "b", None, "n2").await;
        let ended = collect(&bucket, Nonce("c1".to_owned())).await;
        assert_eq!(ended.expect("answered"), collect::Outcome::Deleted(0));
        let last = last_collection(&bucket).await;
        assert!(last.expect("answered").is_some());
    }
}
