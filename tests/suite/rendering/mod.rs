//! The render queue, rendering on demand, and eviction.

mod eviction;
mod on_demand;
