//! What holds for every request and every folder, tried with invented ones.
//!
//! A short while by default; with `PROPTEST_CASES=100000` it goes on for longer. What fails is reduced to its smallest form, and becomes a test of its own elsewhere.
//! Markdown and the parts of negotiation that nobody outside sees have theirs beside the code.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used)]

mod addresses;
mod content;
mod links;
mod request;
#[path = "../support/sample.rs"]
mod sample;

use proptest::prelude::ProptestConfig;

/// For cases that take as long as reading a whole tenant, or compiling one.
fn few() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig {
        cases: usual.cases.div_ceil(8),
        ..usual
    }
}
