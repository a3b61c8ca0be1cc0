//! Decisions without I/O, threads and clocks.

pub(crate) mod agenda;
pub(crate) mod lifecycle;
