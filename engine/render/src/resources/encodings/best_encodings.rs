//! Finds bodies whose best content encoding is not made yet, and makes it.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use rayon::prelude::*;

use crate::compile::cache::{Cache, CacheKey};
use crate::compile::compiled_tenant::{AddressMount, CompiledTenant};
use crate::resources::encodings::compress;
use crate::resources::encodings::page_encodings::Encoder;
use release::snapshot::resources::ResourceWalk;
use release::snapshot::{Body, Resource};

/// A task that makes the best content encoding of a body.
#[derive(Debug)]
pub struct CompressTask {
    resource: Arc<Resource>,
    cache: Arc<Cache>,
    name: String,
}

impl CompressTask {
    /// Returns a number that identifies the body as long as this value exists.
    #[must_use]
    pub fn place(&self) -> usize {
        Arc::as_ptr(&self.resource).addr()
    }

    /// Returns the tenant's id and the path, for logs.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes the best content encoding of the body. Responses use it from then on.
    pub fn improve(&self) {
        if let Resource::Body(body) = &*self.resource {
            compress::improve(&body.variants, &self.cache);
        }
    }
}

impl CompiledTenant {
    /// Returns the tenant with its pages in every content encoding, including the best encodings.
    #[must_use]
    pub fn with_all_encodings(&self) -> Self {
        let mut encoder = Encoder::new(&self.cache);
        let with = |placed: &AddressMount| match placed.pages() {
            Some(pages) => placed.with_pages(encoder.encode(pages)),
            None => placed.clone(),
        };
        let coded = Self {
            mounts: self.mounts.iter().map(with).collect(),
            ..self.clone()
        };
        let tasks: Vec<CompressTask> = coded.compress_tasks().collect();
        tasks.into_par_iter().for_each(|body| body.improve());
        coded
    }

    /// Returns a task for each body whose best content encoding is not made yet.
    pub fn compress_tasks(&self) -> impl Iterator<Item = CompressTask> {
        let resources = self.resources();
        resources.filter_map(|(placed, path, resource)| match &**resource {
            Resource::Body(Body { variants, .. }) if variants.can_improve() => Some(CompressTask {
                resource: Arc::clone(resource),
                cache: Arc::clone(&self.cache),
                name: format!("{}: {}{path}", placed.mount.tenant, placed.mount.prefix),
            }),
            _ => None,
        })
    }

    /// Returns the best content encodings of all bodies, as far as they are made, for the [`Cache`] of another process.
    #[must_use]
    pub fn best_encodings(&self) -> BTreeMap<CacheKey, Bytes> {
        let bodies = self.resources().filter_map(|(_, _, resource)| {
            let Resource::Body(body) = &**resource else {
                return None;
            };
            let (_, varies, _) = body.fields.parts();
            let made = || compress::made_best(&body.variants, &self.cache);
            varies.then(made).flatten()
        });
        bodies.collect()
    }

    /// Returns the resources of all filled mounts with their paths. Resources that addresses share are returned once.
    fn resources(&self) -> impl Iterator<Item = (&AddressMount, &str, &Arc<Resource>)> {
        let mut walk = ResourceWalk::default();
        self.mounts.iter().flat_map(move |placed| {
            let pages = placed.mount.pages.get();
            let resources = pages.map(|pages| walk.visit(&pages.resources));
            let resources = resources.into_iter().flatten();
            resources.map(move |(path, resource)| (placed, path, resource))
        })
    }
}
