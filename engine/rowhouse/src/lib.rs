//! Rowhouse serves many small sites from one program: a site is a folder.
//!
//! This crate is the program: the command line, the export, the manual and the console. The other crates of the engine read, render and serve.
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
//! | module | contents |
//! |---|---|
//! | [`cli`] | arguments and environment variables, parsed into values |
//! | [`commands`] | one module for each command |
//! | [`export`] | a snapshot as files for a static host |
//! | [`import`] | redirects of other servers as lines of a manifest |
//! | [`manual`] | the manual, with a reference generated from the program |
//! | [`console`] | the pages of the admin listener |
//!
//! # Invariants
//!
//! - `content` knows no HTML, HTTP or sockets. `render` knows no disk, no sockets and no other tenant's content. `release` knows no YAML, Tera or connections. `server` does not know where bytes came from. Cargo enforces these arrows: `content` and `server` never depend on each other.
//! - [`cli`] decides nothing. The crates below know values, not flags.
//! - Only [`commands`] prints, and only `main` ends the process.
//! - [`supervisor::source`] knows paths and times, but no tenants, and reads no content.
//! - Only [`supervisor`] knows both rendering and serving. An error, a panic or endless work in one tenant removes neither another tenant nor the tenant's own last valid state, which `--state` persists over a restart.
//! - [`export`] knows only a snapshot, and writes the responses that a server would send.
//! - [`import`] knows texts only, and never guesses.
//! - [`manual`] knows the program's lists of keys, flags, metrics and errors, but not how pages are rendered from them.
//! - [`console`] shows facts of the other crates to operators, and changes nothing.
//! - `--dev` is an input of rendering and a setting of serving. Without it, not one byte differs.
//!
//! # Walkthrough: a request
//!
//! 1. `server` reads the head of the request and takes the current [`Snapshot`](release::snapshot::Snapshot) from its [store](server::snapshot_store::SnapshotStore).
//! 2. The host is looked up in the snapshot: it is a tenant's own host, the domain, a redirect, or unknown (a neutral 421).
//! 3. On the domain, the longest prefix of complete segments selects a [`Mount`](release::snapshot::Mount) (`/apps/corner`). Other paths belong to the root tenant.
//! 4. The rest of the path is looked up in the mount. A path without a resource gets the mount's 404 page.
//! 5. `Accept-Encoding` selects one of the stored content encodings, and `If-None-Match` may turn the response into a 304. The bytes are sent from memory, without a lock, a file or a template.
//!
//! # Walkthrough: a saved file
//!
//! 1. [`supervisor::source`] notices the change. The supervisor waits until the folder settles. [`supervisor`] reads the folder again ([`content::source`]). If its bytes are the same, the work ends here.
//! 2. [`content::tenant`] turns the folder into a site, or into errors with file, line and column. If there are errors, the last valid site stays, and the report has the errors.
//! 3. [`render`] makes the pages (Tera layouts, Markdown, islands, head) and places them at each address of the tenant, with their links and content encodings.
//! 4. A new snapshot combines the new mounts with the old mounts of all other tenants, and replaces the current one at once. Requests in flight finish with the old snapshot.
//! 5. Steps 1 to 3 run on worker threads. A slow job is swapped in when it is done, and no other change waits for it. Images and the best encodings of pages are made in the background after the tenant is requested. The snapshot has places for them, which are filled while it is served.
//! 6. A failure belongs to one tenant: a panic at any step becomes its error, and an unreadable folder is read again until that succeeds.
//!
//! # Walkthrough: startup and eviction
//!
//! 1. Every folder is read and addresses are assigned. The first snapshot has an empty mount at each address, and the server is ready.
//! 2. The tenants are rendered and checked in the background. Their pages stay beside the empty mounts until the first request, and are compressed then. A request that finds an empty mount has the mount filled, or moves its tenant to the front of the render queue. The request waits on the event loop, which serves other requests meanwhile.
//! 3. A tenant is not rendered if its newest release in the state has the same [`render::release_key`]. Its facts are restored, and its pages are read at the first request.
//! 4. Beyond `--memory`, tenants are evicted: the next snapshot has an empty mount in their place. The next request restores the tenant from the state, or renders it again from the compressed content in memory.
//!
//! # Walkthrough: a rollback
//!
//! 1. With `--state`, the pages that a tenant serves are recorded as a release ([`release::store`]), with the shared files that they name. Recording waits until no request waits for a job.
//! 2. `rowhouse rollback` sends a command to the admin listener, which passes it to the reload loop ([`supervisor::Operator`]). The loop loads the release, pins it on disk, and swaps in a snapshot with the pages of the release.
//! 3. The folder is still read, rendered, reported and recorded. `rowhouse resume` swaps its pages in again.
//!
//! # Walkthrough: a page of the console
//!
//! 1. A browser requests `/` of the admin listener. A path without another route is a page of the [`console`].
//! 2. The page reads states from the status board, and charts from the [history](server::metrics::history) of the counters or the [history of a tenant](server::metrics::tenant_history). Errors come from the reload loop, for the tenants of that page only ([`supervisor::Operator::findings`]). While the loop is busy, the page has the errors of the status board, one line each.
//! 3. After each report, `/events` notifies the open page. The page requests itself again and replaces the elements that differ. A button sends a form to the route that `rowhouse rollback` uses.
//!
//! # Walkthrough: a new folder
//!
//! 1. The name of the folder is the tenant's id, if it is a valid host label. A name `<id>@<label>` is the id of a preview ([`content::name::preview`]).
//! 2. [`content::address`] assigns hosts and prefixes to all tenants. A tenant keeps the addresses that it has. Free addresses go to folder names first, then to the claims of manifests that `deployment.yaml` lists. A claim of a taken address is an error that names the owner.
//! 3. The rest is the same as for a saved file.

pub mod export;
pub mod import;

pub mod cli;
pub mod console;
pub mod manual;

pub mod commands;
