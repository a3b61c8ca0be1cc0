//! Random histories of a fleet: whatever the network and the machines do, the invariants of the protocol hold.

mod fleet;
mod lost_content;
mod old_releases;
mod store;

use crate::simulation::fleet::SimulatedFleet;

/// The number of histories in `cargo test`; a million with `ROWHOUSE_LONG=1`.
const HISTORIES: u64 = 400;

/// The number of steps of a history.
const STEPS: usize = 400;

#[test]
fn random_histories_preserve_the_invariants() {
    let histories = match std::env::var_os("ROWHOUSE_LONG") {
        Some(_) => 1_000_000,
        None => HISTORIES,
    };
    let (mut published, mut pinned, mut deleted, mut faults) = (0, 0, 0, 0);
    for seed in 0..histories {
        let mut fleet = SimulatedFleet::new(seed);
        for step in 0..STEPS {
            fleet.act();
            if let Some(broken) = &fleet.broken {
                panic!("seed {seed}, step {step}: {broken}");
            }
        }
        pinned += fleet.pinned;
        fleet.settle();
        if let Some(broken) = &fleet.broken {
            panic!("seed {seed}, at the end: {broken}");
        }
        published += fleet.published;
        deleted += fleet.deleted;
        faults += fleet.faults;
    }
    println!(
        "{histories} histories: {published} publications, {pinned} rollbacks, {deleted} deletions, {faults} faults"
    );
    // The histories reach every part of the protocol.
    assert!(published > histories && faults > histories && pinned > histories);
    assert!(deleted > 0);
}
