//! What rendering leaves behind and serving needs: which host answers which path with which bytes, and what of it outlives the process.
//!
//! ```text
//! (render) ──► Mount: one tenant at one address ─┐
//! (render) ──► Mount ────────────────────────────┼─► snapshot ──► (server): look up, send
//! (render) ──► files that all hosts share ───────┘
//! (rowhouse) ──► what one tenant answers ──────────► store ───► its last releases on disk: list, compare, serve again
//! (rowhouse) ──► folders, what was costly to make ───► store ───► tables of bytes on disk, for the next start
//! ```
//!
//! # What each does not know
//!
//! - The crate: no YAML, Markdown, Tera or React, no connection, and no other crate of the engine. It is where those that render and those that serve meet without knowing each other.
//! - [`snapshot`] is never changed after it is built, but for a mount's counters, and for pages and pictures, each of which is put in once when it is made. A new snapshot shares whatever stayed the same with the one before it.
//! - [`store`] knows nothing of what bytes mean or why a release was made, and decides nothing about what is served. What comes out of it is what went in, byte by byte, or nothing; whatever it holds may be lost at any moment.

pub mod large;
pub mod pack;
pub mod payload;
pub mod snapshot;
pub mod store;
