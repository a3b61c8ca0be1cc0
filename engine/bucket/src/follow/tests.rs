//! Tests of following: a replica, and publishers that share its bucket.

use std::fs;

use bytes::Bytes;
use tempfile::TempDir;

use fleet::exchange::{Answer, Request};
use fleet::key::{DEPLOYMENT, Nonce, THEMES};
use fleet::pointer::{ContentObject, Pointer};
use fleet::publish::{Edit, Outcome, Publication, Publisher, Step};

use super::*;
use crate::follow::wake::WakeDecision;
use crate::packed::{self, PackedFolder};
use crate::store::Uploads;

/// A replica and the publishers of its bucket.
struct Fleet {
    bucket: Bucket,
    directory: TempDir,
    publications: u64,
}

impl Fleet {
    fn new() -> Self {
        Self {
            bucket: Bucket::in_memory(),
            directory: TempDir::new().expect("a folder"),
            publications: 0,
        }
    }

    /// Returns a replica that starts with the content of the last one.
    fn replica(&self) -> Follower {
        let cache = ContentCache::open(self.directory.path()).expect("a cache");
        Follower::new(self.bucket.clone(), cache)
    }

    async fn send(&self, request: Request) -> Answer {
        let sent = self.bucket.send(&request, &Uploads::new()).await;
        sent.expect("the store in memory answers")
    }

    /// Publishes a tenant with one page, or unpublishes the tenant.
    async fn publish(&mut self, tenant: &str, page: Option<&str>) -> Option<Pointer> {
        let pointer = self.publish_silently(tenant, page).await;
        let head = ObjectKey::head();
        let changed = |body: &Bytes| {
            let head = Head::of_bytes(body).unwrap_or_default();
            head.after(tenant, 1).to_bytes()
        };
        let write = match self.send(Request::Get(head.clone())).await {
            Answer::Object(object) => Request::Swap(head, object.tag, changed(&object.body)),
            _ => Request::Create(head, changed(&Bytes::new())),
        };
        assert_eq!(self.send(write).await, Answer::Done);
        pointer
    }

    /// Publishes a tenant, and writes no head.
    async fn publish_silently(&mut self, tenant: &str, page: Option<&str>) -> Option<Pointer> {
        let video = Bytes::from(vec![7; packed::LARGE_FILE + 1]);
        let page = page.map(|page| Bytes::from(page.to_owned()));
        let folder = page.map(|page| PackedFolder {
            files: [("pages/index.md".to_owned(), page)].into(),
            large: [("assets/film.mp4".to_owned(), packed::hash(&video))].into(),
        });
        let contents = folder.map(|folder| vec![folder.to_bytes(), video]);
        let contents = contents.unwrap_or_default();
        let hashes: Vec<_> = contents
            .iter()
            .map(|content| packed::hash(content))
            .collect();
        let objects = contents
            .iter()
            .map(|content| packed::compress(content).expect("memory"));
        let uploads: Uploads = hashes.iter().cloned().zip(objects).collect();
        let publication = Publication {
            tenant: tenant.to_owned(),
            edit: match hashes.is_empty() {
                true => Edit::Unpublish,
                false => Edit::Publish(hashes),
            },
            addresses: Vec::new(),
            expected: None,
            at: 0,
            author: "Ann".to_owned(),
        };
        self.run(publication, &uploads).await;
        match self.send(Request::Get(ObjectKey::pointer(tenant))).await {
            Answer::Object(object) => Pointer::of_bytes(&object.body),
            _ => None,
        }
    }

    async fn run(&mut self, publication: Publication, uploads: &Uploads) {
        self.publications += 1;
        let nonce = Nonce(format!("{:032x}", self.publications));
        let (mut publisher, mut request) = Publisher::new(publication, nonce);
        loop {
            let answer = self.bucket.send(&request, uploads).await;
            let answer = answer.expect("the store in memory answers");
            match publisher.step(answer, Duration::ZERO, Duration::ZERO) {
                Step::Ask(next) => request = next,
                Step::End(Outcome::Published(_)) => break,
                Step::End(outcome) => panic!("{outcome:?}"),
            }
        }
    }

    /// Pins a version of a tenant, or ends the pin.
    async fn change(&mut self, tenant: &str, edit: Edit) {
        let publication = Publication {
            tenant: tenant.to_owned(),
            edit,
            addresses: Vec::new(),
            expected: None,
            at: 0,
            author: "Ann".to_owned(),
        };
        self.run(publication, &Uploads::new()).await;
    }
}

async fn poll(replica: &mut Follower) -> Vec<String> {
    let mut changed = BTreeSet::new();
    let polled = replica.poll(&mut changed).await;
    polled.expect("the store in memory answers");
    changed.into_iter().collect()
}

fn page(replica: &Follower, tenant: &str) -> Option<String> {
    let folder = replica.tenants().get(tenant)?.clone()?;
    let video = fs::metadata(folder.join("assets/film.mp4")).expect("a video");
    assert_eq!(video.len(), packed::LARGE_FILE as u64 + 1);
    Some(fs::read_to_string(folder.join("pages/index.md")).expect("a page"))
}

#[tokio::test]
async fn published_themes_and_deployment_file_are_no_tenants() {
    let mut fleet = Fleet::new();
    let mut replica = fleet.replica();
    fleet.publish(THEMES, Some("Themes")).await;
    assert_eq!(poll(&mut replica).await, [""; 0]);
    fleet.publish(DEPLOYMENT, Some("Deployment")).await;
    fleet.publish("mill", Some("One")).await;
    assert_eq!(poll(&mut replica).await, ["mill"]);
    assert_eq!(replica.tenants().len(), 1);
}

#[tokio::test]
async fn shared_folder_is_unknown_then_absent_then_current() {
    let mut fleet = Fleet::new();
    let mut replica = fleet.replica();
    assert_eq!(replica.shared(DEPLOYMENT), SharedFolder::Unknown(None));
    assert!(!replica.has_shared());
    fleet.publish("mill", Some("One")).await;
    poll(&mut replica).await;
    assert_eq!(replica.shared(DEPLOYMENT), SharedFolder::Absent);
    assert!(fleet.replica().has_shared(), "a restart remembers it");
    let text = |replica: &Follower| match replica.shared(DEPLOYMENT) {
        SharedFolder::Current(folder) => fs::read_to_string(folder.join("pages/index.md")).ok(),
        _ => None,
    };
    fleet.publish(DEPLOYMENT, Some("Rules")).await;
    assert_eq!(poll(&mut replica).await, [""; 0]);
    assert_eq!(text(&replica).as_deref(), Some("Rules"));
    assert_eq!(text(&fleet.replica()).as_deref(), Some("Rules"));
    // The publisher of the rules failed to write the head.
    fleet
        .publish_silently(DEPLOYMENT, Some("Other rules"))
        .await;
    fleet.publish("mill", Some("Two")).await;
    assert_eq!(poll(&mut replica).await, ["mill"]);
    assert_eq!(text(&replica).as_deref(), Some("Other rules"));
}

#[tokio::test]
async fn shared_folder_that_cannot_be_used_is_not_current() {
    let mut fleet = Fleet::new();
    let mut replica = fleet.replica();
    fleet.publish("mill", Some("One")).await;
    fleet.publish(DEPLOYMENT, Some("Rules")).await;
    poll(&mut replica).await;
    let second = fleet.publish(DEPLOYMENT, Some("Other rules")).await;
    let object = second.expect("a pointer").content[0].object.clone();
    fleet.send(Request::Delete(object)).await;
    poll(&mut replica).await;
    let is_late =
        |replica: &Follower| matches!(replica.shared(DEPLOYMENT), SharedFolder::Unknown(Some(_)));
    assert!(is_late(&replica));
    assert!(replica.problems()[DEPLOYMENT].contains("does not exist"));
    assert!(is_late(&fleet.replica()), "a restart remembers it");
    fleet.publish(DEPLOYMENT, Some("Third rules")).await;
    poll(&mut replica).await;
    assert!(replica.has_shared() && replica.problems().is_empty());
    // No command writes such a pointer.
    fleet.publish(DEPLOYMENT, None).await;
    poll(&mut replica).await;
    assert!(is_late(&replica));
}

#[tokio::test]
async fn published_version_reaches_a_replica_with_one_poll() {
    let mut fleet = Fleet::new();
    let mut replica = fleet.replica();
    assert!(!replica.is_complete());
    fleet.publish("mill", Some("One")).await;
    assert_eq!(poll(&mut replica).await, ["mill"]);
    assert!(replica.is_complete());
    assert_eq!(page(&replica, "mill").as_deref(), Some("One"));
    assert!(poll(&mut replica).await.is_empty());
    fleet.publish("mill", Some("Two")).await;
    fleet.publish("corner", Some("Three")).await;
    assert_eq!(poll(&mut replica).await, ["corner", "mill"]);
    assert_eq!(page(&replica, "mill").as_deref(), Some("Two"));
    assert_eq!(page(&replica, "corner").as_deref(), Some("Three"));
}

#[tokio::test]
async fn replica_starts_with_the_content_of_the_process_before() {
    let mut fleet = Fleet::new();
    fleet.publish("mill", Some("One")).await;
    poll(&mut fleet.replica()).await;
    let mut replica = fleet.replica();
    assert!(replica.is_complete());
    assert_eq!(page(&replica, "mill").as_deref(), Some("One"));
    assert!(poll(&mut replica).await.is_empty(), "the version is known");
    fleet.publish_silently("mill", Some("Two")).await;
    let mut replica = fleet.replica();
    assert_eq!(poll(&mut replica).await, ["mill"], "a start reads all");
    assert_eq!(page(&replica, "mill").as_deref(), Some("Two"));
}

#[tokio::test]
async fn unpublished_tenant_goes_away_and_comes_back() {
    let mut fleet = Fleet::new();
    let mut replica = fleet.replica();
    fleet.publish("mill", Some("One")).await;
    poll(&mut replica).await;
    fleet.publish("mill", None).await;
    assert_eq!(poll(&mut replica).await, ["mill"]);
    assert!(replica.tenants().is_empty());
    assert!(fleet.replica().tenants().is_empty());
    fleet.publish("mill", Some("One")).await;
    assert_eq!(poll(&mut replica).await, ["mill"]);
    assert_eq!(page(&replica, "mill").as_deref(), Some("One"));
}

#[tokio::test]
async fn emptied_bucket_removes_nothing_and_raises_an_alarm() {
    let mut fleet = Fleet::new();
    let mut replica = fleet.replica();
    for tenant in ["corner", "mill"] {
        fleet.publish(tenant, Some("One")).await;
    }
    poll(&mut replica).await;
    assert!(replica.alarms().is_empty());
    let Answer::Listed(keys) = fleet.send(Request::List("v1/".to_owned())).await else {
        panic!("no list");
    };
    for key in keys {
        fleet.send(Request::Delete(key)).await;
    }
    assert!(poll(&mut replica).await.is_empty());
    assert_eq!(page(&replica, "mill").as_deref(), Some("One"));
    let alarm = replica.alarms().concat();
    assert!(alarm.contains("`corner` and 1 more"), "{alarm}");
    let mut restarted = fleet.replica();
    poll(&mut restarted).await;
    assert_eq!(restarted.tenants().len(), 2);
    assert_eq!(restarted.alarms().len(), 1);
    for tenant in ["corner", "mill"] {
        fleet.publish(tenant, Some("One")).await;
    }
    poll(&mut replica).await;
    assert!(replica.alarms().is_empty());
}

#[tokio::test]
async fn damaged_or_missing_object_is_named_and_the_last_version_stays() {
    let mut fleet = Fleet::new();
    let mut replica = fleet.replica();
    fleet.publish("mill", Some("One")).await;
    poll(&mut replica).await;
    let second = fleet.publish("mill", Some("Two")).await.expect("a pointer");
    let object = second.content[0].object.clone();
    fleet.send(Request::Delete(object.clone())).await;
    let garbage = Request::Create(object.clone(), Bytes::from("garbage"));
    fleet.send(garbage).await;
    assert_eq!(poll(&mut replica).await, ["mill"]);
    assert_eq!(page(&replica, "mill").as_deref(), Some("One"));
    let problem = &replica.problems()["mill"];
    let named = problem.contains(object.as_str()) && problem.contains("damaged");
    assert!(named && problem.contains("version 2"), "{problem}");
    assert!(poll(&mut replica).await.is_empty(), "told once");
    fleet.publish("mill", Some("Three")).await;
    assert_eq!(poll(&mut replica).await, ["mill"]);
    assert_eq!(page(&replica, "mill").as_deref(), Some("Three"));
    assert!(replica.problems().is_empty());
    // A replica without an earlier version.
    let fourth = fleet
        .publish("corner", Some("Four"))
        .await
        .expect("a pointer");
    let object = fourth.content[0].object.clone();
    fleet.send(Request::Delete(object.clone())).await;
    assert_eq!(poll(&mut replica).await, ["corner"]);
    assert_eq!(replica.tenants()["corner"], None);
    let problem = &replica.problems()["corner"];
    assert!(problem.contains("does not exist"), "{problem}");
}

#[tokio::test]
async fn damaged_pointer_is_named_and_the_last_version_stays() {
    let mut fleet = Fleet::new();
    let mut replica = fleet.replica();
    fleet.publish("mill", Some("One")).await;
    poll(&mut replica).await;
    let key = ObjectKey::pointer("mill");
    fleet.send(Request::Delete(key.clone())).await;
    fleet
        .send(Request::Create(key, Bytes::from("garbage")))
        .await;
    fleet.publish("corner", Some("One")).await;
    let mut restarted = fleet.replica();
    assert_eq!(poll(&mut restarted).await, ["corner", "mill"]);
    assert_eq!(page(&restarted, "mill").as_deref(), Some("One"));
    let problem = &restarted.problems()["mill"];
    assert!(problem.contains("v1/tenants/mill"), "{problem}");
}

#[tokio::test]
async fn replica_serves_the_pinned_version_until_resume() {
    let mut fleet = Fleet::new();
    for text in ["One", "Two"] {
        fleet.publish("mill", Some(text)).await;
    }
    fleet.change("mill", Edit::RollBack(None)).await;
    let mut replica = fleet.replica();
    assert_eq!(poll(&mut replica).await, ["mill"]);
    assert_eq!(page(&replica, "mill").as_deref(), Some("One"));
    fleet.publish("mill", Some("Three")).await;
    assert!(poll(&mut replica).await.is_empty(), "the pin stays");
    fleet.change("mill", Edit::Resume).await;
    let mut restarted = fleet.replica();
    assert_eq!(poll(&mut restarted).await, ["mill"]);
    assert_eq!(page(&restarted, "mill").as_deref(), Some("Three"));
}

#[tokio::test]
async fn hourly_check_reads_only_pointers_whose_tags_have_changed() {
    let mut fleet = Fleet::new();
    for tenant in ["bakery", "corner", "mill"] {
        fleet.publish(tenant, Some("One")).await;
    }
    fleet.publish("bakery", None).await;
    let mut replica = fleet.replica();
    poll(&mut replica).await;
    // The head and the two shared folders.
    assert_eq!(hourly_reads(&mut replica).await, 3);
    let restarted = &mut fleet.replica();
    assert_eq!(hourly_reads(restarted).await, 4, "with the withdrawn one");
    fleet.publish_silently("mill", Some("Two")).await;
    // The pointer, and its content with a large file.
    assert_eq!(hourly_reads(&mut replica).await, 6);
    assert_eq!(page(&replica, "mill").as_deref(), Some("Two"));
}

/// Returns the number of objects that the replica reads when it checks all pointers.
async fn hourly_reads(replica: &mut Follower) -> u64 {
    let reads = |replica: &Follower| replica.bucket().metrics().counts().requests[0];
    let before: u64 = reads(replica).iter().sum();
    replica.listed = None;
    poll(replica).await;
    reads(replica).iter().sum::<u64>() - before
}

/// Publishes a tenant that has nothing but a small page.
async fn publish_small(fleet: &Fleet, tenant: &str, page: &str, addresses: &[&str]) {
    let folder = PackedFolder {
        files: [("pages/index.md".to_owned(), Bytes::from(page.to_owned()))].into(),
        ..PackedFolder::default()
    };
    let content = folder.to_bytes();
    let hash = packed::hash(&content);
    let publication = Publication {
        tenant: tenant.to_owned(),
        edit: Edit::Publish(vec![hash.clone()]),
        addresses: addresses.iter().map(ToString::to_string).collect(),
        expected: None,
        at: 0,
        author: "Ann".to_owned(),
    };
    let uploads = Uploads::from([(hash, packed::compress(&content).expect("memory"))]);
    let nonce = crate::store::random_nonce();
    let ended = crate::run::publish(&fleet.bucket, publication, &uploads, nonce).await;
    assert!(matches!(ended, Ok(Outcome::Published(_))), "{ended:?}");
}

fn reads(bucket: &Bucket) -> u64 {
    bucket.metrics().counts().requests[0].iter().sum()
}

fn names(replica: &Follower) -> Vec<String> {
    replica.tenants().into_keys().collect()
}

#[tokio::test]
async fn start_fetches_no_content_beyond_the_limit_and_a_cold_tenant_takes_one_read() {
    let fleet = Fleet::new();
    for tenant in ["bakery", "corner", "mill", "tower"] {
        let host = format!("{tenant}.example");
        publish_small(&fleet, tenant, tenant, &[&host]).await;
    }
    let mut replica = fleet.replica().with_limit(2);
    let before = reads(&fleet.bucket);
    assert_eq!(poll(&mut replica).await.len(), 2);
    // The head, four pointers, the shared folders and two folders.
    assert_eq!(reads(&fleet.bucket) - before, 1 + 4 + 2 + 2);
    let rows = replica.rows();
    let cold: Vec<String> = rows.read().names().map(ToOwned::to_owned).collect();
    assert_eq!((cold.len(), replica.dormant()), (2, 2));
    // A new version of a dormant tenant changes only its row.
    let before = reads(&fleet.bucket);
    publish_small(&fleet, &cold[0], "New", &["new.example"]).await;
    let published = reads(&fleet.bucket) - before;
    assert!(poll(&mut replica).await.is_empty());
    assert_eq!(reads(&fleet.bucket) - before - published, 1 + 1 + 2);
    assert_eq!(rows.read().at("new.example"), Some(&*cold[0]));
    let waker = replica.waker(fleet.bucket.clone());
    let decision = waker.request(&cold[0]);
    assert!(decision.is_fetched && decision.asleep.len() == 1);
    assert!(!waker.request(&cold[0]).is_fetched, "one fetch for all");
    let before = reads(&fleet.bucket);
    let folder = waker.fetch(&cold[0]).await.expect("fetched");
    assert_eq!(reads(&fleet.bucket) - before, 1);
    let page = fs::read_to_string(folder.join("pages/index.md"));
    assert_eq!(page.expect("a page"), "New");
    let awake = names(&replica);
    assert!(awake.contains(&cold[0]) && !awake.contains(&decision.asleep[0]));
    assert!(rows.read().has(&decision.asleep[0]), "it is dormant now");
    assert_eq!((awake.len(), replica.dormant()), (2, 2));
    poll(&mut replica).await;
    // A start begins with the tenants on the disk, and reads no pointer again.
    let mut restarted = fleet.replica().with_limit(2);
    assert_eq!(names(&restarted), awake);
    let before = reads(&fleet.bucket);
    assert!(poll(&mut restarted).await.is_empty());
    assert_eq!(reads(&fleet.bucket) - before, 1 + 2);
    assert_eq!(restarted.dormant(), 2);
}

#[tokio::test]
async fn tenant_whose_content_was_replaced_or_is_large_wakes_by_its_pointer() {
    let mut fleet = Fleet::new();
    publish_small(&fleet, "bakery", "One", &[]).await;
    fleet.publish("mill", Some("With a film")).await;
    publish_small(&fleet, "tower", "One", &[]).await;
    let mut replica = fleet.replica().with_limit(1);
    poll(&mut replica).await;
    let awake = names(&replica);
    let waker = replica.waker(fleet.bucket.clone());
    for tenant in ["bakery", "mill", "tower"] {
        if awake.contains(&tenant.to_owned()) {
            continue;
        }
        if tenant == "tower" {
            let pointer = fleet.send(Request::Get(ObjectKey::pointer(tenant))).await;
            let Answer::Object(pointer) = pointer else {
                panic!("no pointer");
            };
            let pointer = Pointer::of_bytes(&pointer.body).expect("a pointer");
            publish_small(&fleet, tenant, "Two", &[]).await;
            let old = pointer.content[0].object.clone();
            fleet.send(Request::Delete(old)).await;
        }
        // Another tenant may have woken just now.
        replica.known.lock().set_limit(3);
        assert!(waker.request(tenant).is_fetched, "{tenant}");
        waker.fetch(tenant).await.expect(tenant);
        assert!(names(&replica).contains(&tenant.to_owned()));
    }
    assert_eq!(replica.dormant(), 0);
}

#[tokio::test]
async fn withdrawn_dormant_tenant_is_unknown() {
    let mut fleet = Fleet::new();
    for tenant in ["bakery", "mill"] {
        publish_small(&fleet, tenant, tenant, &[]).await;
    }
    let mut replica = fleet.replica().with_limit(1);
    poll(&mut replica).await;
    let awake = names(&replica);
    let cold = match awake[0].as_str() {
        "bakery" => "mill",
        _ => "bakery",
    };
    fleet.publish(cold, None).await;
    poll(&mut replica).await;
    assert_eq!((replica.dormant(), names(&replica)), (0, awake));
    let waker = replica.waker(fleet.bucket.clone());
    assert_eq!(waker.request(cold), WakeDecision::default());
}

#[tokio::test]
async fn twenty_thousand_tenants_are_rows_of_200_bytes_and_a_cold_one_takes_one_read() {
    const TENANTS: usize = 20_000;
    const LIMIT: usize = 10;
    let fleet = Fleet::new();
    let folder = PackedFolder {
        files: [("pages/index.md".to_owned(), Bytes::from("Welcome"))].into(),
        ..PackedFolder::default()
    };
    let content = folder.to_bytes();
    let hash = packed::hash(&content);
    let object = ObjectKey::content(&hash, &Nonce("0".repeat(32)));
    let upload = Request::Upload(object.clone(), hash.clone());
    let uploads = Uploads::from([(hash.clone(), packed::compress(&content).expect("memory"))]);
    let sent = fleet.bucket.send(&upload, &uploads).await;
    assert_eq!(sent.expect("answered"), Answer::Done);
    for number in 0..TENANTS {
        let packed = ContentObject {
            hash: hash.clone(),
            object: object.clone(),
            addresses: vec![format!("www.tenant-{number}.example")],
        };
        let pointer = Pointer {
            content: vec![packed],
            ..Pointer::none()
        };
        let key = ObjectKey::pointer(&format!("tenant-{number}"));
        fleet.send(Request::Create(key, pointer.to_bytes())).await;
    }
    let before = reads(&fleet.bucket);
    let mut replica = fleet.replica().with_limit(LIMIT);
    assert_eq!(poll(&mut replica).await.len(), LIMIT);
    // The head, each pointer, the shared folders, and content that is the same for all.
    let most = 1 + TENANTS + 2 + LIMIT;
    assert!(reads(&fleet.bucket) - before <= most as u64);
    assert_eq!(replica.dormant(), TENANTS - LIMIT);
    let rows = replica.rows();
    let bytes = rows.read().bytes() / rows.read().len();
    assert!(bytes <= 200, "{bytes} bytes");
    let cold = rows.read().names().last().map(ToOwned::to_owned);
    let cold = cold.expect("a dormant tenant");
    let host = format!("www.{cold}.example");
    assert_eq!(rows.read().at(&host), Some(&*cold));
    let waker = replica.waker(fleet.bucket.clone());
    assert!(waker.request(&cold).is_fetched);
    let before = reads(&fleet.bucket);
    waker.fetch(&cold).await.expect("fetched");
    assert!(reads(&fleet.bucket) - before <= 1);
    assert_eq!(
        hourly_reads(&mut replica).await,
        3,
        "no pointer is read again"
    );
}
