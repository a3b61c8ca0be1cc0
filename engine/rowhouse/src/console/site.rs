//! The page of a tenant, and the comparison of two of its releases.
//!
//! **Invariant:** shows one tenant only.

use std::sync::Arc;
use std::time::SystemTime;

use content::report::{Diagnostic, Severity};
use http::StatusCode;
use release::snapshot::traffic::Traffic;
use serde::Serialize;
use server::admin::control::{ChangeKind, Control as _, PageChange, ReleaseLine};
use server::admin::status::TenantStatus;
use server::metrics::tenant_history::MAX_TENANTS;
use server::tls::overview::{CertificateLine, overview};

use super::charts::{Chart, charts};
use super::list::{PreviewView, cause};
use super::missing::{MissingPath, missing_since, pages_of};
use super::parts::{ConsoleParts, QueryFields};
use super::problems::ProblemView;
use super::value_text::{MomentView, count, grouped, micros, percent, span};
use super::visits::{self, VisitsView};

/// The number of errors and warnings on a page; `rowhouse check` prints all.
const MAX_PROBLEMS: usize = 30;
/// The number of changed pages in a comparison.
const MAX_CHANGED_PAGES: usize = 50;
/// The number of lines of each changed page in a comparison.
const MAX_DIFF_LINES: usize = 300;

/// The values of the page of a tenant.
#[derive(Debug, Serialize)]
pub(super) struct SitePage {
    id: String,
    state: &'static str,
    is_under_way: bool,
    since: MomentView,
    pinned: Option<u64>,
    pages: String,
    /// The time to render the pages; `None` if this process has not rendered them.
    compiled_in: Option<String>,
    /// The uptime of the server.
    up: String,
    addresses: Vec<AddressView>,
    /// The charts; `None` if the last hour is not completely known.
    charts: Option<[Chart; 3]>,
    most_charts: String,
    requests: String,
    error_share: String,
    median: String,
    slow: String,
    problems: Vec<ProblemView>,
    more_problems: usize,
    /// The errors, one line each, if the reload loop is too busy for details.
    lines: Vec<String>,
    /// Whether the reload loop had time for details.
    has_findings: bool,
    /// Whether problems that concern several tenants are left out.
    is_partial: bool,
    releases: Option<Vec<ReleaseView>>,
    /// The reason that there are no releases.
    no_releases: String,
    /// The alarm of a pinned release that cannot be served.
    pin_alarm: Option<String>,
    /// The files whose upload has not ended.
    receiving: String,
    /// The age of a preview.
    preview: Option<PreviewView>,
    certificates: Vec<CertificateView>,
    missing: Vec<MissingPath>,
    /// The time since which missing paths are counted.
    missing_since: MomentView,
    visits: VisitsView,
    /// The result of the last command; empty if there was none.
    done: &'static str,
}

#[derive(Debug, Serialize)]
struct AddressView {
    url: String,
    is_canonical: bool,
}

#[derive(Debug, Serialize)]
struct ReleaseView {
    number: u64,
    at: MomentView,
    cause: String,
    pages: String,
    is_served: bool,
    is_pinned: bool,
    /// The number of the release before, to compare with.
    before: Option<u64>,
}

#[derive(Debug, Serialize)]
struct CertificateView {
    host: String,
    state: &'static str,
    end: Option<MomentView>,
    /// The order in flight or the failure of the last order, and the time of the next order.
    problem: Option<String>,
    /// Whether the last order failed.
    is_failing: bool,
}

/// The differences between two releases.
#[derive(Debug, Serialize)]
pub(super) struct ComparisonView {
    id: String,
    from: u64,
    to: u64,
    releases: Vec<ReleaseView>,
    changes: Vec<ChangedPage>,
    more: usize,
}

#[derive(Debug, Serialize)]
struct ChangedPage {
    path: String,
    change: &'static str,
    lines: Vec<DiffLine>,
    more: usize,
    /// The lines that readers do not see.
    metadata: Vec<DiffLine>,
    more_metadata: usize,
}

#[derive(Debug, Serialize)]
struct DiffLine {
    /// `added`, `removed` or `same`.
    kind: &'static str,
    text: String,
}

fn status_of(parts: &ConsoleParts, id: &str) -> Option<TenantStatus> {
    let status = parts.operator.board.current();
    let tenant = status.tenants.get(id)?;
    Some(TenantStatus::clone(tenant))
}

/// Returns whether the tenant exists.
pub(super) fn is_known(parts: &ConsoleParts, id: &str) -> bool {
    status_of(parts, id).is_some()
}

/// Returns the title and the text about a removed tenant; `None` if no tenant of this name was removed.
pub(super) fn removal(parts: &ConsoleParts, id: &str) -> Option<(String, String)> {
    let status = parts.operator.board.current();
    let removed = status.removed.iter().find(|removed| *removed.id == *id)?;
    let at = MomentView::new(removed.at, SystemTime::now()).relative;
    let restore = match removed.is_persisted {
        true => format!(
            " `rowhouse restore {id}` serves the last valid pages again, until the folder is back."
        ),
        false => String::new(),
    };
    let text = format!("The folder of the site was removed {at}. Visitors get no pages.{restore}");
    Some((format!("{id} was removed"), text))
}

/// Returns the page of a tenant; `None` if the tenant does not exist.
pub(super) fn view(parts: &ConsoleParts, id: &str, fields: &QueryFields) -> Option<SitePage> {
    let now = SystemTime::now();
    let tenant = status_of(parts, id)?;
    let findings = parts.operator.findings(vec![id.to_owned()]);
    let is_partial = (findings.as_ref()).is_none_or(|findings| !findings.has_cross_tenant_findings);
    let found = findings.and_then(|mut findings| findings.tenants.remove(id));
    let has_findings = found.is_some();
    let lines = if found.is_none() {
        tenant.errors.clone()
    } else {
        Vec::new()
    };
    let found = found.unwrap_or_default();
    let is_note = |one: &&Diagnostic| one.severity == Severity::Note;
    let problems = || found.diagnostics.iter().filter(|one| !is_note(one));
    let up = now
        .duration_since(parts.operator.board.started())
        .unwrap_or_default();
    let traffic = parts.snapshots.tenants().get(id).cloned();
    let sample = traffic
        .map(|traffic| since_start(&traffic))
        .unwrap_or_default();
    let pages = pages_of(&parts.snapshots.current(), id);
    let missing = parts.snapshots.not_found.of(id).into_iter();
    let releases = parts.operator.releases(id);
    Some(SitePage {
        id: id.to_owned(),
        state: tenant.state.name(),
        is_under_way: tenant.is_in_flight,
        since: MomentView::new(tenant.since, now),
        pinned: tenant.pinned,
        pages: grouped(tenant.pages as u64),
        compiled_in: (!tenant.compiled_in.is_zero())
            .then(|| micros(tenant.compiled_in.as_secs_f64() * 1e6)),
        up: span(up),
        addresses: addresses(parts, &tenant, found.canonical.as_deref()),
        charts: charts_of(parts, id),
        most_charts: grouped(MAX_TENANTS as u64),
        requests: sample.requests,
        error_share: sample.error_share,
        median: sample.median,
        slow: sample.slow,
        problems: problems()
            .take(MAX_PROBLEMS)
            .map(ProblemView::new)
            .collect(),
        more_problems: problems().count().saturating_sub(MAX_PROBLEMS),
        lines,
        has_findings,
        is_partial,
        no_releases: match &releases {
            Err(error) => error.to_string(),
            Ok(_) => String::new(),
        },
        releases: releases.ok().map(|releases| lines_of(&releases, now)),
        pin_alarm: tenant.pin_alarm(),
        receiving: tenant.receiving.join(", "),
        preview: PreviewView::of(&tenant, now),
        certificates: certificates(parts, &tenant, now),
        missing: missing
            .map(|missing| MissingPath::new(missing, &pages))
            .collect(),
        missing_since: missing_since(parts, now),
        visits: visits::view(parts, id),
        done: match fields.text("done") {
            // About the command, not the site: the page may be reloaded after the next command.
            "rollback" => "The server accepted the rollback.",
            "resume" => "The server accepted the command to serve the folder again.",
            "read" => "The server accepted the command to read the folder again.",
            _ => "",
        },
    })
}

/// Returns the charts of a tenant; `None` if the last hour is not completely known.
fn charts_of(parts: &ConsoleParts, id: &str) -> Option<[Chart; 3]> {
    let points = parts.snapshots.tenant_history.of(id)?;
    Some(charts(&points))
}

/// The traffic of a tenant since startup, or since the tenant was added, as text.
#[derive(Debug, Default)]
struct ServedView {
    requests: String,
    error_share: String,
    median: String,
    slow: String,
}

fn since_start(traffic: &Arc<Traffic>) -> ServedView {
    let sample = server::metrics::history::Sample::of(traffic);
    let time = |share| {
        sample
            .percentile(share)
            .map_or_else(|| "–".to_owned(), micros)
    };
    ServedView {
        requests: grouped(sample.requests),
        error_share: sample.error_share().map_or_else(|| "–".to_owned(), percent),
        median: time(0.5),
        slow: time(0.99),
    }
}

/// Returns the URLs of a tenant, the canonical one first.
fn addresses(
    parts: &ConsoleParts,
    tenant: &TenantStatus,
    canonical: Option<&str>,
) -> Vec<AddressView> {
    let hosts = tenant.hosts.iter();
    let mut all: Vec<AddressView> = hosts
        .map(|host| AddressView {
            url: parts.url(host),
            is_canonical: Some(host.as_str()) == canonical,
        })
        .collect();
    all.sort_by_key(|address| !address.is_canonical);
    all
}

/// Returns the rows of releases, newest first.
fn lines_of(releases: &[ReleaseLine], now: SystemTime) -> Vec<ReleaseView> {
    let before = |index: usize| releases.get(index + 1).map(|release| release.number);
    let line = |(index, release): (usize, &ReleaseLine)| ReleaseView {
        number: release.number,
        at: MomentView::of_seconds(release.at, now),
        cause: cause(&release.cause),
        pages: count(release.pages, "page"),
        is_served: release.is_served,
        is_pinned: release.is_pinned,
        before: before(index),
    };
    releases.iter().enumerate().map(line).collect()
}

/// Returns the certificates of the hosts of a tenant.
fn certificates(
    parts: &ConsoleParts,
    tenant: &TenantStatus,
    now: SystemTime,
) -> Vec<CertificateView> {
    let Some(tls) = &parts.tls else {
        return Vec::new();
    };
    let hosts = tenant.hosts.iter();
    let hosts: Vec<&str> = hosts.filter_map(|host| host.split('/').next()).collect();
    let lines = overview(&parts.snapshots, tls).into_iter();
    let own = lines.filter(|line| hosts.contains(&&*line.host));
    let certificate = |line: CertificateLine| CertificateView {
        problem: line.problem(now),
        is_failing: line.error.is_some(),
        host: line.host,
        state: line.state.name(),
        end: line.not_after.map(|end| MomentView::of_seconds(end, now)),
    };
    own.map(certificate).collect()
}

/// Compares two releases of a tenant, or returns the reason why that is not possible; `None` if the tenant does not exist.
pub(super) fn comparison(
    parts: &ConsoleParts,
    id: &str,
    fields: &QueryFields,
) -> Option<Result<ComparisonView, (StatusCode, String)>> {
    status_of(parts, id)?;
    let now = SystemTime::now();
    let compared = || {
        let releases = parts.operator.releases(id)?;
        let to = fields
            .number("to")
            .or_else(|| Some(releases.first()?.number));
        let mut earlier = releases.iter().map(|release| release.number);
        let from = fields
            .number("from")
            .or_else(|| earlier.find(|number| Some(*number) < to));
        let changes = parts.operator.diff(id, from, to)?;
        Ok(ComparisonView {
            id: id.to_owned(),
            from: from.unwrap_or_default(),
            to: to.unwrap_or_default(),
            releases: lines_of(&releases, now),
            more: changes.len().saturating_sub(MAX_CHANGED_PAGES),
            changes: changes
                .into_iter()
                .take(MAX_CHANGED_PAGES)
                .map(changed)
                .collect(),
        })
    };
    let refused = |error: server::admin::control::ControlError| (error.status(), error.to_string());
    Some(compared().map_err(refused))
}

fn changed(change: PageChange) -> ChangedPage {
    let more = |text: &str| text.lines().count().saturating_sub(MAX_DIFF_LINES);
    ChangedPage {
        path: change.path,
        change: match change.change {
            ChangeKind::Added => "added",
            ChangeKind::Removed => "removed",
            ChangeKind::Changed => "changed",
        },
        lines: diff_lines(&change.text),
        more: more(&change.text),
        metadata: diff_lines(&change.metadata),
        more_metadata: more(&change.metadata),
    }
}

/// Returns the first lines of a difference.
fn diff_lines(text: &str) -> Vec<DiffLine> {
    let line = |text: &str| DiffLine {
        kind: match text.as_bytes().first() {
            Some(b'+') => "added",
            Some(b'-') => "removed",
            _ => "same",
        },
        text: text.to_owned(),
    };
    text.lines().take(MAX_DIFF_LINES).map(line).collect()
}
