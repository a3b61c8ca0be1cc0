//! A release that one replica of a fleet renders, and the others reuse.
//!
//! A job that has to render looks for the release by the digest of its inputs. If there is none, the job claims the rendering, renders, and hands the release over. A job without the claim waits for the release of the other replica, but not for longer than [`MAX_WAIT`], and not at all if a visitor waits.
//!
//! **Invariant:** reused pages equal rendered pages, byte for byte. Without an answer from the store, a tenant is rendered.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use content::report::Report;
use content::report::guard::guard;
use content::tenant::MANIFEST;
use release::pack::{pack, unpack};
use release::store::{AddressPages, pack_pages, unpack_pages};
use render::{CacheKey, CompiledTenant, PersistedTenant, encodings_of};

use crate::jobs::shared_encodings::{EncodingSearch, unpack_encodings};
use crate::runner::catalog::tenant::BuildInputs;
use crate::state::releases::pages_by_address;

/// The longest wait for the release of another replica. It is longer than the lease of a replica that has ended.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(10);

/// The interval between two looks for the release of another replica.
const LOOK_INTERVAL: Duration = Duration::from_millis(300);

/// The longest time for which a visitor waits for the store, and for which a job waits for the first answer to a claim.
pub(crate) const MAX_STORE_WAIT: Duration = Duration::from_secs(1);

/// The number of parts of a release before its best encodings.
const RELEASE_PARTS: usize = 4;

/// The releases that the replicas of a fleet share.
pub(crate) trait SharedReleases: Debug + Send + Sync {
    /// Looks for a release. `limit` is the longest wait; `None` waits as long as the store may take.
    fn find(&self, inputs: &CacheKey, limit: Option<Duration>) -> SharedLookup;

    /// Asks to be the replica that renders a release, without waiting.
    fn claim(&self, inputs: &CacheKey) -> Box<dyn RenderClaim>;

    /// Creates a release after the job has ended. `pack` makes its bytes, on another thread.
    fn create(
        &self,
        inputs: &CacheKey,
        claim: Option<Box<dyn RenderClaim>>,
        pack: Box<dyn FnOnce() -> Option<Vec<u8>> + Send>,
    );

    /// Searches for the best encodings of a release, without waiting.
    fn search_encodings(&self, inputs: &CacheKey) -> Box<dyn EncodingSearch>;

    /// Appends the best encodings to a release. `pack` makes their bytes, on another thread. `search` ends afterwards.
    fn complete(
        &self,
        inputs: &CacheKey,
        search: Box<dyn EncodingSearch>,
        pack: Box<dyn FnOnce() -> Option<Vec<u8>> + Send>,
    );

    /// Reports that a release was reused.
    fn report_reuse(&self);

    /// Reports that a release cannot be used.
    fn report_damage(&self, inputs: &CacheKey);
}

/// The result of a look for a shared release.
#[cfg_attr(
    not(feature = "bucket"),
    expect(dead_code, reason = "only a bucket makes the values")
)]
#[derive(Debug)]
pub(crate) enum SharedLookup {
    Found(Bytes),
    Missing,
    /// The store does not answer, or its object is damaged.
    Unusable,
}

/// The wish to be the replica that renders a release. Dropping it lets another replica render.
pub(crate) trait RenderClaim: Debug + Send {
    /// Waits for a change of the state for at most `limit`, and returns the state.
    fn wait(&mut self, limit: Duration) -> ClaimState;
}

/// The state of a claim.
#[cfg_attr(
    not(feature = "bucket"),
    expect(dead_code, reason = "only a bucket makes the values")
)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClaimState {
    /// The store has not answered yet.
    Unanswered,
    /// Another replica renders.
    Waiting,
    /// This replica renders.
    Granted,
    /// The store does not answer.
    Failed,
}

/// A way to the pages of a tenant without an earlier rendering on this machine.
pub(crate) enum SharedBuild {
    /// Another replica has rendered.
    Reused(CompiledTenant, Report),
    /// This replica renders, with a claim unless the store does not answer.
    Render(Option<Box<dyn RenderClaim>>),
}

impl BuildInputs {
    /// Returns the release of another replica, or the claim to render. `is_awaited`: a visitor waits.
    pub(crate) fn find_shared(&self, shared: &dyn SharedReleases, is_awaited: bool) -> SharedBuild {
        let Some(inputs) = self.shareable_key() else {
            return SharedBuild::Render(None);
        };
        let begin = Instant::now();
        let mut claim: Option<Box<dyn RenderClaim>> = None;
        let mut state = ClaimState::Unanswered;
        loop {
            match shared.find(&inputs, is_awaited.then_some(MAX_STORE_WAIT)) {
                SharedLookup::Found(bytes) => {
                    if let Some((compiled, report)) = self.restore_shared(&bytes) {
                        shared.report_reuse();
                        return SharedBuild::Reused(compiled, report);
                    }
                    shared.report_damage(&inputs);
                    return SharedBuild::Render(None);
                }
                SharedLookup::Unusable => return SharedBuild::Render(None),
                SharedLookup::Missing => {}
            }
            // The release of the former holder of the claim would have been found.
            if is_awaited || state == ClaimState::Granted || begin.elapsed() >= MAX_WAIT {
                return SharedBuild::Render(Some(claim.unwrap_or_else(|| shared.claim(&inputs))));
            }
            let claim = claim.get_or_insert_with(|| shared.claim(&inputs));
            state = claim.wait(match state {
                ClaimState::Unanswered => MAX_STORE_WAIT,
                _ => LOOK_INTERVAL,
            });
            if matches!(state, ClaimState::Unanswered | ClaimState::Failed) {
                return SharedBuild::Render(None);
            }
        }
    }

    /// Hands the pages that were just rendered over to the other replicas. Pages with errors are not shared, because the cause may be of this machine.
    pub(crate) fn share(
        &self,
        shared: &dyn SharedReleases,
        claim: Option<Box<dyn RenderClaim>>,
        compiled: &CompiledTenant,
        report: &Report,
    ) {
        let Some(inputs) = self.shareable_key().filter(|_| report.is_servable()) else {
            return;
        };
        let Some(addresses) = pages_by_address(compiled) else {
            return;
        };
        // Without the mounts, which have one owner until the job ends.
        let outline = CompiledTenant {
            mounts: Vec::new(),
            ..compiled.clone()
        };
        let outcome = PersistedTenant::of(&Arc::new(outline), report, &self.inputs);
        let pack = move || pack_release(&outcome, &addresses);
        shared.create(&inputs, claim, Box::new(pack));
    }

    /// Returns the digest of the inputs, or `None` if the pages are not shared: pages for authors, and pages of a folder whose hash is not known.
    pub(crate) fn shareable_key(&self) -> Option<CacheKey> {
        self.inputs.islands.dev.is_none().then(|| self.key())?
    }

    /// Restores the pages from a shared release, or returns `None` if the release is damaged.
    fn restore_shared(&self, bytes: &Bytes) -> Option<(CompiledTenant, Report)> {
        let site = &self.site;
        let restore = || {
            let parts = unpack(bytes)?;
            let [facts, sources, pages, encodings] = parts.first_chunk()?;
            let addresses = unpack_pages(&pages.1)?;
            let cache = &self.inputs.cache;
            if self.inputs.compresses {
                cache.add(unpack_encodings(&encodings.1)?);
                if let Some(best) = best_encodings(bytes) {
                    cache.adopt(unpack_encodings(&best)?);
                }
            }
            CompiledTenant::restore(
                [&facts.1, &sources.1],
                site,
                &self.addresses,
                &self.inputs,
                Some(&addresses),
            )
        };
        guard(
            "restore",
            site.id.as_str(),
            &site.name_of(MANIFEST),
            restore,
        )
        .ok()
        .flatten()
    }
}

/// Returns the packed best encodings of a release, if it is complete.
pub(crate) fn best_encodings(release: &Bytes) -> Option<Bytes> {
    let (_, best) = unpack(release)?.into_iter().nth(RELEASE_PARTS)?;
    Some(best)
}

/// Packs a release with its quick content encodings, or returns `None` if the release is too large to share.
fn pack_release(outcome: &PersistedTenant, addresses: &[AddressPages]) -> Option<Vec<u8>> {
    let [facts, sources] = outcome.parts()?;
    let pages = pack_pages(addresses)?;
    let encodings = encodings_of(addresses);
    let encodings = encodings.iter().map(|(key, bytes)| (&key[..], &bytes[..]));
    let encodings = pack(encodings);
    let parts: [&[u8]; RELEASE_PARTS] = [&facts, &sources, &pages, &encodings];
    Some(pack(parts.map(|part| (&b""[..], part))))
}
