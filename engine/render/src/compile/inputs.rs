//! The inputs of a compilation.

use std::sync::{Arc, Mutex};

use tera::Value;

use crate::compile::cache::Cache;
use crate::compile::prepared_tenant::PreparedTenant;
use crate::compile::watchdog::RenderAttempt;
use crate::images::svg::sprite::Sprite;
use crate::island::Islands;
use crate::markdown::element_ids::PageIds;
use crate::pages::links::resolver::{DeploymentFacts, Resolver};
use crate::pages::values::resolve::resolve;
use crate::resources::encodings::compress::CompressionLevel;
use crate::theme::{PageScope, Templates};
use content::tenant::Site;

/// The inputs of a compilation, beside the tenant and its addresses.
#[derive(Debug, Clone)]
pub struct CompileInputs {
    /// The facts that all tenants share.
    pub deployment: Arc<DeploymentFacts>,
    /// The tenant's theme.
    pub templates: Arc<Templates>,
    /// The islands.
    pub islands: Arc<Islands>,
    /// The results of costly work of earlier compilations.
    pub cache: Arc<Cache>,
    /// The pages that this attempt is rendering.
    pub attempt: Arc<RenderAttempt>,
    /// Whether bodies are compressed. If not, the caller must call [`CompiledTenant::set_aside`](crate::CompiledTenant::set_aside) next.
    pub compresses: bool,
}

impl CompileInputs {
    /// Returns the compression level for the tenant's bodies: `level`, or [`CompressionLevel::Later`] if compression is postponed.
    pub(crate) const fn level(&self, level: CompressionLevel) -> CompressionLevel {
        match self.compresses {
            true => level,
            false => CompressionLevel::Later,
        }
    }

    /// Creates the scopes in which the templates of pages run, one for each language of the tenant. They have used no island yet.
    pub(crate) fn scopes(
        &self,
        site: &Site,
        resolver: &Resolver,
        prepared: &Arc<PreparedTenant>,
    ) -> Vec<PageScope> {
        let languages = 0..prepared.languages.len();
        languages
            .map(|language| {
                let resolver = resolver.clone().in_language(site, language);
                self.scope(site, resolver, prepared, language)
            })
            .collect()
    }

    fn scope(
        &self,
        site: &Site,
        resolver: Resolver,
        prepared: &Arc<PreparedTenant>,
        language: usize,
    ) -> PageScope {
        let mut scope = PageScope {
            resolver: resolver.with_assets(&prepared.assets),
            settings: Value::none(),
            prepared: Arc::clone(prepared),
            language,
            templates: Arc::clone(&self.templates),
            islands: Arc::clone(&self.islands),
            cache: Arc::clone(&self.cache),
            used: Vec::new(),
            sprite: Sprite::default(),
            ids: Arc::new(Mutex::new(PageIds::new(Arc::clone(&self.templates.ids)))),
            attempt: Arc::clone(&self.attempt),
            ui_strings: Default::default(),
            failed: None,
        };
        scope.settings = resolve(prepared.content.settings(language), site, &scope);
        scope
    }
}
