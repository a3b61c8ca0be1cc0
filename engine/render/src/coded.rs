//! Pages of which there are only the bodies as they are, compressed so that they can be served: nobody had asked for them, or they are of a release, which keeps no codings.

use std::collections::HashMap;
use std::sync::Arc;

use http::StatusCode;
use rayon::prelude::*;

use super::cache::Cache;
use super::compress::{Level, kept_variants};
use release::snapshot::{Body, Pages, Resource};

/// The same pages in the codings that pages have when they are rendered. What is shared stays shared, and what was compressed before is taken from the cache.
#[must_use]
pub fn coded(pages: &Pages, cache: &Cache) -> Pages {
    let found = pages.resources.values();
    let all = found.chain(pages.not_found.iter().map(|(_, page)| page));
    let all = all.chain([&pages.method_not_allowed]);
    let by_place: HashMap<*const Resource, &Arc<Resource>> =
        all.map(|page| (Arc::as_ptr(page), page)).collect();
    let resources: Vec<&Arc<Resource>> = by_place.into_values().collect();
    let coded: HashMap<usize, Arc<Resource>> = resources
        .into_par_iter()
        .filter_map(|resource| {
            Some((
                Arc::as_ptr(resource).addr(),
                Arc::new(one(resource, cache)?),
            ))
        })
        .collect();
    let of = |resource: &Arc<Resource>| {
        let coded = coded.get(&Arc::as_ptr(resource).addr());
        Arc::clone(coded.unwrap_or(resource))
    };
    Pages {
        resources: (pages.resources.iter())
            .map(|(path, resource)| (path.clone(), of(resource)))
            .collect(),
        not_found: (pages.not_found.iter())
            .map(|(part, resource)| (part.clone(), of(resource)))
            .collect(),
        method_not_allowed: of(&pages.method_not_allowed),
    }
}

/// A body that may have codings and has none, with them.
fn one(resource: &Resource, cache: &Cache) -> Option<Resource> {
    let Resource::Body(body) = resource else {
        return None;
    };
    let (_, varies, _) = body.fields.given();
    let has_none = body.variants.iter().nth(1).is_none();
    let identity = body.variants.identity().filter(|_| varies && has_none)?;
    let bytes = identity.bytes.in_memory()?;
    let level = match body.status {
        StatusCode::OK => Level::Page,
        _ => Level::Error,
    };
    Some(Resource::Body(Body {
        status: body.status,
        fields: Arc::clone(&body.fields),
        cache_tag: body.cache_tag.clone(),
        variants: kept_variants(bytes.clone(), true, level, cache),
    }))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{HeaderMap, HeaderValue};

    use super::*;
    use crate::compress::variants;
    use release::snapshot::fields::Fields;

    fn page(status: StatusCode, text: &str, level: Level) -> Arc<Resource> {
        let fields = Fields::new(HeaderMap::new(), true, false);
        let body = Bytes::from(text.repeat(100));
        Arc::new(Resource::Body(Body {
            status,
            fields: Arc::new(fields),
            cache_tag: None,
            variants: variants(body, true, level),
        }))
    }

    fn pages(of: impl Fn(Level) -> Level) -> Pages {
        let found = page(StatusCode::OK, "the same words again. ", of(Level::Page));
        let away = Resource::Redirect(HeaderValue::from_static("/away"));
        Pages {
            resources: [
                ("/".into(), Arc::clone(&found)),
                ("/same".into(), found),
                ("/away".into(), Arc::new(away)),
            ]
            .into(),
            not_found: vec![(
                "".into(),
                page(StatusCode::NOT_FOUND, "nothing ", of(Level::Error)),
            )],
            method_not_allowed: page(StatusCode::METHOD_NOT_ALLOWED, "no ", of(Level::Error)),
        }
    }

    fn tags(resource: &Resource) -> Vec<HeaderValue> {
        match resource {
            Resource::Body(body) => body.variants.iter().map(|one| one.etag.clone()).collect(),
            Resource::Redirect(to) => vec![to.clone()],
        }
    }

    #[test]
    fn what_is_compressed_later_is_as_if_it_had_been_compressed_at_once() {
        let (now, later) = (pages(|level| level), pages(|_| Level::Later));
        assert_eq!(tags(&later.resources["/"]).len(), 1, "nothing yet");
        let coded = coded(&later, &Cache::default());
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
            tags(&coded.method_not_allowed),
            tags(&now.method_not_allowed)
        );
    }
}
