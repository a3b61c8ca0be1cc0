//! The end-to-end suite, one folder for each subject.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod addresses;
mod authoring;
mod manual;
mod media;
mod operators;
mod pages;
mod program;
mod reload;
mod rendering;
mod resilience;
mod security;
mod state;
