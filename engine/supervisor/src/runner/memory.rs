//! Keeps what is rendered within the memory that the program may use: what nobody has asked for goes first, then what nobody has asked for lately. It is rendered again when somebody does.
//!
//! What a tenant with errors serves stays: nothing else could make it again.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use content::name::TenantId;
use release::snapshot::{Body, Pages, Resource};
use render::{Compiled, PlacedMount};
use server::status::StoreStatus;

use crate::jobs::compile::Compressed;
use crate::runner::registry::Registry;
use crate::runner::round::Round;
use crate::runner::tenant::Tenant;
use crate::state::releases::QUEUED;

/// What is known of a tenant whose pages are not in memory takes so many bytes beside its content: addresses, manifest, titles, what was found. Measured with 10,000 of them.
const KNOWN: usize = 32 << 10;

/// Pages may always take this part of the memory, whatever is known of tenants.
const LEAST: usize = 8;

/// Tenants that nobody has asked for stay as long as all of them together take no more than this part of the memory: they are quickly rendered again.
const UNASKED: usize = 4;

/// How often it is looked where visitors bring in more than there is room for.
const AT_ONCE: Duration = Duration::from_millis(200);

/// So many tenants the background renders before it is looked at what there is room for.
const TOGETHER: usize = 64;

impl Tenant {
    /// The bytes that it takes without its pages, where there are so many tenants that this counts.
    fn known_bytes(&self) -> usize {
        KNOWN + self.packed.as_ref().map_or(0, |packed| packed.len())
    }
}

impl Registry {
    /// Looks every second, or sooner where it has become too much, what is in memory, and takes tenants out until the rest fits. Whether there are any, so that a snapshot without them is due.
    pub(crate) fn make_room(&mut self) -> bool {
        let is_urgent = self.in_memory.is_overfull() && self.looked.is_before(AT_ONCE);
        (self.looked.is_over() || is_urgent) && self.make_room_now()
    }

    /// The same without waiting for the next look.
    pub(crate) fn make_room_now(&mut self) -> bool {
        let begun = Instant::now();
        let most = self.memory.map_or(usize::MAX, |memory| {
            let known = self.tenants.values().map(Tenant::known_bytes).sum();
            memory.saturating_sub(known).max(memory / LEAST)
        });
        self.in_memory.most = most;
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
        let mut has_room = false;
        if bytes > most {
            awake.sort();
            // More than is needed, so that not every second brings a new snapshot.
            for (_, _, id, own) in awake {
                if bytes <= most - most / 8 {
                    break;
                }
                if self.put_to_sleep(&id, Vec::new()) {
                    bytes = bytes.saturating_sub(own);
                    self.in_memory.leaving += own;
                    tenants -= 1;
                    has_room = true;
                }
            }
        }
        self.looked = Round::since(begun);
        self.in_memory.bytes = bytes;
        self.in_memory.tenants = tenants;
        self.go_on();
        has_room
    }

    /// Takes a tenant that was just rendered out of memory again, if nobody has asked for it and there is no room for such.
    pub(crate) fn make_room_of(
        &mut self,
        id: &TenantId,
        compiled: &Compiled,
        waiting: Vec<Arc<Compiled>>,
    ) {
        self.note(compiled);
        if !compiled.is_uncoded() || self.in_memory.bytes <= self.in_memory.most / UNASKED {
            return;
        }
        let is_writable = self.is_writable();
        self.keep_one(id, is_writable);
        let tenant = self.tenants.get(id);
        if tenant.is_some_and(|tenant| tenant.can_sleep(is_writable))
            && self.put_to_sleep(id, waiting)
        {
            self.in_memory.bytes = self.in_memory.bytes.saturating_sub(bytes_of(compiled));
            self.in_memory.tenants -= 1;
        }
    }

    /// Notes that the pages of a tenant came into memory.
    pub(crate) fn note(&mut self, compiled: &Compiled) {
        self.in_memory.bytes += bytes_of(compiled);
        self.in_memory.tenants += 1;
    }

    /// Lets the background render some more tenants: what waits to be recorded is in memory, so that it is no faster than the disk.
    pub(crate) fn go_on(&self) {
        if self.store().map_or(0, |store| store.queued()) < QUEUED {
            self.workers.allow(TOGETHER);
        }
    }

    /// What the store holds, for operators.
    #[must_use]
    pub fn store_status(&self) -> StoreStatus {
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let store = self.store();
        let (disk_blobs, disk_bytes) = store.map_or((0, 0), |store| store.usage());
        StoreStatus {
            memory_bytes: number(self.in_memory.bytes),
            memory_limit: self.memory.map(number),
            tenants: number(self.in_memory.tenants),
            evictions: self.in_memory.evictions,
            recalls: self.in_memory.recalls,
            disk_blobs,
            disk_bytes,
            queued: store.map_or(0, |store| number(store.queued())),
            panics: store.map_or(0, |store| store.panics()),
            is_failing: store.is_some_and(|store| store.failing_job().is_some()),
        }
    }

    /// Takes a tenant out of memory. Whoever asks has it rendered again, and so has who waits at the mounts of `waiting`.
    fn put_to_sleep(&mut self, id: &TenantId, mut waiting: Vec<Arc<Compiled>>) -> bool {
        let store = self.store().cloned();
        let Some(tenant) = self.tenants.get_mut(id) else {
            return false;
        };
        tenant.persisted.forget(store.as_ref(), id);
        let Some((made_from, asleep)) = tenant.sleep() else {
            return false;
        };
        self.in_memory.evictions += 1;
        self.hosts.forget(&asleep.pictures);
        waiting.insert(0, asleep);
        let job = made_from.job(id, store.as_ref(), waiting, true, Compressed::WhenAsked);
        self.workers.sleep(job);
        true
    }
}

/// The bytes of the pages of a tenant that are in memory, each once.
pub(crate) fn bytes_of(compiled: &Compiled) -> usize {
    let mut seen = HashSet::new();
    let pages = compiled.mounts.iter().filter_map(PlacedMount::pages);
    pages
        .flat_map(resources)
        .filter_map(|resource| match resource {
            Resource::Body(body) => Some(body),
            Resource::Redirect(_) => None,
        })
        .flat_map(|body: &Body| body.variants.iter())
        .filter_map(|variant| variant.bytes.in_memory())
        .filter(|bytes| seen.insert(bytes.as_ptr()))
        .map(Bytes::len)
        .sum()
}

fn resources(pages: &Pages) -> impl Iterator<Item = &Resource> {
    let not_found = pages.not_found.iter().map(|(_, page)| page);
    let all = pages.resources.values().chain(not_found);
    all.chain([&pages.method_not_allowed]).map(AsRef::as_ref)
}
