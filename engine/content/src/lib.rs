//! Reads content folders and checks them: tenants and themes as valid values, or *all* their errors at once.
//!
//! ```text
//! directory ──► source ──► yaml ───► schema ───► tenant ─┬─► address ──► the owner of each host and path
//!               bytes by   values    mismatches  a site  │
//!               path       with                  or all  └─► (render)
//!                          positions             errors
//!                                                theme ────► (render)
//!
//! used by all of them:  name    identifiers and reserved paths
//!                       report  errors and warnings as data; panics as errors
//! ```
//!
//! # Invariants
//!
//! - The crate knows no HTML, HTTP or sockets, and uses no other crate of the engine.
//! - Only [`source`] opens content files. The module does not know the contents of files, and never opens a file outside the given folder, even through links.
//! - Only [`yaml`] knows the YAML library, and [`yaml`] knows no keys. [`schema`] knows no file format and no meaning of a key.
//! - [`formats`] defines the text that each `format` of a JSON Schema accepts, and knows no tenant and no theme.
//! - [`tenant`] knows no disk and no other tenant. An invalid [`tenant::Site`] cannot be constructed, so later stages do not check again.
//! - [`theme`] knows no tenant and no page, and renders nothing.
//! - [`address`] knows no content and no requests. An address has at most one owner. Every fresh startup with the same folders assigns the same owners.
//! - [`report`] knows positions in files, but not their contents. An author's mistake is never an `Err` of the program.

pub mod name;
pub mod report;

pub mod source;
pub mod yaml;

pub mod schema;

pub mod formats;

pub mod tenant;

pub mod address;
pub mod theme;
