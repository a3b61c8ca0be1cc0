//! The files of releases: `<tenant>/<number>`, and `<tenant>/pinned` where one is pinned.
//!
//! What is known of a release, and the names of its blobs, are the front of its file; the pages are the rest. A list reads no more than the front.
//!
//! **Invariant:** reads no blob, and does not know what pages consist of.

use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::blobs::{Name, Named, read_names, write_names};
use super::disk::{self, Durability};
use super::format::{Input, Output};
use super::frame::{self, Opened};
use super::pages::Layout;
use crate::payload::Payload;

/// What a file begins with. Another version of the format is another word.
const MAGIC: &[u8] = b"rowhouse-release-3\n";
/// The word of the version before, which is still read.
pub(super) const EARLIER_MAGIC: &[u8] = b"rowhouse-release-2\n";

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

impl Entry {
    fn write(&self) -> Output {
        let since = self.at.duration_since(SystemTime::UNIX_EPOCH);
        let mut output = Output::default();
        output.number(self.number);
        output.number(since.unwrap_or_default().as_secs());
        output.count(self.cause.len());
        for cause in &self.cause {
            output.bytes(cause.as_bytes());
        }
        output.count(self.pages);
        output.bytes(&self.key);
        output
    }

    fn read(input: &mut Input<'_>) -> Option<Self> {
        let number = input.number()?;
        let since = Duration::from_secs(input.number()?);
        Some(Self {
            number,
            at: SystemTime::UNIX_EPOCH.checked_add(since)?,
            cause: input.many(|input| Some(input.text()?.to_owned()))?,
            pages: input.count()?,
            key: input.hash()?,
        })
    }
}

/// A release whose pages are still to be read.
pub(super) struct OpenRelease {
    pub(super) entry: Entry,
    /// The blobs that it names.
    pub(super) blobs: Named,
    pub(super) pages: Opened,
    pub(super) layout: Layout,
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
        Ok(self.open(tenant, number)?.entry)
    }

    /// Opens a release: what is known of it is read, and its pages are not.
    pub(super) fn open(&self, tenant: &str, number: u64) -> io::Result<OpenRelease> {
        let path = self.path(tenant, number);
        let (pages, layout) = match frame::open(&path, MAGIC) {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                let pages = frame::open(&path, EARLIER_MAGIC)?;
                (pages, Layout::FilesAtEachPlace)
            }
            opened => (opened?, Layout::SharedFiles),
        };
        let mut input = Input(&pages.head.front);
        let entry = Entry::read(&mut input).filter(|entry| entry.number == number);
        let blobs = read_names(&mut input).filter(|_| input.0.is_empty());
        let (entry, blobs) = entry.zip(blobs).ok_or_else(disk::damaged)?;
        Ok(OpenRelease {
            entry,
            blobs,
            pages,
            layout,
        })
    }

    /// Writes a release whose blobs are there. It is on the disk when this returns.
    pub(super) fn write(
        &self,
        tenant: &str,
        entry: &Entry,
        blobs: &[(Name, Payload)],
        pages: &[u8],
    ) -> io::Result<()> {
        let path = self.path(tenant, entry.number);
        let mut front = entry.write();
        write_names(blobs, &mut front);
        let start = frame::start(MAGIC, &front.0, pages);
        disk::write(&path, Durability::Now, |file| {
            file.write_all(&start)?;
            file.write_all(pages)
        })?;
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

    /// Removes what was left incomplete of a tenant.
    pub(super) fn clean(&self, tenant: &str) -> io::Result<()> {
        disk::remove_temporary(&self.folder.join(tenant))
    }

    /// The number of the pinned release.
    pub(super) fn pinned(&self, tenant: &str) -> io::Result<Option<u64>> {
        let Some(text) = disk::present(disk::read(&self.pin_path(tenant)))? else {
            return Ok(None);
        };
        let text = std::str::from_utf8(&text).map_err(|_| disk::damaged())?;
        let number = text.trim_end().parse().map_err(|_| disk::damaged())?;
        Ok(Some(number))
    }

    /// Pins a release, or none. It is on the disk when this returns.
    pub(super) fn pin(&self, tenant: &str, number: Option<u64>) -> io::Result<()> {
        let path = self.pin_path(tenant);
        match number {
            Some(number) => {
                let line = format!("{number}\n");
                disk::write(&path, Durability::Now, |file| {
                    file.write_all(line.as_bytes())
                })?;
            }
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
