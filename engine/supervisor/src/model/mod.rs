//! Decisions without input and output, threads, clocks and locks.

pub(crate) mod agenda;
pub(crate) mod budget;
pub(crate) mod event;
pub(crate) mod publication;
pub(crate) mod tenant;
pub(crate) mod world;
