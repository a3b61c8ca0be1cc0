//! The UI bundle: React islands, as modules for the browser and as one script for `QuickJS`.
//!
//! The TypeScript sources, their build and the list of islands are next to this crate; see the README there. The
//! crate only carries the output of the build.
//!
//! **Invariant:** a [`Bundle`] is complete: it has every file that its manifest names. The crate knows no React,
//! runs no script and renders nothing.

mod bundle;
mod embedded;
mod manifest;

pub use bundle::{Bundle, BundleError};
pub use embedded::CONSOLE_SCRIPT;
pub use manifest::{BundleManifest, BundleMode, Island, Module};
