//! Sets `ROWHOUSE_BUILD`, a digest of the sources that decide the rendered bytes. The crate compiles it in to tell builds apart.

#[path = "src/compile/cache/sources.rs"]
mod sources;

use std::io::Write as _;
use std::path::Path;
use std::{env, io};

fn main() -> io::Result<()> {
    let package = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
    let found = sources::of(&Path::new(&package).join(".."))?;
    let mut out = io::stdout().lock();
    for path in &found.watched {
        writeln!(out, "cargo::rerun-if-changed={}", path.display())?;
    }
    // The feature changes the image formats that pages offer.
    let avif = match env::var_os("CARGO_FEATURE_AVIF") {
        Some(_) => "+avif",
        None => "",
    };
    writeln!(
        out,
        "cargo::rustc-env=ROWHOUSE_BUILD={}{avif}",
        found.digest
    )
}
