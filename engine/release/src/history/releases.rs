//! The files of releases: `<tenant>/<number>`, and `<tenant>/pinned` where one is pinned.
//!
//! A file's metadata stands in front, so that a list reads no more than that:
//!
//! ```text
//! rowhouse-release-1 │ length of the metadata │ its SHA-256 │ metadata: entry, length and SHA-256 of the pages │ pages
//! ```
//!
//! **Invariant:** knows neither blobs nor what pages consist of.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::blobs::Name;
use super::disk;
use super::format::{Input, Output};

/// What a file begins with. Another version of the format is another word.
const MAGIC: &[u8] = b"rowhouse-release-1\n";
/// The length of the metadata, as a little-endian number of four bytes, and its hash.
const LENGTH: usize = 4;
const HASH: usize = 32;
/// What is in front of the metadata.
const FRONT: usize = MAGIC.len() + LENGTH + HASH;

/// What is known of a release without reading its pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Counts the tenant's releases, from 1. No number is used twice, until the tenant is forgotten.
    pub number: u64,
    /// Since when the tenant answered so, in whole seconds.
    pub at: SystemTime,
    /// Which files had changed.
    pub cause: Vec<String>,
    /// How many pages the tenant had.
    pub pages: usize,
    /// The hash of all inputs.
    pub key: [u8; 32],
}

/// The metadata in front of the pages.
struct Metadata {
    entry: Entry,
    /// In bytes.
    length: u64,
    hash: Name,
}

impl Metadata {
    fn write(&self) -> Vec<u8> {
        let since = self.entry.at.duration_since(SystemTime::UNIX_EPOCH);
        let mut output = Output::default();
        output.number(self.entry.number);
        output.number(since.unwrap_or_default().as_secs());
        output.count(self.entry.cause.len());
        for cause in &self.entry.cause {
            output.bytes(cause.as_bytes());
        }
        output.count(self.entry.pages);
        output.bytes(&self.entry.key);
        output.number(self.length);
        output.bytes(&self.hash.0);
        output.0
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let mut input = Input(bytes);
        let number = input.number()?;
        let since = Duration::from_secs(input.number()?);
        let metadata = Self {
            entry: Entry {
                number,
                at: SystemTime::UNIX_EPOCH.checked_add(since)?,
                cause: input.many(|input| Some(input.text()?.to_owned()))?,
                pages: input.count()?,
                key: input.hash()?,
            },
            length: input.number()?,
            hash: Name(input.hash()?),
        };
        input.0.is_empty().then_some(metadata)
    }
}

/// The files below one folder, which need not be there.
#[derive(Debug, Clone)]
pub(super) struct Releases {
    pub(super) folder: PathBuf,
}

impl Releases {
    /// The tenants that have a folder, in no order.
    pub(super) fn tenants(&self) -> io::Result<Vec<String>> {
        let mut names = disk::names(&self.folder)?;
        names.retain(|name| is_tenant(name));
        Ok(names)
    }

    /// The numbers of a tenant's releases, newest first. Whether they can be read is open.
    pub(super) fn numbers(&self, tenant: &str) -> io::Result<Vec<u64>> {
        let names = disk::names(&self.folder.join(tenant))?;
        let number = |name: String| {
            let number: u64 = name.parse().ok()?;
            (number.to_string() == name).then_some(number)
        };
        let mut numbers: Vec<u64> = names.into_iter().filter_map(number).collect();
        numbers.sort_unstable_by(|one, other| other.cmp(one));
        Ok(numbers)
    }

    /// What is known of a release. Damage of the pages that leaves their length is not seen.
    pub(super) fn entry(&self, tenant: &str, number: u64) -> io::Result<Entry> {
        let mut file = File::open(self.path(tenant, number))?;
        let length = file.metadata()?.len();
        Ok(read_front(&mut file, number, length)?.entry)
    }

    /// What is known of a release, and its pages as they were written.
    pub(super) fn read(&self, tenant: &str, number: u64) -> io::Result<(Entry, Vec<u8>)> {
        let mut file = File::open(self.path(tenant, number))?;
        let length = file.metadata()?.len();
        let metadata = read_front(&mut file, number, length)?;
        let mut pages = Vec::new();
        file.read_to_end(&mut pages)?;
        if Name::of(&pages) != metadata.hash {
            return Err(disk::damaged());
        }
        Ok((metadata.entry, pages))
    }

    /// Writes a release. It is on the disk when this returns.
    pub(super) fn write(&self, tenant: &str, entry: Entry, pages: &[u8]) -> io::Result<()> {
        let path = self.path(tenant, entry.number);
        let metadata = Metadata {
            entry,
            length: pages.len() as u64,
            hash: Name::of(pages),
        };
        let metadata = metadata.write();
        let length = u32::try_from(metadata.len()).map_err(io::Error::other)?;
        let hash = Name::of(&metadata);
        disk::write(
            &path,
            &[MAGIC, &length.to_le_bytes(), &hash.0, &metadata, pages],
        )?;
        disk::sync(&self.folder.join(tenant))
    }

    /// Removes a release; one that is not there is no error.
    pub(super) fn remove(&self, tenant: &str, number: u64) -> io::Result<()> {
        disk::remove(&self.path(tenant, number))
    }

    /// Removes all that there is of a tenant.
    pub(super) fn forget(&self, tenant: &str) -> io::Result<()> {
        disk::present(fs::remove_dir_all(self.folder.join(tenant))).map(drop)
    }

    /// Removes what was left half written of a tenant long ago.
    pub(super) fn clean(&self, tenant: &str) -> io::Result<()> {
        let folder = self.folder.join(tenant);
        for name in disk::names(&folder)? {
            disk::remove_half(&folder.join(name))?;
        }
        Ok(())
    }

    /// The number of the pinned release.
    pub(super) fn pinned(&self, tenant: &str) -> io::Result<Option<u64>> {
        let Some(text) = disk::present(fs::read_to_string(self.pin_path(tenant)))? else {
            return Ok(None);
        };
        let number = text.trim_end().parse().map_err(|_| disk::damaged())?;
        Ok(Some(number))
    }

    /// Pins a release, or none. It is on the disk when this returns.
    pub(super) fn pin(&self, tenant: &str, number: Option<u64>) -> io::Result<()> {
        let path = self.pin_path(tenant);
        match number {
            Some(number) => disk::write(&path, &[format!("{number}\n").as_bytes()])?,
            None => disk::remove(&path)?,
        }
        disk::present(disk::sync(&self.folder.join(tenant))).map(drop)
    }

    /// Where a release is.
    pub(super) fn path(&self, tenant: &str, number: u64) -> PathBuf {
        self.folder.join(tenant).join(number.to_string())
    }

    fn pin_path(&self, tenant: &str) -> PathBuf {
        self.folder.join(tenant).join("pinned")
    }
}

/// Whether this can be a tenant's name: it must stay one folder below ours.
pub(super) fn is_tenant(name: &str) -> bool {
    !name.is_empty() && !name.contains(['/', '\\', '.', '\0'])
}

/// The metadata of the release `number` from a file of that many bytes; `file` stands at the pages after that.
fn read_front(file: &mut File, number: u64, length: u64) -> io::Result<Metadata> {
    let mut front = [0; FRONT];
    exact(file, &mut front)?;
    let (magic, rest) = front.split_at(MAGIC.len());
    let (metadata, hash) = rest.split_at(LENGTH);
    let metadata = metadata.try_into().map_err(|_| disk::damaged())?;
    let metadata = u32::from_le_bytes(metadata);
    let behind = length.checked_sub(FRONT as u64 + u64::from(metadata));
    let Some(behind) = behind.filter(|_| magic == MAGIC) else {
        return Err(disk::damaged());
    };
    let mut bytes = vec![0; metadata as usize];
    exact(file, &mut bytes)?;
    Some(bytes)
        .filter(|bytes| Name::of(bytes).0 == *hash)
        .and_then(|bytes| Metadata::read(&bytes))
        .filter(|metadata| metadata.entry.number == number && metadata.length == behind)
        .ok_or_else(disk::damaged)
}

/// Fills `buffer`; a file that is too short is damaged.
fn exact(file: &mut File, buffer: &mut [u8]) -> io::Result<()> {
    file.read_exact(buffer).map_err(|error| {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            disk::damaged()
        } else {
            error
        }
    })
}
