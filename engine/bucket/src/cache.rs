//! The content of tenants on the disk of a replica: a folder for each version, and the index of the tenants.
//!
//! ```text
//! index.json              the tenants with their versions
//! content/<sha256>/       the files of a version
//! content/.<sha256>-<id>  a folder that is being written
//! ```
//!
//! **Invariant:** a folder without a dot is complete. The index names complete folders only.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use fleet::key::ContentHash;

use crate::packed::PackedFolder;

/// The time for which an unused folder stays, because a reading of its files may be in flight.
const UNUSED_TIME: Duration = Duration::from_secs(10 * 60);

/// The digits of a SHA-256 in hexadecimal.
const HASH_DIGITS: usize = 64;

/// The tenants that a replica has.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Index {
    /// The tenants by name.
    pub tenants: BTreeMap<String, CachedTenant>,
    /// The names in [`SHARED`](fleet::key::SHARED) of which the index has the newest version, or of which none was published.
    #[serde(default)]
    pub current: BTreeSet<String>,
}

/// The version of a tenant that a replica has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachedTenant {
    /// The version of the pointer.
    pub version: u64,
    /// The hash of the packed folder, which names the folder on the disk.
    pub folder: ContentHash,
    /// The tag of the pointer.
    pub tag: String,
}

/// The folder of a replica for the content of tenants.
#[derive(Debug)]
pub struct ContentCache {
    root: PathBuf,
    /// Since when folders are unused.
    unused: HashMap<String, Instant>,
}

impl ContentCache {
    /// Opens the cache in this folder, and removes folders that an earlier process has not completed.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be created or listed.
    pub fn open(root: &Path) -> io::Result<Self> {
        let cache = Self {
            root: root.to_owned(),
            unused: HashMap::new(),
        };
        fs::create_dir_all(cache.content())?;
        for entry in fs::read_dir(cache.content())? {
            let entry = entry?;
            let is_partial = entry.file_name().to_string_lossy().starts_with('.');
            // Another process, which this one replaces, may be writing.
            let age = SystemTime::now().duration_since(entry.metadata()?.modified()?);
            if is_partial && age.is_ok_and(|age| age > UNUSED_TIME) {
                fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(cache)
    }

    /// Returns the persisted index, without tenants whose folders are gone. An absent or damaged index is empty.
    #[must_use]
    pub fn index(&self) -> Index {
        let bytes = fs::read(self.index_file()).unwrap_or_default();
        let mut index: Index = serde_json::from_slice(&bytes).unwrap_or_default();
        let Index { tenants, current } = &mut index;
        tenants.retain(|name, tenant| {
            let has_folder = self.has(&tenant.folder);
            if !has_folder {
                current.remove(name);
            }
            has_folder
        });
        index
    }

    /// Persists the index.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn write_index(&self, index: &Index) -> io::Result<()> {
        let temporary = self.root.join(format!(".index-{}", process::id()));
        let mut file = File::create(&temporary)?;
        file.write_all(&serde_json::to_vec(index)?)?;
        file.sync_all()?;
        fs::rename(temporary, self.index_file())
    }

    /// Returns the folder of a version.
    #[must_use]
    pub fn folder(&self, hash: &ContentHash) -> PathBuf {
        self.content().join(&hash.0)
    }

    /// Returns whether the cache has the folder of a version.
    #[must_use]
    pub fn has(&self, hash: &ContentHash) -> bool {
        is_hash(hash) && self.folder(hash).is_dir()
    }

    /// Writes the folder of a version. `large` returns the content of a large file.
    ///
    /// # Errors
    /// Returns an error if a path leads out of the folder, or the disk refuses a write.
    pub fn write(
        &self,
        hash: &ContentHash,
        folder: &PackedFolder,
        large: &BTreeMap<ContentHash, Bytes>,
    ) -> io::Result<()> {
        let temporary = self
            .content()
            .join(format!(".{}-{}", hash.0, process::id()));
        let written = write_files(&temporary, folder, large)
            .and_then(|()| fs::rename(&temporary, self.folder(hash)));
        if let Err(error) = written {
            // The next start removes what stays.
            let _ = fs::remove_dir_all(&temporary);
            // A process that this one replaces has written the same folder.
            if !self.has(hash) {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Removes the folders that the index has not named for some minutes.
    ///
    /// # Errors
    /// Returns an error if a folder cannot be listed or removed.
    pub fn remove_unused(&mut self, index: &Index) -> io::Result<()> {
        self.remove_unused_for(index, UNUSED_TIME)
    }

    fn remove_unused_for(&mut self, index: &Index, time: Duration) -> io::Result<()> {
        let used: BTreeSet<&str> = index
            .tenants
            .values()
            .map(|tenant| &*tenant.folder.0)
            .collect();
        for entry in fs::read_dir(self.content())? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') || used.contains(&*name) {
                self.unused.remove(&name);
                continue;
            }
            let since = *self.unused.entry(name.clone()).or_insert_with(Instant::now);
            if since.elapsed() >= time {
                fs::remove_dir_all(self.content().join(&name))?;
                self.unused.remove(&name);
            }
        }
        Ok(())
    }

    fn content(&self) -> PathBuf {
        self.root.join("content")
    }

    fn index_file(&self) -> PathBuf {
        self.root.join("index.json")
    }
}

/// Returns whether a name is the name of a folder, and not a path.
pub(crate) fn is_hash(hash: &ContentHash) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    hash.0.len() == HASH_DIGITS && hash.0.bytes().all(is_digit)
}

fn write_files(
    root: &Path,
    folder: &PackedFolder,
    large: &BTreeMap<ContentHash, Bytes>,
) -> io::Result<()> {
    if root.exists() {
        fs::remove_dir_all(root)?;
    }
    fs::create_dir_all(root)?;
    let large = folder.large.iter().map(|(path, hash)| {
        let bytes = large.get(hash).cloned().unwrap_or_default();
        (path, bytes)
    });
    let small = folder.files.iter();
    let small = small.map(|(path, bytes)| (path, bytes.clone()));
    for (path, bytes) in small.chain(large) {
        let is_inner = |segment| !matches!(segment, "" | "." | "..");
        if !path.split('/').all(is_inner) {
            let message = format!("the packed folder has the path `{path}`");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        let path = root.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let mut file = File::create(path)?;
        file.write_all(&bytes)?;
        // A folder with its final name is complete, even after a power failure.
        file.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::packed;

    fn folder(files: &[(&str, &'static str)]) -> (ContentHash, PackedFolder) {
        let files = files
            .iter()
            .map(|(path, text)| ((*path).to_owned(), Bytes::from(*text)));
        let folder = PackedFolder {
            files: files.collect(),
            large: BTreeMap::new(),
        };
        (packed::hash(&folder.to_bytes()), folder)
    }

    fn index(folder: &ContentHash) -> Index {
        let tenant = CachedTenant {
            version: 1,
            folder: folder.clone(),
            tag: "a".to_owned(),
        };
        Index {
            tenants: [("mill".to_owned(), tenant)].into(),
            current: ["mill".to_owned()].into(),
        }
    }

    #[test]
    fn index_names_the_folders_that_exist() {
        let directory = TempDir::new().expect("a folder");
        let cache = ContentCache::open(directory.path()).expect("a cache");
        assert_eq!(cache.index(), Index::default());
        let (hash, folder) = folder(&[("pages/index.md", "Welcome")]);
        cache
            .write(&hash, &folder, &BTreeMap::new())
            .expect("written");
        cache.write_index(&index(&hash)).expect("written");
        let cache = ContentCache::open(directory.path()).expect("a cache");
        assert_eq!(cache.index(), index(&hash));
        let page = fs::read_to_string(cache.folder(&hash).join("pages/index.md"));
        assert_eq!(page.expect("a file"), "Welcome");
        fs::remove_dir_all(cache.folder(&hash)).expect("removed");
        assert_eq!(cache.index(), Index::default());
        fs::write(directory.path().join("index.json"), "{\"tenants\":").expect("written");
        assert_eq!(cache.index(), Index::default());
    }

    #[test]
    fn path_that_leads_out_of_the_folder_is_refused() {
        let directory = TempDir::new().expect("a folder");
        let cache = ContentCache::open(&directory.path().join("cache")).expect("a cache");
        for path in ["../out", "/etc/out", "pages/../../../out", "a//b"] {
            let (hash, folder) = folder(&[(path, "text")]);
            let written = cache.write(&hash, &folder, &BTreeMap::new());
            written.expect_err(path);
            assert!(!cache.has(&hash), "{path}");
        }
        let outside = ContentHash("..".to_owned());
        assert!(!cache.has(&outside));
    }

    #[test]
    fn unused_folder_is_removed_after_a_time() {
        let directory = TempDir::new().expect("a folder");
        let mut cache = ContentCache::open(directory.path()).expect("a cache");
        let (first, old) = folder(&[("tenant.yaml", "name: Mill")]);
        let (second, new) = folder(&[("tenant.yaml", "name: New mill")]);
        for (hash, folder) in [(&first, &old), (&second, &new)] {
            cache
                .write(hash, folder, &BTreeMap::new())
                .expect("written");
        }
        let used = index(&second);
        cache.remove_unused(&used).expect("listed");
        assert!(cache.has(&first), "a reading may be in flight");
        cache
            .remove_unused_for(&used, Duration::ZERO)
            .expect("removed");
        assert!(!cache.has(&first));
        assert!(cache.has(&second));
    }
}
