//! What holds for every folder, tried with invented ones.
//!
//! A short while by default; with `PROPTEST_CASES=100000` it goes on for longer. What fails is reduced to its smallest form, and becomes a test of its own elsewhere.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used)]

mod addresses;
mod content;

use proptest::prelude::ProptestConfig;

/// For cases that take as long as reading a whole tenant.
fn few() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig {
        cases: usual.cases.div_ceil(8),
        ..usual
    }
}
