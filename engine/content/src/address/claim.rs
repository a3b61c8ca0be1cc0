//! The addresses that tenants claim by their names and manifests.

use std::collections::BTreeMap;

use super::Origin;
use crate::name::TenantId;
use crate::tenant::Site;

/// All tenants, with their sites if they have one.
pub(super) type Tenants<'a> = BTreeMap<&'a TenantId, Option<&'a Site>>;

/// One address that a tenant claims by its name or manifest.
pub(super) struct Claim<'a> {
    pub(super) id: &'a TenantId,
    pub(super) site: Option<&'a Site>,
    pub(super) host: String,
    pub(super) prefix: String,
    /// The host followed by the prefix: the key in [`AddressOwners`](super::AddressOwners).
    pub(super) address: String,
    pub(super) source: ClaimSource,
}

/// The source of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClaimSource {
    /// The folder's name.
    Name,
    /// The root tenant's folder name. Its host only redirects to the domain.
    RootName,
    /// The manifest's key `hosts`.
    Hosts,
    /// The manifest's key `aliases`.
    Aliases,
}

impl Claim<'_> {
    /// Returns the manifest key of the claim.
    pub(super) const fn key(&self) -> &'static str {
        match self.source {
            ClaimSource::Aliases => "aliases",
            _ => "hosts",
        }
    }

    /// Returns the address as the manifest writes it.
    pub(super) fn text(&self) -> &str {
        if self.prefix.is_empty() {
            &self.host
        } else {
            &self.prefix
        }
    }
}

/// Returns all claims, in the order of assignment at a fresh startup. Previews come last, so that no other tenant loses an address to a preview.
pub(super) fn claims<'a>(
    tenants: &Tenants<'a>,
    root: Option<&'a Site>,
    origin: &Origin,
) -> Vec<Claim<'a>> {
    let domain = origin.domain();
    let is_root = |id: &TenantId| root.is_some_and(|root| root.id == *id);
    let mut claims = Vec::new();
    for (id, site) in tenants.iter().filter(|(id, _)| !id.is_preview()) {
        let mut add = |host: String, prefix: String, source| {
            claims.push(Claim {
                id,
                site: *site,
                address: format!("{host}{prefix}"),
                host,
                prefix,
                source,
            });
        };
        let host = format!("{id}.{domain}");
        if is_root(id) {
            add(host, String::new(), ClaimSource::RootName);
        } else {
            add(domain.to_owned(), format!("/{id}"), ClaimSource::Name);
            add(host, String::new(), ClaimSource::Name);
        }
    }
    for named in [true, false] {
        let wanted = |site: &'a Site| {
            let manifest = &site.manifest;
            let hosts = manifest
                .hosts
                .iter()
                .map(|host| (ClaimSource::Hosts, host.as_str()));
            let aliases = manifest.aliases.iter();
            let aliases = aliases.map(|alias| (ClaimSource::Aliases, alias.as_str()));
            hosts.chain(aliases)
        };
        for site in tenants.values().copied().flatten() {
            for (source, text) in wanted(site) {
                let (host, prefix, separator) = match source {
                    ClaimSource::Aliases => (domain, text, '/'),
                    _ => (text, "", '.'),
                };
                let carries = text.split(separator).any(|part| part == site.id.as_str());
                let has_use = source != ClaimSource::Aliases || !is_root(&site.id);
                if carries == named && has_use {
                    claims.push(Claim {
                        id: &site.id,
                        site: Some(site),
                        host: host.to_owned(),
                        prefix: prefix.to_owned(),
                        address: format!("{host}{prefix}"),
                        source,
                    });
                }
            }
        }
    }
    for (id, site) in tenants.iter().filter(|(id, _)| id.is_preview()) {
        let host = format!("{}.{domain}", id.host_label());
        claims.push(Claim {
            id,
            site: *site,
            address: host.clone(),
            host,
            prefix: String::new(),
            source: ClaimSource::Name,
        });
    }
    claims
}
