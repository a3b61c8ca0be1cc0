//! The encoding of a release's pages, with blob references in place of large bodies.
//!
//! The encoding has five parts: bodies, header fields, resources, addresses, and the small bodies. An address that shares its files with an earlier address refers to that address by number. The small bodies are compressed together, because the pages of a tenant have much in common, and even more with their copies at other addresses.
//!
//! Every entry of a table occurs once and later parts refer to it by number, so shared values are shared again after reading.
//! Bodies are stored without a content encoding: encodings take several times the space and are quickly made again.
//!
//! **Invariant:** does no disk access. The same pages always have the same encoding.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::io::{self, Read as _, Write as _};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use zstd::stream::read::Decoder;
use zstd::stream::write::Encoder;

use super::blobs::{BlobId, BlobPayloads, MIN_BLOB_BYTES};
use super::format::{ByteReader, ByteWriter};
use crate::payload::Payload;
use crate::snapshot::fields::Fields;
use crate::snapshot::redirects::{
    QueryCondition, RedirectAction, RedirectRule, RedirectTable, RedirectTarget,
};
use crate::snapshot::{
    Body, ContentEncoding, MountPages, Resource, ResourceTable, Resources, Variant, Variants,
};

/// The responses of a tenant at one address.
#[derive(Debug, Clone)]
pub struct AddressPages {
    /// The host name: lower case, no port.
    pub host: String,
    /// The mount prefix, for example `/corner`; empty at the root of the host.
    pub prefix: String,
    /// The responses, by path below the prefix.
    pub pages: MountPages,
}

/// How the files of each address are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PagesLayout {
    /// As [`Redirects`](Self::Redirects), and each address has a 405 page for each language.
    ErrorPages,
    /// As [`SharedFiles`](Self::SharedFiles), and each address has its redirects. Version 4 of the format.
    Redirects,
    /// The first address with a table of files holds the table; later addresses refer to that address. Version 3 of the format.
    SharedFiles,
    /// Every address lists its files among its pages, as in version 2 of the format.
    FilesAtEachAddress,
}

/// The largest number of header fields that is accepted. More than any body has; a header map panics when it grows too large.
const MAX_FIELDS: usize = 1024;

/// Encoded entries without duplicates.
#[derive(Default)]
struct EntryTable {
    numbers: HashMap<Vec<u8>, usize>,
    entries: Vec<u8>,
}

impl EntryTable {
    /// Returns the number of an entry. Adds the entry if it is new.
    fn number(&mut self, entry: ByteWriter) -> usize {
        let next = self.numbers.len();
        *self.numbers.entry(entry.0).or_insert_with_key(|entry| {
            self.entries.extend_from_slice(entry);
            next
        })
    }
}

/// The minimum length, in bytes, of a blob for content that other releases also have, or that does not compress.
const MIN_SHARED_BLOB_BYTES: usize = 4 << 10;
/// The largest total length of small bodies, in bytes. More than any tenant has.
const MAX_SMALL_BODY_BYTES: usize = 1 << 30;
/// The zstd compression level, and the logarithm of the window in which repetitions are found. The window spans all pages of most tenants.
const COMPRESSION_LEVEL: i32 = 3;
const WINDOW_LOG: u32 = 23;
/// The logarithm of zstd's window if none is set.
const DEFAULT_WINDOW_LOG: u32 = 21;

/// The tables during encoding.
#[derive(Default)]
struct PagesEncoder {
    large: BlobPayloads,
    small: Vec<Bytes>,
    /// Whether the current address holds files that tenants share.
    is_common: bool,
    /// The table of bodies: for each, the number of a blob, or a length within the compressed part.
    bodies: ByteWriter,
    by_name: HashMap<BlobId, usize>,
    /// Numbers of bodies by memory address, so that shared bytes are hashed once.
    by_place: HashMap<(*const u8, usize), usize>,
    fields: EntryTable,
    resources: EntryTable,
    /// Numbers of resources by memory address.
    seen: HashMap<*const Resource, usize>,
    /// The number, from 1, of the first address with a table of files, by the table's memory address.
    files: HashMap<*const ResourceTable, u64>,
    places: u64,
}

impl PagesEncoder {
    /// Returns the number of a body. Bodies of at least `from` bytes become blobs.
    fn body(&mut self, payload: &Payload, from: usize) -> usize {
        let Payload::Memory(bytes) = payload else {
            return self.named_body(BlobId::of_payload(payload), payload, from);
        };
        let place = (bytes.as_ptr(), bytes.len());
        if let Some(number) = self.by_place.get(&place) {
            return *number;
        }
        let number = self.named_body(BlobId::of(bytes), payload, from);
        self.by_place.insert(place, number);
        number
    }

    fn named_body(&mut self, name: BlobId, payload: &Payload, from: usize) -> usize {
        let next = self.by_name.len();
        *self.by_name.entry(name).or_insert_with(|| {
            let small = payload.in_memory().filter(|bytes| bytes.len() < from);
            self.bodies.number(small.is_none().into());
            match small {
                Some(bytes) => {
                    self.bodies.count(bytes.len());
                    self.small.push(bytes.clone());
                }
                None => {
                    self.bodies.count(self.large.len());
                    self.large.push((name, payload.clone()));
                }
            }
            next
        })
    }

    fn fields(&mut self, fields: &Fields) -> usize {
        let (given, varies, ranges) = fields.parts();
        let mut entry = ByteWriter::default();
        entry.number(varies.into());
        entry.number(ranges.into());
        entry.count(given.len());
        for (name, value) in given {
            entry.bytes(name.as_str().as_bytes());
            entry.bytes(value.as_bytes());
        }
        self.fields.number(entry)
    }

    fn resource(&mut self, resource: &Arc<Resource>) -> usize {
        if let Some(number) = self.seen.get(&Arc::as_ptr(resource)) {
            return *number;
        }
        let mut entry = ByteWriter::default();
        match &**resource {
            Resource::Redirect(location) => {
                entry.number(0);
                entry.bytes(location.as_bytes());
            }
            Resource::Body(body) => {
                entry.number(body.status.as_u16().into());
                entry.count(self.fields(&body.fields));
                entry.number(body.cache_tag.is_some().into());
                if let Some(tag) = &body.cache_tag {
                    entry.bytes(tag.as_bytes());
                }
                let identity = body.variants.identity();
                entry.number(identity.is_some().into());
                if let Some(identity) = identity {
                    let (_, is_compressible, _) = body.fields.parts();
                    let from = match is_compressible && !self.is_common {
                        true => MIN_BLOB_BYTES,
                        false => MIN_SHARED_BLOB_BYTES,
                    };
                    entry.count(self.body(&identity.bytes, from));
                    entry.bytes(identity.etag.as_bytes());
                }
            }
        }
        let number = self.resources.number(entry);
        self.seen.insert(Arc::as_ptr(resource), number);
        number
    }

    fn place(&mut self, placed: &AddressPages, to: &mut ByteWriter) {
        // No host: the address holds files that the pages of other tenants use, too.
        self.is_common = placed.host.is_empty();
        to.bytes(placed.host.as_bytes());
        to.bytes(placed.prefix.as_bytes());
        let resources = &placed.pages.resources;
        self.table(resources.pages(), to);
        self.places += 1;
        let next = self.places;
        let first = *self
            .files
            .entry(Arc::as_ptr(resources.files()))
            .or_insert(next);
        to.number(first);
        if first == next {
            self.table(resources.files(), to);
        }
        for errors in [&placed.pages.not_found, &placed.pages.method_not_allowed] {
            to.count(errors.len());
            for (part, resource) in errors {
                to.bytes(part.as_bytes());
                to.count(self.resource(resource));
            }
        }
        let rules = placed.pages.redirects.rules();
        to.count(rules.len());
        for rule in rules {
            write_rule(rule, to);
        }
    }

    fn table(&mut self, table: &ResourceTable, to: &mut ByteWriter) {
        let mut resources: Vec<_> = table.iter().collect();
        resources.sort_unstable_by_key(|(path, _)| *path);
        to.count(resources.len());
        for (path, resource) in resources {
            to.bytes(path.as_bytes());
            to.count(self.resource(resource));
        }
    }
}

/// Encodes the pages. Returns the bytes, and the blobs in the order in which [`read`] expects them.
pub(super) fn write(places: &[AddressPages]) -> io::Result<(Vec<u8>, BlobPayloads)> {
    let mut writer = PagesEncoder::default();
    let mut last = ByteWriter::default();
    last.count(places.len());
    for placed in places {
        writer.place(placed, &mut last);
    }
    let mut all = ByteWriter::default();
    all.count(writer.by_name.len());
    all.0.extend_from_slice(&writer.bodies.0);
    for table in [&writer.fields, &writer.resources] {
        all.count(table.numbers.len());
        all.0.extend_from_slice(&table.entries);
    }
    all.0.extend_from_slice(&last.0);
    let length: usize = writer.small.iter().map(Bytes::len).sum();
    let mut compressed = Encoder::new(all.0, COMPRESSION_LEVEL)?;
    // The known size limits the memory that the compressor uses for a small tenant.
    compressed.set_pledged_src_size(Some(length as u64))?;
    if length > 1 << DEFAULT_WINDOW_LOG {
        compressed.window_log(WINDOW_LOG)?;
        compressed.long_distance_matching(true)?;
    }
    for bytes in &writer.small {
        compressed.write_all(bytes)?;
    }
    Ok((compressed.finish()?, writer.large))
}

/// The table of bodies: blobs, and small bodies as ranges of the compressed part.
struct BodyTable {
    /// For each body, the number of a blob, or a range of the compressed part.
    places: Vec<Result<usize, Range<usize>>>,
    /// The total length of the small bodies.
    length: usize,
}

impl BodyTable {
    fn read(input: &mut ByteReader<'_>) -> Option<Self> {
        let mut length = 0_usize;
        let places = input.many(|input| {
            if input.is_set()? {
                return Some(Ok(input.count()?));
            }
            let begin = length;
            length = begin.checked_add(input.count()?)?;
            (length <= MAX_SMALL_BODY_BYTES).then_some(Err(begin..length))
        })?;
        Some(Self { places, length })
    }
}

/// The files of an address, as encoded.
enum AddressFiles {
    Own(Vec<(String, usize)>),
    /// The files of the address with this index.
    OfAddress(usize),
}

impl AddressFiles {
    fn read(input: &mut ByteReader<'_>, place: usize) -> Option<Self> {
        let first = input.count()?.checked_sub(1)?;
        match first.cmp(&place) {
            Ordering::Less => Some(Self::OfAddress(first)),
            Ordering::Equal => Some(Self::Own(input.many(with_path)?)),
            Ordering::Greater => None,
        }
    }
}

/// Reads a path and the number of its resource.
fn with_path(input: &mut ByteReader<'_>) -> Option<(String, usize)> {
    Some((input.text()?.to_owned(), input.count()?))
}

/// Decodes pages. `large` holds their blobs in the order in which [`write`] returned them. Returns `None` if the bytes are not valid.
pub(super) fn read(
    pages: &[u8],
    large: &[Payload],
    layout: PagesLayout,
) -> Option<Vec<AddressPages>> {
    let mut input = ByteReader(pages);
    let bodies = BodyTable::read(&mut input)?;
    let fields = input.many(|input| Some(Arc::new(read_fields(input)?)))?;
    let entries = input.many(|input| read_entry(input, &fields))?;
    let mut index = 0;
    let places = input.many(|input| {
        let place = (
            input.text()?.to_owned(),
            input.text()?.to_owned(),
            input.many(with_path)?,
            match layout {
                PagesLayout::ErrorPages | PagesLayout::Redirects | PagesLayout::SharedFiles => {
                    AddressFiles::read(input, index)?
                }
                PagesLayout::FilesAtEachAddress => AddressFiles::Own(Vec::new()),
            },
            input.many(with_path)?,
            match layout {
                PagesLayout::ErrorPages => input.many(with_path)?,
                _ => vec![(String::new(), input.count()?)],
            },
            match layout {
                PagesLayout::ErrorPages | PagesLayout::Redirects => input.many(read_rule)?,
                PagesLayout::SharedFiles | PagesLayout::FilesAtEachAddress => Vec::new(),
            },
        );
        index += 1;
        Some(place)
    })?;
    let small = Bytes::from(decompressed(input.0, bodies.length)?);
    let bodies = bodies.places.into_iter().map(|place| match place {
        Ok(number) => large.get(number).cloned(),
        Err(range) => Some(small.slice(range).into()),
    });
    let bodies: Vec<Payload> = bodies.collect::<Option<_>>()?;
    let resources = entries.into_iter().map(|entry| entry.resource(&bodies));
    let resources: Vec<Arc<Resource>> = resources.collect::<Option<_>>()?;
    let named = |(path, number): (String, usize)| {
        Some((path.into_boxed_str(), resources.get(number)?.clone()))
    };
    let mut placed: Vec<AddressPages> = Vec::with_capacity(places.len());
    for (host, prefix, paths, files, not_found, refused, rules) in places {
        let own = paths.into_iter().map(named);
        let resources_here = match files {
            AddressFiles::Own(files) => {
                let all = own.chain(files.into_iter().map(named));
                all.collect::<Option<Resources>>()?
            }
            AddressFiles::OfAddress(first) => {
                let files = Arc::clone(placed.get(first)?.pages.resources.files());
                Resources::new(own.collect::<Option<_>>()?, files)
            }
        };
        placed.push(AddressPages {
            host,
            prefix,
            pages: MountPages {
                resources: resources_here,
                not_found: not_found.into_iter().map(named).collect::<Option<_>>()?,
                method_not_allowed: refused.into_iter().map(named).collect::<Option<_>>()?,
                redirects: Arc::new(RedirectTable::new(rules)),
            },
        });
    }
    Some(placed)
}

fn write_rule(rule: &RedirectRule, to: &mut ByteWriter) {
    to.bytes(rule.path.as_bytes());
    to.number(rule.is_wildcard.into());
    to.count(rule.conditions.len());
    for condition in &rule.conditions {
        to.bytes(condition.name.as_bytes());
        to.bytes(condition.value.as_bytes());
    }
    match &rule.action {
        RedirectAction::Gone => to.number(StatusCode::GONE.as_u16().into()),
        RedirectAction::Redirect { status, target } => {
            to.number(status.as_u16().into());
            to.bytes(target.written().as_bytes());
        }
    }
}

fn read_rule(input: &mut ByteReader<'_>) -> Option<RedirectRule> {
    let (path, is_wildcard) = (input.text()?.into(), input.is_set()?);
    let conditions = input.many(|input| {
        let (name, value) = (input.text()?.into(), input.text()?.into());
        Some(QueryCondition { name, value })
    })?;
    let status = StatusCode::from_u16(u16::try_from(input.number()?).ok()?).ok()?;
    Some(RedirectRule {
        path,
        is_wildcard,
        conditions: conditions.into(),
        action: match status {
            StatusCode::GONE => RedirectAction::Gone,
            status => RedirectAction::Redirect {
                status,
                target: RedirectTarget::new(input.text()?, is_wildcard)?,
            },
        },
    })
}

/// Decompresses bytes. Returns `None` if the result does not have exactly `length` bytes.
fn decompressed(compressed: &[u8], length: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    // Reads one byte more than expected, to detect a result that is too long.
    let limit = u64::try_from(length).ok()?.checked_add(1)?;
    let decoder = Decoder::with_buffer(compressed).ok()?;
    decoder.take(limit).read_to_end(&mut bytes).ok()?;
    bytes.shrink_to_fit();
    (bytes.len() == length).then_some(bytes)
}

fn read_fields(input: &mut ByteReader<'_>) -> Option<Fields> {
    let varies = input.is_set()?;
    let ranges = input.is_set()?;
    let pairs = input.many(|input| {
        let name = HeaderName::from_bytes(input.bytes()?).ok()?;
        Some((name, read_value(input)?))
    })?;
    if pairs.len() > MAX_FIELDS {
        return None;
    }
    let mut given = HeaderMap::with_capacity(pairs.len());
    for (name, value) in pairs {
        given.append(name, value);
    }
    Some(Fields::new(given, varies, ranges))
}

fn read_value(input: &mut ByteReader<'_>) -> Option<HeaderValue> {
    HeaderValue::from_bytes(input.bytes()?).ok()
}

/// A decoded resource whose body is not attached yet.
enum ResourceEntry {
    Redirect(HeaderValue),
    Body(
        StatusCode,
        Arc<Fields>,
        Option<HeaderValue>,
        Option<(usize, HeaderValue)>,
    ),
}

fn read_entry(input: &mut ByteReader<'_>, fields: &[Arc<Fields>]) -> Option<ResourceEntry> {
    let status = u16::try_from(input.number()?).ok()?;
    if status == 0 {
        return Some(ResourceEntry::Redirect(read_value(input)?));
    }
    let status = StatusCode::from_u16(status).ok()?;
    let fields = fields.get(input.count()?)?.clone();
    let cache_tag = match input.is_set()? {
        true => Some(read_value(input)?),
        false => None,
    };
    let identity = match input.is_set()? {
        true => Some((input.count()?, read_value(input)?)),
        false => None,
    };
    Some(ResourceEntry::Body(status, fields, cache_tag, identity))
}

impl ResourceEntry {
    fn resource(self, bodies: &[Payload]) -> Option<Arc<Resource>> {
        let (status, fields, cache_tag, identity) = match self {
            Self::Redirect(location) => return Some(Arc::new(Resource::Redirect(location))),
            Self::Body(status, fields, tag, identity) => (status, fields, tag, identity),
        };
        let variants = match identity {
            None => Variants::from_iter([]),
            Some((number, etag)) => Variants::from([Variant {
                encoding: ContentEncoding::Identity,
                bytes: bodies.get(number)?.clone(),
                etag,
            }]),
        };
        Some(Arc::new(Resource::Body(Body {
            status,
            fields,
            cache_tag,
            variants,
        })))
    }
}
