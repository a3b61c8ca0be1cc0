//! Decisions without I/O, threads and clocks.

pub(crate) mod lifecycle;
