//! The inputs of a compilation.

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

/// The inputs of a compilation, beside the tenant and its addresses.
#[derive(Debug, Clone)]
pub struct Inputs {
    /// The facts that all tenants share.
    pub deployment: Arc<Deployment>,
    /// The tenant's theme.
    pub templates: Arc<Templates>,
    /// The islands.
    pub islands: Arc<Islands>,
    /// The results of costly work of earlier compilations.
    pub cache: Arc<Cache>,
    /// The pages that this attempt is rendering.
    pub progress: Arc<Progress>,
    /// Whether bodies are compressed. If not, the caller must call [`Compiled::set_aside`](crate::Compiled::set_aside) next.
    pub compresses: bool,
}

impl Inputs {
    /// Returns the compression level for the tenant's bodies: `level`, or [`Level::Later`] if compression is postponed.
    pub(crate) const fn level(&self, level: Level) -> Level {
        match self.compresses {
            true => level,
            false => Level::Later,
        }
    }

    /// Creates the scope in which a page's templates run. It has used no island yet.
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
            sprite: Sprite::default(),
            ids: Arc::new(Mutex::new(PageIds::new(Arc::clone(&self.templates.ids)))),
            progress: Arc::clone(&self.progress),
            ui_strings: Default::default(),
            failed: None,
        };
        scope.settings = resolve(&prepared.content.settings, site, &scope);
        scope
    }
}
