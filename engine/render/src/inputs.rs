//! What a tenant is compiled with.

use std::sync::Arc;

use tera::Value;

use super::cache::Cache;
use super::island::Islands;
use super::link::{Deployment, Resolver};
use super::prepared::Prepared;
use super::progress::Progress;
use super::resolve::resolve;
use super::template::{Scope, Templates};
use content::tenant::Site;

/// What a tenant is compiled with.
#[derive(Debug, Clone)]
pub struct Inputs {
    /// What all tenants share.
    pub deployment: Arc<Deployment>,
    /// The tenant's theme.
    pub templates: Arc<Templates>,
    /// The islands.
    pub islands: Arc<Islands>,
    /// What was worked out before.
    pub cache: Arc<Cache>,
    /// What this attempt is busy with.
    pub progress: Arc<Progress>,
}

impl Inputs {
    /// What the templates of a page work with that uses no island yet.
    pub(super) fn scope(&self, site: &Site, resolver: Resolver, prepared: &Arc<Prepared>) -> Scope {
        let mut scope = Scope {
            resolver: resolver.with_assets(&prepared.assets),
            settings: Value::none(),
            prepared: Arc::clone(prepared),
            templates: Arc::clone(&self.templates),
            islands: Arc::clone(&self.islands),
            cache: Arc::clone(&self.cache),
            used: Vec::new(),
            progress: Arc::clone(&self.progress),
            failed: None,
        };
        scope.settings = resolve(&prepared.content.settings, site, &scope);
        scope
    }
}
