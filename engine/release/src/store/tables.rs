//! Tables by name, `tables/<name>`: values by their keys. What is small stands in the table itself; what is large is a blob, and so is written once, however many tables and releases name it.
//!
//! The front of a file names its blobs and has its mark, so that these are known without reading the rest.
//!
//! **Invariant:** knows nothing of what keys, values and marks mean.

use std::io::{self, Write as _};
use std::path::PathBuf;

use bytes::Bytes;

use super::blobs::{Blobs, LARGE, Name, Named, NamedBytes, read_names, write_names};
use super::disk::{self, Durability};
use super::format::{Input, Output};
use super::frame;
use crate::payload::Payload;

/// What a file begins with. Another version of the format is another word.
const MAGIC: &[u8] = b"rowhouse-table-1\n";

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
}

/// A table on its way to the disk.
struct Written {
    front: Vec<u8>,
    rest: Vec<u8>,
    blobs: NamedBytes,
}

impl Written {
    fn of(mark: Option<&Mark>, rows: &[(Bytes, Payload)]) -> Self {
        let (mut rest, mut front) = (Output::default(), Output::default());
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
        write_names(&blobs, &mut front);
        if let Some(mark) = mark {
            front.bytes(mark);
        }
        Self {
            front: front.0,
            rest: rest.0,
            blobs,
        }
    }

    fn start(&self) -> Vec<u8> {
        frame::start(MAGIC, &self.front, &self.rest)
    }
}

impl Tables {
    /// Writes a table, its blobs first. Gives how many of these were not there yet, and their bytes.
    ///
    /// The system may put the table on the disk later. A power cut before that leaves the one of before, or one that is seen to be damaged.
    pub(super) fn write(
        &self,
        name: &str,
        mark: Option<&Mark>,
        rows: &[(Bytes, Payload)],
        blobs: &Blobs,
    ) -> io::Result<(u64, u64)> {
        let written = Written::of(mark, rows);
        let new = blobs.put(&written.blobs)?;
        disk::write(&self.folder.join(name), Durability::Later, |file| {
            file.write_all(&written.start())?;
            file.write_all(&written.rest)
        })?;
        Ok(new)
    }

    /// The rows of a table, or of one with another mark than `wanted` nothing. A blob that cannot be read is told to `failed`.
    pub(super) fn read(
        &self,
        name: &str,
        wanted: Option<&Mark>,
        blobs: &Blobs,
        failed: impl Fn(Name),
    ) -> io::Result<Option<Rows>> {
        let opened = frame::open(&self.folder.join(name), MAGIC)?;
        let (mark, names) = front(&opened.front).ok_or_else(disk::damaged)?;
        if wanted.is_some() && mark.as_ref() != wanted {
            return Ok(None);
        }
        let rest = Bytes::from(opened.rest()?);
        let mut large = Vec::new();
        for (name, _) in names {
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
        let opened = frame::open(&self.folder.join(name), MAGIC)?;
        let (mark, _) = front(&opened.front).ok_or_else(disk::damaged)?;
        Ok(mark)
    }

    /// The bytes of a table's file, and the blobs that it names.
    pub(super) fn size(&self, name: &str) -> io::Result<(u64, Named)> {
        let opened = frame::open(&self.folder.join(name), MAGIC)?;
        let (_, blobs) = front(&opened.front).ok_or_else(disk::damaged)?;
        Ok((opened.size, blobs))
    }

    /// The names of all tables, in no order.
    pub(super) fn names(&self) -> io::Result<Vec<String>> {
        let mut names = disk::names(&self.folder)?;
        names.retain(|name| !disk::is_temporary(name));
        Ok(names)
    }

    /// Removes a table; one that is not there is no error.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        disk::remove(&self.folder.join(name))
    }

    /// Removes what was left incomplete.
    pub(super) fn clean(&self) -> io::Result<()> {
        disk::remove_temporary(&self.folder)
    }
}

/// What stands in the front of a file.
fn front(bytes: &[u8]) -> Option<(Option<Mark>, Named)> {
    let mut input = Input(bytes);
    let names = read_names(&mut input)?;
    let mark = match input.0.is_empty() {
        true => None,
        false => Some(input.hash()?),
    };
    input.0.is_empty().then_some((mark, names))
}
