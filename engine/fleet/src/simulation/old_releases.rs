//! Rendered releases and their leases, which a collector deletes by their age.

use std::time::Duration;

use bytes::Bytes;

use crate::collect::{Collector, Outcome, RELEASE_TIME, RENDER_LEASE_TIME, Step};
use crate::exchange::{Answer, Request, StoreTime};
use crate::key::{Nonce, ObjectKey};
use crate::simulation::store::ModelStore;

fn collect(store: &mut ModelStore, nonce: &str) -> Outcome {
    let (mut collector, mut request) = Collector::new(Nonce(nonce.to_owned()));
    loop {
        match collector.step(store.execute(&request)) {
            Step::Ask(next) => request = next,
            Step::End(outcome) => return outcome,
        }
    }
}

fn milliseconds(time: Duration) -> StoreTime {
    u64::try_from(time.as_millis()).expect("a short time")
}

#[test]
fn old_release_and_abandoned_lease_are_deleted_and_new_ones_stay() {
    let mut store = ModelStore::default();
    let named = |name: &str| [ObjectKey::release(name), ObjectKey::render_lease(name)];
    let create = |store: &mut ModelStore, name: &str| {
        for key in named(name) {
            let created = store.execute(&Request::Create(key, Bytes::new()));
            assert_eq!(created, Answer::Done);
        }
    };
    let other = ObjectKey::lease("collect");
    store.execute(&Request::Create(other.clone(), Bytes::new()));
    create(&mut store, "old");
    store.now = milliseconds(RELEASE_TIME);
    create(&mut store, "new");
    store.now += 1;
    assert_eq!(collect(&mut store, "first"), Outcome::Deleted(2));
    let left: Vec<_> = named("new").into_iter().chain([other]).collect();
    let is_there = |key: &ObjectKey| store.objects.contains_key(key);
    assert!(left.iter().all(is_there));
    assert!(!named("old").iter().any(is_there));
    store.now += milliseconds(RENDER_LEASE_TIME);
    assert_eq!(collect(&mut store, "second"), Outcome::Deleted(1));
    assert!(store.objects.contains_key(&left[0]), "the release is new");
}
