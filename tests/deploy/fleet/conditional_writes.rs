//! The start probe of the store, with stores that honour conditional writes.

use bucket::probe::probe;
use fleet::key::Nonce;

use crate::fleet::object_store::ObjectStore;

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
    // Objects outlive the store's process.
    store.stop();
    store.restart();
    probe("second").expect("a store that is fit for use");
}
