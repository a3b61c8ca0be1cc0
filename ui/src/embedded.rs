//! The bundle that was built along with this crate; the table is written by `build.rs`.

use std::borrow::Cow;

use crate::bundle::{Bundle, BundleError, BundleParts, ClientFiles};

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

impl Bundle {
    /// The bundle that was built with this program. No copy is made of its files.
    ///
    /// # Errors
    /// If the bundle is not whole, which a build from `ROWHOUSE_UI_DIST` may bring about.
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
