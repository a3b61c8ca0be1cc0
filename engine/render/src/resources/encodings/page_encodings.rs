//! Compresses pages of which only the uncompressed bodies exist: pages that were not requested before, and pages of a persisted release.

use std::collections::HashMap;
use std::sync::Arc;

use http::StatusCode;
use rayon::prelude::*;

use crate::compile::cache::Cache;
use crate::resources::encodings::compress::{CompressionLevel, cached_variants};
use release::snapshot::{Body, MountPages, Resource, ResourceTable, Resources};

/// Compresses the pages of a tenant, one address at a time.
///
/// Files that addresses share are compressed once and stay shared. Compressed bodies are looked up in the cache first.
#[derive(Debug)]
pub struct Encoder<'a> {
    cache: &'a Cache,
    /// Tables of files that were compressed: the original and the result.
    files: Vec<(Arc<ResourceTable>, Arc<ResourceTable>)>,
}

impl<'a> Encoder<'a> {
    /// Creates an encoder that has compressed nothing yet.
    #[must_use]
    pub const fn new(cache: &'a Cache) -> Self {
        Self {
            cache,
            files: Vec::new(),
        }
    }

    /// Returns the pages of one address, compressed as if they had been compressed when they were rendered.
    #[must_use]
    pub fn encode(&mut self, pages: &MountPages) -> MountPages {
        let own = pages.resources.pages();
        let errors = pages.not_found.iter().chain(&pages.method_not_allowed);
        let errors = errors.map(|(_, page)| page);
        let coded = EncodedResources::of(own.values().chain(errors), self.cache);
        MountPages {
            resources: Resources::new(
                coded.table(own),
                self.encoded_files(pages.resources.files()),
            ),
            redirects: Arc::clone(&pages.redirects),
            not_found: coded.errors(&pages.not_found),
            method_not_allowed: coded.errors(&pages.method_not_allowed),
        }
    }

    fn encoded_files(&mut self, files: &Arc<ResourceTable>) -> Arc<ResourceTable> {
        let known = self
            .files
            .iter()
            .find(|(known, _)| Arc::ptr_eq(known, files));
        if let Some((_, encoded)) = known {
            return Arc::clone(encoded);
        }
        let encoded = Arc::new(EncodedResources::of(files.values(), self.cache).table(files));
        self.files.push((Arc::clone(files), Arc::clone(&encoded)));
        encoded
    }
}

/// Compressed resources by the memory address of the original.
struct EncodedResources(HashMap<usize, Arc<Resource>>);

impl EncodedResources {
    fn of<'r>(resources: impl Iterator<Item = &'r Arc<Resource>>, cache: &Cache) -> Self {
        let by_place: HashMap<usize, &Arc<Resource>> = resources
            .map(|resource| (Arc::as_ptr(resource).addr(), resource))
            .collect();
        let coded = by_place.into_par_iter().filter_map(|(place, resource)| {
            Some((place, Arc::new(encode_resource(resource, cache)?)))
        });
        Self(coded.collect())
    }

    /// Returns the compressed form of a resource, or the resource itself if there is none.
    fn get(&self, resource: &Arc<Resource>) -> Arc<Resource> {
        let coded = self.0.get(&Arc::as_ptr(resource).addr());
        Arc::clone(coded.unwrap_or(resource))
    }

    fn table(&self, table: &ResourceTable) -> ResourceTable {
        let resources = table.iter();
        resources
            .map(|(path, resource)| (path.clone(), self.get(resource)))
            .collect()
    }

    fn errors(&self, pages: &[(Box<str>, Arc<Resource>)]) -> Vec<(Box<str>, Arc<Resource>)> {
        let pages = pages.iter();
        pages
            .map(|(area, resource)| (area.clone(), self.get(resource)))
            .collect()
    }
}

/// Returns the level at which a body with this status is compressed.
pub(crate) const fn level(status: StatusCode) -> CompressionLevel {
    match status {
        StatusCode::OK => CompressionLevel::Page,
        _ => CompressionLevel::Error,
    }
}

/// Compresses a body. Returns `None` if its type is not compressible or if it is compressed already.
fn encode_resource(resource: &Resource, cache: &Cache) -> Option<Resource> {
    let Resource::Body(body) = resource else {
        return None;
    };
    let (_, varies, _) = body.fields.parts();
    let has_none = body.variants.iter().nth(1).is_none();
    let identity = body.variants.identity().filter(|_| varies && has_none)?;
    let bytes = identity.bytes.in_memory()?;
    Some(Resource::Body(Body {
        status: body.status,
        fields: Arc::clone(&body.fields),
        cache_tag: body.cache_tag.clone(),
        variants: cached_variants(bytes.clone(), true, level(body.status), cache),
    }))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{HeaderMap, HeaderValue};

    use super::*;
    use crate::resources::encodings::compress::variants;
    use crate::resources::encodings::shared_encodings::encodings_of;
    use release::pack::{pack, unpack};
    use release::snapshot::fields::Fields;
    use release::store::AddressPages;

    fn page(status: StatusCode, text: &str, level: CompressionLevel) -> Arc<Resource> {
        let fields = Fields::new(HeaderMap::new(), true, false);
        let body = Bytes::from(text.repeat(100));
        Arc::new(Resource::Body(Body {
            status,
            fields: Arc::new(fields),
            cache_tag: None,
            variants: variants(body, true, level),
        }))
    }

    fn pages(of: impl Fn(CompressionLevel) -> CompressionLevel) -> MountPages {
        let found = page(
            StatusCode::OK,
            "the same words again. ",
            of(CompressionLevel::Page),
        );
        let away = Resource::Redirect(HeaderValue::from_static("/away"));
        MountPages {
            resources: [
                ("/".into(), Arc::clone(&found)),
                ("/same".into(), found),
                ("/away".into(), Arc::new(away)),
            ]
            .into(),
            redirects: Arc::default(),
            not_found: vec![(
                "".into(),
                page(
                    StatusCode::NOT_FOUND,
                    "nothing ",
                    of(CompressionLevel::Error),
                ),
            )],
            method_not_allowed: vec![(
                "".into(),
                page(
                    StatusCode::METHOD_NOT_ALLOWED,
                    "no ",
                    of(CompressionLevel::Error),
                ),
            )],
        }
    }

    fn tags(resource: &Resource) -> Vec<HeaderValue> {
        match resource {
            Resource::Body(body) => body.variants.iter().map(|one| one.etag.clone()).collect(),
            Resource::Redirect(to) => vec![to.clone()],
        }
    }

    #[test]
    fn pages_compressed_later_equal_pages_compressed_at_once() {
        let (now, later) = (pages(|level| level), pages(|_| CompressionLevel::Later));
        assert_eq!(tags(&later.resources["/"]).len(), 1, "not compressed yet");
        let coded = Encoder::new(&Cache::default()).encode(&later);
        for path in ["/", "/same", "/away"] {
            assert_eq!(
                tags(&coded.resources[path]),
                tags(&now.resources[path]),
                "{path}"
            );
        }
        assert!(Arc::ptr_eq(
            &coded.resources["/"],
            &coded.resources["/same"]
        ));
        assert_eq!(tags(&coded.not_found[0].1), tags(&now.not_found[0].1));
        assert_eq!(
            tags(&coded.method_not_allowed[0].1),
            tags(&now.method_not_allowed[0].1)
        );
    }

    #[test]
    fn encodings_of_another_process_are_not_made_again() {
        let own = |pages| {
            vec![AddressPages {
                host: "corner.example".to_owned(),
                prefix: String::new(),
                pages,
            }]
        };
        let now = own(pages(|level| level));
        let later = own(pages(|_| CompressionLevel::Later));
        let encodings = encodings_of(&now);
        assert_eq!(encodings, encodings_of(&later));
        let cache = Cache::default();
        // Other bytes, to see where they come from.
        let marked = |bytes: &Bytes| {
            let parts = unpack(bytes).expect("packed");
            let parts = parts.iter().map(|(token, _)| (&token[..], &b"marked"[..]));
            Bytes::from(pack(parts))
        };
        cache.add(encodings.iter().map(|(key, bytes)| (*key, marked(bytes))));
        let coded = Encoder::new(&cache).encode(&later[0].pages);
        for resource in [&coded.resources["/"], &coded.not_found[0].1] {
            let Resource::Body(body) = &**resource else {
                panic!("a body");
            };
            let mut encoded = body.variants.iter().map(|variant| &variant.bytes);
            let first = encoded.next().and_then(|bytes| bytes.in_memory());
            assert_eq!(first, Some(&Bytes::from("marked")));
        }
        assert!(!cache.has_grown() && cache.used().is_empty());
    }
}
