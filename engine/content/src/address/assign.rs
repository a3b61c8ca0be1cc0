//! The assignment of addresses to the tenants that claim them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdMap;

use super::claim::{Claim, ClaimSource, Tenants, claims};
use super::deployment::{DeploymentFile, find};
use super::{Address, AddressOwners, Origin};
use crate::name::{TenantId, WWW, ascii_host};
use crate::report::{Code, Diagnostic, TextPosition};
use crate::tenant::manifest::CanonicalPlace;
use crate::tenant::page::Page;
use crate::tenant::{MANIFEST, Site};
use crate::yaml;

/// The result of an assignment.
#[derive(Debug, Clone, Default)]
pub struct Assignment {
    /// The addresses of each tenant, the canonical one first.
    pub addresses: OrdMap<TenantId, Arc<[Address]>>,
    /// Errors about the refused claims of the tenants that this assignment concerns.
    pub conflicts: BTreeMap<TenantId, Vec<Diagnostic>>,
    /// The tenant at the root of the domain.
    pub root: Option<TenantId>,
    /// The owners of all addresses. The next assignment takes them as [`AddressRules::before`].
    pub owners: AddressOwners,
}

/// The rules of an assignment, apart from the tenants' claims.
#[derive(Debug, Clone, Copy)]
pub struct AddressRules<'a> {
    /// The origin of the deployment.
    pub origin: &'a Origin,
    /// The addresses that tenants may claim. `None` allows any free address.
    pub deployment: Option<&'a DeploymentFile>,
    /// The owners of all addresses before this assignment.
    pub before: &'a AddressOwners,
}

/// Assigns hosts and prefixes to all tenants.
///
/// A tenant without a site, because its folder was never valid, keeps its name and the addresses that it had.
#[must_use]
pub fn assign<'a>(
    rules: AddressRules<'a>,
    tenants: impl IntoIterator<Item = (&'a TenantId, Option<&'a Site>)>,
) -> Assignment {
    let tenants: Tenants<'a> = tenants.into_iter().collect();
    let mut assigner = Assigner::new(rules, AddressOwners::new());
    for (address, owner) in rules.before {
        if tenants.get(owner).is_some_and(Option::is_none) && !owner.is_preview() {
            assigner.owners.insert(address.clone(), owner.clone());
        }
    }
    assigner.find_root(&tenants);
    assigner.assign_claims(&tenants);
    assigner.finish(&tenants, OrdMap::new())
}

/// Assigns the addresses of tenants that were added, changed or removed (`None`) since the assignment `before`. The other tenants keep their addresses.
///
/// `root`: the tenant at the root of the domain. `has_refused`: whether another tenant has refused claims, or has no site.
///
/// Returns `None` if the change may affect other tenants, or may change the root. Then [`assign`] is needed.
#[must_use]
pub fn assign_changed<'a>(
    rules: AddressRules<'a>,
    before: &Assignment,
    changed: &BTreeMap<&'a TenantId, Option<&'a Site>>,
    root: Option<&'a Site>,
    has_refused: bool,
) -> Option<Assignment> {
    let domain = rules.origin.domain();
    let root_owner = rules.before.get(domain);
    let named_root = rules
        .deployment
        .and_then(|file| file.claims.root.as_deref());
    let may_be_root = |(id, site): (&&TenantId, &Option<&Site>)| {
        root_owner == Some(*id)
            || named_root == Some(id.as_str())
            || site.is_some_and(|site| site.manifest.root)
    };
    if root.map(|root| &root.id) != root_owner || changed.iter().any(may_be_root) {
        return None;
    }
    let mut assigner = Assigner::new(rules, rules.before.clone());
    assigner.root = root;
    assigner.root_paths = root.map(root_paths).unwrap_or_default();
    let mut addresses = before.addresses.clone();
    let mut released = Vec::new();
    for id in changed.keys() {
        let owned = addresses.remove(*id);
        released.extend(
            owned
                .iter()
                .flat_map(|owned| owned.iter())
                .map(Address::key),
        );
    }
    for address in &released {
        assigner.owners.remove(address.as_str());
    }
    let sites = changed.iter();
    let tenants: Tenants<'a> = sites
        .filter_map(|(id, site)| Some((*id, Some((*site)?))))
        .collect();
    if assigner.takes_from_preview(&tenants) {
        return None;
    }
    assigner.assign_claims(&tenants);
    let is_free = |address: &String| !assigner.owners.contains_key(address.as_str());
    if has_refused && released.iter().any(is_free) {
        return None;
    }
    if !assigner.conflicts.keys().all(|id| changed.contains_key(id)) {
        return None;
    }
    Some(assigner.finish(&tenants, addresses))
}

/// Returns whether two versions of the root tenant leave the same prefixes to other tenants.
#[must_use]
pub fn has_same_paths(before: &Site, now: &Site) -> bool {
    let collections = |site: &Site| -> BTreeSet<String> {
        collections(site).map(|page| page.path.clone()).collect()
    };
    root_paths(before)
        .into_keys()
        .eq(root_paths(now).into_keys())
        && collections(before) == collections(now)
}

struct Assigner<'a> {
    rules: AddressRules<'a>,
    owners: AddressOwners,
    root: Option<&'a Site>,
    /// The paths that the root tenant itself serves, each with the file and position that define it.
    root_paths: BTreeMap<Cow<'a, str>, (&'a str, Option<TextPosition>)>,
    addresses: BTreeMap<TenantId, Vec<(usize, Address)>>,
    conflicts: BTreeMap<TenantId, Vec<Diagnostic>>,
}

impl<'a> Assigner<'a> {
    const fn new(rules: AddressRules<'a>, owners: AddressOwners) -> Self {
        Self {
            rules,
            owners,
            root: None,
            root_paths: BTreeMap::new(),
            addresses: BTreeMap::new(),
            conflicts: BTreeMap::new(),
        }
    }

    /// Assigns the claims of these tenants: first the addresses that they had before.
    fn assign_claims(&mut self, tenants: &Tenants<'a>) {
        let claims = claims(tenants, self.root, self.rules.origin);
        let before = self.rules.before;
        // A preview keeps no address that another tenant claims.
        let is_owned = |claim: &Claim<'_>| {
            !claim.id.is_preview() && before.get(claim.address.as_str()) == Some(claim.id)
        };
        let (owned, new): (Vec<_>, Vec<_>) = claims
            .iter()
            .enumerate()
            .partition(|(_, claim)| is_owned(claim));
        for (order, claim) in owned {
            self.assign_claim(order, claim, true);
        }
        for (order, claim) in new {
            self.assign_claim(order, claim, false);
        }
    }

    /// Returns whether a tenant claims the host of a preview that is not among these tenants.
    fn takes_from_preview(&self, tenants: &Tenants<'a>) -> bool {
        let claims = claims(tenants, self.root, self.rules.origin);
        let mut claims = claims.iter().filter(|claim| !claim.id.is_preview());
        claims.any(|claim| {
            let owner = self.owners.get(claim.address.as_str());
            owner.is_some_and(TenantId::is_preview)
        })
    }

    /// Finds the tenant at the root of the domain, and reports claims of other tenants to the root.
    fn find_root(&mut self, tenants: &Tenants<'a>) {
        let domain = self.rules.origin.domain();
        let wants = |id: &TenantId| {
            tenants
                .get(id)
                .copied()
                .flatten()
                .is_some_and(|site| site.manifest.root)
        };
        let owner = match self.rules.deployment {
            Some(deployment) => {
                let named = deployment.claims.root.as_deref();
                let mut ids = tenants.keys().copied().filter(|id| !id.is_preview());
                ids.find(|id| Some(id.as_str()) == named)
            }
            None => {
                let has = self.rules.before.get(domain);
                let has = has.filter(|id| wants(id) || self.owners.contains_key(domain));
                let mut first = tenants.keys().copied().filter(|id| wants(id));
                has.or_else(|| first.next())
            }
        };
        for site in tenants.values().copied().flatten() {
            if site.manifest.root && Some(&site.id) != owner {
                self.report_refused_root(site, owner);
            }
        }
        self.owners.remove(domain);
        let Some(owner) = owner else { return };
        self.owners.insert(domain.into(), owner.clone());
        let Some(site) = tenants.get(owner).copied().flatten() else {
            return;
        };
        self.root = Some(site);
        self.root_paths = root_paths(site);
        self.add_address(0, &site.id, domain, "");
        if let Some(first) = site.manifest.aliases.first() {
            let message = format!(
                "the tenant `{}` is at the domain's root and cannot have `aliases`",
                site.id
            );
            let diagnostic = Diagnostic::error(Code::AddressRefused, site.name_of(MANIFEST), message)
                .hint("remove `aliases`, or add `aliases` to single pages; the tenant keeps its other addresses");
            let diagnostic = position_of(site, "prefix", first.as_str(), diagnostic);
            self.add_conflict(&site.id, diagnostic);
        }
    }

    fn report_refused_root(&mut self, site: &Site, owner: Option<&TenantId>) {
        let (code, message, hint) = match (self.rules.deployment, owner) {
            (Some(deployment), _) => (
                Code::AddressRefused,
                format!(
                    "`{}` assigns the domain's root to {}",
                    deployment.label(),
                    owner.map_or_else(
                        || "no tenant".to_owned(),
                        |owner| format!("the tenant `{owner}`")
                    )
                ),
                format!(
                    "remove `root: true`, or {}",
                    deployment.how_to_root(&site.id)
                ),
            ),
            (None, owner) => (
                Code::TwoRoots,
                format!(
                    "the domain's root belongs to the tenant `{}`",
                    owner.map_or("", TenantId::as_str)
                ),
                "remove `root: true` from one of the two tenants".to_owned(),
            ),
        };
        let diagnostic = Diagnostic::error(code, site.name_of(MANIFEST), message).hint(hint);
        let text = site.written.texts.get(MANIFEST).map_or("", String::as_str);
        let node = yaml::parse(text, 1).ok();
        let key = node.as_ref().and_then(|node| find(node, &["root"]));
        let diagnostic = match key {
            Some((position, _)) => diagnostic.at(position, text),
            None => diagnostic,
        };
        self.add_conflict(&site.id, diagnostic);
    }

    /// Assigns one claimed address, or reports why not. `is_owned`: the tenant had the address before.
    fn assign_claim(&mut self, order: usize, claim: &Claim<'a>, is_owned: bool) {
        let owner = self.owners.get(claim.address.as_str());
        if owner == Some(claim.id) && claim.source != ClaimSource::Name {
            // The address is the tenant's by its name already, or is listed twice.
            return;
        }
        if matches!(claim.source, ClaimSource::Hosts | ClaimSource::Aliases)
            && self.is_refused(claim)
        {
            return;
        }
        let owner = self.owners.get(claim.address.as_str());
        let owner = owner.filter(|owner| *owner != claim.id);
        let owner = match owner {
            None if !is_owned && !claim.prefix.is_empty() => self.owner_around(claim),
            owner => owner.cloned(),
        };
        if let Some(owner) = owner {
            return self.report_address_conflict(claim, &owner);
        }
        if is_owned && !claim.prefix.is_empty() {
            self.report_hidden_root_paths(claim);
        }
        self.owners
            .insert(claim.address.as_str().into(), claim.id.clone());
        if claim.site.is_some() && claim.source != ClaimSource::RootName {
            self.add_address(order + 1, claim.id, &claim.host, &claim.prefix);
        }
    }

    /// Returns whether the tenant may not claim this address, and reports the reason.
    fn is_refused(&mut self, claim: &Claim<'a>) -> bool {
        let Some(site) = claim.site else {
            return false;
        };
        let domain = self.rules.origin.domain();
        let text = claim.text();
        let is_own_host = claim.prefix.is_empty()
            && (claim.host == domain
                || claim.host.strip_suffix(domain) == Some(&format!("{WWW}.")));
        let (message, hint) = if is_own_host {
            (
                format!("the host `{text}` is reserved for the deployment"),
                "remove the host from `hosts`; only the tenant at the domain's root is served there"
                    .to_owned(),
            )
        } else {
            match self.rules.deployment {
                Some(deployment) if !deployment.allows(claim.id, claim.key(), text) => (
                    format!(
                        "`{}` does not allow the tenant `{}` to claim `{text}`",
                        deployment.label(),
                        claim.id
                    ),
                    format!(
                        "remove the address here, or {}",
                        deployment.how_to_allow(claim.id, claim.key(), text)
                    ),
                ),
                _ => return false,
            }
        };
        let diagnostic = Diagnostic::error(Code::AddressRefused, site.name_of(MANIFEST), message);
        let diagnostic = self.at_claim(site, claim, diagnostic.hint(hint));
        self.add_conflict(claim.id, diagnostic);
        true
    }

    /// Returns the tenant that would lose paths to a new prefix: the root tenant with pages there, or the tenant with a shorter prefix.
    fn owner_around(&self, claim: &Claim<'a>) -> Option<TenantId> {
        if let Some(root) = self.root
            && self.root_paths_below(&claim.prefix).next().is_some()
        {
            return Some(root.id.clone());
        }
        if self.rules.deployment.is_some() {
            // The operator has listed the prefix on purpose.
            return None;
        }
        if let Some(root) = self.root
            && is_in_collection(root, &claim.prefix)
        {
            return Some(root.id.clone());
        }
        let mut above = claim.prefix.match_indices('/').skip(1);
        above.find_map(|(end, _)| {
            let address = format!("{}{}", claim.host, &claim.prefix[..end]);
            let owner = self.owners.get(address.as_str())?;
            (owner != claim.id).then(|| owner.clone())
        })
    }

    /// Returns the paths of the root tenant at or below a prefix.
    fn root_paths_below(
        &self,
        prefix: &str,
    ) -> impl Iterator<Item = (&Cow<'a, str>, &(&'a str, Option<TextPosition>))> {
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let from = self.root_paths.range::<str, _>(from);
        from.take_while(move |(path, _)| path.starts_with(prefix))
            .filter(move |(path, _)| is_below(path, prefix))
    }

    /// Reports pages and redirects of the root tenant that are not served, because a tenant had their paths before.
    fn report_hidden_root_paths(&mut self, claim: &Claim<'a>) {
        let Some(root) = self.root else { return };
        let mut found = Vec::new();
        for (path, (file, position)) in self.root_paths_below(&claim.prefix) {
            let message = format!("the path `{path}` belongs to the tenant `{}`", claim.id);
            let diagnostic = Diagnostic::error(Code::AddressTaken, root.name_of(file), message)
                .hint(format!(
                    "choose another path; the tenant `{}` already has `{}`",
                    claim.id, claim.prefix
                ));
            found.push(match position {
                Some(position) => root.locate(diagnostic, file, *position),
                None => diagnostic,
            });
        }
        for diagnostic in found {
            self.add_conflict(&root.id, diagnostic);
        }
    }

    fn report_address_conflict(&mut self, claim: &Claim<'a>, owner: &TenantId) {
        let Some(site) = claim.site else { return };
        let what = if claim.prefix.is_empty() {
            "host"
        } else {
            "path"
        };
        let message = format!(
            "the {what} `{}` belongs to the tenant `{owner}`",
            claim.text()
        );
        let diagnostic = Diagnostic::error(Code::AddressTaken, site.name_of(MANIFEST), message);
        let diagnostic = match claim.source {
            ClaimSource::Hosts | ClaimSource::Aliases => self.at_claim(
                site,
                claim,
                diagnostic.hint(format!(
                    "remove the {what} from `{}`, or from the tenant `{owner}`; all other addresses stay",
                    claim.key()
                )),
            ),
            ClaimSource::Name | ClaimSource::RootName => {
                diagnostic.hint(format!("rename this folder, or remove the {what} from the tenant `{owner}`; all other addresses stay"))
            }
        };
        self.add_conflict(claim.id, diagnostic);
    }

    fn at_claim(&self, site: &Site, claim: &Claim<'_>, diagnostic: Diagnostic) -> Diagnostic {
        let format = match claim.source {
            ClaimSource::Aliases => "prefix",
            _ => "hostname",
        };
        position_of(site, format, claim.text(), diagnostic)
    }

    fn add_address(&mut self, order: usize, id: &TenantId, host: &str, prefix: &str) {
        let address = Address {
            host: host.to_owned(),
            prefix: prefix.to_owned(),
            canonical: false,
        };
        self.addresses
            .entry(id.clone())
            .or_default()
            .push((order, address));
    }

    fn add_conflict(&mut self, id: &TenantId, diagnostic: Diagnostic) {
        self.conflicts
            .entry(id.clone())
            .or_default()
            .push(diagnostic);
    }

    /// Sorts each tenant's addresses by order of claim, puts its canonical address first, and adds the addresses to `others`.
    fn finish(self, tenants: &Tenants<'_>, others: OrdMap<TenantId, Arc<[Address]>>) -> Assignment {
        let domain = self.rules.origin.domain();
        let mut assignment = Assignment {
            addresses: others,
            conflicts: self.conflicts,
            root: self.root.map(|root| root.id.clone()),
            owners: self.owners,
        };
        for (id, mut addresses) in self.addresses {
            addresses.sort_by_key(|(order, _)| *order);
            let mut addresses: Vec<Address> =
                addresses.into_iter().map(|(_, address)| address).collect();
            let manifest = tenants
                .get(&id)
                .copied()
                .flatten()
                .map(|site| &site.manifest);
            let wants_host =
                manifest.is_some_and(|manifest| manifest.canonical == CanonicalPlace::Host);
            let own = manifest.and_then(|manifest| manifest.hosts.first());
            let best = addresses.iter().position(|address| {
                if wants_host {
                    own.is_none_or(|host| address.host == host.as_str())
                        && address.prefix.is_empty()
                } else {
                    address.host == domain
                }
            });
            addresses.swap(0, best.unwrap_or(0));
            if let Some(first) = addresses.first_mut() {
                first.canonical = true;
            }
            assignment.addresses.insert(id, addresses.into());
        }
        assignment
    }
}

/// Returns every path that the root tenant serves now or may serve later, with the file and position that define it: pages (also drafts, scheduled and expired ones), redirects, downloads and texts.
fn root_paths(site: &Site) -> BTreeMap<Cow<'_, str>, (&str, Option<TextPosition>)> {
    let manifest = &site.manifest;
    let position = |texts: &[crate::schema::FormattedText], format: &str, text: &str| {
        let mut texts = texts.iter();
        texts
            .find(|found| found.format == format && found.text == text)
            .map(|found| found.position)
    };
    let hidden = site.hidden.keys();
    let hidden = hidden.map(|path| (Cow::from(path.as_str()), (PAGES, None)));
    let downloads = manifest.downloads().chain(manifest.files());
    let downloads = downloads.map(|(path, file)| {
        let position = position(&site.formatted, "file", file.as_str());
        (Cow::from(path), (MANIFEST, position))
    });
    let redirects = manifest.redirects.iter().map(|redirect| {
        let position = position(&site.formatted, "old-path", redirect.from.as_str());
        (Cow::from(redirect.old_path().path), (MANIFEST, position))
    });
    let pages = site.pages.values().flat_map(|page| {
        page.paths().map(move |path| {
            let position = position(&page.formatted, "route", path);
            (Cow::from(path), (page.file.as_str(), position))
        })
    });
    hidden
        .chain(downloads)
        .chain(redirects)
        .chain(pages)
        .collect()
}

/// The folder of pages, named in reports if the file is not known.
const PAGES: &str = "pages";

/// Returns whether a prefix is within a collection of the root tenant. The collection answers all paths below its own, at least with a 404 page.
fn is_in_collection(root: &Site, prefix: &str) -> bool {
    collections(root).any(|page| is_below(prefix, &page.path))
}

/// Returns the pages of the collections of the root tenant, apart from the home page.
fn collections(root: &Site) -> impl Iterator<Item = &Page> {
    let pages = root.pages.values().map(AsRef::as_ref);
    pages.filter(|page: &&Page| page.front.collection.is_some() && page.path != "/")
}

/// Adds the position at which a manifest claims an address.
fn position_of(site: &Site, format: &str, text: &str, diagnostic: Diagnostic) -> Diagnostic {
    let mut stated = site.formatted.iter();
    let is_meant = |written: &str| {
        let host = (format == "hostname")
            .then(|| ascii_host(written))
            .flatten();
        host.as_deref().unwrap_or(written) == text
    };
    match stated.find(|stated| stated.format == format && is_meant(&stated.text)) {
        Some(stated) => site.locate(diagnostic, MANIFEST, stated.position),
        None => diagnostic,
    }
}

/// Returns whether `path` is `prefix` or below it.
fn is_below(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
