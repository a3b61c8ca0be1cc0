//! The digest of the sources that decide the rendered bytes. Two builds with different sources have different digests.
//!
//! This crate's build script includes this file; the crate itself compiles it for tests only.
//!
//! **Invariant:** the digest depends on the names and bytes of the files only, so it is the same on every machine and in every folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use sha2::{Digest, Sha256};

/// The crates that decide the rendered bytes: this crate and the crates it depends on.
const CRATES: [&str; 3] = ["content", "release", "render"];
/// The files and folders of each crate that decide the rendered bytes.
const SOURCES: [&str; 3] = ["Cargo.toml", "build.rs", "src"];
/// The lock file, which pins the versions of all dependencies.
const LOCK: &str = "Cargo.lock";

/// The digest of the sources, and the paths it covers.
#[derive(Debug)]
pub(crate) struct Sources {
    /// The SHA-256 of all names and bytes, as hexadecimal digits.
    pub(crate) digest: String,
    /// The files and folders that the digest covers. The build script runs again when one of them changes.
    pub(crate) watched: Vec<PathBuf>,
}

/// Digests the sources below `engine`, the workspace folder of the crates.
///
/// # Errors
/// Returns an error if a source cannot be read.
pub(crate) fn of(engine: &Path) -> io::Result<Sources> {
    let mut files = BTreeMap::new();
    let mut watched = Vec::new();
    for own in CRATES {
        for source in SOURCES {
            let path = engine.join(own).join(source);
            if path.exists() {
                read(&path, &format!("{own}/{source}"), &mut files)?;
                watched.push(path);
            }
        }
    }
    let lock = engine.join("..").join(LOCK);
    if lock.is_file() {
        files.insert(LOCK.to_owned(), fs::read(&lock)?);
        watched.push(lock);
    }
    let mut hash = Sha256::new();
    for (name, bytes) in &files {
        for part in [name.as_bytes(), bytes] {
            // The length separates adjacent parts.
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
    }
    let digest = hash.finalize();
    let digest = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Sources { digest, watched })
}

/// Adds a file, or all files of a folder, to `files` under names with `/` between segments.
fn read(path: &Path, name: &str, files: &mut BTreeMap<String, Vec<u8>>) -> io::Result<()> {
    if !path.is_dir() {
        files.insert(name.to_owned(), fs::read(path)?);
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let own = entry.file_name();
        read(
            &entry.path(),
            &format!("{name}/{}", own.to_string_lossy()),
            files,
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engine(folder: &Path) -> PathBuf {
        let engine = folder.join("engine");
        fs::create_dir_all(engine.join("content/src")).expect("a folder");
        fs::create_dir_all(engine.join("render/src/inner")).expect("a folder");
        for name in [
            "content/src/lib.rs",
            "render/Cargo.toml",
            "render/src/inner/a.rs",
            "../Cargo.lock",
        ] {
            fs::write(engine.join(name), name).expect("a file");
        }
        engine
    }

    fn digest(engine: &Path) -> String {
        of(engine).expect("sources").digest
    }

    #[test]
    fn digest_covers_every_byte_and_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let engine = engine(folder.path());
        let mut seen = vec![digest(&engine)];
        for (name, content) in [
            ("content/src/lib.rs", "other"),
            ("render/src/inner/a.rs", "other"),
            ("render/src/inner/b.rs", "new"),
            ("render/Cargo.toml", "other"),
            ("render/build.rs", "new"),
            ("../Cargo.lock", "other"),
        ] {
            fs::write(engine.join(name), content).expect("a file");
            let now = digest(&engine);
            assert!(!seen.contains(&now), "{name}");
            seen.push(now);
        }
        fs::rename(
            engine.join("render/src/inner/b.rs"),
            engine.join("render/src/inner/c.rs"),
        )
        .expect("moved");
        assert!(!seen.contains(&digest(&engine)), "the name counts");
    }

    #[test]
    fn digest_does_not_depend_on_the_workspace_folder() {
        let (one, other) = (
            tempfile::tempdir().expect("a folder"),
            tempfile::tempdir().expect("a folder"),
        );
        let (here, there) = (engine(one.path()), engine(other.path()));
        assert_eq!(digest(&here), digest(&there));
        fs::remove_file(there.join("../Cargo.lock")).expect("removed");
        assert_ne!(
            digest(&here),
            digest(&there),
            "a vendored copy has no lock file"
        );
        let watched = of(&there).expect("sources").watched;
        assert!(watched.iter().all(|path| path.exists()));
    }

    #[test]
    fn build_has_the_digest_of_its_sources() {
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let own = of(&own).expect("sources");
        assert_eq!(own.digest, env!("ROWHOUSE_BUILD"));
        assert_ne!(own.digest, env!("CARGO_PKG_VERSION"));
    }
}
