//! What the flags about content describe, made ready.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use rowhouse_ui::Bundle;

use crate::cli::Content;
use crate::reload::{Persisted, Places, Registry};
use render::Islands;
use render::policy::Caching;

/// The registry that the flags describe, with nothing read yet. `state`: where things are kept; `dev`: for authors.
pub(super) fn registry(
    content: &Content,
    caching: Caching,
    state: Option<&Path>,
    dev: bool,
) -> anyhow::Result<Registry> {
    let bundle = match &content.ui_dist {
        Some(directory) => Bundle::from_dir(directory),
        None => Bundle::embedded(),
    }
    .context("cannot use the islands")?;
    let beside = Path::new("themes");
    let places = Places {
        tenants: content.tenants.clone(),
        themes: content
            .themes
            .clone()
            .or_else(|| beside.is_dir().then(|| beside.to_owned())),
        deployment: content.deployment.clone(),
        origin: content.origin.clone(),
        caching,
    };
    let secure = content.origin.is_secure();
    let persisted = state.map(|state| Persisted::open(state, &places));
    let cache = persisted
        .as_ref()
        .map(Persisted::islands_cache)
        .unwrap_or_default();
    let mut islands = Islands::kept(bundle, secure, &cache);
    if dev {
        islands = islands.with_dev_script(secure);
    }
    let registry = Registry::new(places, Arc::new(islands));
    Ok(match persisted {
        None => registry,
        Some(persisted) => {
            persisted.keep_islands(&cache);
            registry.with_kept(persisted)
        }
    })
}
