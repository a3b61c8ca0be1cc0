//! Wakes dormant tenants: downloads their content because of a request.
//!
//! A waker works while the follower waits for the store. Both share what they know.
//!
//! **Invariant:** one request to the store, unless the row is older than the pointer, or the tenant has large files.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::SystemTime;

use fleet::key::ObjectKey;
use fleet::pointer::Pointer;
use fleet::residence::{Action, Event};

use crate::download::cache::ContentCache;
use crate::download::fetch::{FetchError, fetch};
use crate::follow::known::SharedKnown;
use crate::follow::rows::TenantVersion;
use crate::store::{Bucket, Change};

/// Wakes the dormant tenants of a replica.
#[derive(Debug, Clone)]
pub struct Waker {
    bucket: Bucket,
    cache: ContentCache,
    known: SharedKnown,
}

/// The decisions that follow from a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct WakeDecision {
    /// Whether the caller fetches the content of the tenant now.
    pub is_fetched: bool,
    /// The tenants that went to sleep.
    pub asleep: Vec<String>,
}

impl Waker {
    pub(crate) const fn new(bucket: Bucket, cache: ContentCache, known: SharedKnown) -> Self {
        Self {
            bucket,
            cache,
            known,
        }
    }

    /// Decides whether a tenant wakes because of a request that waits for it.
    #[must_use]
    pub fn request(&self, tenant: &str) -> WakeDecision {
        let mut known = self.known.lock();
        let mut decision = WakeDecision::default();
        if !known.rows.read().has(tenant) {
            return decision;
        }
        for action in known.step(Event::Requested(tenant)) {
            match action {
                Action::Sleep(asleep) => decision.asleep.push(asleep),
                Action::Fetch(_) => decision.is_fetched = true,
            }
        }
        decision
    }

    /// Returns when the version of an awake tenant was made, by its publisher's clock.
    #[must_use]
    pub fn published(&self, tenant: &str) -> Option<SystemTime> {
        let known = self.known.lock();
        Some(known.index.tenants.get(tenant)?.published())
    }

    /// Notes that requests of these tenants were answered.
    pub fn note_answered(&self, tenants: BTreeSet<String>) {
        let mut known = self.known.lock();
        for tenant in tenants {
            known.step(Event::Answered(&tenant));
        }
    }

    /// Sets the tenants that do not go to sleep, because the pages of others show them.
    pub fn set_needed(&self, tenants: BTreeSet<String>) {
        self.known.lock().set_needed(tenants);
    }

    /// Fetches the content of a tenant for which [`Self::request`] has decided this. Returns the folder of the content.
    ///
    /// # Errors
    /// Returns an error if the content cannot be used now. A later request tries again.
    pub async fn fetch(&self, tenant: &str) -> Result<PathBuf, FetchError> {
        let version = self.known.lock().waking(tenant);
        let fetched = match version {
            Some(version) => self.fetch_version(tenant, version).await,
            None => Err(FetchError::Pointer(ObjectKey::pointer(tenant))),
        };
        let known = &mut self.known.lock();
        known.end_waking(tenant, fetched.as_ref().ok().cloned());
        fetched.map(|version| self.cache.folder(&version.folder))
    }

    async fn fetch_version(
        &self,
        tenant: &str,
        version: TenantVersion,
    ) -> Result<TenantVersion, FetchError> {
        if let Some(packed) = version.packed() {
            let name = (tenant, version.version);
            match fetch(&self.bucket, &self.cache, name, &[packed]).await {
                Ok(()) => return Ok(version),
                Err(error @ FetchError::Store(_)) => return Err(error),
                // A newer version may have replaced this one.
                Err(_) => {}
            }
        }
        let damaged = || FetchError::Pointer(ObjectKey::pointer(tenant));
        let change = self.bucket.get(&ObjectKey::pointer(tenant), None).await?;
        let Change::Object(object) = change else {
            return Err(damaged());
        };
        let pointer = Pointer::of_bytes(&object.body).ok_or_else(damaged)?;
        let version = TenantVersion::of(&pointer, &object.tag).ok_or_else(damaged)?;
        let name = (tenant, version.version);
        fetch(&self.bucket, &self.cache, name, &pointer.content).await?;
        Ok(version)
    }
}
