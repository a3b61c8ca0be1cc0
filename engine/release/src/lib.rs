//! What rendering leaves behind and serving needs.

pub mod snapshot;
pub mod state;
