//! What is in folders, checked: tenants and themes as values that cannot be wrong, or *all* their errors at once.
//!
//! ```text
//! directory ──► source ──► yaml ──► schema ──► tenant ─┬─► address ──► who answers where
//!               bytes by   values   what does  a site  │
//!               path       with     not fit    or all  └─► (render)
//!                          places              errors
//!                                              theme ────► (render)
//!
//! below all of them:  name    identifiers, and the paths that nobody can claim
//!                     report  errors and warnings as data; panics as errors
//! ```
//!
//! # What each does not know
//!
//! - The crate: no HTML, no HTTP, no socket, and no other crate of the engine.
//! - [`source`] is the only one that opens content files, and knows nothing of what is in them. It leaves no folder that it was given, whatever links lead out of it.
//! - [`yaml`] knows no key; it is the only one that knows the YAML library. [`schema`] knows no file format and no meaning of any key.
//! - [`formats`] knows no tenant and no theme; it says what each `format` of a JSON Schema accepts.
//! - [`tenant`] knows no disk and no other tenant. An invalid [`tenant::Site`] cannot be made, so nothing after it checks again.
//! - [`theme`] knows no tenant and no page, and renders nothing.
//! - [`address`] knows no content and no request. An address has one owner at most, and the same folders give the same owners at each fresh start.
//! - [`report`] knows places in files, not what stands there. What an author got wrong is never an `Err` of the program.

pub mod name;
pub mod report;

pub mod source;
pub mod yaml;

pub mod schema;

pub mod formats;

pub mod tenant;

pub mod address;
pub mod theme;
