//! Renders a valid tenant with its theme and the islands, and puts it at each of its addresses.
//!
//! ```text
//! compile        a tenant -> Compiled: one Mount for each address
//!   prepare        a tenant in the shapes of its theme   prepared, language, card
//!   rendered       all pages, once for all addresses   page: head, view, describe, resolve, structure, structured, speculation, script
//!   template       a theme's templates and functions   island (React), markdown, highlight, media, film, link, place, apart
//!   site_files     feeds, sitemaps, manifests, searches xml
//!   picture        social images, icons                svg
//!   files          assets as resources                 asset, media_type, raster, metadata, tenant_files, theme_files, stylesheet
//!   lints          what to say of the finished pages: links, contrast, headings, weight, app stores
//! waiting        a tenant before it is rendered
//! recalled       a tenant that was rendered before, from what a process before this one knew of it
//! coded          pages of a release, ready to be served again
//! best           bodies whose best coding is still to be made
//! shared         what every host serves
//! former         files that were replaced
//! dev, gallery   what `--dev` adds; the gallery's examples are in the manual, too
//!     all of it stands on: inputs, policy (header fields), compress (codings), cache, progress
//! ```
//!
//! 1. The tenant's files get their hashed names.
//! 2. Every page is rendered once: head, structured data, sections, islands. Then each address gets its copy, with its links and codings.
//! 3. The finished pages at the canonical address are looked at by the lints, in one place.
//! 4. Each address becomes a [`Mount`](release::snapshot::Mount) that the owner puts into a snapshot.
//!
//! **Invariants:**
//!
//! - Knows no disk and no socket: what it reads was read before, and what it makes is bytes in memory.
//! - Knows no other tenant's content: of neighbours it has names and addresses, and hands out the links to them.
//! - Knows no time of day: the same folders, in the same year, give the same bytes on any machine. Only the watchdog's [`Progress`] looks at a clock, and it never changes a byte.
//! - Knows no request: every header field and the quick codings are ready before somebody asks; the owner says when to make the best ones ([`Unimproved`]).

mod apart;
pub mod asset;
mod best;
pub mod cache;
mod card;
mod coded;
mod compile;
mod compiled;
mod compress;
mod describe;
pub mod dev;
mod escape;
mod files;
mod film;
mod former;
mod gallery;
mod head;
mod highlight;
mod ids;
mod inputs;
mod island;
mod language;
pub mod link;
mod link_context;
mod lints;
mod markdown;
mod media;
mod media_type;
mod metadata;
mod page;
mod parallel;
pub mod picture;
mod place;
pub mod policy;
mod prepare;
mod prepared;
mod progress;
mod raster;
mod recalled;
mod rendered;
mod resolve;
mod script;
mod shared;
pub mod site_files;
mod speculation;
mod structure;
mod structured;
mod stylesheet;
mod svg;
pub mod template;
mod tenant_files;
mod theme_files;
mod values;
mod view;
mod waiting;
mod xml;

pub use best::Unimproved;
pub use card::Card;
pub use coded::Encoder;
pub use compile::compile;
pub use compiled::{Compiled, PlacedMount};
pub use former::{Whose, former, former_files};
pub use inputs::Inputs;
pub use island::Islands;
pub use lints::links::NeighbourLink;
pub use lints::pages::Orphan;
pub use prepare::card;
pub use progress::Progress;
pub use recalled::{Outcome, reading_key, release_key};
pub use shared::{default_image, moved_to, shared, unknown_host};
