//! Rowhouse serves many small sites from one program: a site is a folder.
//!
//! ```text
//! folder -> source -> tenant -> compile -> snapshot -> serve -> bytes
//!           (read)    (check)   (render)   (frozen)    (look up)
//! ```
//!
//! # Layers
//!
//! Arrows point down only; modules of one layer do not see each other, and a test holds that.
//!
//! | layer | modules | job |
//! |---|---|---|
//! | 7 | [`commands`] | what the command line asks for |
//! | 6 | [`cli`], [`reload`] | the flags; the one owner: folders in, snapshots out |
//! | 5 | [`compile`], [`export`], [`serve`] | render; lay out as files; answer |
//! | 4 | [`address`], [`theme`] | who answers where, and `deployment.yaml`; a theme as data |
//! | 3 | [`tenant`], [`snapshot`] | a valid site; the frozen result |
//! | 2 | [`schema`], [`watch`] | values against a JSON Schema; what changed in folders |
//! | 1 | [`source`], [`state`], [`yaml`] | folders in memory; what outlives the process; values with their places |
//! | 0 | [`name`], [`report`] | identifiers, and the paths that nobody can claim; errors |
//!
//! # Invariants
//!
//! - [`source`] is the only one that opens content files, and knows nothing of what is in them.
//! - [`tenant`] knows no disk, no theme, no other tenant and no HTTP. It cannot hold an invalid site; nothing after it checks again.
//! - [`compile`] does no I/O and knows no socket. The same folders, in the same year, give the same bytes on any machine.
//! - [`snapshot`] knows no YAML, Markdown, Tera or React. It is never changed after it is built; the slots of pictures are filled once, when these are drawn.
//! - [`serve`] sees only a snapshot. For a request it takes no lock, opens no file and builds no body.
//! - What is for authors (`--dev`) is among the inputs of [`compile`] and the settings of [`serve`]; without it not one byte is different.
//! - [`export`] sees only a snapshot: what it writes is what would be served.
//! - [`compile`], [`export`] and [`serve`] do not know each other.
//! - [`reload`] is the only owner. A tenant's failure, a panic or work without end included, removes neither another tenant nor its own last good state, which `--state` keeps over a restart.
//! - What [`state`] holds may be lost at any moment: with or without it the bytes are the same.
//! - Only [`commands`] prints; only `main` ends the process.
//!
//! # Walkthrough: a request
//!
//! 1. `serve` reads the request's head from the connection and takes the current [`snapshot::Snapshot`].
//! 2. The host names an entry of its host table: a tenant's own host, the domain, a redirect, or nothing (a neutral 421).
//! 3. On the domain, the longest prefix of whole segments names a mount (`/apps/bluedoor`); the rest goes to the root tenant.
//! 4. The rest of the path names a resource of the mount. If there is none, the mount has its 404 page.
//! 5. `Accept-Encoding` chooses one of the codings that are ready; `If-None-Match` may make it a 304. The bytes go out as they lie in memory.
//!
//! # Walkthrough: a saved file
//!
//! 1. [`watch`] notices the path and waits until nothing more changes; [`reload`] reads that folder again. If its bytes are the same, that is all.
//! 2. [`tenant`] turns it into a site, or into errors with file, line and column. With errors, the last good site stays and the report says why.
//! 3. [`compile`] renders the site for each of its addresses: Tera layouts, Markdown, islands, head, codings.
//! 4. A new snapshot is put together from the new mounts and everybody else's old ones, and swapped in at once. Requests that began before end with the old one.
//! 5. Reading, checking and compiling happen on threads beside the owner. What takes longer than a moment is swapped in when it is done; pictures are drawn aside into the slots that the snapshot has for them. No other change waits for either.
//! 6. What fails is one tenant's: a panic at any step becomes its error, and what could not be read is tried again until it is.
//!
//! # Walkthrough: a new folder
//!
//! 1. The folder's name is the tenant's id, if it is a host label.
//! 2. [`address`] gives out hosts and prefixes over all tenants: who has one keeps it, then the id's, then what the manifest claims and `deployment.yaml` lists. What another tenant has is an error that names the owner.
//! 3. From there it is a saved file.

pub mod watch;

pub mod export;

pub mod cli;
pub mod reload;

pub mod commands;
