//! Renders tenants with all pages and images, a few at a time, because an export of all tenants may exceed the memory.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use rayon::prelude::*;
use tracing::warn;

use release::snapshot::Resource;
use render::Cache;
use render::Compiled;
use render::Picture;

use crate::jobs::render_threads::ThreadLease;
use crate::runner::catalog::tenant::{TenantData, render};
use crate::runner::registry::Registry;

/// The number of tenants that are complete in memory at the same time.
const BATCH_SIZE: usize = 16;

/// A tenant with all its pages and images.
#[derive(Debug)]
pub struct CompleteTenant {
    /// The pages at all addresses.
    pub compiled: Compiled,
    /// The images, by host and path.
    pub pictures: BTreeMap<(String, String), Arc<Resource>>,
}

/// Calls `take` with each tenant that has pages, in the order of their names.
///
/// # Errors
/// Returns the first error of `take`.
pub(crate) fn each<E>(
    registry: &Registry,
    compressed: bool,
    mut take: impl FnMut(&CompleteTenant) -> Result<(), E>,
) -> Result<(), E> {
    let secure = registry.settings.is_secure();
    let tenants = registry.catalog.tenants.values();
    let tenants: Vec<&TenantData> = tenants.map(AsRef::as_ref).collect();
    for batch in tenants.chunks(BATCH_SIZE) {
        let complete = batch
            .par_iter()
            .map(|tenant| whole(tenant, compressed, secure));
        let complete: Vec<Option<CompleteTenant>> = complete.collect();
        complete.iter().flatten().try_for_each(&mut take)?;
    }
    Ok(())
}

fn whole(data: &TenantData, compressed: bool, secure: bool) -> Option<CompleteTenant> {
    let known = data.compiled()?;
    let mut compiled = match known.is_open() && !known.is_uncompressed() {
        true => rendered_again(data)?,
        false => Compiled::clone(known),
    };
    if compressed {
        compiled = compiled.with_all_encodings();
    }
    let mut named = HashSet::new();
    let pictures = compiled.pictures.iter();
    let drawings: Vec<&Picture> = pictures
        .filter(|picture| named.insert(picture.digest()))
        .collect();
    let drawn = |picture: &&Picture| match picture.drawn(&compiled, secure) {
        Ok(drawn) => Some((picture.digest(), Arc::new(drawn))),
        Err(problem) => {
            warn!(problem, "image cannot be rendered; omitting the image");
            None
        }
    };
    let drawn: HashMap<_, _> = drawings.par_iter().filter_map(drawn).collect();
    let placed = |picture: &Picture| {
        let place = (picture.host.clone(), picture.path.clone());
        Some((place, Arc::clone(drawn.get(&picture.digest())?)))
    };
    let pictures = compiled.pictures.iter().filter_map(placed).collect();
    // The cached results are not needed again: a pass without uses empties the cache.
    compiled.cache.begin();
    compiled.cache.used();
    Some(CompleteTenant { compiled, pictures })
}

/// Renders the current pages of an evicted tenant with a cache of their own, so that no result stays in memory.
fn rendered_again(data: &TenantData) -> Option<Compiled> {
    let mut made_from = data.served.as_ref()?.made_from.clone();
    made_from.inputs.cache = Arc::new(Cache::default());
    made_from.inputs.progress = Arc::default();
    render(&made_from, &ThreadLease::default()).0
}
