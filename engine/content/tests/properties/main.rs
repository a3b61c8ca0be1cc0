//! Property tests: invariants that hold for every folder, checked with generated folders.
//!
//! Runs briefly by default, and longer with `PROPTEST_CASES=100000`. A failing case is minimised and becomes a test of its own elsewhere.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used)]

mod addresses;
mod content;

use proptest::prelude::ProptestConfig;

/// Returns a configuration with fewer cases, for tests that read an entire tenant.
fn reduced_case_count() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig {
        cases: usual.cases.div_ceil(8),
        ..usual
    }
}
