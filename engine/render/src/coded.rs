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
    let level = match body.status {
        StatusCode::OK => Level::Page,
        _ => Level::Error,
    };
    Some(Resource::Body(Body {
        status: body.status,
        fields: Arc::clone(&body.fields),
        cache_tag: body.cache_tag.clone(),
        variants: kept_variants(identity.bytes.clone(), true, level, cache),
    }))
}
