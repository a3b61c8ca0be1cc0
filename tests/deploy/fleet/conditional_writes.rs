//! The start probe of the store, with stores that honour conditional writes.

use bucket::store::Uploads;
use bucket::store::probe::probe;
use fleet::exchange::{Answer, Request};
use fleet::key::{Nonce, ObjectKey};

use crate::fleet::object_store::ObjectStore;
use crate::support::wait_for;

#[test]
fn store_that_honours_conditional_writes_passes_the_probe() {
    let Some(mut store) = ObjectStore::start() else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let bucket = store.bucket("sites/live");
    let probe = |nonce: &str| runtime.block_on(probe(&bucket, &Nonce(nonce.to_owned())));
    probe("first").expect("a store that is fit for use");
    let object = ObjectKey::new("v1/object");
    let send = |request| runtime.block_on(bucket.send(&request, &Uploads::new()));
    let created = send(Request::Create(object.clone(), "bytes".into()));
    assert_eq!(created.expect("an answer"), Answer::Done);
    // Objects outlive the store's process.
    store.stop();
    store.restart();
    // The store answers before all of its parts have started.
    let read = wait_for("an object of the first process", || {
        match send(Request::Get(object.clone())) {
            Ok(Answer::Object(object)) => Some(object.body),
            Ok(answer) => panic!("{answer:?}"),
            Err(_) => None,
        }
    });
    assert_eq!(read, "bytes");
    probe("second").expect("a store that is fit for use");
}
