//! The data that rendering produces and serving reads: the snapshot in memory, and the store on disk.
//!
//! ```text
//! (render) ───► Mount: one tenant at one address ─┐
//! (render) ───► Mount ────────────────────────────┼─► snapshot ──► (server): look up, send
//! (render) ───► files shared by all hosts ────────┘
//! (rowhouse) ─► responses of one tenant ──────────► store ───► its last releases on disk: list, compare, serve again
//! (rowhouse) ─► folders and costly results ───────► store ───► tables on disk, for the next startup
//! ```
//!
//! # Invariants
//!
//! - The crate knows no YAML, Markdown, Tera, React or connections, and uses no other crate of the engine. Rendering and serving meet here without knowing each other.
//! - A [`snapshot`] does not change after it is built. Exceptions: a mount's counters change, and each page, image, Markdown form and best content encoding is filled in once. A new snapshot shares all unchanged parts with the previous one.
//! - The [`store`] knows neither the meaning of its bytes nor the reason of a release, and does not decide what is served. A look-up returns exactly the bytes that were stored, or nothing. Callers must work without it: any stored data may be lost at any time.

pub mod large;
pub mod pack;
pub mod payload;
pub mod snapshot;
pub mod store;
