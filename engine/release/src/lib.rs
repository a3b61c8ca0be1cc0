//! What rendering leaves behind and serving needs: which host answers which path with which bytes, and what of it outlives the process.
//!
//! ```text
//! (render) ──► Mount: one tenant at one address ─┐
//! (render) ──► Mount ────────────────────────────┼─► snapshot ──► (server): look up, send
//! (render) ──► files that all hosts share ───────┘
//!                                                    state ─────► a folder on disk, for the next start
//! ```
//!
//! # What each does not know
//!
//! - The crate: no YAML, Markdown, Tera or React, no connection, and no other crate of the engine. It is where those that render and those that serve meet without knowing each other.
//! - [`snapshot`] is never changed after it is built, but for a mount's counters and for pictures, each of which is put in once when it is drawn. A new snapshot shares whatever stayed the same with the one before it.
//! - [`state`] knows nothing of what its bytes mean. Whatever it holds may be lost at any moment: with or without it visitors get the same bytes.

pub mod snapshot;
pub mod state;
