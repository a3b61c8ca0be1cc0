//! Rowhouse serves many small sites from one program: a site is a folder.
//!
//! This crate is the program: the command line, the export, the manual and the console. The crates below it do the work.
//!
//! ```text
//! folder ──► content ──► render ──► release ──► server ──► bytes
//!            checked     HTML       snapshot    look up
//!               ▲           ▲           │          ▲
//!               └─────────── supervisor ┴──────────┘
//!                                       └─► export ──► files
//!
//! main ──► cli ──► commands ──► supervisor, export, manual, console
//! ```
//!
//! # What each does not know
//!
//! - `content` knows no HTML, HTTP or socket; `render` no disk, socket or other tenant's content; `release` no YAML, Tera or connection; `server` not where bytes came from. Cargo holds these arrows: `content` and `server` never meet.
//! - [`cli`] turns text into values, and decides nothing. The crates below know values, not flags.
//! - [`commands`] is the only one that prints, and only `main` ends the process.
//! - [`supervisor::source`] knows paths and times, not tenants; it reads no content.
//! - [`supervisor`] is the only one that sees both what renders and what is served. A tenant's failure, be it an error, a panic or work without end, removes neither another tenant nor its own last good state, which `--state` keeps over a restart.
//! - [`export`] knows only a snapshot: what it writes is what would be served.
//! - [`manual`] knows the lists that the program has of its own keys, flags, metrics and errors, and nothing of how pages are made of them.
//! - [`console`] shows what others say of themselves, to operators alone; it changes nothing.
//! - What is for authors (`--dev`) is an input of rendering and a setting of serving; without the flag not one byte is different.
//!
//! # Walkthrough: a request
//!
//! 1. `server` reads the request's head from the connection and takes the current [`Snapshot`](release::snapshot::Snapshot) from its [store](server::snapshot_store::SnapshotStore).
//! 2. The host names an entry of the snapshot's table: a tenant's own host, the domain, a redirect, or nothing (a neutral 421).
//! 3. On the domain, the longest prefix of whole segments names a [`Mount`](release::snapshot::Mount) (`/apps/corner`); the rest goes to the root tenant.
//! 4. The rest of the path names a resource of the mount. If there is none, the mount has its 404 page.
//! 5. `Accept-Encoding` chooses one of the encodings that are ready; `If-None-Match` may make it a 304. The bytes go out as they lie in memory: no lock, no file, no template.
//!
//! # Walkthrough: a saved file
//!
//! 1. [`supervisor::source`] notices the path and waits until nothing more changes; [`supervisor`] has that folder read again ([`content::source`]). If its bytes are the same, that is all.
//! 2. [`content::tenant`] turns it into a site, or into errors with file, line and column. With errors, the last good site stays and the report says why.
//! 3. [`render`] makes its pages (Tera layouts, Markdown, islands, head), and puts them at each of its addresses with their links and encodings.
//! 4. A new snapshot is put together from the new mounts and everybody else's old ones, and swapped in at once. Requests that began before end with the old one.
//! 5. Steps 1 to 3 happen on threads beside the owner. What takes longer than a moment is swapped in when it is done. Pictures, and the best encodings of pages, are made aside once somebody asks for the tenant: the snapshot has places for them, which are filled while it is served. No other change waits for any of this.
//! 6. What fails is one tenant's: a panic at any step becomes its error, and what could not be read is tried again until it is.
//!
//! # Walkthrough: a start, and a tenant that is out of memory
//!
//! 1. Every folder is read and addresses are given out. The first snapshot has an open mount at each address, and the server is ready.
//! 2. The tenants are rendered in the background, and looked at. Their pages lie beside open mounts until somebody asks: they are compressed then. A request that finds an open mount has that done, or its tenant brought to the front, and waits until the mount is filled, on the event loop as others are answered.
//! 3. A tenant whose newest release in the state was made from just the same ([`render::release_key`]) is not rendered: what is known of it is taken up, and its pages are read when somebody asks.
//! 4. What does not fit into `--memory` is put to sleep: the next snapshot has an open mount in its place, and a request there has it brought back from the state, or rendered again from content that is still in memory, packed.
//!
//! # Walkthrough: back to yesterday
//!
//! 1. With a state, what a tenant serves is recorded as a release ([`release::store`]) once nobody waits for anything: its pages, and the shared files that they name.
//! 2. `rowhouse rollback` asks the admin listener, which asks the owner ([`supervisor::Operator`]). It loads the release, pins it on disk, and swaps in a snapshot with the release's pages in the tenant's mounts.
//! 3. The folder is read, rendered, reported and recorded as before. `rowhouse resume` swaps its pages in again.
//!
//! # Walkthrough: an operator looks
//!
//! 1. A browser asks the admin listener for `/`. What no other route answers is a page of the [`console`].
//! 2. It reads how tenants are from the status board, charts from the counters' [history](server::metrics::history), those of one tenant from [its own](server::metrics::tenant_history), and what is wrong from the owner, for the tenants of that page alone ([`supervisor::Operator::findings`]). While the owner is busy, the errors stand there in a line each.
//! 3. Whenever something is reported, `/events` says so; the open page asks for itself again, and replaces what differs. A button sends a form to the route that `rowhouse rollback` asks, too.
//!
//! # Walkthrough: a new folder
//!
//! 1. The folder's name is the tenant's id, if it is a host label.
//! 2. [`content::address`] gives out hosts and prefixes over all tenants: who has one keeps it, then come folder names, then what manifests claim and `deployment.yaml` lists. What another tenant has is an error that names the owner.
//! 3. From there it is a saved file.

pub mod export;

pub mod cli;
pub mod console;
pub mod manual;

pub mod commands;
