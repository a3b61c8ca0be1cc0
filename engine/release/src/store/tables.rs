//! Tables by name in one file, `tables/records`. A table holds values by key. Small values are in the table itself; large values are blobs, written once however many tables and releases refer to them.
//!
//! The file is a log and its own index. Every new version of a table, and every removal, is appended as a frame; the last frame of a name counts. Opening the file reads the metadata of each frame (table name, mark, blob references) and so finds every table. When superseded frames exceed the live ones, the file is rewritten.
//!
//! - An incomplete frame is cut off before the next frame is appended.
//! - A damaged frame is skipped and affects no other frame. Every frame begins with random bytes chosen per file, so content cannot imitate a frame.
//! - If the file is missing or was replaced, it is rewritten with all tables that can still be read.
//! - Tables of older program versions, `tables/<name>`, are read in place until the writing process moves them.
//!
//! **Invariant:** the index in memory equals the result of reading the file from its beginning. Knows nothing of the meaning of keys, values and marks.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, BufReader, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use rustix::fs::OFlags;
use tracing::warn;

use super::blobs::{BlobId, BlobPayloads, BlobRefs, Blobs, MIN_BLOB_BYTES, read_names};
use super::disk::{self, readable};
use super::format::{ByteReader, ByteWriter};
use super::frame::{self, FrameHeader, OpenFrame};
use crate::payload::Payload;

/// The first bytes of the file. Every version of the format has its own.
const MAGIC: &[u8] = b"rowhouse-records-1\n";
/// The first bytes of a table file of an older program version.
const OLDER_MAGIC: &[u8] = b"rowhouse-table-1\n";
/// The file name. No table has this name.
const RECORDS: &str = "records";
/// The number of superseded bytes up to which the file is never rewritten.
const MIN_SUPERSEDED_BYTES: u64 = 1 << 20;
/// The buffer size for scanning the file for frames.
const READ_BYTES: usize = 1 << 20;

/// The random bytes at the beginning of each frame of a file.
type Salt = [u8; 16];
/// The offset of the first frame.
const FIRST_FRAME_OFFSET: u64 = (MAGIC.len() + size_of::<Salt>()) as u64;

/// Keys with their values.
pub type Rows = Vec<(Bytes, Payload)>;

/// Reads all values into memory. Returns `None` if any of them cannot be read.
#[must_use]
pub fn rows_in_memory(rows: Rows) -> Option<Vec<(Bytes, Bytes)>> {
    rows.into_iter()
        .map(|(key, value)| Some((key, value.to_bytes().ok()?)))
        .collect()
}

/// A fingerprint by which a table's writer recognises the content of the table.
pub type TableMark = [u8; 32];

/// The tables below one folder, which need not exist.
#[derive(Debug, Clone)]
pub(super) struct TableFile {
    pub(super) folder: PathBuf,
    /// `None` until the file is read.
    index: Arc<RwLock<Option<TableIndex>>>,
}

/// The index of the file.
#[derive(Debug, Default)]
struct TableIndex {
    /// `None` if there is no valid file.
    file: Option<Arc<File>>,
    salt: Salt,
    tables: BTreeMap<Box<str>, TableLocation>,
    /// The offset at which the last frame ends.
    end: u64,
    /// The total bytes of the frames that count.
    live: u64,
    /// The tables of older program versions, each in a file of its own.
    older: BTreeSet<String>,
}

/// The position of a table in the file.
#[derive(Debug)]
struct TableLocation {
    bytes: Range<u64>,
    blobs: Box<[(BlobId, u64)]>,
}

/// The metadata of a frame: a version of a table, or its removal.
#[derive(Debug, Default)]
struct TableMetadata {
    table: String,
    is_removed: bool,
    mark: Option<TableMark>,
    blobs: BlobRefs,
}

impl TableMetadata {
    fn write(&self) -> Vec<u8> {
        let mut metadata = ByteWriter::default();
        metadata.bytes(self.table.as_bytes());
        metadata.number(self.is_removed.into());
        metadata.count(self.blobs.len());
        for (name, length) in &self.blobs {
            metadata.bytes(&name.0);
            metadata.number(*length);
        }
        if let Some(mark) = &self.mark {
            metadata.bytes(mark);
        }
        metadata.0
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let mut input = ByteReader(bytes);
        let table = input.text()?.to_owned();
        let is_removed = input.is_set()?;
        let rest = Self::read_older(input.0)?;
        Some(Self {
            table,
            is_removed,
            ..rest
        })
    }

    /// Reads the metadata of a table of an older program version.
    fn read_older(bytes: &[u8]) -> Option<Self> {
        let mut input = ByteReader(bytes);
        let blobs = read_names(&mut input)?;
        let mark = match input.0.is_empty() {
            true => None,
            false => Some(input.hash()?),
        };
        input.0.is_empty().then_some(Self {
            mark,
            blobs,
            ..Self::default()
        })
    }
}

impl TableIndex {
    /// Reads the file and the names of the older tables in a folder.
    fn read(folder: &Path) -> io::Result<Self> {
        let mut older = BTreeSet::from_iter(disk::names(folder)?);
        older.retain(|name| name != RECORDS && !disk::is_temporary(name));
        let path = folder.join(RECORDS);
        let index = match Self::read_file(&path) {
            Ok(index) => index,
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound => Self::default(),
                io::ErrorKind::InvalidData => {
                    warn!(file = %path.display(), %error, "tables of the state cannot be read; all tables ignored");
                    Self::default()
                }
                _ => return Err(error),
            },
        };
        Ok(Self { older, ..index })
    }

    fn read_file(path: &Path) -> io::Result<Self> {
        let file = Arc::new(disk::open(path)?);
        let size = file.metadata()?.len();
        let mut from = BufReader::with_capacity(READ_BYTES, &*file);
        let mut begin = [0; MAGIC.len()];
        let mut index = Self::default();
        let is_begun = from.read_exact(&mut begin).is_ok() && begin == *MAGIC;
        if !is_begun || from.read_exact(&mut index.salt).is_err() {
            return Err(disk::damaged());
        }
        let mut at = FIRST_FRAME_OFFSET;
        index.end = FIRST_FRAME_OFFSET;
        let mut damaged = 0_u32;
        while at < size {
            let header = match FrameHeader::read(&mut from, &index.salt, size - at) {
                Ok(header) => {
                    TableMetadata::read(&header.metadata).map(|metadata| (header, metadata))
                }
                Err(error) if error.kind() == io::ErrorKind::InvalidData => None,
                Err(error) => return Err(error),
            };
            at = match header {
                Some((header, metadata)) => {
                    let skipped = i64::try_from(header.rest()).map_err(|_| disk::damaged())?;
                    from.seek_relative(skipped)?;
                    index.apply(at..at + header.size, metadata);
                    at + header.size
                }
                None => {
                    damaged += 1;
                    let next = find_frame(&file, at + 1, &index.salt)?.unwrap_or(size);
                    from.seek(SeekFrom::Start(next))?;
                    next
                }
            };
        }
        let is_cut = index.end < size;
        if is_cut {
            warn!(file = %path.display(), "last table of the state was not written completely; table ignored");
        }
        if damaged > u32::from(is_cut) {
            warn!(file = %path.display(), count = damaged, error = %disk::damaged(), "tables of the state are damaged; tables ignored");
        }
        index.file = Some(file);
        Ok(index)
    }

    /// Adds a frame to the index.
    fn apply(&mut self, bytes: Range<u64>, metadata: TableMetadata) {
        let length = bytes.end - bytes.start;
        self.end = bytes.end;
        let before = if metadata.is_removed {
            self.tables.remove(&*metadata.table)
        } else {
            self.live += length;
            let blobs = metadata.blobs.into();
            let place = TableLocation { bytes, blobs };
            self.tables.insert(metadata.table.into(), place)
        };
        if let Some(TableLocation { bytes, .. }) = before {
            self.live -= bytes.end - bytes.start;
        }
    }
}

/// Returns the offset of the next byte sequence that may begin a frame, at or after `from`.
fn find_frame(file: &File, from: u64, salt: &Salt) -> io::Result<Option<u64>> {
    let mut bytes = vec![0; READ_BYTES];
    let mut at = from;
    loop {
        let read = file.read_at(&mut bytes, at)?;
        let mut windows = bytes.get(..read).unwrap_or_default().windows(salt.len());
        if let Some(place) = windows.position(|window| window == salt) {
            return Ok(Some(at + place as u64));
        }
        match read.checked_sub(salt.len() - 1) {
            None | Some(0) => return Ok(None),
            Some(seen) => at += seen as u64,
        }
    }
}

/// Returns random bytes that a tenant cannot predict.
fn salt() -> Salt {
    let number = || RandomState::new().hash_one(0).to_le_bytes();
    let mut salt = Salt::default();
    salt.iter_mut()
        .zip(number().into_iter().chain(number()))
        .for_each(|(byte, random)| *byte = random);
    salt
}

/// A table encoded for writing.
struct EncodedTable {
    metadata: TableMetadata,
    rest: Vec<u8>,
    blobs: BlobPayloads,
}

impl EncodedTable {
    fn encode(table: &str, mark: Option<&TableMark>, rows: &[(Bytes, Payload)]) -> Self {
        let mut rest = ByteWriter::default();
        let mut blobs = Vec::new();
        rest.count(rows.len());
        for (key, value) in rows {
            rest.bytes(key);
            let small = value
                .in_memory()
                .filter(|value| value.len() < MIN_BLOB_BYTES);
            rest.number(small.is_none().into());
            match small {
                Some(value) => rest.bytes(value),
                None => {
                    rest.count(blobs.len());
                    blobs.push((BlobId::of_payload(value), value.clone()));
                }
            }
        }
        let names = blobs.iter().map(|(name, bytes)| (*name, bytes.len()));
        Self {
            metadata: TableMetadata {
                table: table.to_owned(),
                is_removed: false,
                mark: mark.copied(),
                blobs: names.collect(),
            },
            rest: rest.0,
            blobs,
        }
    }
}

impl TableFile {
    /// Creates the tables below `folder`. Reads nothing yet.
    pub(super) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            index: Arc::default(),
        }
    }

    /// Drops the index, because another process may have written the file since.
    pub(super) fn forget(&self) {
        *self.index.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Calls `find` with the index. Reads the file first if needed.
    fn with_index<T>(&self, find: impl FnOnce(&TableIndex) -> T) -> io::Result<T> {
        if let Some(index) = &*self.index.read().unwrap_or_else(PoisonError::into_inner) {
            return Ok(find(index));
        }
        self.with_index_mut(|index| find(index))
    }

    fn with_index_mut<T>(&self, change: impl FnOnce(&mut TableIndex) -> T) -> io::Result<T> {
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        let index = match &mut *index {
            Some(index) => index,
            none => none.insert(TableIndex::read(&self.folder)?),
        };
        Ok(change(index))
    }

    /// Writes a table, its blobs first. Returns the number of new blobs and the total bytes written.
    ///
    /// The table is not flushed: after a power cut, the previous version may be the one on disk.
    pub(super) fn write(
        &self,
        name: &str,
        mark: Option<&TableMark>,
        rows: &[(Bytes, Payload)],
        blobs: &Blobs,
    ) -> io::Result<(u64, u64)> {
        let EncodedTable {
            metadata,
            rest,
            blobs: large,
        } = EncodedTable::encode(name, mark, rows);
        let (count, bytes) = blobs.put(&large)?;
        Ok((count, bytes + self.append(metadata, &rest)?))
    }

    /// Removes a table. An absent table is not an error.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        if !self.has(name)? {
            return Ok(());
        }
        let metadata = TableMetadata {
            table: name.to_owned(),
            is_removed: true,
            ..TableMetadata::default()
        };
        self.append(metadata, &[]).map(drop)
    }

    /// Appends a frame to the file. Returns its length in bytes. Only one thread of the writing process may call this.
    fn append(&self, metadata: TableMetadata, rest: &[u8]) -> io::Result<u64> {
        let file = match self.open_to_append()? {
            Some(file) => file,
            None => {
                self.rewrite()?;
                self.open_to_append()?.ok_or_else(disk::damaged)?
            }
        };
        let (salt, end) = self.with_index(|index| (index.salt, index.end))?;
        let mut frame = frame::encode_header(&salt, &metadata.write(), rest);
        frame.extend_from_slice(rest);
        if let Err(error) = file.write_all_at(&frame, end) {
            // If this fails too, the next append cuts the frame off.
            let _ = file.set_len(end);
            return Err(error);
        }
        let size = frame.len() as u64;
        let older = self.with_index_mut(|index| {
            let older = index.older.take(&metadata.table);
            index.apply(end..end + size, metadata);
            older
        })?;
        // A file that cannot be removed is only tried again at the next startup.
        older.map_or(Ok(()), |name| disk::remove(&self.folder.join(name)))?;
        Ok(size)
    }

    /// Opens the file and cuts it off behind its last frame. Returns `None` if the file must be rewritten first.
    fn open_to_append(&self) -> io::Result<Option<File>> {
        let (known, end, live) =
            self.with_index(|index| (index.file.clone(), index.end, index.live))?;
        let Some(known) = known.filter(|_| end - live <= live + MIN_SUPERSEDED_BYTES) else {
            return Ok(None);
        };
        let file = File::options()
            .read(true)
            .write(true)
            // Do not block on a FIFO of this name.
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open(self.folder.join(RECORDS));
        let Some(file) = disk::present(file)? else {
            return Ok(None);
        };
        let (found, known) = (file.metadata()?, known.metadata()?);
        let is_same = (found.dev(), found.ino()) == (known.dev(), known.ino());
        if !is_same || found.len() < end {
            return Ok(None);
        }
        if found.len() > end {
            file.set_len(end)?;
        }
        Ok(Some(file))
    }

    /// Rewrites the file with all live frames that can be read. The file is on disk when the call returns.
    fn rewrite(&self) -> io::Result<()> {
        let (file, before, mut places) = self.with_index(|index| {
            let places = index.tables.values().map(|place| place.bytes.clone());
            (index.file.clone(), index.salt, Vec::from_iter(places))
        })?;
        places.sort_unstable_by_key(|place| place.start);
        let mut index = TableIndex {
            salt: salt(),
            ..TableIndex::default()
        };
        let path = self.folder.join(RECORDS);
        disk::write(&path, |to| {
            let mut to = BufWriter::with_capacity(READ_BYTES, to);
            to.write_all(MAGIC)?;
            to.write_all(&index.salt)?;
            index.end = FIRST_FRAME_OFFSET;
            for place in places {
                let Some(file) = &file else {
                    continue;
                };
                let frame = readable(frame::open_at(file, place, &before))?;
                let metadata = frame.as_ref().map(|frame| frame.header.metadata.clone());
                let rest = frame.map(|frame| readable(frame.rest())).transpose()?;
                let Some((metadata, rest)) = metadata.zip(rest.flatten()) else {
                    continue;
                };
                let start = frame::encode_header(&index.salt, &metadata, &rest);
                to.write_all(&start)?;
                to.write_all(&rest)?;
                let end = index.end + (start.len() + rest.len()) as u64;
                let metadata = TableMetadata::read(&metadata).ok_or_else(disk::damaged)?;
                index.apply(index.end..end, metadata);
            }
            to.flush()
        })?;
        disk::sync(&self.folder)?;
        index.file = Some(Arc::new(disk::open(&path)?));
        self.with_index_mut(|now| {
            index.older = std::mem::take(&mut now.older);
            *now = index;
        })
    }

    /// Opens a table and reads its metadata.
    fn open(&self, name: &str) -> io::Result<(OpenFrame, TableMetadata)> {
        let place = self.with_index(|index| {
            let place = index.tables.get(name);
            let place = place.map(|place| (index.file.clone(), index.salt, place.bytes.clone()));
            (place, index.older.contains(name))
        })?;
        let (frame, metadata) = match place {
            (Some((Some(file), salt, bytes)), _) => {
                let frame = frame::open_at(&file, bytes, &salt)?;
                let metadata = TableMetadata::read(&frame.header.metadata);
                (frame, metadata)
            }
            (_, true) => {
                let frame = frame::open(&self.folder.join(name), OLDER_MAGIC)?;
                let metadata = TableMetadata::read_older(&frame.header.metadata);
                (frame, metadata)
            }
            (_, false) => return Err(io::ErrorKind::NotFound.into()),
        };
        Ok((frame, metadata.ok_or_else(disk::damaged)?))
    }

    /// Reads the rows of a table. Returns `None` if the table's mark differs from `wanted`.
    ///
    /// Calls `failed` with a blob that cannot be read.
    pub(super) fn read(
        &self,
        name: &str,
        wanted: Option<&TableMark>,
        blobs: &Blobs,
        failed: impl Fn(BlobId),
    ) -> io::Result<Option<Rows>> {
        let (frame, metadata) = self.open(name)?;
        if wanted.is_some() && metadata.mark.as_ref() != wanted {
            return Ok(None);
        }
        let rest = Bytes::from(frame.rest()?);
        let mut large = Vec::new();
        for (name, _) in metadata.blobs {
            large.push(blobs.get(&name).inspect_err(|_| failed(name))?);
        }
        let mut input = ByteReader(&rest);
        let row = |input: &mut ByteReader<'_>| {
            let key = rest.slice_ref(input.bytes()?);
            let value = match input.is_set()? {
                true => large.get(input.count()?)?.clone(),
                false => rest.slice_ref(input.bytes()?).into(),
            };
            Some((key, value))
        };
        let rows = input.many(row).filter(|_| input.0.is_empty());
        rows.ok_or_else(disk::damaged).map(Some)
    }

    /// Returns the mark of a table. Reads neither rows nor blobs.
    pub(super) fn mark(&self, name: &str) -> io::Result<Option<TableMark>> {
        Ok(self.open(name)?.1.mark)
    }

    /// Returns whether a table of this name exists, intact or not.
    pub(super) fn has(&self, name: &str) -> io::Result<bool> {
        self.with_index(|index| index.tables.contains_key(name) || index.older.contains(name))
    }

    /// Returns the names of all tables, sorted.
    pub(super) fn names(&self) -> io::Result<Vec<String>> {
        let names = self.with_index(|index| {
            let names = index.tables.keys().map(ToString::to_string);
            names.chain(index.older.iter().cloned()).collect()
        });
        names.map(|names: BTreeSet<String>| names.into_iter().collect())
    }

    /// Calls `add` with the length of the file, and with the blob references of each table.
    pub(super) fn size(&self, mut add: impl FnMut(u64, BlobRefs)) -> io::Result<()> {
        self.with_index(|index| {
            add(index.end, Vec::new());
            let named = index
                .tables
                .values()
                .filter(|place| !place.blobs.is_empty());
            named.for_each(|place| add(0, place.blobs.to_vec()));
        })
    }

    /// Removes incomplete files, and moves tables of older program versions into the file.
    pub(super) fn clean(&self) -> io::Result<()> {
        disk::remove_temporary(&self.folder)?;
        for name in self.with_index(|index| index.older.clone())? {
            let is_newer = self.with_index(|index| index.tables.contains_key(&*name))?;
            let older = || {
                let (frame, metadata) = self.open(&name)?;
                Ok((metadata, frame.rest()?))
            };
            match readable(older())?.filter(|_| !is_newer) {
                Some((metadata, rest)) => {
                    let table = name;
                    self.append(TableMetadata { table, ..metadata }, &rest)?;
                }
                None => {
                    self.with_index_mut(|index| index.older.remove(&name))?;
                    // A file that cannot be removed does not belong to this program.
                    let _ = disk::remove(&self.folder.join(&name));
                }
            }
        }
        Ok(())
    }
}
