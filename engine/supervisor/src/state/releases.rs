//! Records releases of tenants, and prepares an earlier release to be served again after a rollback.
//!
//! A release contains all responses of a tenant at its addresses, and the shared files that its pages name. Later changes of the theme do not affect a release.
//! While a release is pinned, its tenant is still read and rendered, and errors are reported. Visitors get the pinned release.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::SystemTime;

use content::name::TenantId;
use release::snapshot::resources::ResourceWalk;
use release::snapshot::{Mount, MountPages, Resource, ResourceTable, Resources, Slot};
use release::store::{AddressPages, NewRelease, Release, Store};
use render::ASSETS;
use render::{AddressMount, CompiledTenant, Encoder};

use crate::runner::catalog::tenant::{BuildInputs, TenantData};
use crate::state::release_key::key_of;
use crate::state::release_record::PinnedRelease;

/// The limit on releases that wait to be written. Each of them has its pages in memory.
const MAX_QUEUED_RELEASES: usize = 64;

/// The bytes of waiting releases from which no further release is queued.
const MAX_QUEUED_BYTES: u64 = 128 << 20;

/// Returns how many more releases may wait to be written.
pub(crate) fn queue_room(store: &Store) -> usize {
    match store.queued_bytes() < MAX_QUEUED_BYTES {
        true => MAX_QUEUED_RELEASES.saturating_sub(store.queued()),
        false => 0,
    }
}

/// Records the current output as a release, if it was rendered since the last record and responses differ.
pub(crate) fn record(data: &mut TenantData, id: &TenantId, store: &Store, shared: &ResourceTable) {
    if !std::mem::take(&mut data.recorded.is_due) {
        return;
    }
    let Some(served) = &data.served else {
        return;
    };
    let (made_from, compiled) = (served.made_from.clone(), Arc::clone(&served.compiled));
    let Some(addresses) = pages_by_address(&compiled) else {
        return;
    };
    let key = key_of(&addresses);
    let pages = compiled.pages;
    if let Some(cause) = cause(data, &made_from, key) {
        let files = named(&addresses, shared);
        let shared = AddressPages {
            host: String::new(),
            prefix: String::new(),
            pages: shared_pages(files),
        };
        let release = NewRelease {
            at: SystemTime::now(),
            cause,
            pages,
            key,
            addresses: addresses.into_iter().chain([shared]).collect(),
        };
        store.record(id.as_str(), release);
    }
    made_from.persist_outcome(store, &compiled, &data.reports.result, key);
}

/// Returns the causes of a new release: changed files, or a change of the theme, the deployment or the addresses.
///
/// Returns `None` if all responses equal the responses of the last recorded release.
fn cause(data: &mut TenantData, made_from: &BuildInputs, key: [u8; 32]) -> Option<Vec<String>> {
    let inputs = &made_from.inputs;
    let changed = std::mem::take(&mut data.recorded.changed);
    let last = data.recorded.last.take();
    data.recorded.set_last(inputs, key);
    Some(match &last {
        Some((_, _, last)) if *last == key => return None,
        _ if !changed.is_empty() => changed.into_iter().collect(),
        None => vec!["first release since startup".to_owned()],
        Some((theme, _, _)) if !Arc::ptr_eq(theme, &inputs.templates) => {
            vec!["theme changed".to_owned()]
        }
        Some((_, deployment, _)) if !Arc::ptr_eq(deployment, &inputs.deployment) => {
            vec!["company profile, listed site or year changed".to_owned()]
        }
        Some(_) => vec!["addresses changed".to_owned()],
    })
}

/// Places a release at all its addresses that the tenant still has. Returns `None` if the tenant has none of these addresses.
pub(crate) fn place(data: &TenantData, release: Release) -> Option<PinnedRelease> {
    let served = data.served.as_ref()?;
    let mut encoder = Encoder::new(&served.compiled.cache);
    let mut shared = Arc::default();
    let mut mounts = Vec::new();
    for place in release.addresses {
        if place.host.is_empty() {
            shared = Arc::clone(encoder.encode(&place.pages).resources.files());
            continue;
        }
        let mut addresses = served.made_from.addresses.iter();
        let address = addresses
            .find(|own| own.host == place.host && own.prefix == place.prefix)
            .cloned();
        mounts.extend(address.map(|address| AddressMount {
            mount: Arc::new(Mount {
                tenant: served.made_from.site.id.shared(),
                prefix: address.prefix.as_str().into(),
                pages: Slot::from(encoder.encode(&place.pages)),
                traffic: std::sync::OnceLock::new(),
            }),
            address,
            uncompressed: None,
        }));
    }
    if mounts.is_empty() {
        return None;
    }
    let compiled = Arc::new(CompiledTenant {
        mounts,
        pages: release.entry.pages,
        ..CompiledTenant::clone(&served.compiled)
    });
    Some(PinnedRelease {
        number: release.entry.number,
        compiled,
        shared,
    })
}

/// Returns the pages at each address, or `None` if the pages of any address are not in memory.
pub(crate) fn pages_by_address(compiled: &CompiledTenant) -> Option<Vec<AddressPages>> {
    let mounts = compiled.mounts.iter();
    let placed = |placed: &AddressMount| {
        Some(AddressPages {
            host: placed.address.host.clone(),
            prefix: placed.address.prefix.clone(),
            pages: placed.pages()?.clone(),
        })
    };
    mounts.map(placed).collect()
}

/// Returns shared files in the form in which a release stores them: as pages without a host.
fn shared_pages(files: ResourceTable) -> MountPages {
    MountPages {
        resources: Resources::new(ResourceTable::new(), Arc::new(files)),
        redirects: Arc::default(),
        not_found: Vec::new(),
        method_not_allowed: Vec::new(),
    }
}

/// Returns the shared files that pages name, directly or through other shared files.
fn named(addresses: &[AddressPages], shared: &ResourceTable) -> ResourceTable {
    let mut found = ResourceTable::new();
    let mut seen = HashSet::new();
    let mut walk = ResourceWalk::default();
    let own = (addresses.iter()).flat_map(|place| walk.visit(&place.pages.resources));
    let mut open: Vec<Arc<Resource>> = own.map(|(_, resource)| Arc::clone(resource)).collect();
    while let Some(resource) = open.pop() {
        let Resource::Body(body) = &*resource else {
            continue;
        };
        // Only text names files, and only text is compressed.
        let (_, is_compressed, _) = body.fields.parts();
        if !is_compressed {
            continue;
        }
        let identity = body.variants.identity();
        let Some(bytes) = identity.and_then(|identity| identity.bytes.in_memory()) else {
            continue;
        };
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
        for name in bytes.split(|byte| !is_name(byte)) {
            let Some(name) = std::str::from_utf8(name)
                .ok()
                .filter(|name| name.contains('.'))
            else {
                continue;
            };
            let path = format!("{ASSETS}{name}");
            if let Some((path, file)) = shared.get_key_value(path.as_str())
                && seen.insert(path.clone())
            {
                found.insert(path.clone(), Arc::clone(file));
                open.push(Arc::clone(file));
            }
        }
    }
    found
}
