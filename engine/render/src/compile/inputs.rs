//! What a tenant is compiled with.

use std::sync::{Arc, Mutex};

use tera::Value;

use crate::compile::cache::Cache;
use crate::compile::prepared_tenant::PreparedTenant;
use crate::compile::progress::Progress;
use crate::images::svg::sprite::Sprite;
use crate::island::Islands;
use crate::markdown::element_ids::PageIds;
use crate::pages::links::resolver::{Deployment, Resolver};
use crate::pages::resolve::resolve;
use crate::resources::encodings::compress::Level;
use crate::theme::{Scope, Templates};
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
    /// Whether bodies are compressed; else [`Compiled::set_aside`](crate::Compiled::set_aside) is to follow.
    pub compresses: bool,
}

impl Inputs {
    /// How hard to compress what a tenant answers, which is as hard as `level`, or not at all for now.
    pub(crate) const fn level(&self, level: Level) -> Level {
        match self.compresses {
            true => level,
            false => Level::Later,
        }
    }

    /// What the templates of a page work with that uses no island yet.
    pub(crate) fn scope(
        &self,
        site: &Site,
        resolver: Resolver,
        prepared: &Arc<PreparedTenant>,
    ) -> Scope {
        let mut scope = Scope {
            resolver: resolver.with_assets(&prepared.assets),
            settings: Value::none(),
            prepared: Arc::clone(prepared),
            templates: Arc::clone(&self.templates),
            islands: Arc::clone(&self.islands),
            cache: Arc::clone(&self.cache),
            used: Vec::new(),
            apart: Sprite::default(),
            ids: Arc::new(Mutex::new(PageIds::new(Arc::clone(&self.templates.ids)))),
            progress: Arc::clone(&self.progress),
            ui_strings: Default::default(),
            failed: None,
        };
        scope.settings = resolve(&prepared.content.settings, site, &scope);
        scope
    }
}
