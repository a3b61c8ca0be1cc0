//! What rendering leaves behind and serving needs: which host answers which path with which bytes, and what of it outlives the process.
//!
//! ```text
//! (render) ──► Mount: one tenant at one address ─┐
//! (render) ──► Mount ────────────────────────────┼─► snapshot ──► (server): look up, send
//! (render) ──► files that all hosts share ───────┘
//!                                                    state ─────► a folder on disk, for the next start
//! (rowhouse) ──► what one tenant answers ──────────► history ───► its last releases on disk: list, compare, serve again
//! ```
//!
//! # What each does not know
//!
//! - The crate: no YAML, Markdown, Tera or React, no connection, and no other crate of the engine. It is where those that render and those that serve meet without knowing each other.
//! - [`snapshot`] is never changed after it is built, but for a mount's counters, and for pages and pictures, each of which is put in once when it is made. A new snapshot shares whatever stayed the same with the one before it.
//! - [`history`] knows nothing of what bodies say or why a release was made, and decides nothing about what is served. What comes out of it is what was recorded, byte by byte, or nothing.
//! - [`state`] knows nothing of what its bytes mean. Whatever it holds may be lost at any moment: with or without it visitors get the same bytes.

pub mod history;
pub mod snapshot;
pub mod state;
