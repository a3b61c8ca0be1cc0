//! Renders a checked tenant with its theme and the islands, and mounts the result at each of its addresses.
//!
//! ```text
//! compile        entry point: a tenant to one mount per address; cache, watchdog, persisted outcomes
//!   pages        one rendering per page, shared by all addresses: template values, head, links, gallery
//!     theme      templates and their functions, UI strings, languages
//!     markdown   Markdown to HTML, element ids, footnotes, highlighting, markup of other generators
//!     media      images, videos and audio within a page; media types
//!     styles     the rules and fonts that a page uses
//!     island     React components, rendered by QuickJS
//!   site_files   feeds, sitemaps, web manifests, the search index, app associations
//!   images       social images, icons, image variants; svg: sanitised and rasterised
//!   resources    hashed names, header fields, the Markdown forms of pages; encodings: content encodings and ETags
//!   lints        diagnostics about finished pages
//! ```
//!
//! [`compile()`] works in four steps:
//!
//! 1. The tenant's files get their hashed names.
//! 2. Every page is rendered once: head, structured data, sections, islands. Each address then gets a copy of the page with its own links and content encodings.
//! 3. The lints check the finished pages at the canonical address.
//! 4. Each address becomes a [`Mount`](release::snapshot::Mount). The supervisor puts the mounts into a snapshot.
//!
//! **Invariants:**
//!
//! - Opens no file and no socket: callers pass in the content, and the results are in memory.
//! - Knows no other tenant's content: only the names, addresses and settings that other tenants' pages may show.
//! - Knows no time of day: the same folders in the same year give the same bytes on any machine. Only the watchdog ([`RenderAttempt`]) reads a clock, and it never changes a byte.
//! - Knows no request: every header field and the fast content encodings exist before the first request. The supervisor decides when the best encodings ([`CompressTask`]) and the Markdown forms of pages ([`MarkdownTask`]) are made.
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

pub use compile::cache::{Cache, CacheKey};
pub use compile::compile;
pub use compile::compiled_tenant::{AddressMount, CompiledTenant};
pub use compile::inputs::CompileInputs;
pub use compile::persisted_tenant::{PersistedTenant, reading_key, release_key};
pub use compile::prepare::card;
pub use compile::site_card::SiteCard;
pub use compile::watchdog::RenderAttempt;
pub use images::{GeneratedImage, ImageSlots, ImageTask};
pub use island::Islands;
pub use lints::links::CrossTenantLink;
pub use lints::pages::OrphanPage;
pub use pages::dev;
pub use pages::links::resolver::{DeploymentFacts, below, translated_companies};
pub use resources::asset::{ASSETS, policy_hash};
pub use resources::encodings::best_encodings::CompressTask;
pub use resources::encodings::page_encodings::Encoder;
pub use resources::encodings::shared_encodings::encodings_of;
pub use resources::header_fields::CachePolicy;
pub use resources::page_markdown::MarkdownTask;
pub use resources::replaced_files::{FileOwner, replaced_file, replaced_files};
pub use resources::shared_files::{default_image, moved_to, shared};
pub use resources::unknown_host::unknown_host;
pub use site_files::{HostFacts, Listing, host_files};
pub use theme::Templates;
