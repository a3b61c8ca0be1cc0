//! The dormant tenants of a replica: one row each, packed into at most 200 bytes with the tables that find it.
//!
//! ```text
//! row     version │ time │ hash of the packed folder │ upload │ tag │ name │ addresses
//! names   hash of the name ──────> row
//! hosts   hash of an address ────> row     (addresses that do not follow from the name)
//! ```
//!
//! **Invariant:** a row is found by its name and by each of its addresses, and by nothing else.

use std::hash::BuildHasher as _;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fleet::exchange::ObjectTag;
use fleet::key::{ContentHash, Nonce, ObjectKey};
use fleet::pointer::{ContentObject, Pointer};
use hashbrown::{DefaultHashBuilder, HashTable};
use serde::{Deserialize, Serialize};

use crate::packed::is_hash;

/// The number of hexadecimal digits that a row packs into 16 bytes.
const HEX_DIGITS: usize = 32;

/// The mark of a text whose first [`HEX_DIGITS`] characters are packed, in its length.
const HEX_MARK: u16 = 1 << 15;

/// The size of a number in a row, in bytes. Times in milliseconds reach the year 10889.
const NUMBER_BYTES: usize = 6;

/// The largest number of a row.
const MAX_NUMBER: u64 = (1 << (8 * NUMBER_BYTES)) - 1;

/// The longest text of a row, in bytes.
const MAX_TEXT: usize = 0x7fff;

/// The version of a tenant that its pointer names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantVersion {
    /// The version of the pointer.
    pub version: u64,
    /// The hash of the packed folder, which names the folder on the disk.
    pub folder: ContentHash,
    /// The upload of the packed folder. `None` if the content is more than that, so that a download reads the pointer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upload: Option<Nonce>,
    /// When the version was made, in milliseconds since 1970 by the publisher's clock.
    pub at: u64,
    /// The tag of the pointer.
    pub tag: String,
    /// The addresses that do not follow from the name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
}

impl TenantVersion {
    /// Returns the version that a pointer with content names, or `None` if its content has no valid name.
    #[must_use]
    pub fn of(pointer: &Pointer, tag: &ObjectTag) -> Option<Self> {
        let packed = pointer.content.first()?;
        if !is_hash(&packed.hash) {
            return None;
        }
        let prefix = ObjectKey::contents(&packed.hash);
        let upload = packed.object.as_str().strip_prefix(&prefix);
        Some(Self {
            version: pointer.version(),
            folder: packed.hash.clone(),
            upload: upload
                .filter(|_| pointer.content.len() == 1)
                .map(|upload| Nonce(upload.to_owned())),
            at: pointer.at,
            tag: tag.0.clone(),
            addresses: packed.addresses.clone(),
        })
    }

    /// Returns the packed folder, if it is all content of the version.
    #[must_use]
    pub fn packed(&self) -> Option<ContentObject> {
        let upload = self.upload.as_ref()?;
        Some(ContentObject {
            object: ObjectKey::content(&self.folder, upload),
            hash: self.folder.clone(),
            addresses: Vec::new(),
        })
    }

    /// Returns when the version was made, by the publisher's clock.
    #[must_use]
    pub fn published(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.at)
    }

    /// Returns whether this is the version of the pointer with this tag.
    #[must_use]
    pub fn has_tag(&self, tag: &ObjectTag) -> bool {
        ObjectTag(self.tag.clone()).opaque() == tag.opaque()
    }
}

/// The rows of all dormant tenants.
#[derive(Debug, Default)]
pub struct Rows {
    rows: Vec<Option<Box<[u8]>>>,
    /// The numbers of unused rows.
    free: Vec<u32>,
    names: HashTable<u32>,
    /// The shortened hashes of addresses, with their rows.
    hosts: HashTable<(u32, u32)>,
    hasher: DefaultHashBuilder,
}

impl Rows {
    /// Returns the number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns whether a tenant has a row.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.number(name).is_some()
    }

    /// Returns the name of a tenant, if the tenant has a row.
    #[must_use]
    pub fn name(&self, name: &str) -> Option<&str> {
        Some(self.row(self.number(name)?)?.name)
    }

    /// Returns the version of a tenant.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<TenantVersion> {
        Some(self.row(self.number(name)?)?.version())
    }

    /// Returns the name of the tenant with this address.
    #[must_use]
    pub fn at(&self, address: &str) -> Option<&str> {
        let hash = self.short_hash(address);
        let is_row = |(known, number): &(u32, u32)| {
            let row = || self.row(*number);
            *known == hash && row().is_some_and(|row| row.addresses().any(|one| one == address))
        };
        let (_, number) = self.hosts.find(spread(hash), is_row)?;
        Some(self.row(*number)?.name)
    }

    /// Returns the names of all tenants, in no order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let rows = self.rows.iter().flatten();
        rows.filter_map(|row| Some(Row::of(row)?.name))
    }

    /// Returns all tenants with their versions, in no order.
    pub fn all(&self) -> impl Iterator<Item = (String, TenantVersion)> {
        let rows = self.rows.iter().flatten().filter_map(|row| Row::of(row));
        rows.map(|row| (row.name.to_owned(), row.version()))
    }

    /// Adds or replaces the row of a tenant.
    pub fn insert(&mut self, name: &str, version: &TenantVersion) {
        self.remove(name);
        let Some(row) = pack(name, version) else {
            return;
        };
        let number = self.free.pop().unwrap_or_else(|| {
            self.rows.push(None);
            u32::try_from(self.rows.len() - 1).unwrap_or(u32::MAX)
        });
        if let Some(place) = usize::try_from(number)
            .ok()
            .and_then(|number| self.rows.get_mut(number))
        {
            *place = Some(row);
        }
        let (rows, hasher) = (&self.rows, &self.hasher);
        let rehash =
            |number: &u32| row_of(rows, *number).map_or(0, |row| hasher.hash_one(row.name));
        self.names
            .insert_unique(hasher.hash_one(name), number, rehash);
        for address in &version.addresses {
            let hash = self.short_hash(address);
            self.hosts
                .insert_unique(spread(hash), (hash, number), |(hash, _)| spread(*hash));
        }
    }

    /// Removes the row of a tenant. Returns its version.
    pub fn remove(&mut self, name: &str) -> Option<TenantVersion> {
        let number = self.number(name)?;
        let version = self.row(number)?.version();
        for address in &version.addresses {
            let hash = self.short_hash(address);
            let is_entry = |entry: &(u32, u32)| *entry == (hash, number);
            if let Ok(entry) = self.hosts.find_entry(spread(hash), is_entry) {
                entry.remove();
            }
        }
        let hash = self.hasher.hash_one(name);
        if let Ok(entry) = self.names.find_entry(hash, |other| *other == number) {
            entry.remove();
        }
        *self.rows.get_mut(usize::try_from(number).ok()?)? = None;
        self.free.push(number);
        Some(version)
    }

    /// Returns the memory of all rows with the tables that find them, in bytes. Each allocation counts with the words that the allocator adds.
    #[must_use]
    pub fn bytes(&self) -> usize {
        const ALLOCATION: usize = 2 * size_of::<usize>();
        let rows = self.rows.iter().flatten();
        let rows: usize = rows.map(|row| row.len() + ALLOCATION).sum();
        rows + self.rows.capacity() * size_of::<Option<Box<[u8]>>>()
            + self.free.capacity() * size_of::<u32>()
            + self.names.allocation_size()
            + self.hosts.allocation_size()
    }

    fn number(&self, name: &str) -> Option<u32> {
        let is_row = |number: &u32| self.row(*number).is_some_and(|row| row.name == name);
        self.names.find(self.hasher.hash_one(name), is_row).copied()
    }

    fn row(&self, number: u32) -> Option<Row<'_>> {
        row_of(&self.rows, number)
    }

    fn short_hash(&self, address: &str) -> u32 {
        // The upper half is as good as the lower.
        u32::try_from(self.hasher.hash_one(address) >> 32).unwrap_or_default()
    }
}

/// The rows that a follower writes and others read.
#[derive(Debug, Clone, Default)]
pub struct SharedRows(Arc<RwLock<Rows>>);

impl SharedRows {
    pub(crate) fn new(rows: Rows) -> Self {
        Self(Arc::new(RwLock::new(rows)))
    }

    /// Returns rows of these tenants.
    pub fn of<'n>(tenants: impl IntoIterator<Item = (&'n str, TenantVersion)>) -> Self {
        let mut rows = Rows::default();
        for (name, version) in tenants {
            rows.insert(name, &version);
        }
        Self::new(rows)
    }

    /// Returns the rows. A caller must not hold the guard for longer than a look-up.
    pub fn read(&self) -> RwLockReadGuard<'_, Rows> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Rows> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a hash for a table from a shortened one.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn row_of(rows: &[Option<Box<[u8]>>], number: u32) -> Option<Row<'_>> {
    let row = rows.get(usize::try_from(number).ok()?)?;
    Row::of(row.as_deref()?)
}

/// A row, unpacked as far as look-ups need it.
#[derive(Debug, Clone, Copy)]
struct Row<'r> {
    version: u64,
    at: u64,
    folder: [u8; 32],
    upload: Text<'r>,
    tag: Text<'r>,
    name: &'r str,
    /// The addresses, with a line feed between them.
    addresses: &'r str,
}

/// A text of a row.
#[derive(Debug, Clone, Copy)]
struct Text<'r> {
    /// The first characters, as a number in hexadecimal.
    digits: Option<u128>,
    rest: &'r str,
}

impl Text<'_> {
    fn text(self) -> String {
        let digits = self.digits.map(|digits| format!("{digits:032x}"));
        digits.unwrap_or_default() + self.rest
    }
}

impl<'r> Row<'r> {
    fn of(mut row: &'r [u8]) -> Option<Self> {
        let row = &mut row;
        Some(Self {
            version: unpack_number(row)?,
            at: unpack_number(row)?,
            folder: *row.split_off(..32)?.first_chunk()?,
            upload: unpack_text(row)?,
            tag: unpack_text(row)?,
            name: unpack_text(row)?.rest,
            addresses: str::from_utf8(row).ok()?,
        })
    }

    fn addresses(self) -> impl Iterator<Item = &'r str> {
        self.addresses.split_terminator('\n')
    }

    fn version(self) -> TenantVersion {
        let folder = self.folder.iter().map(|byte| format!("{byte:02x}"));
        let upload = self.upload.text();
        TenantVersion {
            version: self.version,
            folder: ContentHash(folder.collect()),
            upload: (!upload.is_empty()).then_some(Nonce(upload)),
            at: self.at,
            tag: self.tag.text(),
            addresses: self.addresses().map(ToOwned::to_owned).collect(),
        }
    }
}

/// Packs a row. Returns `None` if the hash of the folder is not a hash.
fn pack(name: &str, version: &TenantVersion) -> Option<Box<[u8]>> {
    let mut row = Vec::new();
    for number in [version.version, version.at] {
        row.extend(
            number
                .min(MAX_NUMBER)
                .to_le_bytes()
                .iter()
                .take(NUMBER_BYTES),
        );
    }
    let (first, second) = version.folder.0.split_at_checked(HEX_DIGITS)?;
    for digits in [first, second] {
        row.extend(u128::from_str_radix(digits, 16).ok()?.to_be_bytes());
    }
    let upload = version.upload.as_ref().map_or("", |upload| &upload.0);
    pack_text(&mut row, upload, true)?;
    pack_text(&mut row, ObjectTag(version.tag.clone()).opaque(), true)?;
    pack_text(&mut row, name, false)?;
    row.extend(version.addresses.join("\n").as_bytes());
    Some(row.into_boxed_slice())
}

/// Appends a text. `is_shortened`: whether leading hexadecimal digits are packed.
fn pack_text(row: &mut Vec<u8>, text: &str, is_shortened: bool) -> Option<()> {
    let is_digit = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
    let digits = text
        .split_at_checked(HEX_DIGITS)
        .filter(|(digits, _)| is_shortened && digits.as_bytes().iter().all(is_digit));
    let (digits, rest) = match digits {
        Some((digits, rest)) => (u128::from_str_radix(digits, 16).ok(), rest),
        None => (None, text),
    };
    let mark = digits.map_or(0, |_| HEX_MARK);
    if rest.len() > MAX_TEXT {
        return None;
    }
    row.extend((u16::try_from(rest.len()).ok()? | mark).to_le_bytes());
    row.extend(digits.into_iter().flat_map(u128::to_be_bytes));
    row.extend(rest.as_bytes());
    Some(())
}

fn unpack_number(row: &mut &[u8]) -> Option<u64> {
    let packed = row.split_off(..NUMBER_BYTES)?;
    let mut bytes = [0; size_of::<u64>()];
    bytes.get_mut(..NUMBER_BYTES)?.copy_from_slice(packed);
    Some(u64::from_le_bytes(bytes))
}

fn unpack_text<'r>(row: &mut &'r [u8]) -> Option<Text<'r>> {
    let length = u16::from_le_bytes(*row.split_off(..2)?.first_chunk()?);
    let digits = match length & HEX_MARK {
        0 => None,
        _ => Some(u128::from_be_bytes(*row.split_off(..16)?.first_chunk()?)),
    };
    let rest = row.split_off(..usize::from(length & !HEX_MARK))?;
    let rest = str::from_utf8(rest).ok()?;
    Some(Text { digits, rest })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(number: u64, addresses: &[&str]) -> TenantVersion {
        TenantVersion {
            version: number,
            folder: ContentHash(format!("{number:064x}")),
            upload: Some(Nonce(format!("{number:032x}-1"))),
            at: 1_700_000_000_000 + number,
            tag: format!("{number:032x}"),
            addresses: addresses.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn row_is_found_by_its_name_and_addresses_until_it_is_removed() {
        let mut rows = Rows::default();
        let mill = version(1, &["mill.example", "/apps/mill"]);
        rows.insert("mill", &mill);
        rows.insert("corner", &version(2, &[]));
        assert_eq!(rows.get("mill"), Some(mill));
        assert_eq!(rows.at("mill.example"), Some("mill"));
        assert_eq!(rows.at("/apps/mill"), Some("mill"));
        assert_eq!(rows.at("corner"), None);
        let other = version(3, &["other.example"]);
        rows.insert("mill", &other);
        assert_eq!((rows.at("mill.example"), rows.len()), (None, 2));
        assert_eq!(rows.at("other.example"), Some("mill"));
        assert_eq!(rows.remove("mill"), Some(other));
        assert_eq!((rows.at("other.example"), rows.has("mill")), (None, false));
        assert_eq!(rows.names().collect::<Vec<_>>(), ["corner"]);
    }

    #[test]
    fn tags_and_uploads_of_any_form_are_unpacked_as_they_were() {
        let mut rows = Rows::default();
        for (tag, upload) in [
            ("0x8DC3F2A1B", Some("a-1")),
            ("D41D8CD98F00B204E9800998ECF8427E", None),
            ("d41d8cd98f00b204e9800998ecf8427e-2", Some("")),
        ] {
            let version = TenantVersion {
                tag: tag.to_owned(),
                upload: upload
                    .filter(|upload| !upload.is_empty())
                    .map(|upload| Nonce(upload.to_owned())),
                ..version(1, &[])
            };
            rows.insert("mill", &version);
            assert_eq!(rows.get("mill"), Some(version));
        }
        let quoted = TenantVersion {
            tag: "\"5d41402a\"".to_owned(),
            ..version(1, &[])
        };
        rows.insert("mill", &quoted);
        let tag = ObjectTag("\"5d41402a\"".to_owned());
        assert!(rows.get("mill").is_some_and(|row| row.has_tag(&tag)));
    }

    #[test]
    fn row_takes_at_most_200_bytes_with_its_tables() {
        let mut rows = Rows::default();
        for number in 0..20_000 {
            let name = format!("tenant-number-{number}");
            let host = format!("www.tenant-number-{number}.example");
            rows.insert(&name, &version(number, &[&host]));
        }
        let bytes = rows.bytes() / rows.len();
        assert!(bytes <= 200, "{bytes} bytes");
    }
}
