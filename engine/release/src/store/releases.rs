//! The files of releases: `<tenant>/<number>`, and `<tenant>/pinned` if a release is pinned.
//!
//! The file of a release is one frame. Its metadata describes the release and refers to its blobs; the payload holds its pages. A listing reads only the metadata.
//!
//! **Invariant:** reads no blobs, and does not know how pages are encoded.

use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::blobs::{BlobId, BlobRefs, read_names, write_names};
use super::disk;
use super::format::{ByteReader, ByteWriter};
use super::frame::{self, OpenFrame};
use super::pages::PagesLayout;
use crate::payload::Payload;

/// The first bytes of a release file and its layout, for each version of the format. The first version is written; the others can still be read.
pub(super) const FORMATS: [(&[u8], PagesLayout); 4] = [
    (b"rowhouse-release-5\n", PagesLayout::ErrorPages),
    (b"rowhouse-release-4\n", PagesLayout::Redirects),
    (b"rowhouse-release-3\n", PagesLayout::SharedFiles),
    (b"rowhouse-release-2\n", PagesLayout::FilesAtEachAddress),
];

/// The metadata of a release, readable without its pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseInfo {
    /// The release number, counted per tenant from 1. Numbers are not reused, except after [`Store::forget`](super::Store::forget).
    pub number: u64,
    /// When the tenant began to serve this release, in whole seconds.
    pub at: SystemTime,
    /// The files whose change caused the release.
    pub cause: Vec<String>,
    /// The number of pages of the tenant.
    pub pages: usize,
    /// The hash of all inputs.
    pub key: [u8; 32],
}

impl ReleaseInfo {
    fn write(&self) -> ByteWriter {
        let since = self.at.duration_since(SystemTime::UNIX_EPOCH);
        let mut output = ByteWriter::default();
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

    fn read(input: &mut ByteReader<'_>) -> Option<Self> {
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

/// A release whose metadata is read and whose pages are not.
pub(super) struct OpenRelease {
    pub(super) entry: ReleaseInfo,
    /// The blobs that the release refers to.
    pub(super) blobs: BlobRefs,
    pub(super) pages: OpenFrame,
    pub(super) layout: PagesLayout,
}

/// The release files below one folder, which need not exist.
#[derive(Debug, Clone)]
pub(super) struct ReleaseFolder {
    pub(super) folder: PathBuf,
}

impl ReleaseFolder {
    /// Returns the tenants that have a folder, in arbitrary order.
    pub(super) fn tenants(&self) -> io::Result<Vec<String>> {
        let mut names = disk::names(&self.folder)?;
        names.retain(|name| is_tenant(name));
        Ok(names)
    }

    /// Returns the numbers of a tenant's releases, newest first. Does not check whether the files can be read.
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

    /// Reads the metadata of a release. Detects damage of the pages only if their length changed.
    pub(super) fn entry(&self, tenant: &str, number: u64) -> io::Result<ReleaseInfo> {
        Ok(self.open(tenant, number)?.entry)
    }

    /// Opens a release: reads its metadata, but not its pages.
    pub(super) fn open(&self, tenant: &str, number: u64) -> io::Result<OpenRelease> {
        let path = self.path(tenant, number);
        let mut opened = Err(disk::damaged());
        for (magic, layout) in FORMATS {
            opened = frame::open(&path, magic).map(|pages| (pages, layout));
            let is_another = |error: &io::Error| error.kind() == io::ErrorKind::InvalidData;
            if !opened.as_ref().is_err_and(is_another) {
                break;
            }
        }
        let (pages, layout) = opened?;
        let mut input = ByteReader(&pages.header.metadata);
        let entry = ReleaseInfo::read(&mut input).filter(|entry| entry.number == number);
        let blobs = read_names(&mut input).filter(|_| input.0.is_empty());
        let (entry, blobs) = entry.zip(blobs).ok_or_else(disk::damaged)?;
        Ok(OpenRelease {
            entry,
            blobs,
            pages,
            layout,
        })
    }

    /// Writes a release whose blobs are on disk already. The release is on disk when the call returns.
    pub(super) fn write(
        &self,
        tenant: &str,
        entry: &ReleaseInfo,
        blobs: &[(BlobId, Payload)],
        pages: &[u8],
    ) -> io::Result<()> {
        let path = self.path(tenant, entry.number);
        let mut metadata = entry.write();
        write_names(blobs, &mut metadata);
        let [(magic, _), ..] = FORMATS;
        let start = frame::encode_header(magic, &metadata.0, pages);
        disk::write(&path, |file| {
            file.write_all(&start)?;
            file.write_all(pages)
        })?;
        disk::sync(&self.folder.join(tenant))
    }

    /// Removes a release. An absent release is not an error.
    pub(super) fn remove(&self, tenant: &str, number: u64) -> io::Result<()> {
        disk::remove(&self.path(tenant, number))
    }

    /// Removes all files of a tenant.
    pub(super) fn forget(&self, tenant: &str) -> io::Result<()> {
        disk::present(fs::remove_dir_all(self.folder.join(tenant))).map(drop)
    }

    /// Removes the incomplete files of a tenant.
    pub(super) fn clean(&self, tenant: &str) -> io::Result<()> {
        disk::remove_temporary(&self.folder.join(tenant))
    }

    /// Returns the number of the pinned release.
    pub(super) fn pinned(&self, tenant: &str) -> io::Result<Option<u64>> {
        let Some(text) = disk::present(disk::read(&self.pin_path(tenant)))? else {
            return Ok(None);
        };
        let text = std::str::from_utf8(&text).map_err(|_| disk::damaged())?;
        let number = text.trim_end().parse().map_err(|_| disk::damaged())?;
        Ok(Some(number))
    }

    /// Pins a release, or removes the pin for `None`. The change is on disk when the call returns.
    pub(super) fn pin(&self, tenant: &str, number: Option<u64>) -> io::Result<()> {
        let path = self.pin_path(tenant);
        match number {
            Some(number) => {
                let line = format!("{number}\n");
                disk::write(&path, |file| file.write_all(line.as_bytes()))?;
            }
            None => disk::remove(&path)?,
        }
        disk::present(disk::sync(&self.folder.join(tenant))).map(drop)
    }

    /// Returns the path of a release's file.
    pub(super) fn path(&self, tenant: &str, number: u64) -> PathBuf {
        self.folder.join(tenant).join(number.to_string())
    }

    fn pin_path(&self, tenant: &str) -> PathBuf {
        self.folder.join(tenant).join("pinned")
    }
}

/// Returns whether `name` is a valid tenant name. A valid name is a single path component.
pub(super) fn is_tenant(name: &str) -> bool {
    !name.is_empty() && !name.contains(['/', '\\', '.', '\0'])
}
