//! Tables by name, in one file, `tables/records`: values by their keys. What is small is in the table itself; what is large is a blob, and so is written once, however many tables and releases name it.
//!
//! The file is its own index. Each version of a table is a frame behind those of before, and so is the removal of a table: the last frame of a name counts. A process that opens the file reads the front of each frame, which has the table's name, its mark and the blobs that it names, and knows where each table is. Once most of the file is superseded, it is written anew.
//!
//! - A frame that was not written to its end is cut off before the next one is appended.
//! - A damaged frame is skipped, and takes no other with it. Frames begin with bytes that each file chooses anew, so that no content can pass for one.
//! - A file that is gone, or is another one than the one that was read, is written anew with all that is still known.
//! - Tables of older programs, `tables/<name>`, are read as they are, until the writing process has moved them.
//!
//! **Invariant:** what is known of the file is what reading it from its beginning tells. Knows nothing of what keys, values and marks mean.

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

use super::blobs::{Blobs, LARGE, Name, Named, NamedBytes, read_names};
use super::disk::{self, Durability, readable};
use super::format::{Input, Output};
use super::frame::{self, Head, Opened};
use crate::payload::Payload;

/// The first bytes of the file. Each version of the format has its own.
const MAGIC: &[u8] = b"rowhouse-records-1\n";
/// The first bytes of a table of an older program, which is a file of its own.
const OLDER_MAGIC: &[u8] = b"rowhouse-table-1\n";
/// The name of the file. No table has it.
const RECORDS: &str = "records";
/// Superseded bytes that are not worth writing the file anew.
const MIN_SUPERSEDED_BYTES: u64 = 1 << 20;
/// The bytes that are read at once where frames are looked for.
const READ_BYTES: usize = 1 << 20;

/// The first bytes of each frame of a file.
type Salt = [u8; 16];
/// Where the first frame is.
const BEGIN: u64 = (MAGIC.len() + size_of::<Salt>()) as u64;

/// Values with their keys.
pub type Rows = Vec<(Bytes, Payload)>;

/// Reads the values that are not in memory; nothing where one cannot be read.
#[must_use]
pub fn rows_in_memory(rows: Rows) -> Option<Vec<(Bytes, Bytes)>> {
    rows.into_iter()
        .map(|(key, value)| Some((key, value.to_bytes().ok()?)))
        .collect()
}

/// What tells the content of a table to who wrote it.
pub type Mark = [u8; 32];

/// The tables below one folder, which need not be there.
#[derive(Debug, Clone)]
pub(super) struct Tables {
    pub(super) folder: PathBuf,
    /// Nothing before the file is read.
    index: Arc<RwLock<Option<Index>>>,
}

/// The contents of the file, as far as they are known.
#[derive(Debug, Default)]
struct Index {
    /// Nothing where there is no file of ours.
    file: Option<Arc<File>>,
    salt: Salt,
    tables: BTreeMap<Box<str>, Place>,
    /// Where the last frame ends.
    end: u64,
    /// The bytes of the frames that count.
    live: u64,
    /// The tables that are files of their own.
    older: BTreeSet<String>,
}

/// Where a table is in the file.
#[derive(Debug)]
struct Place {
    bytes: Range<u64>,
    blobs: Box<[(Name, u64)]>,
}

/// The front of a frame.
#[derive(Debug, Default)]
struct Front {
    table: String,
    is_removed: bool,
    mark: Option<Mark>,
    blobs: Named,
}

impl Front {
    fn write(&self) -> Vec<u8> {
        let mut front = Output::default();
        front.bytes(self.table.as_bytes());
        front.number(self.is_removed.into());
        front.count(self.blobs.len());
        for (name, length) in &self.blobs {
            front.bytes(&name.0);
            front.number(*length);
        }
        if let Some(mark) = &self.mark {
            front.bytes(mark);
        }
        front.0
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let mut input = Input(bytes);
        let table = input.text()?.to_owned();
        let is_removed = input.is_set()?;
        let rest = Self::read_older(input.0)?;
        Some(Self {
            table,
            is_removed,
            ..rest
        })
    }

    /// Reads the front of a table that is a file of its own.
    fn read_older(bytes: &[u8]) -> Option<Self> {
        let mut input = Input(bytes);
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

impl Index {
    /// Reads the file of a folder.
    fn read(folder: &Path) -> io::Result<Self> {
        let mut older = BTreeSet::from_iter(disk::names(folder)?);
        older.retain(|name| name != RECORDS && !disk::is_temporary(name));
        let path = folder.join(RECORDS);
        let index = match Self::of_file(&path) {
            Ok(index) => index,
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound => Self::default(),
                io::ErrorKind::InvalidData => {
                    warn!(file = %path.display(), %error, "the tables of the state cannot be read, and are ignored");
                    Self::default()
                }
                _ => return Err(error),
            },
        };
        Ok(Self { older, ..index })
    }

    fn of_file(path: &Path) -> io::Result<Self> {
        let file = Arc::new(disk::open(path)?);
        let size = file.metadata()?.len();
        let mut from = BufReader::with_capacity(READ_BYTES, &*file);
        let mut begin = [0; MAGIC.len()];
        let mut index = Self::default();
        let is_begun = from.read_exact(&mut begin).is_ok() && begin == *MAGIC;
        if !is_begun || from.read_exact(&mut index.salt).is_err() {
            return Err(disk::damaged());
        }
        let mut at = BEGIN;
        index.end = BEGIN;
        let mut damaged = 0_u32;
        while at < size {
            let head = match Head::read(&mut from, &index.salt, size - at) {
                Ok(head) => Front::read(&head.front).map(|front| (head, front)),
                Err(error) if error.kind() == io::ErrorKind::InvalidData => None,
                Err(error) => return Err(error),
            };
            at = match head {
                Some((head, front)) => {
                    let skipped = i64::try_from(head.rest()).map_err(|_| disk::damaged())?;
                    from.seek_relative(skipped)?;
                    index.apply(at..at + head.size, front);
                    at + head.size
                }
                None => {
                    damaged += 1;
                    let next = find(&file, at + 1, &index.salt)?.unwrap_or(size);
                    from.seek(SeekFrom::Start(next))?;
                    next
                }
            };
        }
        let is_cut = index.end < size;
        if is_cut {
            warn!(file = %path.display(), "the last part of the state was not written to its end, and is ignored");
        }
        if damaged > u32::from(is_cut) {
            warn!(file = %path.display(), count = damaged, error = %disk::damaged(), "parts of the state cannot be read, and are ignored");
        }
        index.file = Some(file);
        Ok(index)
    }

    /// Notes a frame.
    fn apply(&mut self, bytes: Range<u64>, front: Front) {
        let length = bytes.end - bytes.start;
        self.end = bytes.end;
        let before = if front.is_removed {
            self.tables.remove(&*front.table)
        } else {
            self.live += length;
            let blobs = front.blobs.into();
            let place = Place { bytes, blobs };
            self.tables.insert(front.table.into(), place)
        };
        if let Some(Place { bytes, .. }) = before {
            self.live -= bytes.end - bytes.start;
        }
    }
}

/// Finds the next frame from a place on, or what looks like one.
fn find(file: &File, from: u64, salt: &Salt) -> io::Result<Option<u64>> {
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

/// A table on its way to the disk.
struct Written {
    front: Front,
    rest: Vec<u8>,
    blobs: NamedBytes,
}

impl Written {
    fn of(table: &str, mark: Option<&Mark>, rows: &[(Bytes, Payload)]) -> Self {
        let mut rest = Output::default();
        let mut blobs = Vec::new();
        rest.count(rows.len());
        for (key, value) in rows {
            rest.bytes(key);
            let small = value.in_memory().filter(|value| value.len() < LARGE);
            rest.number(small.is_none().into());
            match small {
                Some(value) => rest.bytes(value),
                None => {
                    rest.count(blobs.len());
                    blobs.push((Name::of_payload(value), value.clone()));
                }
            }
        }
        let names = blobs.iter().map(|(name, bytes)| (*name, bytes.len()));
        Self {
            front: Front {
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

impl Tables {
    /// The tables below `folder`. Nothing is read yet.
    pub(super) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            index: Arc::default(),
        }
    }

    /// Forgets what is known of the file, which another process may have written until now.
    pub(super) fn forget(&self) {
        *self.index.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Looks something up.
    fn look<T>(&self, find: impl FnOnce(&Index) -> T) -> io::Result<T> {
        if let Some(index) = &*self.index.read().unwrap_or_else(PoisonError::into_inner) {
            return Ok(find(index));
        }
        self.change(|index| find(index))
    }

    fn change<T>(&self, change: impl FnOnce(&mut Index) -> T) -> io::Result<T> {
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        let index = match &mut *index {
            Some(index) => index,
            none => none.insert(Index::read(&self.folder)?),
        };
        Ok(change(index))
    }

    /// Writes a table, its blobs first. Gives how many of these were not there yet, and all bytes that were written.
    ///
    /// The system may put the table on the disk later. A power cut before that leaves the one of before.
    pub(super) fn write(
        &self,
        name: &str,
        mark: Option<&Mark>,
        rows: &[(Bytes, Payload)],
        blobs: &Blobs,
    ) -> io::Result<(u64, u64)> {
        let Written {
            front,
            rest,
            blobs: large,
        } = Written::of(name, mark, rows);
        let (count, bytes) = blobs.put(&large)?;
        Ok((count, bytes + self.append(front, &rest)?))
    }

    /// Removes a table; one that is not there is no error.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        if !self.has(name)? {
            return Ok(());
        }
        let front = Front {
            table: name.to_owned(),
            is_removed: true,
            ..Front::default()
        };
        self.append(front, &[]).map(drop)
    }

    /// Puts a frame at the end of the file, and gives its bytes. Only the process that writes may do that, and one thread of it.
    fn append(&self, front: Front, rest: &[u8]) -> io::Result<u64> {
        let file = match self.open_to_append()? {
            Some(file) => file,
            None => {
                self.rewrite()?;
                self.open_to_append()?.ok_or_else(disk::damaged)?
            }
        };
        let (salt, end) = self.look(|index| (index.salt, index.end))?;
        let mut frame = frame::start(&salt, &front.write(), rest);
        frame.extend_from_slice(rest);
        if let Err(error) = file.write_all_at(&frame, end) {
            // Where that fails, too, the next append cuts it off.
            let _ = file.set_len(end);
            return Err(error);
        }
        let size = frame.len() as u64;
        let older = self.change(|index| {
            let older = index.older.take(&front.table);
            index.apply(end..end + size, front);
            older
        })?;
        // A file that cannot be removed is looked at again at the next startup only.
        older.map_or(Ok(()), |name| disk::remove(&self.folder.join(name)))?;
        Ok(size)
    }

    /// Opens the file, cut off behind its last frame. Nothing where it is to be written anew first.
    fn open_to_append(&self) -> io::Result<Option<File>> {
        let (known, end, live) = self.look(|index| (index.file.clone(), index.end, index.live))?;
        let Some(known) = known.filter(|_| end - live <= live + MIN_SUPERSEDED_BYTES) else {
            return Ok(None);
        };
        let file = File::options()
            .read(true)
            .write(true)
            // A FIFO of this name is not waited for.
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

    /// Writes the file anew, with what counts of it and can be read. It is on the disk when this returns.
    fn rewrite(&self) -> io::Result<()> {
        let (file, before, mut places) = self.look(|index| {
            let places = index.tables.values().map(|place| place.bytes.clone());
            (index.file.clone(), index.salt, Vec::from_iter(places))
        })?;
        places.sort_unstable_by_key(|place| place.start);
        let mut index = Index {
            salt: salt(),
            ..Index::default()
        };
        let path = self.folder.join(RECORDS);
        disk::write(&path, Durability::Now, |to| {
            let mut to = BufWriter::with_capacity(READ_BYTES, to);
            to.write_all(MAGIC)?;
            to.write_all(&index.salt)?;
            index.end = BEGIN;
            for place in places {
                let Some(file) = &file else {
                    continue;
                };
                let opened = readable(frame::open_at(file, place, &before))?;
                let front = opened.as_ref().map(|opened| opened.head.front.clone());
                let rest = opened.map(|opened| readable(opened.rest())).transpose()?;
                let Some((front, rest)) = front.zip(rest.flatten()) else {
                    continue;
                };
                let start = frame::start(&index.salt, &front, &rest);
                to.write_all(&start)?;
                to.write_all(&rest)?;
                let end = index.end + (start.len() + rest.len()) as u64;
                let front = Front::read(&front).ok_or_else(disk::damaged)?;
                index.apply(index.end..end, front);
            }
            to.flush()
        })?;
        disk::sync(&self.folder)?;
        index.file = Some(Arc::new(disk::open(&path)?));
        self.change(|now| {
            index.older = std::mem::take(&mut now.older);
            *now = index;
        })
    }

    /// Opens a table: its front is read.
    fn open(&self, name: &str) -> io::Result<(Opened, Front)> {
        let place = self.look(|index| {
            let place = index.tables.get(name);
            let place = place.map(|place| (index.file.clone(), index.salt, place.bytes.clone()));
            (place, index.older.contains(name))
        })?;
        let (opened, front) = match place {
            (Some((Some(file), salt, bytes)), _) => {
                let opened = frame::open_at(&file, bytes, &salt)?;
                let front = Front::read(&opened.head.front);
                (opened, front)
            }
            (_, true) => {
                let opened = frame::open(&self.folder.join(name), OLDER_MAGIC)?;
                let front = Front::read_older(&opened.head.front);
                (opened, front)
            }
            (_, false) => return Err(io::ErrorKind::NotFound.into()),
        };
        Ok((opened, front.ok_or_else(disk::damaged)?))
    }

    /// The rows of a table, or of one with another mark than `wanted` nothing. A blob that cannot be read is told to `failed`.
    pub(super) fn read(
        &self,
        name: &str,
        wanted: Option<&Mark>,
        blobs: &Blobs,
        failed: impl Fn(Name),
    ) -> io::Result<Option<Rows>> {
        let (opened, front) = self.open(name)?;
        if wanted.is_some() && front.mark.as_ref() != wanted {
            return Ok(None);
        }
        let rest = Bytes::from(opened.rest()?);
        let mut large = Vec::new();
        for (name, _) in front.blobs {
            large.push(blobs.get(&name).inspect_err(|_| failed(name))?);
        }
        let mut input = Input(&rest);
        let row = |input: &mut Input<'_>| {
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

    /// The mark of a table that has one. Neither its rows nor its blobs are read.
    pub(super) fn mark(&self, name: &str) -> io::Result<Option<Mark>> {
        Ok(self.open(name)?.1.mark)
    }

    /// Returns whether there is a table of that name, whole or not.
    pub(super) fn has(&self, name: &str) -> io::Result<bool> {
        self.look(|index| index.tables.contains_key(name) || index.older.contains(name))
    }

    /// The names of all tables, sorted.
    pub(super) fn names(&self) -> io::Result<Vec<String>> {
        let names = self.look(|index| {
            let names = index.tables.keys().map(ToString::to_string);
            names.chain(index.older.iter().cloned()).collect()
        });
        names.map(|names: BTreeSet<String>| names.into_iter().collect())
    }

    /// Calls `add` with the bytes of the file, and with the blobs of each table.
    pub(super) fn size(&self, mut add: impl FnMut(u64, Named)) -> io::Result<()> {
        self.look(|index| {
            add(index.end, Vec::new());
            let named = index
                .tables
                .values()
                .filter(|place| !place.blobs.is_empty());
            named.for_each(|place| add(0, place.blobs.to_vec()));
        })
    }

    /// Removes what was left incomplete, and moves the tables of older programs into the file.
    pub(super) fn clean(&self) -> io::Result<()> {
        disk::remove_temporary(&self.folder)?;
        for name in self.look(|index| index.older.clone())? {
            let is_newer = self.look(|index| index.tables.contains_key(&*name))?;
            let older = || {
                let (opened, front) = self.open(&name)?;
                Ok((front, opened.rest()?))
            };
            match readable(older())?.filter(|_| !is_newer) {
                Some((front, rest)) => {
                    let table = name;
                    self.append(Front { table, ..front }, &rest)?;
                }
                None => {
                    self.change(|index| index.older.remove(&name))?;
                    // Where that is refused, it is not ours.
                    let _ = disk::remove(&self.folder.join(&name));
                }
            }
        }
        Ok(())
    }
}
