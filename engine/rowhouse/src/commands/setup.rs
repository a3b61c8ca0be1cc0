//! The registry of tenants as the content flags describe it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use rowhouse_ui::Bundle;

use super::memory;
use crate::cli::ContentFlags;
use release::store::RetentionLimits;
use render::CachePolicy;
use render::Islands;
use supervisor::{DeploymentConfig, PersistedState, Registry};

/// Returns the folder of themes: `named`, or else `themes` if it exists.
pub(super) fn themes_folder(named: Option<&Path>) -> Option<PathBuf> {
    let default = Path::new("themes");
    let existing = || default.is_dir().then_some(default);
    named.or_else(existing).map(ToOwned::to_owned)
}

/// The folder of `--state`.
#[derive(Debug, Clone, Copy)]
pub(super) struct StateSettings<'a> {
    pub(super) folder: &'a Path,
    pub(super) limits: RetentionLimits,
    /// Whether the server starts although the folder cannot be written.
    pub(super) is_optional: bool,
}

impl StateSettings<'_> {
    fn open(self, config: &DeploymentConfig) -> anyhow::Result<PersistedState> {
        let persisted = PersistedState::open(self.folder, config, self.limits);
        if self.is_optional {
            return Ok(persisted);
        }
        persisted.writable().map_err(|error| {
            anyhow!(
                "cannot use `--state {}`: {error}; correct the folder, or add `--state-optional` to serve without it",
                self.folder.display()
            )
        })
    }
}

/// Returns the folders and the origin that the flags describe.
pub(super) fn config(content: &ContentFlags, caching: CachePolicy) -> DeploymentConfig {
    DeploymentConfig {
        tenants: content.tenants.clone(),
        themes: themes_folder(content.themes.as_deref()),
        deployment: content.deployment.clone(),
        origin: content.origin.clone(),
        hsts: content.hsts,
        caching,
    }
}

/// Returns the registry that the flags describe. It has not read a folder yet.
///
/// `state` is the folder of `--state`. `dev` turns on live reload for authors.
pub(super) fn registry(
    content: &ContentFlags,
    caching: CachePolicy,
    state: Option<StateSettings<'_>>,
    dev: bool,
) -> anyhow::Result<Registry> {
    let bundle = match &content.ui_dist {
        Some(directory) => Bundle::from_dir(directory),
        None => Bundle::embedded(),
    }
    .context("cannot use the islands")?;
    let config = config(content, caching);
    let is_secure = content.origin.is_secure();
    let persisted = state.map(|state| state.open(&config)).transpose()?;
    let mut islands = Islands::new(bundle, is_secure);
    if dev {
        islands = islands.with_dev_script(is_secure);
    }
    let mut registry =
        Registry::new(config, Arc::new(islands)).with_work_memory(memory::for_work(memory::half()));
    if content.shows_section_examples {
        registry = registry.with_section_examples();
    }
    Ok(match persisted {
        None => registry,
        Some(persisted) => registry.with_persisted(persisted),
    })
}
