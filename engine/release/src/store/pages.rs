//! The pages of a release as bytes, with the names of blobs in place of bodies.
//!
//! Four tables stand behind each other: blobs, header fields, resources, places. Each entry of a table is there once and named by its number in those that follow, so what was shared is shared again after reading.
//!
//! **Invariant:** knows no disk. The same pages give the same bytes.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::blobs::Name;
use super::format::{Input, Output};
use crate::snapshot::fields::Fields;
use crate::snapshot::{Body, Coding, Pages, Resource, Variant, Variants};

/// What a tenant answers at one place.
#[derive(Debug, Clone)]
pub struct PlacedPages {
    /// The host's name: lower case, no port.
    pub host: String,
    /// `/corner`, or empty at the root of the host.
    pub prefix: String,
    /// What is answered there, by the path below the prefix.
    pub pages: Pages,
}

/// More fields than a body has. A header map panics where it gets too many.
const MOST_FIELDS: usize = 1024;

/// Entries that are told apart by their bytes.
#[derive(Default)]
struct Table {
    numbers: HashMap<Vec<u8>, usize>,
    entries: Vec<u8>,
}

impl Table {
    /// The number of an entry, which is added when it is new.
    fn number(&mut self, entry: Output) -> usize {
        let next = self.numbers.len();
        *self.numbers.entry(entry.0).or_insert_with_key(|entry| {
            self.entries.extend_from_slice(entry);
            next
        })
    }
}

/// The tables while they are filled.
#[derive(Default)]
struct Writer {
    blobs: Vec<(Name, Bytes)>,
    by_name: HashMap<Name, usize>,
    /// By where bytes are in memory: what is shared is hashed once.
    by_place: HashMap<(*const u8, usize), usize>,
    fields: Table,
    resources: Table,
    /// By where a resource is in memory.
    seen: HashMap<*const Resource, usize>,
}

impl Writer {
    fn blob(&mut self, bytes: &Bytes) -> usize {
        let place = (bytes.as_ptr(), bytes.len());
        *self.by_place.entry(place).or_insert_with(|| {
            let name = Name::of(bytes);
            *self.by_name.entry(name).or_insert_with(|| {
                self.blobs.push((name, bytes.clone()));
                self.blobs.len() - 1
            })
        })
    }

    fn fields(&mut self, fields: &Fields) -> usize {
        let (given, varies, ranges) = fields.given();
        let mut entry = Output::default();
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
        let mut entry = Output::default();
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
                let variants: Vec<&Variant> = body.variants.iter().collect();
                entry.count(variants.len());
                for variant in variants {
                    entry.bytes(variant.coding.token().as_bytes());
                    entry.count(self.blob(&variant.bytes));
                    entry.bytes(variant.etag.as_bytes());
                }
            }
        }
        let number = self.resources.number(entry);
        self.seen.insert(Arc::as_ptr(resource), number);
        number
    }

    fn place(&mut self, placed: &PlacedPages, to: &mut Output) {
        to.bytes(placed.host.as_bytes());
        to.bytes(placed.prefix.as_bytes());
        let mut resources: Vec<_> = placed.pages.resources.iter().collect();
        resources.sort_unstable_by_key(|(path, _)| *path);
        to.count(resources.len());
        for (path, resource) in resources {
            to.bytes(path.as_bytes());
            to.count(self.resource(resource));
        }
        to.count(placed.pages.not_found.len());
        for (part, resource) in &placed.pages.not_found {
            to.bytes(part.as_bytes());
            to.count(self.resource(resource));
        }
        to.count(self.resource(&placed.pages.method_not_allowed));
    }
}

/// The pages as bytes, and the blobs that these name.
pub(super) fn write(places: &[PlacedPages]) -> (Vec<u8>, Vec<(Name, Bytes)>) {
    let mut writer = Writer::default();
    let mut last = Output::default();
    last.count(places.len());
    for placed in places {
        writer.place(placed, &mut last);
    }
    let mut all = Output::default();
    all.count(writer.blobs.len());
    for (name, bytes) in &writer.blobs {
        all.bytes(&name.0);
        all.count(bytes.len());
    }
    for table in [&writer.fields, &writer.resources] {
        all.count(table.numbers.len());
        all.0.extend_from_slice(&table.entries);
    }
    all.0.extend_from_slice(&last.0);
    (all.0, writer.blobs)
}

/// The blobs that pages name, each with its length in bytes; `None` when these are no pages.
pub(super) fn blobs(pages: &[u8]) -> Option<Vec<(Name, u64)>> {
    blob_table(&mut Input(pages))
}

fn blob_table(input: &mut Input<'_>) -> Option<Vec<(Name, u64)>> {
    input.many(|input| Some((Name(input.hash()?), input.number()?)))
}

/// The pages, with all the blobs that [`blobs`] named, in that order; `None` when these are no pages.
pub(super) fn read(pages: &[u8], blobs: &[Bytes]) -> Option<Vec<PlacedPages>> {
    let mut input = Input(pages);
    blob_table(&mut input)?;
    let fields = input.many(|input| Some(Arc::new(read_fields(input)?)))?;
    let resources = input.many(|input| Some(Arc::new(read_resource(input, &fields, blobs)?)))?;
    let resource = |input: &mut Input<'_>| resources.get(input.count()?).cloned();
    let with_path = |input: &mut Input<'_>| Some((input.text()?.into(), resource(input)?));
    let places = input.many(|input| {
        Some(PlacedPages {
            host: input.text()?.to_owned(),
            prefix: input.text()?.to_owned(),
            pages: Pages {
                resources: input.many(with_path)?.into_iter().collect(),
                not_found: input.many(with_path)?,
                method_not_allowed: resource(input)?,
            },
        })
    })?;
    input.0.is_empty().then_some(places)
}

fn read_fields(input: &mut Input<'_>) -> Option<Fields> {
    let varies = input.is_set()?;
    let ranges = input.is_set()?;
    let pairs = input.many(|input| {
        let name = HeaderName::from_bytes(input.bytes()?).ok()?;
        Some((name, read_value(input)?))
    })?;
    if pairs.len() > MOST_FIELDS {
        return None;
    }
    let mut given = HeaderMap::with_capacity(pairs.len());
    for (name, value) in pairs {
        given.append(name, value);
    }
    Some(Fields::new(given, varies, ranges))
}

fn read_value(input: &mut Input<'_>) -> Option<HeaderValue> {
    HeaderValue::from_bytes(input.bytes()?).ok()
}

fn read_resource(
    input: &mut Input<'_>,
    fields: &[Arc<Fields>],
    blobs: &[Bytes],
) -> Option<Resource> {
    let status = u16::try_from(input.number()?).ok()?;
    if status == 0 {
        return Some(Resource::Redirect(read_value(input)?));
    }
    Some(Resource::Body(Body {
        status: StatusCode::from_u16(status).ok()?,
        fields: fields.get(input.count()?)?.clone(),
        cache_tag: match input.is_set()? {
            true => Some(read_value(input)?),
            false => None,
        },
        variants: Variants::new(
            input
                .many(|input| {
                    let token = input.bytes()?;
                    Some(Variant {
                        coding: Coding::ALL
                            .into_iter()
                            .find(|coding| coding.token().as_bytes() == token)?,
                        bytes: blobs.get(input.count()?)?.clone(),
                        etag: read_value(input)?,
                    })
                })?
                .into(),
        ),
    }))
}
