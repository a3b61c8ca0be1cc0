//! Keeps what is rendered within the memory that the program may use: what nobody has asked for goes first, then what nobody has asked for lately. It is rendered again when somebody does.
//!
//! What a tenant with errors serves stays: nothing else could make it again.

use std::collections::HashSet;
use std::time::Instant;

use content::name::TenantId;
use release::large::is_large;
use release::snapshot::{Body, Pages, Resource};
use render::Compiled;
use server::status::StoreStatus;

use super::persisted::Persisted;
use super::registry::{Registry, Round};
use super::releases::QUEUED;
use super::workers::processors;

impl Registry {
    /// Looks every second what is in memory, and takes tenants out until the rest fits. Whether there are any, so that a snapshot without them is due.
    pub(super) fn make_room(&mut self) -> bool {
        if !self.looked.is_over() {
            return false;
        }
        let most = self.memory.unwrap_or(usize::MAX);
        let begun = Instant::now();
        // Where nothing can be kept, nothing waits for that.
        let is_writable = self.is_writable();
        let mut awake = Vec::new();
        let (mut bytes, mut tenants) = (0, 0);
        for (id, tenant) in &mut self.tenants {
            tenant.look();
            let pages = tenant.bytes();
            let Some(compiled) = tenant.rendered().filter(|_| pages > 0) else {
                continue;
            };
            let own = match tenant.is_asked() {
                true => pages + self.hosts.bytes_of(&compiled.pictures),
                false => pages,
            };
            bytes += own;
            tenants += 1;
            if tenant.can_sleep(is_writable) {
                awake.push((tenant.is_asked(), tenant.used_at(), id.clone(), own));
            }
        }
        let average = bytes / tenants.max(1);
        let mut has_room = false;
        if bytes > most {
            awake.sort();
            // More than is needed, so that not every second brings a new snapshot: of those that nobody asked for a quarter, of the others an eighth.
            for (is_asked, _, id, own) in awake {
                let spare = if is_asked { most / 8 } else { most / 4 };
                if bytes <= most - spare {
                    break;
                }
                if self.put_to_sleep(&id) {
                    bytes = bytes.saturating_sub(own);
                    tenants -= 1;
                    self.in_memory.evictions += 1;
                    has_room = true;
                }
            }
        }
        self.looked = Round::since(begun);
        self.in_memory.bytes = bytes;
        self.in_memory.tenants = tenants;
        let queued = self.store().map_or(0, |store| store.queued());
        let free = most.saturating_sub(bytes);
        self.workers.allow(allowed(free, average, queued));
        has_room
    }

    /// What the store holds, for operators.
    pub(super) fn store_status(&self) -> StoreStatus {
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let store = self.store();
        let (disk_blobs, disk_bytes) = store.map_or((0, 0), |store| store.usage());
        StoreStatus {
            memory_bytes: number(self.in_memory.bytes),
            memory_limit: self.memory.map(number),
            tenants: number(self.in_memory.tenants),
            evictions: self.in_memory.evictions,
            disk_blobs,
            disk_bytes,
            queued: store.map_or(0, |store| number(store.queued())),
        }
    }

    fn put_to_sleep(&mut self, id: &TenantId) -> bool {
        let store = self.persisted.as_ref().map(Persisted::store);
        let Some(tenant) = self.tenants.get_mut(id) else {
            return false;
        };
        tenant.persisted.forget(store, id);
        let Some((made_from, asleep)) = tenant.sleep() else {
            return false;
        };
        self.hosts.forget(&asleep.pictures);
        self.workers.sleep(made_from.job(id, Some(asleep), true));
        true
    }
}

/// How many tenants the background may render until the next look: those that there is room for, and a little where there is none, since what cannot leave memory must not keep the others from being looked at.
///
/// What waits to be recorded cannot leave memory either: with a full queue the background is no faster than the disk. Where nothing can be recorded, nothing waits.
fn allowed(free: usize, average: usize, queued: usize) -> usize {
    let room = match queued < QUEUED {
        true => free.checked_div(average).unwrap_or(usize::MAX),
        false => 0,
    };
    room.max(processors() * 4)
}

/// The bytes of the pages of a tenant that are in memory, each once.
pub(super) fn bytes_of(compiled: &Compiled) -> usize {
    let mut seen = HashSet::new();
    let pages = compiled.mounts.iter();
    let pages = pages.filter_map(|placed| placed.mount.pages.get());
    pages
        .flat_map(resources)
        .filter_map(|resource| match resource {
            Resource::Body(body) => Some(body),
            Resource::Redirect(_) => None,
        })
        .flat_map(|body: &Body| body.variants.iter())
        .filter(|variant| !is_large(&variant.bytes) && seen.insert(variant.bytes.as_ptr()))
        .map(|variant| variant.bytes.len())
        .sum()
}

fn resources(pages: &Pages) -> impl Iterator<Item = &Resource> {
    let not_found = pages.not_found.iter().map(|(_, page)| page);
    let all = pages.resources.values().chain(not_found);
    all.chain([&pages.method_not_allowed]).map(AsRef::as_ref)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_background_renders_what_there_is_room_for_and_what_the_disk_keeps_up_with() {
        let least = processors() * 4;
        assert_eq!(allowed(1_000_000, 100, 0), 10_000);
        assert_eq!(allowed(0, 100, 0), least, "no room");
        assert_eq!(allowed(1_000_000, 100, QUEUED), least, "a slow disk");
        assert_eq!(allowed(1_000_000, 0, 0), usize::MAX, "nothing is rendered");
    }
}
