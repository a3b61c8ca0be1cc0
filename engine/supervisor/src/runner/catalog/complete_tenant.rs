//! Renders tenants with all pages and images, a few at a time, because an export of all tenants may exceed the memory.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use rayon::prelude::*;
use tracing::warn;

use release::snapshot::Resource;
use render::Cache;
use render::CompiledTenant;
use render::GeneratedImage;

use crate::jobs::render_threads::ThreadLease;
use crate::runner::catalog::tenant::{TenantData, render};
use crate::runner::registry::Registry;

/// The number of tenants that are complete in memory at the same time.
const BATCH_TENANTS: usize = 16;

/// A tenant with all its pages and images.
#[derive(Debug)]
pub struct CompleteTenant {
    /// The pages at all addresses.
    pub compiled: CompiledTenant,
    /// The images, by host and path.
    pub images: BTreeMap<(String, String), Arc<Resource>>,
    /// The Markdown forms of the pages, by path below the tenant's addresses.
    pub markdown: BTreeMap<String, Arc<Resource>>,
}

/// Calls `visit` with each tenant that has pages, in the order of their names.
///
/// # Errors
/// Returns the first error of `visit`.
pub(crate) fn for_each<E>(
    registry: &Registry,
    is_compressed: bool,
    mut visit: impl FnMut(&CompleteTenant) -> Result<(), E>,
) -> Result<(), E> {
    let is_secure = registry.settings.is_secure();
    let tenants = registry.catalog.tenants.values();
    let tenants: Vec<&TenantData> = tenants.map(AsRef::as_ref).collect();
    for batch in tenants.chunks(BATCH_TENANTS) {
        let complete = batch
            .par_iter()
            .map(|tenant| complete_tenant(tenant, is_compressed, is_secure));
        let complete: Vec<Option<CompleteTenant>> = complete.collect();
        complete.iter().flatten().try_for_each(&mut visit)?;
    }
    Ok(())
}

fn complete_tenant(
    data: &TenantData,
    is_compressed: bool,
    is_secure: bool,
) -> Option<CompleteTenant> {
    let known = data.compiled()?;
    let mut compiled = match known.is_open() && !known.is_uncompressed() {
        true => render_again(data)?,
        false => CompiledTenant::clone(known),
    };
    if is_compressed {
        compiled = compiled.with_all_encodings();
    }
    let mut named = HashSet::new();
    let images = compiled.images.iter();
    let distinct: Vec<&GeneratedImage> = images
        .filter(|image| named.insert(image.digest()))
        .collect();
    let drawn = |image: &&GeneratedImage| match image.render(&compiled, is_secure) {
        Ok(drawn) => Some((image.digest(), Arc::new(drawn))),
        Err(problem) => {
            warn!(problem, "image cannot be rendered; omitting the image");
            None
        }
    };
    let drawn: HashMap<_, _> = distinct.par_iter().filter_map(drawn).collect();
    let placed = |image: &GeneratedImage| {
        let place = (image.host.clone(), image.path.clone());
        Some((place, Arc::clone(drawn.get(&image.digest())?)))
    };
    let images = compiled.images.iter().filter_map(placed).collect();
    let markdown = compiled.markdown_forms().filter_map(|form| match form {
        Ok(form) => Some(form),
        Err(problem) => {
            warn!(
                problem,
                "page cannot be converted to Markdown; omitting the Markdown form"
            );
            None
        }
    });
    let markdown = markdown.collect();
    // The cached results are not needed again: a pass without uses empties the cache.
    compiled.cache.begin();
    compiled.cache.used();
    Some(CompleteTenant {
        compiled,
        images,
        markdown,
    })
}

/// Renders the current pages of an evicted tenant with a cache of their own, so that no result stays in memory.
fn render_again(data: &TenantData) -> Option<CompiledTenant> {
    let mut made_from = data.served.as_ref()?.made_from.clone();
    made_from.inputs.cache = Arc::new(Cache::default());
    made_from.inputs.attempt = Arc::default();
    render(&made_from, &ThreadLease::default()).0
}
