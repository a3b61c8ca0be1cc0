//! The UI bundle: React islands as modules for the browser and as one script for `QuickJS`.
//!
//! The TypeScript sources, their build and the list of islands are beside this crate; see the README there. The
//! crate only carries what the build made: it knows no React, runs no script and renders nothing.
//!
//! **Invariant:** a [`Bundle`] is whole. Every file that its manifest names is in it.

mod bundle;
mod embedded;
mod manifest;

pub use bundle::{Bundle, BundleError};
pub use embedded::CONSOLE_SCRIPT;
pub use manifest::{BundleManifest, BundleMode, Island, Module};
