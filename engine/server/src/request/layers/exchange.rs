//! A request on its way through the layers.
//!
//! **Invariant:** plain values.

use std::time::Instant;

use crate::listen::admission::Peer;
use crate::response::routed_response::RequestHead;
use release::snapshot::Snapshot;

/// A request on its way through the layers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exchange<'a> {
    pub(crate) head: &'a RequestHead<'a>,
    /// The snapshot from which the request is answered.
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) peer: Peer,
    /// When the header fields were complete.
    pub(crate) started: Instant,
}
