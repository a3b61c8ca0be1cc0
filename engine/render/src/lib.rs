//! Renders a valid tenant with its theme and the islands, and puts it at each of its addresses.
//!
//! ```text
//! compile      a tenant to a mount for each address; what of a tenant outlives the process; cache, watchdog
//!   pages        each page once for all addresses: values for templates, head, links, gallery
//!     theme        templates and their functions, UI strings, languages
//!     markdown     Markdown to HTML, ids, footnotes, highlighting, foreign markup
//!     media        images, videos and sound within a page; media types
//!     styles       the rules and fonts that a page uses
//!     island       React components, rendered by QuickJS
//!   site_files   feeds, sitemaps, manifests, the search index, app associations
//!   images       social images, icons, sizes of photographs; svg: sanitised and drawn
//!   resources    hashed names, header fields; encodings: content encodings and ETags
//!   lints        warnings about finished pages
//! ```
//!
//! 1. The tenant's files get their hashed names.
//! 2. Every page is rendered once: head, structured data, sections, islands. Then each address gets its copy, with its links and encodings.
//! 3. The finished pages at the canonical address are looked at by the lints, in one place.
//! 4. Each address becomes a [`Mount`](release::snapshot::Mount) that the owner puts into a snapshot.
//!
//! **Invariants:**
//!
//! - Knows no disk and no socket: what it reads was read before, and what it makes is bytes in memory.
//! - Knows no other tenant's content: of neighbours it has names and addresses, and hands out the links to them.
//! - Knows no time of day: the same folders, in the same year, give the same bytes on any machine. Only the watchdog's [`Progress`] looks at a clock, and it never changes a byte.
//! - Knows no request: every header field and the quick encodings are ready before somebody asks; the owner says when to make the best ones ([`Unimproved`]).
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
pub use compile::compile;
pub use compile::compiled_tenant::{Compiled, PlacedMount};
pub use compile::inputs::Inputs;
pub use compile::outcome::{Outcome, reading_key, release_key};
pub use compile::prepare::card;
pub use compile::progress::Progress;
pub use compile::site_card::Card;
pub use images::{PendingPictures, Picture, Undrawn};
pub use island::Islands;
pub use lints::links::NeighbourLink;
pub use lints::pages::Orphan;
pub use pages::dev;
pub use pages::links::resolver::{Deployment, below};
pub use resources::asset::{ASSETS, policy_hash};
pub use resources::encodings::best_encodings::Unimproved;
pub use resources::encodings::page_encodings::Encoder;
pub use resources::header_fields::Caching;
pub use resources::replaced_files::{Whose, replaced_file, replaced_files};
pub use resources::shared_files::{default_image, moved_to, shared, unknown_host};
pub use site_files::{HostFacts, Listing, host_files};
pub use theme::Templates;
