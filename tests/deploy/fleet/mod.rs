//! A fleet with a real object store.

mod azure;
mod certificates;
mod conditional_writes;
pub(crate) mod object_store;
mod publish;
pub(crate) mod replicas;
mod slow_store;
