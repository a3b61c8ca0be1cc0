//! Runs the state machines of the protocol against a store: adds time, repeats requests without an answer, and ends when the store stays away.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use fleet::collect::{self, Collector};
use fleet::exchange::{Answer, Request};
use fleet::head::Head;
use fleet::key::{Nonce, ObjectKey};
use fleet::pointer::Pointer;
use fleet::publish::{self, Publication, Publisher};

use crate::follow::LIST_INTERVAL;
use crate::replicas;
use crate::store::{Bucket, Change, StoreError, Uploads};

/// The time for which the store may leave requests without an answer. The client repeats each request, too.
pub const MAX_SILENCE: Duration = Duration::from_secs(20);

/// The wait after the first request without an answer. It doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(200);

/// The number of doublings of the wait.
const MAX_DOUBLINGS: u32 = 5;

/// The number of attempts to replace the head.
const HEAD_ATTEMPTS: u32 = 6;

/// The age beyond which a version needs no announcement: all replicas have listed the pointers since. The clocks of publishers may disagree by the second half.
const ANNOUNCED_AGE: Duration = LIST_INTERVAL.saturating_mul(2);

/// Requests without an answer in a row.
#[derive(Debug)]
struct Silence {
    limit: Duration,
    since: Option<Instant>,
    requests: u32,
}

impl Silence {
    const fn new(limit: Duration) -> Self {
        Self {
            limit,
            since: None,
            requests: 0,
        }
    }

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
                *self = Self::new(self.limit);
                Ok(answer)
            }
            Err(error) => {
                let since = *self.since.get_or_insert(sent);
                if error.is_permanent() || since.elapsed() > self.limit {
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
    publish_within(bucket, publication, uploads, nonce, MAX_SILENCE).await
}

/// Publishes like [`publish()`], from a store that may leave requests without an answer for at most `max_silence`.
///
/// # Errors
/// Returns the same errors.
pub async fn publish_within(
    bucket: &Bucket,
    publication: Publication,
    uploads: &Uploads,
    nonce: Nonce,
    max_silence: Duration,
) -> Result<publish::Outcome, StoreError> {
    let clock = Instant::now();
    let tenant = publication.tenant.clone();
    let mut silence = Silence::new(max_silence);
    let (mut publisher, mut request) = Publisher::new(publication, nonce);
    loop {
        let sent = clock.elapsed();
        let answer = silence.send(bucket, &request, uploads).await?;
        match publisher.step(answer, sent, clock.elapsed()) {
            publish::Step::Ask(next) => request = next,
            publish::Step::End(outcome) => {
                if let publish::Outcome::Published(pointer) | publish::Outcome::Repaired(pointer) =
                    &outcome
                {
                    announce(bucket, &[(tenant, pointer.version())]).await;
                }
                return Ok(outcome);
            }
        }
    }
}

/// Adds unchanged tenants to the head whose versions the head does not announce: their publisher may have ended before it could. `now` is the time by this machine's clock, in milliseconds since 1970.
///
/// The head shows the last changes only. A version that has left the head is announced again while it is young.
pub async fn announce_unchanged(bucket: &Bucket, unchanged: &[(String, Pointer)], now: u64) {
    let age = u64::try_from(ANNOUNCED_AGE.as_millis()).unwrap_or(u64::MAX);
    let young = unchanged
        .iter()
        .filter(|(_, pointer)| now.saturating_sub(pointer.at) < age);
    let versions = young.map(|(tenant, pointer)| (tenant.clone(), pointer.version()));
    let versions: Vec<(String, u64)> = versions.collect();
    if !versions.is_empty() {
        announce(bucket, &versions).await;
    }
}

/// Adds versions of tenants to the head, unless the head announces them. Without the head, replicas see the change when they list the pointers, so a failure is not an error.
async fn announce(bucket: &Bucket, versions: &[(String, u64)]) {
    let key = ObjectKey::head();
    for attempt in 0..HEAD_ATTEMPTS {
        let (former, tag) = match bucket.get(&key, None).await {
            Ok(Change::Object(object)) => {
                let head = Head::of_bytes(&object.body).unwrap_or_default();
                (head, Some(object.tag))
            }
            Ok(_) => (Head::default(), None),
            Err(_) => return,
        };
        let head = versions.iter().fold(former.clone(), |head, version| {
            let (tenant, version) = version;
            match former.announces(tenant, *version) {
                true => head,
                false => head.after(tenant, *version),
            }
        });
        if head == former {
            return;
        }
        let request = match tag {
            Some(tag) => Request::Swap(key.clone(), tag, head.to_bytes()),
            None => Request::Create(key.clone(), head.to_bytes()),
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
    use bytes::Bytes;
    use fleet::publish::{Edit, Outcome};

    use super::*;
    use crate::packed::{compress, decompress, hash};

    /// The time of all publications, in milliseconds since 1970.
    const NOW: u64 = 1_700_000_000_000;

    fn publication(edit: Edit) -> Publication {
        Publication {
            tenant: "corner".to_owned(),
            edit,
            addresses: Vec::new(),
            expected: None,
            at: NOW,
            author: "ann@desk".to_owned(),
        }
    }

    fn content(content: &str) -> (Publication, Uploads) {
        let name = hash(content.as_bytes());
        let object = compress(content.as_bytes()).expect("compressed");
        let publication = publication(Edit::Publish(vec![name.clone()]));
        (publication, Uploads::from([(name, object)]))
    }

    async fn run(bucket: &Bucket, publication: Publication, uploads: &Uploads) -> Outcome {
        let ended = publish(bucket, publication, uploads, crate::store::random_nonce()).await;
        ended.expect("the store in memory answers")
    }

    async fn put(bucket: &Bucket, text: &str) -> Outcome {
        let (publication, uploads) = content(text);
        run(bucket, publication, &uploads).await
    }

    async fn change(bucket: &Bucket, edit: Edit) -> Outcome {
        run(bucket, publication(edit), &Uploads::new()).await
    }

    /// Returns the version and the pinned version that a publication made.
    fn made(outcome: Outcome) -> (u64, Option<u64>) {
        match outcome {
            Outcome::Published(pointer) => (pointer.version(), pointer.pinned()),
            outcome => panic!("{outcome:?}"),
        }
    }

    fn unchanged(outcome: Outcome) -> Pointer {
        match outcome {
            Outcome::Unchanged(pointer) => *pointer,
            outcome => panic!("{outcome:?}"),
        }
    }

    async fn pointer(bucket: &Bucket) -> Pointer {
        match bucket.get(&ObjectKey::pointer("corner"), None).await {
            Ok(Change::Object(object)) => Pointer::of_bytes(&object.body).expect("a pointer"),
            other => panic!("{other:?}"),
        }
    }

    async fn head(bucket: &Bucket) -> Head {
        match bucket.get(&ObjectKey::head(), None).await {
            Ok(Change::Object(object)) => Head::of_bytes(&object.body).expect("a head"),
            other => panic!("{other:?}"),
        }
    }

    fn is(content: &[fleet::pointer::ContentObject], text: &str) -> bool {
        content.len() == 1 && content[0].hash == hash(text.as_bytes())
    }

    #[tokio::test]
    async fn renewal_of_the_same_content_is_a_new_version_with_its_own_time() {
        let bucket = Bucket::in_memory();
        made(put(&bucket, "a").await);
        let (publication, uploads) = content("a");
        let renewal = Publication {
            edit: Edit::Renew(vec![hash(b"a")]),
            at: NOW + 1,
            ..publication
        };
        assert_eq!(made(run(&bucket, renewal.clone(), &uploads).await).0, 2);
        let current = pointer(&bucket).await;
        assert!(is(&current.content, "a") && current.at == NOW + 1);
        let expected = Some(1);
        let late = Publication {
            expected,
            ..renewal
        };
        let refused = run(&bucket, late, &uploads).await;
        assert!(matches!(refused, Outcome::Conflict(_)), "{refused:?}");
    }

    #[tokio::test]
    async fn publisher_that_was_overtaken_names_the_winner_and_wins_with_the_next_attempt() {
        let bucket = Bucket::in_memory();
        made(put(&bucket, "a").await);
        let (publication, uploads) = content("b");
        let (mut late, mut request) = Publisher::new(publication, Nonce("late".to_owned()));
        let overtaken = loop {
            if matches!(request, Request::Swap(..)) {
                let (mut winner, uploads) = content("c");
                "ben@other".clone_into(&mut winner.author);
                made(run(&bucket, winner, &uploads).await);
            }
            let answer = bucket.send(&request, &uploads).await.expect("answered");
            match late.step(answer, Duration::ZERO, Duration::ZERO) {
                publish::Step::Ask(next) => request = next,
                publish::Step::End(outcome) => break outcome,
            }
        };
        match overtaken {
            Outcome::Conflict(winner) => {
                assert_eq!((winner.version(), &*winner.author), (2, "ben@other"));
            }
            outcome => panic!("{outcome:?}"),
        }
        assert_eq!(made(put(&bucket, "b").await), (3, None));
    }

    #[tokio::test]
    async fn head_names_each_new_version_and_no_unchanged_one() {
        let bucket = Bucket::in_memory();
        assert_eq!(made(put(&bucket, "a").await), (1, None));
        assert_eq!(unchanged(put(&bucket, "a").await).version(), 1);
        assert_eq!(made(put(&bucket, "b").await), (2, None));
        let head = head(&bucket).await;
        assert_eq!((head.sequence, head.changed.len()), (2, 2));
    }

    #[tokio::test]
    async fn version_of_a_publisher_that_was_killed_before_the_head_is_announced() {
        let bucket = Bucket::in_memory();
        made(put(&bucket, "a").await);
        let (publication, uploads) = content("b");
        let (mut publisher, mut request) = Publisher::new(publication, Nonce("killed".to_owned()));
        let killed = loop {
            let answer = bucket.send(&request, &uploads).await.expect("answered");
            match publisher.step(answer, Duration::ZERO, Duration::ZERO) {
                publish::Step::Ask(next) => request = next,
                publish::Step::End(outcome) => break outcome,
            }
        };
        assert_eq!(made(killed), (2, None));
        assert!(!head(&bucket).await.announces("corner", 2));
        let again = [("corner".to_owned(), unchanged(put(&bucket, "b").await))];
        // All replicas have listed the pointers since.
        let later = NOW + u64::try_from(ANNOUNCED_AGE.as_millis()).expect("a short time");
        announce_unchanged(&bucket, &again, later).await;
        assert!(!head(&bucket).await.announces("corner", 2));
        announce_unchanged(&bucket, &again, NOW).await;
        let announced = head(&bucket).await;
        assert!(announced.announces("corner", 2));
        assert_eq!(announced.sequence, 2);
        announce_unchanged(&bucket, &again, NOW).await;
        assert_eq!(head(&bucket).await, announced, "announced once");
    }

    #[tokio::test]
    async fn pinned_version_is_served_until_resume_while_publishers_go_on() {
        let bucket = Bucket::in_memory();
        for text in ["a", "b", "c"] {
            made(put(&bucket, text).await);
        }
        let rolled_back = change(&bucket, Edit::RollBack(None)).await;
        assert_eq!(made(rolled_back), (4, Some(2)));
        let pinned = pointer(&bucket).await;
        assert!(is(&pinned.content, "b") && is(pinned.newest(), "c"));
        // Before the served version, and not before the newest.
        let further = change(&bucket, Edit::RollBack(None)).await;
        assert_eq!(made(further), (5, Some(1)));
        let first = change(&bucket, Edit::RollBack(None)).await;
        assert_eq!(first, Outcome::NoVersion(None));
        let again = change(&bucket, Edit::RollBack(Some(1))).await;
        assert_eq!(unchanged(again).version(), 5);
        assert_eq!(unchanged(put(&bucket, "c").await).pinned(), Some(1));
        assert_eq!(made(put(&bucket, "d").await), (6, Some(1)));
        let pinned = pointer(&bucket).await;
        assert!(is(&pinned.content, "a") && is(pinned.newest(), "d"));
        assert_eq!(made(change(&bucket, Edit::Resume).await), (7, None));
        assert!(is(&pointer(&bucket).await.content, "d"));
        let again = change(&bucket, Edit::Resume).await;
        assert_eq!(unchanged(again).version(), 7);
        // A version that a rollback has made brought the content of an earlier version.
        let named = change(&bucket, Edit::RollBack(Some(4))).await;
        assert_eq!(made(named), (8, Some(2)));
        assert!(is(&pointer(&bucket).await.content, "b"));
        assert_eq!(head(&bucket).await.sequence, 8);
    }

    #[tokio::test]
    async fn rollback_without_a_version_skips_versions_with_the_served_content() {
        let bucket = Bucket::in_memory();
        for text in ["a", "b"] {
            made(put(&bucket, text).await);
        }
        made(change(&bucket, Edit::RollBack(Some(2))).await);
        made(change(&bucket, Edit::Resume).await);
        assert_eq!(
            made(change(&bucket, Edit::RollBack(None)).await),
            (5, Some(1))
        );
    }

    #[tokio::test]
    async fn withdrawn_tenant_is_served_again_by_a_rollback_and_withdrawn_by_unpublish() {
        let bucket = Bucket::in_memory();
        assert_eq!(
            change(&bucket, Edit::RollBack(None)).await,
            Outcome::NoVersion(None)
        );
        made(put(&bucket, "a").await);
        assert_eq!(made(change(&bucket, Edit::Unpublish).await), (2, None));
        let withdrawn = change(&bucket, Edit::RollBack(Some(2))).await;
        assert_eq!(withdrawn, Outcome::NoContent(2));
        let unknown = change(&bucket, Edit::RollBack(Some(3))).await;
        assert_eq!(unknown, Outcome::NoVersion(Some(3)));
        assert_eq!(
            made(change(&bucket, Edit::RollBack(None)).await),
            (3, Some(1))
        );
        assert!(is(&pointer(&bucket).await.content, "a"));
        assert_eq!(made(change(&bucket, Edit::Unpublish).await), (4, None));
        assert!(pointer(&bucket).await.content.is_empty());
    }

    #[tokio::test]
    async fn version_whose_content_is_gone_is_not_pinned() {
        let bucket = Bucket::in_memory();
        for text in ["a", "b"] {
            made(put(&bucket, text).await);
        }
        let first = bucket.get(&ObjectKey::history("corner", 1), None).await;
        let Ok(Change::Object(first)) = first else {
            panic!("{first:?}");
        };
        let first = Pointer::of_bytes(&first.body).expect("a pointer");
        let delete = Request::Delete(first.content[0].object.clone());
        let deleted = bucket.send(&delete, &Uploads::new()).await;
        deleted.expect("the store in memory answers");
        let gone = change(&bucket, Edit::RollBack(Some(1))).await;
        assert_eq!(gone, Outcome::NoContent(1));
        assert_eq!(pointer(&bucket).await.version(), 2);
    }

    /// Deletes the object of the current content, or replaces its bytes.
    async fn damage(bucket: &Bucket, bytes: Option<Bytes>) {
        let object = pointer(bucket).await.content[0].object.clone();
        let change = match (bytes, bucket.get(&object, None).await) {
            (Some(bytes), Ok(Change::Object(stored))) => Request::Swap(object, stored.tag, bytes),
            (_, _) => Request::Delete(object),
        };
        let sent = bucket.send(&change, &Uploads::new()).await;
        assert_eq!(sent.expect("answered"), Answer::Done);
    }

    async fn is_intact(bucket: &Bucket) -> bool {
        let content = pointer(bucket).await.content[0].clone();
        match bucket.get(&content.object, None).await {
            Ok(Change::Object(object)) => decompress(&object.body, &content.hash, 1 << 20).is_ok(),
            _ => false,
        }
    }

    #[tokio::test]
    async fn publication_of_unchanged_content_repairs_a_lost_or_truncated_object() {
        let bucket = Bucket::in_memory();
        made(put(&bucket, "a").await);
        for (version, bytes) in [(2, None), (3, Some("cut".into())), (4, Some(Bytes::new()))] {
            damage(&bucket, bytes).await;
            let Outcome::Repaired(repaired) = put(&bucket, "a").await else {
                panic!("version {version} is not repaired");
            };
            assert_eq!(repaired.version(), version);
            assert!(is_intact(&bucket).await);
            assert!(head(&bucket).await.announces("corner", version));
            assert_eq!(unchanged(put(&bucket, "a").await).version(), version);
        }
    }

    #[tokio::test]
    async fn object_of_another_compressor_is_intact() {
        let bucket = Bucket::in_memory();
        made(put(&bucket, "a").await);
        let other = zstd::bulk::compress(b"a", 1).expect("compressed");
        let padded = [
            &other[..],
            &zstd::bulk::compress(b"", 1).expect("compressed"),
        ]
        .concat();
        damage(&bucket, Some(padded.into())).await;
        assert_eq!(unchanged(put(&bucket, "a").await).version(), 1);
    }

    #[tokio::test]
    async fn publisher_with_an_old_expectation_is_told_the_current_version() {
        let bucket = Bucket::in_memory();
        made(put(&bucket, "a").await);
        let (mut publication, uploads) = content("b");
        publication.expected = Some(0);
        match run(&bucket, publication, &uploads).await {
            Outcome::Conflict(pointer) => {
                assert_eq!((pointer.version(), &*pointer.author), (1, "ann@desk"));
            }
            outcome => panic!("{outcome:?}"),
        }
    }

    #[tokio::test]
    async fn first_run_of_a_collector_deletes_nothing() {
        let bucket = Bucket::in_memory();
        made(put(&bucket, "a").await);
        made(put(&bucket, "b").await);
        let ended = collect(&bucket, Nonce("c1".to_owned())).await;
        assert_eq!(ended.expect("answered"), collect::Outcome::Deleted(0));
        let last = last_collection(&bucket).await;
        assert!(last.expect("answered").is_some());
    }
}
