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
mod compile;
mod images;
mod island;
mod lints;
mod markdown;
mod media;
mod pages;
mod resources;
mod site_files;
mod styles;
mod theme;

pub use compile::cache::{Cache, Key};
pub use compile::card::Card;
pub use compile::compile;
pub use compile::compiled::{Compiled, PlacedMount};
pub use compile::inputs::Inputs;
pub use compile::prepare::card;
pub use compile::progress::Progress;
pub use compile::recalled::{Outcome, reading_key, release_key};
pub use images::{PendingPictures, Picture, Undrawn};
pub use island::Islands;
pub use lints::links::NeighbourLink;
pub use lints::pages::Orphan;
pub use pages::dev;
pub use pages::links::link::{Deployment, below};
pub use resources::asset::{ASSETS, policy_hash};
pub use resources::encodings::best::Unimproved;
pub use resources::encodings::coded::Encoder;
pub use resources::former::{Whose, former, former_files};
pub use resources::policy::Caching;
pub use resources::shared::{default_image, moved_to, shared, unknown_host};
pub use site_files::{HostFacts, Listing, host_files};
pub use theme::Templates;
