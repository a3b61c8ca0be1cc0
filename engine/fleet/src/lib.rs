//! The protocol of a fleet: publishers and replicas that share one object store, without a leader.
//!
//! Correctness comes from names that are never used twice and from compare-and-swap. Leases only save work.
//!
//! | module | job |
//! |---|---|
//! | [`exchange`] | requests to the object store, and their answers |
//! | [`key`] | names of objects |
//! | [`pointer`] | the one object that says what a tenant serves |
//! | [`publish`] | uploads content and swaps the pointer |
//! | [`garbage`] | the list of objects that nothing names |
//! | [`collect`] | deletes these objects after a grace period |
//! | [`schedule`] | when a replica collects |
//! | [`lease`] | lets one replica do work that all could do |
//! | [`head`] | the hint from which replicas learn what has changed |
//! | [`residence`] | which tenants a replica holds awake |
//!
//! Themes and `deployment.yaml` are published like tenants, under names that no tenant can have: [`key::THEMES`] and [`key::DEPLOYMENT`]. The protocol therefore has one kind of pointer.
//!
//! Every protocol is a state machine: `step` takes the answer to the last request, and returns the next request. The simulation runs many machines against a model store that drops, delays and repeats requests.
//!
//! **Invariant:** no I/O, no thread, no clock and no random number. The caller passes the time and the nonces.

pub mod collect;
pub mod exchange;
pub mod garbage;
pub mod head;
pub mod key;
pub mod lease;
pub mod pointer;
pub mod publish;
pub mod residence;
pub mod schedule;
#[cfg(test)]
mod simulation;
