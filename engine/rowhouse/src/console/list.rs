//! The list of sites, in pages: sites with errors first, then pinned sites.
//!
//! **Invariant:** each group is sorted by id.

use std::time::SystemTime;

use serde::Serialize;
use server::admin::status::{Availability, DeploymentStatus, TenantStatus};
use url::form_urlencoded;

use super::parts::{ConsoleParts, QueryFields};
use super::problems::ProblemCounts;
use super::value_text::{MomentView, count, grouped};
use supervisor::Findings;

/// The number of sites on a page of the list.
const SITES_PER_PAGE: usize = 50;

/// A page of the list of sites.
#[derive(Debug, Serialize)]
pub(super) struct SiteList {
    pub(super) query: String,
    /// The query, encoded for a link.
    encoded: String,
    pub(super) chosen: &'static str,
    kinds: Vec<ListKind>,
    pub(super) rows: Vec<SiteRow>,
    found: String,
    /// The number of the previous page.
    before: Option<usize>,
    /// The number of the next page.
    after: Option<usize>,
    pub(super) page: usize,
    pages: usize,
}

/// A filter of the list.
#[derive(Debug, Serialize)]
struct ListKind {
    name: &'static str,
    label: &'static str,
    count: String,
}

/// A site in the list.
#[derive(Debug, Serialize)]
pub(super) struct SiteRow {
    id: String,
    state: &'static str,
    is_under_way: bool,
    pinned: Option<u64>,
    url: Option<String>,
    address: String,
    more_addresses: usize,
    pages: String,
    release: Option<ListedRelease>,
    since: MomentView,
    counts: Option<ProblemCounts>,
    preview: Option<PreviewView>,
}

/// The age of a preview.
#[derive(Debug, Serialize)]
pub(super) struct PreviewView {
    /// The id of the tenant.
    tenant: String,
    /// The last change of the folder.
    changed: Option<MomentView>,
    /// The end, unless the folder changes before.
    end: Option<MomentView>,
    is_ending: bool,
}

impl PreviewView {
    pub(super) fn of(tenant: &TenantStatus, now: SystemTime) -> Option<Self> {
        let preview = tenant.preview.as_ref()?;
        let moment = |at: SystemTime| MomentView::new(at, now);
        Some(Self {
            tenant: preview.tenant.clone(),
            changed: preview.changed.map(moment),
            end: preview.ends.map(moment),
            is_ending: preview.is_ending,
        })
    }
}

/// The last release of a site.
#[derive(Debug, Serialize)]
struct ListedRelease {
    number: u64,
    at: MomentView,
    cause: String,
}

/// Returns whether a tenant has errors or is not served.
pub(super) fn is_broken(tenant: &TenantStatus) -> bool {
    matches!(tenant.state, Availability::Degraded | Availability::Absent)
        || !tenant.errors.is_empty()
}

/// Returns the address to show for a tenant: the canonical one, or else one of the domain, or else the first.
pub(super) fn address(
    parts: &ConsoleParts,
    tenant: &TenantStatus,
    findings: Option<&Findings>,
) -> Option<String> {
    let found = findings.and_then(|findings| findings.tenants.get(&*tenant.id));
    let canonical = found.and_then(|found| found.canonical.clone());
    let domain = parts.origin.domain();
    let mut hosts = tenant.hosts.iter();
    canonical
        .or_else(|| hosts.find(|host| host.starts_with(domain)).cloned())
        .or_else(|| tenant.hosts.first().cloned())
}

/// Returns the row of a tenant.
pub(super) fn row(
    parts: &ConsoleParts,
    tenant: &TenantStatus,
    findings: Option<&Findings>,
    now: SystemTime,
) -> SiteRow {
    let found = findings.and_then(|findings| findings.tenants.get(&*tenant.id));
    let address = address(parts, tenant, findings);
    let store = parts.operator.store.as_ref();
    let last = store.and_then(|store| store.list(&tenant.id).into_iter().next());
    SiteRow {
        id: tenant.id.to_string(),
        state: tenant.state.name(),
        is_under_way: tenant.is_in_flight && tenant.state != Availability::Pending,
        pinned: tenant.pinned,
        url: address.as_ref().map(|address| parts.url(address)),
        address: address.unwrap_or_default(),
        more_addresses: tenant.hosts.len().saturating_sub(1),
        pages: count(tenant.pages, "page"),
        release: last.map(|last| ListedRelease {
            number: last.number,
            at: MomentView::new(last.at, now),
            cause: cause(&last.cause),
        }),
        since: MomentView::new(tenant.since, now),
        counts: found.map(|found| ProblemCounts::of(&found.diagnostics)),
        preview: PreviewView::of(tenant, now),
    }
}

/// Returns the first changed file, and the number of other changed files.
pub(super) fn cause(files: &[String]) -> String {
    match files {
        [] => String::new(),
        [one] => one.clone(),
        [first, others @ ..] => format!("{first} and {} more", others.len()),
    }
}

/// A test for a filter of the list.
type SiteFilter<'a> = &'a dyn Fn(&TenantStatus) -> bool;

/// Returns the sites of the requested page, and the list without rows. Sites with errors come first, then pinned sites.
pub(super) fn chosen<'s>(
    status: &'s DeploymentStatus,
    fields: &QueryFields,
) -> (Vec<&'s TenantStatus>, SiteList) {
    let is_pinned = |tenant: &TenantStatus| tenant.pinned.is_some();
    let is_pending =
        |tenant: &TenantStatus| tenant.state == Availability::Pending || tenant.is_in_flight;
    let is_preview = |tenant: &TenantStatus| tenant.preview.is_some();
    let kinds: [(&str, &str, SiteFilter<'_>); 5] = [
        ("all", "All", &|_| true),
        ("broken", "With errors", &is_broken),
        ("pinned", "Pinned", &is_pinned),
        ("previews", "Previews", &is_preview),
        ("pending", "Render queue", &is_pending),
    ];
    let kind = kinds.iter().find(|(name, ..)| *name == fields.text("show"));
    let (chosen, _, is_of_kind) = kind.unwrap_or(&kinds[0]);
    let query = fields.text("q").to_lowercase();
    let is_match = |tenant: &TenantStatus| {
        query.is_empty()
            || tenant.id.contains(&query)
            || tenant.hosts.iter().any(|host| host.contains(&query))
    };
    let mut found: Vec<&TenantStatus> = status
        .tenants()
        .filter(|tenant| is_of_kind(tenant) && is_match(tenant))
        .collect();
    // The sort is stable: sites stay in the order of their ids.
    found.sort_by_key(|tenant| match tenant {
        tenant if is_broken(tenant) => 0,
        tenant if is_pinned(tenant) => 1,
        _ => 2,
    });
    let pages = found.len().div_ceil(SITES_PER_PAGE).max(1);
    let page = fields.number::<usize>("page").unwrap_or(1).clamp(1, pages);
    let list = SiteList {
        query: fields.text("q").to_owned(),
        encoded: form_urlencoded::byte_serialize(fields.text("q").as_bytes()).collect(),
        chosen,
        kinds: kinds
            .iter()
            .map(|(name, label, is_of_kind)| ListKind {
                name,
                label,
                count: grouped(status.tenants().filter(|tenant| is_of_kind(tenant)).count() as u64),
            })
            .collect(),
        rows: Vec::new(),
        found: count(found.len(), "site"),
        before: (page > 1).then(|| page - 1),
        after: (page < pages).then(|| page + 1),
        page,
        pages,
    };
    let first = (page - 1) * SITES_PER_PAGE;
    let shown = found.into_iter().skip(first).take(SITES_PER_PAGE).collect();
    (shown, list)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use server::admin::status::{PreviewStatus, by_id};

    use super::*;

    fn tenant(id: &str, state: Availability, pinned: Option<u64>) -> TenantStatus {
        TenantStatus {
            id: id.into(),
            state,
            since: SystemTime::UNIX_EPOCH,
            pages: 1,
            hosts: Arc::from([format!("{id}.studio.example")]),
            compiled_in: Duration::ZERO,
            is_in_flight: false,
            errors: Vec::new(),
            pinned,
            unreadable_pin: None,
            receiving: Vec::new(),
            preview: None,
        }
    }

    fn ids(status: &DeploymentStatus, query: &str) -> Vec<String> {
        let (shown, _) = chosen(status, &QueryFields::of(query));
        shown.iter().map(|tenant| tenant.id.to_string()).collect()
    }

    #[test]
    fn sites_with_errors_come_first_then_pinned_ones() {
        let status = DeploymentStatus {
            tenants: by_id([
                tenant("a", Availability::Live, None),
                tenant("b", Availability::Pending, None),
                tenant("c", Availability::Live, Some(3)),
                tenant("d", Availability::Degraded, None),
                tenant("e", Availability::Absent, Some(1)),
            ]),
            ..DeploymentStatus::default()
        };
        assert_eq!(ids(&status, ""), ["d", "e", "c", "a", "b"]);
        assert_eq!(ids(&status, "show=broken"), ["d", "e"]);
        assert_eq!(ids(&status, "show=pinned"), ["e", "c"]);
        assert_eq!(ids(&status, "show=pending"), ["b"]);
        assert_eq!(ids(&status, "show=else&q=C.Studio"), ["c"]);
        assert_eq!(ids(&status, "q=nobody"), Vec::<String>::new());
    }

    #[test]
    fn previews_are_listed_alone() {
        let preview = TenantStatus {
            preview: Some(PreviewStatus {
                tenant: "a".to_owned(),
                changed: None,
                ends: None,
                is_ending: false,
            }),
            ..tenant("a@spring", Availability::Live, None)
        };
        let status = DeploymentStatus {
            tenants: by_id([tenant("a", Availability::Live, None), preview]),
            ..DeploymentStatus::default()
        };
        assert_eq!(ids(&status, ""), ["a", "a@spring"]);
        assert_eq!(ids(&status, "show=previews"), ["a@spring"]);
    }

    #[test]
    fn ten_thousand_sites_are_split_into_pages() {
        let tenants = (0..10_000)
            .map(|number| tenant(&format!("site-{number:05}"), Availability::Live, None));
        let status = DeploymentStatus {
            tenants: by_id(tenants),
            ..DeploymentStatus::default()
        };
        let (shown, list) = chosen(&status, &QueryFields::of("page=200"));
        assert_eq!((shown.len(), &*shown[0].id), (SITES_PER_PAGE, "site-09950"));
        assert_eq!(
            (list.pages, list.before, list.after),
            (200, Some(199), None)
        );
        let (shown, list) = chosen(&status, &QueryFields::of("page=9999&q=site-0000"));
        assert_eq!((shown.len(), list.page, &*list.found), (10, 1, "10 sites"));
    }
}
