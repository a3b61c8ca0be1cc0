//! Wakes dormant tenants when requests need them, on a thread of its own: the follower may be waiting for the store.
//!
//! ```text
//! request ──> queue ──> decision ──> fetch ──> view ──> reload loop
//!                          └── another tenant goes to sleep ──^
//! ```
//!
//! **Invariant:** a request never waits for this thread. It looks for the tenant in each new snapshot.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::select;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tracing::{debug, warn};

use bucket::download::fetch::FetchError;
use bucket::follow::rows::{Rows, SharedRows};
use bucket::follow::wake::Waker;
use content::name::preview::preview_at;
use server::snapshot_store::RequestedAddress;

use crate::model::agenda::ReloadScope;
use crate::runner::reload_queue::ReloadSender;
use crate::source::bucket::view::SharedView;
use crate::source::dormant::DormantTenants;

/// The limit on tenants whose content is downloaded at once.
const MAX_FETCHES: usize = 16;

/// The longest time between two looks at the notices, and whether the reload loop has ended.
const TICK: Duration = Duration::from_millis(500);

/// The address of the tenant at the root of the origin.
const ROOT: &str = "/";

/// The notices that the thread has not handled.
#[derive(Debug, Default)]
struct Notices {
    requested: BTreeSet<String>,
    answered: BTreeSet<String>,
    needed: Option<BTreeSet<String>>,
}

/// The queue of the thread.
#[derive(Debug, Default)]
pub(super) struct WakeQueue {
    notices: Mutex<Notices>,
    arrived: Notify,
}

impl WakeQueue {
    fn lock(&self) -> MutexGuard<'_, Notices> {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The dormant tenants of a bucket, by their addresses.
#[derive(Debug)]
pub(super) struct BucketTenants {
    pub(super) rows: SharedRows,
    /// The domain of the origin.
    pub(super) domain: String,
    pub(super) queue: Arc<WakeQueue>,
}

impl BucketTenants {
    /// Returns the tenant whose name is in a host below the domain.
    fn at_name<'r>(&self, rows: &'r Rows, host: &str) -> Option<&'r str> {
        let label = host.strip_suffix(&self.domain)?.strip_suffix('.')?;
        let preview = || rows.name(&preview_at(label)?);
        rows.name(label).or_else(preview)
    }
}

/// Returns the tenant with the longest prefix of a path. A prefix consists of complete segments.
fn at_prefix<'r>(rows: &'r Rows, path: &str) -> Option<&'r str> {
    let ends = path.match_indices('/').skip(1).map(|(end, _)| end);
    let prefixes = ends.chain([path.len()]).map(|end| &path[..end]);
    let at = |prefix: &str| {
        let by_name = || rows.name(prefix.strip_prefix('/')?);
        let by_alias = rows.at(prefix).filter(|_| prefix != ROOT);
        by_alias.or_else(by_name)
    };
    prefixes.filter_map(at).last()
}

impl DormantTenants for BucketTenants {
    fn find(&self, address: RequestedAddress<'_>) -> Option<Arc<str>> {
        let rows = self.rows.read();
        if rows.is_empty() {
            return None;
        }
        let (host, path, is_unknown) = match address {
            RequestedAddress::Host(host, path) => (host, path, true),
            RequestedAddress::Prefix(host, path) => (host, path, false),
        };
        let found = match host == self.domain {
            true => {
                let root = || rows.at(ROOT).filter(|_| is_unknown);
                at_prefix(&rows, path).or_else(root)
            }
            false if is_unknown => self.at_name(&rows, host).or_else(|| rows.at(host)),
            false => None,
        };
        found.map(Arc::from)
    }

    fn request(&self, tenant: &str) {
        if self.queue.lock().requested.insert(tenant.to_owned()) {
            self.queue.arrived.notify_one();
        }
    }

    fn note_answered(&self, tenant: &str) {
        // The order of use matters only when another tenant wakes, so the thread is not woken.
        self.queue.lock().answered.insert(tenant.to_owned());
    }

    fn set_needed(&self, tenants: BTreeSet<String>) {
        self.queue.lock().needed = Some(tenants);
        self.queue.arrived.notify_one();
    }
}

/// The thread that wakes tenants.
#[derive(Debug)]
pub(super) struct WakeThread {
    pub(super) waker: Waker,
    pub(super) queue: Arc<WakeQueue>,
    pub(super) view: SharedView,
}

impl WakeThread {
    /// Starts the thread, which ends with the reload loop.
    pub(super) fn start(self, runtime: Runtime, reloads: ReloadSender) {
        thread::spawn(move || runtime.block_on(self.run(&reloads)));
    }

    async fn run(&self, reloads: &ReloadSender) {
        let limit = Arc::new(Semaphore::new(MAX_FETCHES));
        let mut fetches = JoinSet::new();
        while reloads.is_open() {
            select! {
                () = self.queue.arrived.notified() => {}
                Some(Ok((tenant, fetched))) = fetches.join_next() => {
                    self.finish(tenant, fetched, reloads);
                }
                // The times of answers are known only by when they are handled.
                () = sleep(TICK) => {}
            }
            for tenant in self.decide(reloads) {
                let (waker, limit) = (self.waker.clone(), Arc::clone(&limit));
                fetches.spawn(async move {
                    let _permit = limit.acquire().await;
                    let fetched = waker.fetch(&tenant).await;
                    (tenant, fetched)
                });
            }
        }
    }

    /// Handles the notices. Returns the tenants whose content is fetched now.
    fn decide(&self, reloads: &ReloadSender) -> Vec<String> {
        let notices = std::mem::take(&mut *self.queue.lock());
        let needed = notices.needed.clone().unwrap_or_default();
        if let Some(needed) = notices.needed {
            self.waker.set_needed(needed);
        }
        self.waker.note_answered(notices.answered);
        let mut fetched = Vec::new();
        for tenant in notices.requested.into_iter().chain(needed) {
            let decision = self.waker.request(&tenant);
            for asleep in decision.asleep {
                debug!(
                    tenant = asleep,
                    "asleep, because other tenants are requested"
                );
                if let Some(tenants) = &mut self.view.lock().tenants {
                    tenants.remove(&asleep);
                }
                // Sending fails if the reload loop has ended, and so does this thread.
                let _ = reloads.request(ReloadScope::List);
            }
            if decision.is_fetched {
                fetched.push(tenant);
            }
        }
        fetched
    }

    /// Shows the content of a tenant to the source.
    fn finish(&self, tenant: String, fetched: Result<PathBuf, FetchError>, reloads: &ReloadSender) {
        match fetched {
            Ok(folder) => {
                let mut view = self.view.lock();
                if let Some(tenants) = &mut view.tenants {
                    tenants.insert(tenant.clone(), Some(folder));
                }
                if let Some(published) = self.waker.published(&tenant) {
                    view.published.insert(tenant.clone(), published);
                }
                drop(view);
                let _ = reloads.request(ReloadScope::Tenant(tenant));
            }
            Err(error) => {
                warn!(tenant, %error, "the content of a requested tenant cannot be downloaded; responding with 503");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bucket::follow::rows::TenantVersion;
    use fleet::key::{ContentHash, Nonce};

    use super::*;

    fn tenants(rows: &[(&str, &[&str])]) -> BucketTenants {
        let version = |addresses: &[&str]| TenantVersion {
            version: 1,
            folder: ContentHash("0".repeat(64)),
            upload: Some(Nonce("1".to_owned())),
            at: 0,
            tag: "1".to_owned(),
            addresses: addresses.iter().map(ToString::to_string).collect(),
        };
        let rows = rows
            .iter()
            .map(|(name, addresses)| (*name, version(addresses)));
        BucketTenants {
            rows: SharedRows::of(rows),
            domain: "studio.example".to_owned(),
            queue: Arc::default(),
        }
    }

    #[test]
    fn dormant_tenant_is_found_at_the_addresses_that_it_has_awake() {
        let tenants = tenants(&[
            ("corner", &["corner.example", "/apps/corner"]),
            ("corner@spring", &[]),
            ("studio", &["/"]),
        ]);
        for (host, path, expected) in [
            ("corner.studio.example", "/", Some("corner")),
            ("corner.example", "/terms", Some("corner")),
            ("spring--corner.studio.example", "/", Some("corner@spring")),
            ("studio.example", "/corner", Some("corner")),
            ("studio.example", "/corner/terms", Some("corner")),
            ("studio.example", "/apps/corner/terms", Some("corner")),
            ("studio.example", "/apps", Some("studio")),
            ("studio.example", "/cornerstone", Some("studio")),
            ("mill.studio.example", "/", None),
            ("other.example", "/corner", None),
            ("cornerstudio.example", "/", None),
        ] {
            let found = tenants.find(RequestedAddress::Host(host, path));
            assert_eq!(found.as_deref(), expected, "{host}{path}");
        }
        // Another tenant has the host, and answers for the paths that it does not have.
        for (host, path, expected) in [
            ("studio.example", "/corner/terms", Some("corner")),
            ("studio.example", "/missing", None),
            ("corner.example", "/missing", None),
            ("corner.studio.example", "/corner", None),
        ] {
            let found = tenants.find(RequestedAddress::Prefix(host, path));
            assert_eq!(found.as_deref(), expected, "{host}{path}");
        }
    }
}
