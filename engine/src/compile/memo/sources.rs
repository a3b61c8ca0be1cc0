//! The digest of a package's sources, which tells one build of it from another.
//!
//! Used by the package's build script, and tested as a part of the program.
//!
//! **Invariant:** depends on the files' bytes and their names within the package, and so is the same on every machine and in every folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use sha2::{Digest, Sha256};

/// What decides the bytes that the program makes, within the package.
const SOURCES: [&str; 3] = ["Cargo.toml", "build.rs", "src"];
/// Where the versions of all dependencies are: within the package when it was published, else beside it.
const LOCKS: [&str; 2] = ["Cargo.lock", "../Cargo.lock"];

/// What was found of a package.
#[derive(Debug)]
pub(crate) struct Sources {
    /// SHA-256 over all names and bytes, in hexadecimal digits.
    pub(crate) digest: String,
    /// The files and folders that it was made from: when none of them changes, it stays.
    pub(crate) watched: Vec<PathBuf>,
}

/// Reads the sources of the package in a folder.
///
/// # Errors
/// When one of them cannot be read.
pub(crate) fn of(package: &Path) -> io::Result<Sources> {
    let mut files = BTreeMap::new();
    let mut watched = Vec::new();
    for name in SOURCES {
        let path = package.join(name);
        if path.exists() {
            read(&path, name, &mut files)?;
            watched.push(path);
        }
    }
    let mut locks = LOCKS.iter().map(|lock| package.join(lock));
    if let Some(lock) = locks.find(|lock| lock.is_file()) {
        files.insert("Cargo.lock".to_owned(), fs::read(&lock)?);
        watched.push(lock);
    }
    let mut hash = Sha256::new();
    for (name, bytes) in &files {
        for part in [name.as_bytes(), bytes] {
            // The length keeps neighbours apart.
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
    }
    let digest = hash.finalize();
    let digest = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Sources { digest, watched })
}

/// Takes a file, or all files of a folder, under names with `/` between segments.
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

    fn package(folder: &Path) -> PathBuf {
        let package = folder.join("package");
        fs::create_dir_all(package.join("src/inner")).expect("a folder");
        for name in [
            "Cargo.toml",
            "src/lib.rs",
            "src/inner/a.rs",
            "../Cargo.lock",
        ] {
            fs::write(package.join(name), name).expect("a file");
        }
        package
    }

    fn digest(package: &Path) -> String {
        of(package).expect("sources").digest
    }

    #[test]
    fn every_byte_of_a_source_and_every_name_counts() {
        let folder = tempfile::tempdir().expect("a folder");
        let package = package(folder.path());
        let mut seen = vec![digest(&package)];
        for (name, content) in [
            ("src/lib.rs", "other"),
            ("src/inner/a.rs", "other"),
            ("src/inner/b.rs", "new"),
            ("Cargo.toml", "other"),
            ("build.rs", "new"),
            ("../Cargo.lock", "other"),
        ] {
            fs::write(package.join(name), content).expect("a file");
            let now = digest(&package);
            assert!(!seen.contains(&now), "{name}");
            seen.push(now);
        }
        fs::rename(
            package.join("src/inner/b.rs"),
            package.join("src/inner/c.rs"),
        )
        .expect("moved");
        assert!(!seen.contains(&digest(&package)), "another name");
    }

    #[test]
    fn the_place_of_the_package_and_of_the_lock_do_not_count() {
        let (one, other) = (
            tempfile::tempdir().expect("a folder"),
            tempfile::tempdir().expect("a folder"),
        );
        let (here, there) = (package(one.path()), package(other.path()));
        assert_eq!(digest(&here), digest(&there));
        fs::rename(there.join("../Cargo.lock"), there.join("Cargo.lock")).expect("moved");
        assert_eq!(digest(&here), digest(&there), "as it is published");
        fs::remove_file(there.join("Cargo.lock")).expect("removed");
        assert_ne!(digest(&here), digest(&there), "a vendored copy has none");
        assert!(
            of(&there)
                .expect("sources")
                .watched
                .iter()
                .all(|path| path.exists())
        );
    }

    #[test]
    fn this_build_is_named_by_its_sources() {
        let own = of(Path::new(env!("CARGO_MANIFEST_DIR"))).expect("sources");
        assert_eq!(own.digest, env!("ROWHOUSE_BUILD"));
        assert_ne!(own.digest, env!("CARGO_PKG_VERSION"));
    }
}
