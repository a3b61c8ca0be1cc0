//! Puts the hosts together: each one's tenants by prefix, and the files around their pages.
//!
//! Pictures take longer to draw than everything else takes to compile, so that a snapshot has slots for them, which are filled while it is served.
//! The files are kept for as long as nothing that they say has changed: a saved page costs no new sitemap unless it comes, goes or changes its day.

use std::collections::BTreeMap;
use std::sync::Arc;

use content::address::Owners;
use content::report::Report;
use content::report::guard::guard;
use release::snapshot::{HostRoutes, ResourceTable};
use render::link::Deployment;
use render::picture::{PendingPictures, Picture, Undrawn};
use render::site_files::{HostFacts, host_files};
use render::{Compiled, PlacedMount};

/// So many pictures are ordered at one time.
const TOGETHER: usize = 64;

/// The files of every host, with what they were made from.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    deployment: Option<Arc<Deployment>>,
    files: BTreeMap<String, MadeFiles>,
    pending: PendingPictures,
    /// Where the program failed.
    pub(super) report: Report,
}

/// A host's files and what they were made from, which is not noted where the program failed: they are made anew with the next change.
type MadeFiles = (Option<HostFacts>, ResourceTable);

impl Hosts {
    /// Every host that serves tenants, and the domain.
    pub(super) fn routes(
        &mut self,
        tenants: &[Arc<Compiled>],
        absent: &[PlacedMount],
        deployment: &Arc<Deployment>,
        owners: &Owners,
    ) -> BTreeMap<String, HostRoutes> {
        let domain = deployment.origin.domain();
        let mut routes: BTreeMap<String, HostRoutes> = BTreeMap::new();
        let mut facts: BTreeMap<String, HostFacts> = BTreeMap::new();
        routes.entry(domain.to_owned()).or_default();
        // What is served may be older than who has what: an address that was given up is its new owner's.
        let is_owned = |placed: &&PlacedMount| {
            let address = format!("{}{}", placed.address.host, placed.address.prefix);
            let owner = owners.get(&address);
            owner.is_none_or(|owner| owner.as_str() == &*placed.mount.tenant)
        };
        for compiled in tenants {
            for placed in compiled.mounts.iter().filter(is_owned) {
                place(
                    placed,
                    routes.entry(placed.address.host.clone()).or_default(),
                );
            }
        }
        for placed in absent {
            let host = routes.entry(placed.address.host.clone()).or_default();
            if is_free(host, &placed.address.prefix) {
                place(placed, host);
            }
        }
        for host in routes.keys() {
            facts.insert(host.clone(), alone(host));
        }
        for compiled in tenants {
            let canonical = &compiled.listing.host;
            for placed in compiled.mounts.iter().filter(is_owned) {
                let address = &placed.address;
                // The domain stands for all tenants below it, whatever its root tenant prefers.
                if address.prefix.is_empty()
                    && address.host != domain
                    && let Some(facts) = facts.get_mut(&address.host)
                {
                    facts.canonical.clone_from(canonical);
                }
            }
            if let Some(facts) = facts.get_mut(canonical) {
                facts.listings.push(Arc::clone(&compiled.listing));
            }
        }
        self.refresh(facts, deployment);
        for (host, routes) in &mut routes {
            if let Some((_, files)) = self.files.get(host) {
                routes.files.clone_from(files);
            }
        }
        for picture in tenants.iter().flat_map(|compiled| &compiled.pictures) {
            if let Some(host) = routes.get_mut(&picture.host) {
                let path = picture.path.as_str().into();
                host.pictures.insert(path, self.pending.slot(picture));
            }
        }
        routes
    }

    /// Lets pictures go; who is to show one has it drawn again.
    pub(super) fn forget(&mut self, pictures: &[Picture]) {
        pictures
            .iter()
            .for_each(|picture| self.pending.forget(picture));
    }

    /// Some of what is still to be drawn: all that is left of `asked`, then of `unasked` while all pictures that are drawn come to fewer bytes than `room`.
    pub(super) fn undrawn(
        &mut self,
        asked: &[Arc<Compiled>],
        unasked: &[Arc<Compiled>],
        room: Option<usize>,
        secure: bool,
    ) -> Vec<Undrawn> {
        let has_room = room.is_none_or(|room| self.pending.bytes() < room);
        let unasked = if has_room { unasked } else { &[] };
        let pictures = asked.iter().chain(unasked).flat_map(|compiled| {
            let pictures = compiled.pictures.iter();
            pictures.map(|picture| (picture, &compiled.cache))
        });
        self.pending.undrawn(pictures, TOGETHER, secure)
    }

    fn refresh(&mut self, facts: BTreeMap<String, HostFacts>, deployment: &Arc<Deployment>) {
        let same_street = self
            .deployment
            .as_ref()
            .is_some_and(|before| Arc::ptr_eq(before, deployment));
        let mut before = std::mem::take(&mut self.files);
        self.report = Report::default();
        for (host, facts) in facts {
            let old = before.remove(&host).unwrap_or_default();
            if same_street && old.0.as_ref() == Some(&facts) {
                self.files.insert(host, old);
                continue;
            }
            let new = match guard("host", &host, &host, || host_files(&facts, deployment)) {
                Ok(files) => (Some(facts), files),
                Err(diagnostic) => {
                    self.report.push(diagnostic);
                    (None, old.1)
                }
            };
            self.files.insert(host, new);
        }
        self.deployment = Some(Arc::clone(deployment));
    }
}

fn alone(host: &str) -> HostFacts {
    HostFacts {
        host: host.to_owned(),
        canonical: host.to_owned(),
        listings: Vec::new(),
    }
}

fn is_free(host: &HostRoutes, prefix: &str) -> bool {
    if prefix.is_empty() {
        host.root.is_none()
    } else {
        !host.prefixes.contains_key(prefix)
    }
}

fn place(placed: &PlacedMount, host: &mut HostRoutes) {
    let prefix = placed.address.prefix.as_str();
    if prefix.is_empty() {
        host.root = Some(Arc::clone(&placed.mount));
    } else {
        host.longest_prefix = host.longest_prefix.max(prefix.matches('/').count());
        host.prefixes
            .insert(prefix.into(), Arc::clone(&placed.mount));
    }
}
