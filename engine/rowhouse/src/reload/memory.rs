//! Keeps what is rendered within the memory that the program may use: what nobody has asked for lately goes first, and is rendered again when somebody does.
//!
//! What a tenant with errors serves stays: nothing else could make it again.

use std::collections::HashSet;
use std::time::Instant;

use content::name::TenantId;
use release::snapshot::{Body, Pages, Resource};
use render::Compiled;

use super::assembly::requests;
use super::registry::{Registry, Round};
use super::tenant::Tenant;

impl Registry {
    /// Takes tenants out of memory until the rest fits. Whether there are any, so that a snapshot without them is due.
    pub(super) fn make_room(&mut self) -> bool {
        let Some(most) = self.memory else {
            return false;
        };
        let begun = Instant::now();
        let mut awake = Vec::new();
        let mut bytes = 0;
        for (id, tenant) in &mut self.tenants {
            let Some(compiled) = tenant.rendered() else {
                continue;
            };
            let pages = bytes_of(compiled);
            if pages == 0 {
                continue;
            }
            let own = pages + self.hosts.bytes_of(&compiled.pictures);
            bytes += own;
            tenant.look();
            if tenant.can_sleep() {
                awake.push((tenant.used_at(), id.clone(), own));
            }
        }
        self.looked = Round::since(begun);
        if bytes <= most {
            return false;
        }
        awake.sort();
        // A little more than is needed, so that not every second brings a new snapshot.
        let enough = most - most / 8;
        let mut has_room = false;
        for (_, id, own) in awake {
            if bytes <= enough {
                break;
            }
            if self.put_to_sleep(&id) {
                bytes = bytes.saturating_sub(own);
                has_room = true;
            }
        }
        has_room
    }

    fn put_to_sleep(&mut self, id: &TenantId) -> bool {
        let state = self.persisted.as_ref().map(|persisted| persisted.state());
        let Some(tenant) = self.tenants.get_mut(id) else {
            return false;
        };
        tenant.persisted.forget(state, id);
        let Some((made_from, asleep)) = tenant.sleep() else {
            return false;
        };
        self.hosts.forget(&asleep.pictures);
        self.workers.sleep(made_from.job(id, Some(asleep), true));
        true
    }
}

/// The bytes of the pages of a tenant that are in memory, each once.
fn bytes_of(compiled: &Compiled) -> usize {
    let mut seen = HashSet::new();
    let pages = compiled.mounts.iter();
    let pages = pages.filter_map(|placed| placed.mount.pages.get());
    pages
        .flat_map(resources)
        .filter_map(|resource| match resource {
            Resource::Body(body) => Some(body),
            Resource::Redirect(_) => None,
        })
        .flat_map(|body: &Body| &body.variants)
        .filter(|variant| seen.insert(variant.bytes.as_ptr()))
        .map(|variant| variant.bytes.len())
        .sum()
}

fn resources(pages: &Pages) -> impl Iterator<Item = &Resource> {
    let not_found = pages.not_found.iter().map(|(_, page)| page);
    let all = pages.resources.values().chain(not_found);
    all.chain([&pages.method_not_allowed]).map(AsRef::as_ref)
}

impl Tenant {
    /// Notes whether somebody has asked for it since it was last looked.
    fn look(&mut self) {
        let requests = self.compiled().map_or(0, |compiled| requests(compiled));
        if requests != self.used.0 {
            self.used = (requests, Instant::now());
        }
    }

    /// When somebody was last seen to ask for it.
    const fn used_at(&self) -> Instant {
        self.used.1
    }
}
