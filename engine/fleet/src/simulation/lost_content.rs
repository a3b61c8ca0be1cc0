//! Content objects that the store has lost or damaged, and that the next publication of the same content repairs.

use std::time::Duration;

use bytes::Bytes;

use crate::exchange::{Answer, Request};
use crate::key::{CONTENT, ContentHash, Nonce, ObjectKey};
use crate::pointer::Pointer;
use crate::publish::{Edit, Outcome, Publication, Publisher, Step};
use crate::simulation::store::ModelStore;

/// The number of requests of the longest repair, and more.
const MAX_REQUESTS: usize = 40;

/// The fault of one request of a publisher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NetworkFault {
    None,
    LostRequest,
    LostAnswer,
}

/// The damage to a content object.
#[derive(Debug, Clone, Copy)]
enum ContentDamage {
    Lost,
    Other,
}

/// Runs a publisher, with a fault of the request at this place.
fn run(
    store: &mut ModelStore,
    edit: Edit,
    nonce: &str,
    (place, fault): (usize, NetworkFault),
) -> Outcome {
    let publication = Publication {
        tenant: "corner".to_owned(),
        edit,
        addresses: Vec::new(),
        expected: None,
        at: 0,
        author: String::new(),
    };
    let (mut publisher, mut request) = Publisher::new(publication, Nonce(nonce.to_owned()));
    for sent in 0..MAX_REQUESTS {
        let fault = if sent == place {
            fault
        } else {
            NetworkFault::None
        };
        let answer = match fault {
            NetworkFault::LostRequest => Answer::Unknown,
            NetworkFault::LostAnswer | NetworkFault::None => store.execute(&request),
        };
        let answer = match fault {
            NetworkFault::None => answer,
            NetworkFault::LostAnswer | NetworkFault::LostRequest => Answer::Unknown,
        };
        match publisher.step(answer, Duration::ZERO, Duration::ZERO) {
            Step::Ask(next) => request = next,
            Step::End(outcome) => return outcome,
        }
    }
    panic!("{nonce}: too many requests");
}

fn publish(store: &mut ModelStore, nonce: &str, fault: (usize, NetworkFault)) -> Outcome {
    let content = ["a", "b", "c"].map(|hash| ContentHash(hash.to_owned()));
    run(store, Edit::Publish(content.to_vec()), nonce, fault)
}

fn pointer(store: &ModelStore) -> Pointer {
    let object = &store.objects[&ObjectKey::pointer("corner")];
    Pointer::of_bytes(&object.body).expect("a pointer")
}

fn damage(store: &mut ModelStore, object: &ObjectKey, damage: ContentDamage) {
    match damage {
        ContentDamage::Lost => drop(store.objects.remove(object)),
        ContentDamage::Other => {
            let object = store.objects.get_mut(object).expect("an object");
            object.body = Bytes::from("other bytes");
        }
    }
}

fn assert_intact(store: &mut ModelStore, case: &str) {
    for content in pointer(store).named() {
        let verify = Request::Verify(content.object.clone(), content.hash.clone());
        assert_eq!(store.execute(&verify), Answer::Done, "{case}: {content:?}");
    }
}

#[test]
fn publication_of_unchanged_content_repairs_its_objects_whatever_the_network_does() {
    let none = (0, NetworkFault::None);
    for lost in 1..8 {
        for kind in [ContentDamage::Lost, ContentDamage::Other] {
            for place in 0..MAX_REQUESTS {
                for fault in [NetworkFault::LostRequest, NetworkFault::LostAnswer] {
                    let case = format!("{kind:?} {lost}, {fault:?} {place}");
                    let mut store = ModelStore::default();
                    let first = publish(&mut store, "first", none);
                    assert!(matches!(first, Outcome::Published(_)), "{first:?}");
                    for (number, content) in pointer(&store).content.iter().enumerate() {
                        if lost & (1 << number) != 0 {
                            damage(&mut store, &content.object, kind);
                        }
                    }
                    let repaired = publish(&mut store, "second", (place, fault));
                    assert!(
                        matches!(repaired, Outcome::Repaired(_)),
                        "{case}: {repaired:?}"
                    );
                    assert_eq!(pointer(&store).version(), 2, "{case}");
                    assert_intact(&mut store, &case);
                    let objects = |store: &ModelStore| {
                        let keys = store.objects.keys();
                        keys.filter(|key| key.as_str().starts_with(CONTENT)).count()
                    };
                    let before = objects(&store);
                    let again = publish(&mut store, "third", none);
                    assert!(matches!(again, Outcome::Unchanged(_)), "{case}: {again:?}");
                    assert_eq!(objects(&store), before, "{case}");
                }
            }
        }
    }
}

#[test]
fn repair_covers_the_pinned_version_with_the_same_content_and_keeps_the_pin() {
    let none = (0, NetworkFault::None);
    let mut store = ModelStore::default();
    publish(&mut store, "first", none);
    let pin = Edit::RollBack(Some(1));
    let pinned = run(&mut store, pin, "second", none);
    assert!(matches!(pinned, Outcome::Published(_)), "{pinned:?}");
    let lost = pointer(&store).content[0].object.clone();
    damage(&mut store, &lost, ContentDamage::Lost);
    let repaired = publish(&mut store, "third", none);
    assert!(matches!(repaired, Outcome::Repaired(_)), "{repaired:?}");
    assert_eq!(pointer(&store).pinned(), Some(1));
    assert_intact(&mut store, "pinned");
}
