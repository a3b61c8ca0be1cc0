//! Chooses between the best encodings of another replica and own ones, for a requested tenant.

use std::sync::Arc;

use bytes::Bytes;

use render::CompiledTenant;

use crate::jobs::shared_encodings::{EncodingState, TenantSearch, pack_encodings};
use crate::jobs::shared_release::SharedReleases;
use crate::runner::catalog::tenant::TenantData;

/// The way to the best encodings of a tenant.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum EncodingSource {
    /// This replica makes them.
    Make,
    /// Another replica has made them. They are packed.
    Reuse(Bytes),
    /// The way is not known yet.
    Wait,
}

impl TenantData {
    /// Returns the way to the best encodings of `compiled`. Searches for them if replicas may share them, and `may_search`.
    pub(crate) fn encoding_source(
        &mut self,
        compiled: &Arc<CompiledTenant>,
        shared: Option<&dyn SharedReleases>,
        may_search: bool,
    ) -> EncodingSource {
        let Some(shared) = shared else {
            return EncodingSource::Make;
        };
        match self.search_state(compiled) {
            Some(EncodingState::Waiting) => return EncodingSource::Wait,
            Some(EncodingState::Granted | EncodingState::Unusable) => return EncodingSource::Make,
            Some(EncodingState::Found(packed)) => return EncodingSource::Reuse(packed),
            None => {}
        }
        // The pages of a pinned release have other inputs.
        let served = self.served.as_ref();
        let served = served.filter(|served| Arc::ptr_eq(&served.compiled, compiled));
        let Some(inputs) = served.and_then(|served| served.made_from.shareable_key()) else {
            return EncodingSource::Make;
        };
        if may_search {
            let search = shared.search_encodings(&inputs);
            self.demand.encodings = Some(TenantSearch::new(compiled, inputs, search));
        }
        EncodingSource::Wait
    }

    /// Ends the search for encodings, all of which are there. Hands them over to the other replicas if this replica made them.
    pub(crate) fn share_encodings(
        &mut self,
        compiled: &Arc<CompiledTenant>,
        shared: Option<&dyn SharedReleases>,
    ) {
        let is_granted = self.search_state(compiled) == Some(EncodingState::Granted);
        let search = self.demand.encodings.take();
        if let Some((shared, search)) = shared.zip(search).filter(|_| is_granted) {
            let (inputs, search) = search.into_parts();
            let compiled = Arc::clone(compiled);
            let pack = move || pack_encodings(&compiled);
            shared.complete(&inputs, search, Box::new(pack));
        }
    }

    fn search_state(&self, compiled: &Arc<CompiledTenant>) -> Option<EncodingState> {
        self.demand.encodings.as_ref()?.state_for(compiled)
    }
}
