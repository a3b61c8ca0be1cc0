//! The bundle that was built with this crate. `build.rs` writes the table of its files.

use std::borrow::Cow;

use crate::bundle::{Bundle, BundleError, BundleParts, ClientFiles};

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

impl Bundle {
    /// Returns the bundle that was built with this program, without copying its files.
    ///
    /// # Errors
    /// When the bundle is incomplete, which is possible for a build from `ROWHOUSE_UI_DIST`.
    pub fn embedded() -> Result<Bundle, BundleError> {
        Bundle::new(parts())
    }
}

fn parts() -> BundleParts {
    BundleParts {
        manifest: Cow::Borrowed(MANIFEST),
        server_script: Cow::Borrowed(SERVER_SCRIPT),
        dev_script: Cow::Borrowed(DEV_SCRIPT),
        loader: Cow::Borrowed(LOADER),
        client: files(CLIENT),
        brotli: files(BROTLI),
    }
}

fn files(table: &[(&'static str, &'static [u8])]) -> ClientFiles {
    let files = table.iter();
    files
        .map(|(name, bytes)| (Cow::Borrowed(*name), Cow::Borrowed(*bytes)))
        .collect()
}
