//! Decisions about reading, building, serving, persisting and evicting tenants.
//!
//! **Invariant:** no I/O, threads, clocks or locks. Callers pass the time with each event.

pub(crate) mod agenda;
pub(crate) mod budget;
pub(crate) mod event;
pub(crate) mod persistence;
pub(crate) mod pins;
pub(crate) mod previews;
pub(crate) mod publication;
pub(crate) mod readings;
pub(crate) mod receiving;
pub(crate) mod removal;
pub(crate) mod tenant;
pub(crate) mod world;
