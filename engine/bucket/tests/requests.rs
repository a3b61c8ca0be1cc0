//! The number of requests that the page *Sizing* of the manual names.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use bucket::download::cache::ContentCache;
use bucket::follow::Follower;
use bucket::packed::{PackedFolder, compress, hash};
use bucket::run;
use bucket::store::metrics::StoreCounts;
use bucket::store::{Bucket, Uploads, random_nonce};
use fleet::publish::{Edit, Outcome, Publication};
use tempfile::TempDir;

async fn publish(bucket: &Bucket, text: &'static str) -> Outcome {
    let folder = PackedFolder {
        files: [("pages/index.md".to_owned(), text.into())].into(),
        ..PackedFolder::default()
    };
    let content = folder.to_bytes();
    let name = hash(&content);
    let publication = Publication {
        tenant: "corner".to_owned(),
        edit: Edit::Publish(vec![name.clone()]),
        addresses: Vec::new(),
        expected: None,
        at: 0,
        author: "Ann".to_owned(),
    };
    let uploads = Uploads::from([(name, compress(&content).expect("memory"))]);
    let ended = run::publish(bucket, publication, &uploads, random_nonce()).await;
    ended.expect("the store in memory answers")
}

async fn poll(replica: &mut Follower) {
    let polled = replica.poll(&mut BTreeSet::new()).await;
    polled.expect("the store in memory answers");
}

/// Returns the numbers of reads, lists and writes since `before`.
fn requests(bucket: &Bucket, before: &StoreCounts) -> [u64; 3] {
    let now = bucket.metrics().counts();
    let sum = |counts: &StoreCounts, kind: usize| counts.requests[kind].iter().sum::<u64>();
    [0, 1, 2].map(|kind| sum(&now, kind) - sum(before, kind))
}

#[tokio::test]
async fn publication_and_poll_send_the_documented_number_of_requests() {
    let bucket = Bucket::in_memory();
    let folder = TempDir::new().expect("a folder");
    let cache = ContentCache::open(folder.path()).expect("a cache");
    let mut replica = Follower::new(bucket.clone(), cache);
    let first = publish(&bucket, "One").await;
    assert!(matches!(first, Outcome::Published(_)), "{first:?}");
    poll(&mut replica).await;
    let before = bucket.metrics().counts();
    publish(&bucket, "Two").await;
    assert_eq!(requests(&bucket, &before), [4, 1, 4], "a publication");
    let before = bucket.metrics().counts();
    let again = publish(&bucket, "Two").await;
    assert!(matches!(again, Outcome::Unchanged(_)), "{again:?}");
    assert_eq!(requests(&bucket, &before), [2, 0, 0], "an unchanged tenant");
    let before = bucket.metrics().counts();
    poll(&mut replica).await;
    assert_eq!(requests(&bucket, &before), [5, 0, 0], "a changed tenant");
    let before = bucket.metrics().counts();
    poll(&mut replica).await;
    assert_eq!(requests(&bucket, &before), [1, 0, 0], "no change");
}
