//! The content of tenants on the disk of a replica: a folder for each version, and the index of the tenants.
//!
//! ```text
//! index.jsonl             the tenants with their versions, one change a line
//! content/<sha256>/       the files of a version
//! content/.<sha256>-<id>  a folder that is being written
//! ```
//!
//! **Invariant:** a folder without a dot is complete. The index names complete folders only.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};

use fleet::key::ContentHash;

use crate::follow::rows::{Rows, SharedRows, TenantVersion};
use crate::packed::{PackedFolder, is_hash};
use crate::store::random_nonce;

/// The time for which an unused folder stays, because a reading of its files may be in flight.
const UNUSED_TIME: Duration = Duration::from_secs(10 * 60);

/// The number of lines beyond those of an index without replaced lines, before the index is written anew.
const SPARE_LINES: usize = 1_000;

/// The tenants whose content a replica has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Index {
    /// The tenants by name.
    pub tenants: BTreeMap<String, TenantVersion>,
    /// The names in [`SHARED`](fleet::key::SHARED) of which the index has the newest version, or of which none was published.
    pub current: BTreeSet<String>,
    /// Whether all pointers were listed and read once. Before that, more tenants may exist.
    pub is_listed: bool,
}

/// A line of the index on the disk. A later line of a tenant replaces an earlier one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum IndexLine {
    /// The tenant has its content on the disk.
    Awake(String, TenantVersion),
    /// The tenant is known, without its content.
    Dormant(String, TenantVersion),
    /// The tenant is not known.
    Gone(String),
    /// See [`Index::current`].
    Current(BTreeSet<String>),
    /// See [`Index::is_listed`].
    Listed,
}

/// The folder of a replica for the content of tenants.
#[derive(Debug, Clone)]
pub struct ContentCache {
    root: PathBuf,
    /// Since when folders are unused.
    unused: HashMap<String, Instant>,
    /// The number of lines of the index.
    lines: usize,
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
            lines: 0,
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

    /// Returns the persisted index and the dormant tenants, without tenants whose folders are gone. An absent index is empty, and so is a damaged line.
    #[must_use]
    pub fn index(&mut self) -> (Index, Rows) {
        let (mut index, mut rows) = (Index::default(), Rows::default());
        self.lines = 0;
        let Ok(file) = File::open(self.index_file()) else {
            return (index, rows);
        };
        let (mut file, mut line) = (BufReader::new(file), Vec::new());
        while file.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            self.lines += 1;
            let is_complete = line.last() == Some(&b'\n');
            let parsed = serde_json::from_slice(&line).ok();
            let Some(parsed) = parsed.filter(|_| is_complete) else {
                // Further lines would follow a line without an end: the index is written anew.
                self.lines = usize::MAX;
                break;
            };
            line.clear();
            match parsed {
                IndexLine::Awake(name, version) => {
                    rows.remove(&name);
                    index.tenants.insert(name, version);
                }
                IndexLine::Dormant(name, version) => {
                    index.tenants.remove(&name);
                    rows.insert(&name, &version);
                }
                IndexLine::Gone(name) => {
                    index.tenants.remove(&name);
                    rows.remove(&name);
                }
                IndexLine::Current(current) => index.current = current,
                IndexLine::Listed => index.is_listed = true,
            }
        }
        let Index {
            tenants, current, ..
        } = &mut index;
        tenants.retain(|name, tenant| {
            let has_folder = self.has(&tenant.folder);
            if !has_folder {
                current.remove(name);
            }
            has_folder
        });
        (index, rows)
    }

    /// Persists changes of the index.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub(crate) fn append(&mut self, lines: &[IndexLine]) -> io::Result<()> {
        let mut bytes = Vec::new();
        for line in lines {
            write_line(&mut bytes, line)?;
        }
        // A process that takes over may have replaced the file.
        let mut options = OpenOptions::new();
        let options = options.create(true).append(true);
        let mut file = options.open(self.index_file())?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        self.lines = self.lines.saturating_add(lines.len());
        Ok(())
    }

    /// Returns whether the index on the disk, which names this number of tenants, has many replaced lines.
    pub(crate) const fn is_bloated(&self, tenants: usize) -> bool {
        self.lines > tenants.saturating_mul(2).saturating_add(SPARE_LINES)
    }

    /// Writes the complete index anew.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub(crate) fn write_index(&mut self, index: &Index, rows: &SharedRows) -> io::Result<()> {
        let temporary = self.root.join(format!(".index-{}", process::id()));
        let mut file = BufWriter::new(File::create(&temporary)?);
        let mut lines = 1;
        for (name, version) in rows.read().all() {
            write_line(&mut file, &IndexLine::Dormant(name, version))?;
            lines += 1;
        }
        for (name, version) in index.tenants.clone() {
            write_line(&mut file, &IndexLine::Awake(name, version))?;
            lines += 1;
        }
        write_line(&mut file, &IndexLine::Current(index.current.clone()))?;
        if index.is_listed {
            write_line(&mut file, &IndexLine::Listed)?;
            lines += 1;
        }
        file.into_inner()?.sync_all()?;
        fs::rename(temporary, self.index_file())?;
        self.lines = lines;
        Ok(())
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

    /// Begins to write the folder of a version.
    ///
    /// # Errors
    /// Returns an error if the disk refuses it.
    pub(crate) fn begin(&self, hash: &ContentHash) -> io::Result<PartialFolder> {
        // Several downloads may write the same folder.
        let temporary = format!(".{}-{}", hash.0, random_nonce().0);
        let folder = PartialFolder {
            root: self.content().join(temporary),
            complete: self.folder(hash),
        };
        fs::create_dir_all(&folder.root)?;
        Ok(folder)
    }

    /// Removes the folders that were not used for some minutes.
    ///
    /// # Errors
    /// Returns an error if a folder cannot be listed or removed.
    pub(crate) fn remove_unused(&mut self, used: &BTreeSet<&str>) -> io::Result<()> {
        self.remove_unused_for(used, UNUSED_TIME)
    }

    fn remove_unused_for(&mut self, used: &BTreeSet<&str>, time: Duration) -> io::Result<()> {
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
        self.root.join("index.jsonl")
    }
}

fn write_line(file: &mut impl Write, line: &IndexLine) -> io::Result<()> {
    serde_json::to_writer(&mut *file, line)?;
    file.write_all(b"\n")
}

/// A folder that is being written. Without [`PartialFolder::complete`], its files are removed.
#[derive(Debug)]
pub(crate) struct PartialFolder {
    root: PathBuf,
    complete: PathBuf,
}

impl PartialFolder {
    /// Writes the small files.
    ///
    /// # Errors
    /// Returns an error if a path leads out of the folder, or the disk refuses a write.
    pub(crate) fn write_small(&self, folder: &PackedFolder) -> io::Result<()> {
        for (path, bytes) in &folder.files {
            let mut file = File::create(self.place(path)?)?;
            file.write_all(bytes)?;
            // A folder with its final name is complete, even after a power failure.
            file.sync_all()?;
        }
        Ok(())
    }

    /// Returns the place of a file, whose folders exist then.
    ///
    /// # Errors
    /// Returns an error if the path leads out of the folder, or the disk refuses a folder.
    pub(crate) fn place(&self, path: &str) -> io::Result<PathBuf> {
        let is_inner = |segment| !matches!(segment, "" | "." | "..");
        if !path.split('/').all(is_inner) {
            let message = format!("the packed folder has the path `{path}`");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        let place = self.root.join(path);
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent)?;
        }
        Ok(place)
    }

    /// Gives the folder its final name.
    ///
    /// # Errors
    /// Returns an error if the disk refuses it.
    pub(crate) fn complete(self) -> io::Result<()> {
        match fs::rename(&self.root, &self.complete) {
            // Another download, or a process that this one replaces, has written the same folder.
            Err(_) if self.complete.is_dir() => Ok(()),
            renamed => renamed,
        }
    }
}

impl Drop for PartialFolder {
    fn drop(&mut self) {
        // A complete folder has another name. The next start removes what stays.
        let _ = fs::remove_dir_all(&self.root);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tempfile::TempDir;

    use super::*;
    use crate::packed;

    fn write(cache: &ContentCache, hash: &ContentHash, folder: &PackedFolder) -> io::Result<()> {
        let partial = cache.begin(hash)?;
        partial.write_small(folder)?;
        partial.complete()
    }

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
        let tenant = TenantVersion {
            version: 1,
            folder: folder.clone(),
            upload: None,
            at: 0,
            tag: "a".to_owned(),
            addresses: Vec::new(),
        };
        Index {
            tenants: [("mill".to_owned(), tenant)].into(),
            current: ["mill".to_owned()].into(),
            is_listed: false,
        }
    }

    fn open(directory: &TempDir) -> ContentCache {
        ContentCache::open(directory.path()).expect("a cache")
    }

    fn lines_of(index: &Index) -> Vec<IndexLine> {
        let tenants = index.tenants.clone().into_iter();
        let tenants = tenants.map(|(name, version)| IndexLine::Awake(name, version));
        tenants
            .chain([IndexLine::Current(index.current.clone())])
            .collect()
    }

    #[test]
    fn index_names_the_folders_that_exist() {
        let directory = TempDir::new().expect("a folder");
        let mut cache = open(&directory);
        assert_eq!(cache.index().0, Index::default());
        let (hash, folder) = folder(&[("pages/index.md", "Welcome")]);
        write(&cache, &hash, &folder).expect("written");
        cache.append(&lines_of(&index(&hash))).expect("written");
        let mut cache = open(&directory);
        assert_eq!(cache.index().0, index(&hash));
        let page = fs::read_to_string(cache.folder(&hash).join("pages/index.md"));
        assert_eq!(page.expect("a file"), "Welcome");
        fs::remove_dir_all(cache.folder(&hash)).expect("removed");
        assert_eq!(cache.index().0, Index::default());
        fs::write(cache.index_file(), "{\"awake\":").expect("written");
        assert_eq!(cache.index().0, Index::default());
        assert!(cache.is_bloated(1), "the damaged line is replaced");
    }

    #[test]
    fn later_lines_of_the_index_replace_earlier_ones_until_it_is_written_anew() {
        let directory = TempDir::new().expect("a folder");
        let (hash, folder) = folder(&[("tenant.yaml", "name: Mill")]);
        let mut cache = open(&directory);
        write(&cache, &hash, &folder).expect("written");
        let version = index(&hash).tenants["mill"].clone();
        let (name, other) = ("mill".to_owned(), "corner".to_owned());
        let changes = [
            IndexLine::Dormant(name.clone(), version.clone()),
            IndexLine::Dormant(other.clone(), version.clone()),
            IndexLine::Awake(name.clone(), version.clone()),
            IndexLine::Dormant("gone".to_owned(), version.clone()),
            IndexLine::Gone("gone".to_owned()),
        ];
        cache
            .append(&vec![changes; SPARE_LINES].concat())
            .expect("written");
        let mut cache = open(&directory);
        for is_bloated in [true, false] {
            let (index, rows) = cache.index();
            assert_eq!(index.tenants, [(name.clone(), version.clone())].into());
            let dormant: Vec<_> = rows.all().collect();
            assert_eq!(dormant, [(other.clone(), version.clone())]);
            assert_eq!(cache.is_bloated(2), is_bloated);
            cache
                .write_index(&index, &SharedRows::new(rows))
                .expect("written");
        }
    }

    #[test]
    fn path_that_leads_out_of_the_folder_is_refused() {
        let directory = TempDir::new().expect("a folder");
        let cache = ContentCache::open(&directory.path().join("cache")).expect("a cache");
        for path in ["../out", "/etc/out", "pages/../../../out", "a//b"] {
            let (hash, folder) = folder(&[(path, "text")]);
            write(&cache, &hash, &folder).expect_err(path);
            assert!(!cache.has(&hash), "{path}");
        }
        let outside = ContentHash("..".to_owned());
        assert!(!cache.has(&outside));
    }

    #[test]
    fn folder_that_is_not_complete_leaves_nothing_and_two_downloads_leave_one() {
        let directory = TempDir::new().expect("a folder");
        let cache = open(&directory);
        let (hash, folder) = folder(&[("tenant.yaml", "name: Mill")]);
        let entries = || {
            let entries = fs::read_dir(cache.content()).expect("a folder");
            entries.count()
        };
        let failed = cache.begin(&hash).expect("begun");
        failed.write_small(&folder).expect("written");
        drop(failed);
        assert_eq!((entries(), cache.has(&hash)), (0, false));
        let downloads = [(); 2].map(|()| cache.begin(&hash).expect("begun"));
        for download in downloads {
            download.write_small(&folder).expect("written");
            download.complete().expect("complete");
        }
        assert_eq!((entries(), cache.has(&hash)), (1, true));
    }

    #[test]
    fn unused_folder_is_removed_after_a_time() {
        let directory = TempDir::new().expect("a folder");
        let mut cache = ContentCache::open(directory.path()).expect("a cache");
        let (first, old) = folder(&[("tenant.yaml", "name: Mill")]);
        let (second, new) = folder(&[("tenant.yaml", "name: New mill")]);
        for (hash, folder) in [(&first, &old), (&second, &new)] {
            write(&cache, hash, folder).expect("written");
        }
        let used = BTreeSet::from([&*second.0]);
        cache.remove_unused(&used).expect("listed");
        assert!(cache.has(&first), "a reading may be in flight");
        cache
            .remove_unused_for(&used, Duration::ZERO)
            .expect("removed");
        assert!(!cache.has(&first));
        assert!(cache.has(&second));
    }
}
