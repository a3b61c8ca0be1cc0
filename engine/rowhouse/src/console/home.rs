//! The first page of the console: summary, alarms, charts, sites with errors, and the list of sites.
//!
//! **Invariant:** the cost depends on the contents of the page, apart from one pass over the states of all tenants.

use std::sync::atomic::Ordering::Relaxed;
use std::time::SystemTime;

use content::report::Severity;
use serde::Serialize;
use server::admin::conditions::{
    MAX_HEARTBEAT_INTERVAL, certificate_conditions, limited, server_conditions,
};
use server::admin::status::{Availability, DeploymentStatus, TenantStatus};
use server::metrics::process_memory::MemoryUse;
use server::tls::overview::overview;

use super::charts::{Chart, charts, points};
use super::list::{SiteList, address, chosen, is_broken, row};
use super::missing::missing_since;
use super::parts::{ConsoleParts, QueryFields};
use super::problems::ProblemView;
use super::value_text::{MomentView, bytes, count, grouped, span};
use supervisor::Findings;

/// The number of sites that are shown with their errors.
const MAX_BROKEN_SITES: usize = 5;
/// The number of errors that are shown of each site, and the number of sites up to which more than one error is shown.
const MAX_ERRORS_PER_SITE: usize = 2;
/// The number of sites in the list of missing paths.
const MAX_SITES_WITH_MISSING_PATHS: usize = 10;

/// The values of the first page.
#[derive(Debug, Serialize)]
pub(super) struct HomePage {
    summary: HealthSummary,
    alarms: Vec<String>,
    charts: [Chart; 3],
    facts: Vec<LabelledValue>,
    /// The parts that use memory, in a sentence; `None` where the system does not say how much the process uses.
    memory: Option<String>,
    /// The receiver of alerts, in a sentence; `None` without `--alert-webhook`.
    alerts: Option<String>,
    broken: Vec<BrokenSite>,
    more_broken: usize,
    removed: Vec<RemovedSite>,
    elsewhere: Vec<ProblemView>,
    list: SiteList,
    missing: Vec<MissingPathsView>,
    /// The time since which missing paths are counted.
    missing_since: MomentView,
}

/// The state of the whole server in a sentence.
#[derive(Debug, Serialize)]
struct HealthSummary {
    /// `good`, `busy` or `bad`.
    mood: &'static str,
    text: String,
    detail: &'static str,
}

/// A labelled value.
#[derive(Debug, Serialize)]
struct LabelledValue {
    name: &'static str,
    value: String,
    more: String,
    /// The percentage of a limit, if there is one.
    share: Option<u64>,
}

/// A site with errors.
#[derive(Debug, Serialize)]
struct BrokenSite {
    id: String,
    state: &'static str,
    url: Option<String>,
    since: MomentView,
    problems: Vec<ProblemView>,
    more: usize,
    /// The errors, one line each, if the reload loop is too busy for details.
    lines: Vec<String>,
}

/// A site whose folder was removed within the last day.
#[derive(Debug, Serialize)]
struct RemovedSite {
    id: String,
    state: &'static str,
    at: MomentView,
    is_persisted: bool,
}

/// A site with requested paths that it has no page for.
#[derive(Debug, Serialize)]
struct MissingPathsView {
    id: String,
    requests: String,
    paths: String,
    first: String,
}

/// Returns the values of the first page.
pub(super) fn view(parts: &ConsoleParts, fields: &QueryFields) -> HomePage {
    let now = SystemTime::now();
    let status = parts.operator.board.current().clone();
    let (shown, mut list) = chosen(&status, fields);
    let broken: Vec<&TenantStatus> = status
        .tenants()
        .filter(|tenant| is_broken(tenant))
        .collect();
    let is_first = list.page == 1 && list.query.is_empty() && list.chosen == "all";
    let of_first: &[&TenantStatus] = if is_first { &broken } else { &[] };
    let named = &of_first[..of_first.len().min(MAX_BROKEN_SITES)];
    let ids = shown
        .iter()
        .chain(named)
        .map(|tenant| tenant.id.to_string());
    let findings = parts.operator.findings(ids.collect());
    list.rows = shown
        .iter()
        .map(|tenant| row(parts, tenant, findings.as_ref(), now))
        .collect();
    let errors = if named.len() > MAX_ERRORS_PER_SITE {
        1
    } else {
        2
    };
    let cards = named
        .iter()
        .map(|tenant| card(parts, tenant, errors, findings.as_ref(), now));
    let elsewhere = || findings.iter().flat_map(|findings| &findings.elsewhere);
    let has_errors_elsewhere = elsewhere().any(|one| one.severity == Severity::Error);
    let elsewhere = elsewhere().filter(|one| one.severity != Severity::Note);
    HomePage {
        summary: summary(parts, &status, has_errors_elsewhere),
        alarms: alarms(parts, now),
        charts: charts(&points(&parts.snapshots.history.samples())),
        facts: facts(parts, &status, now),
        memory: parts.memory.read().map(|used| memory_sentence(parts, used)),
        alerts: alerts_sentence(parts),
        broken: cards.collect(),
        more_broken: of_first.len().saturating_sub(MAX_BROKEN_SITES),
        removed: status
            .recently_removed(now)
            .map(|removed| RemovedSite {
                id: removed.id.to_string(),
                state: Availability::Removed.name(),
                at: MomentView::new(removed.at, now),
                is_persisted: removed.is_persisted,
            })
            .collect(),
        elsewhere: elsewhere
            .take(MAX_BROKEN_SITES)
            .map(ProblemView::new)
            .collect(),
        list,
        missing: missing(parts),
        missing_since: missing_since(parts, now),
    }
}

/// Returns the most important fact about the whole server. A preview is no site of visitors, so its errors are in its card only.
fn summary(
    parts: &ConsoleParts,
    status: &DeploymentStatus,
    has_errors_elsewhere: bool,
) -> HealthSummary {
    let sites = || status.tenants().filter(|tenant| tenant.preview.is_none());
    let all = sites().count();
    let broken = sites().filter(|tenant| is_broken(tenant)).count();
    let pending = sites()
        .filter(|tenant| tenant.state == Availability::Pending)
        .count();
    let unavailable = sites()
        .filter(|tenant| tenant.unreadable_pin.is_some())
        .count();
    let board = &parts.operator.board;
    let (mood, text, detail) = if status.alarm.is_some() || board.silence() > MAX_HEARTBEAT_INTERVAL
    {
        (
            "bad",
            "Changes are not applied".to_owned(),
            "Visitors get the last valid pages.",
        )
    } else if unavailable > 0 {
        let verb = if unavailable == 1 { "is" } else { "are" };
        (
            "bad",
            format!("{} {verb} unavailable", count(unavailable, "site")),
            "The pinned release cannot be served.",
        )
    } else if board.store().state_alarm().is_some() {
        (
            "bad",
            "The state cannot be written".to_owned(),
            "Visitors get the current pages. A restart loses new releases, and rollbacks fail.",
        )
    } else if broken > 0 {
        let verb = if broken == 1 { "has" } else { "have" };
        let text = format!(
            "{} of {} {verb} errors",
            grouped(broken as u64),
            count(all, "site")
        );
        (
            "bad",
            text,
            "Visitors get the last valid pages, if there are any.",
        )
    } else if !status.complete && pending == 0 {
        ("busy", "The sites are being read".to_owned(), "")
    } else if pending > 0 {
        let text = format!(
            "{} of {} in the render queue",
            grouped(pending as u64),
            count(all, "site")
        );
        (
            "busy",
            text,
            "A request moves its site to the front of the queue.",
        )
    } else if has_errors_elsewhere {
        (
            "bad",
            "Themes or the deployment have errors".to_owned(),
            "Visitors get the last valid pages, if there are any.",
        )
    } else if all == 0 {
        (
            "busy",
            "No sites yet".to_owned(),
            "Create a site with `rowhouse new NAME`.",
        )
    } else {
        let text = match all {
            1 => "The site is healthy".to_owned(),
            2 => "Both sites are healthy".to_owned(),
            _ => format!("All {} are healthy", count(all, "site")),
        };
        ("good", text, "")
    };
    HealthSummary { mood, text, detail }
}

/// Returns the alarms: the conditions that need an operator, apart from broken and removed sites, which have lists of their own.
fn alarms(parts: &ConsoleParts, now: SystemTime) -> Vec<String> {
    let board = &parts.operator.board;
    let mut conditions = server_conditions(board, parts.memory.read());
    if let Some(tls) = &parts.tls {
        let lines = overview(&parts.snapshots, tls);
        conditions.extend(certificate_conditions(&lines, now));
    }
    let conditions = limited(conditions, MAX_BROKEN_SITES).into_iter();
    let mut alarms: Vec<String> = conditions.map(|condition| condition.message).collect();
    if board.restarts() > 0 {
        let times = count(
            usize::try_from(board.restarts()).unwrap_or(usize::MAX),
            "time",
        );
        alarms.push(format!(
            "the reload loop failed and was restarted {times} since startup"
        ));
    }
    alarms
}

/// Returns the labelled values below the charts.
fn facts(parts: &ConsoleParts, status: &DeploymentStatus, now: SystemTime) -> Vec<LabelledValue> {
    let board = &parts.operator.board;
    let store = board.store();
    let tenants = || status.tenants();
    let is_rendered_again =
        |tenant: &&TenantStatus| tenant.is_in_flight && tenant.state != Availability::Pending;
    let again = tenants().filter(is_rendered_again).count();
    let waiting = tenants().filter(|tenant| tenant.state == Availability::Pending);
    let waiting = waiting.count();
    let pages: usize = tenants().map(|tenant| tenant.pages).sum();
    let pinned = tenants().filter(|tenant| tenant.pinned.is_some()).count();
    let connections = &parts.snapshots.connections;
    let fact = |name, value: String, more: String| LabelledValue {
        name,
        value,
        more,
        share: None,
    };
    let of =
        |value: u64, limit: u64| (limit > 0).then(|| (value.saturating_mul(100) / limit).min(100));
    let (open, limit) = (
        connections.open.load(Relaxed),
        connections.limit.load(Relaxed),
    );
    let used = parts.memory.read();
    let of_limit = match used.and_then(|used| used.limit) {
        Some(limit) => format!("of {}", bytes(limit)),
        None => "no known limit".to_owned(),
    };
    let memory = LabelledValue {
        share: used
            .and_then(|used| used.percent())
            .map(|share| share.min(100)),
        ..fact(
            "Memory",
            used.map_or_else(|| "–".to_owned(), |used| bytes(used.resident)),
            of_limit,
        )
    };
    let disk = match &parts.operator.store {
        None => fact(
            "Disk",
            "–".to_owned(),
            "not used without --state".to_owned(),
        ),
        Some(_) => {
            let queued = store.queued;
            let is_refused = store.state_alarm().is_some();
            let of_releases =
                |number: u64| count(usize::try_from(number).unwrap_or(usize::MAX), "release");
            let more = match queued {
                0 if is_refused => "cannot be written".to_owned(),
                queued if is_refused => {
                    format!("cannot be written; {} queued", of_releases(queued))
                }
                0 => format!("{} blobs of releases", grouped(store.disk_blobs)),
                queued => format!("{} queued for writing", of_releases(queued)),
            };
            fact("Disk", bytes(store.disk_bytes), more)
        }
    };
    let up = now.duration_since(board.started()).unwrap_or_default();
    vec![
        fact(
            "Sites",
            grouped(tenants().count() as u64),
            match pinned {
                0 => count(pages, "page"),
                pinned => format!(
                    "{}, {} pinned",
                    count(pages, "page"),
                    grouped(pinned as u64)
                ),
            },
        ),
        fact(
            "Render queue",
            grouped(waiting as u64),
            match (waiting, again) {
                (0, 0) => "no site is queued".to_owned(),
                (_, 0) => "requested sites first".to_owned(),
                (_, again) => format!("{} being rendered again", grouped(again as u64)),
            },
        ),
        memory,
        disk,
        LabelledValue {
            share: of(open, limit),
            ..fact(
                "Connections",
                grouped(open),
                format!("of {}", grouped(limit)),
            )
        },
        fact(
            "Uptime",
            span(up),
            format!("last change {} ago", span(parts.snapshots.age())),
        ),
    ]
}

/// The memory of an open connection without a request, in bytes. The sizing page of the manual has the measurement.
const CONNECTION_BYTES: u64 = 10 << 10;

/// Returns the parts that use memory, and what is left for the program itself.
fn memory_sentence(parts: &ConsoleParts, used: MemoryUse) -> String {
    let board = &parts.operator.board;
    let memory = board.memory();
    let connections = parts.snapshots.connections.open.load(Relaxed) * CONNECTION_BYTES;
    let known = [
        (memory.pages, "of pages"),
        (memory.images, "of images"),
        (memory.tenant_data, "for the data of all sites"),
        (memory.work, "for reading and rendering"),
        (connections, "for connections"),
    ];
    let sum = known.iter().map(|(bytes, _)| bytes).sum();
    let mut list: Vec<String> = known
        .iter()
        .filter(|(bytes, _)| *bytes > 0)
        .map(|(number, name)| format!("{} {name}", bytes(*number)))
        .collect();
    let rest = |total: u64| bytes(total.saturating_sub(sum));
    // Without counts of the allocator, the rest includes memory that was freed and not returned yet.
    match used.allocated {
        Some(allocated) => {
            list.push(format!("{} for the program itself", rest(allocated)));
            let freed = used.resident.saturating_sub(allocated);
            list.push(format!("{} freed or code", bytes(freed)));
        }
        None => list.push(format!(
            "{} for the program itself and freed memory",
            rest(used.resident)
        )),
    }
    let mut sentence = format!("{} in use: {}.", bytes(used.resident), list.join(", "));
    if let Some(limit) = board.store().memory_limit {
        let limit = bytes(limit);
        sentence.push_str(&format!(" Pages, images and the data may use {limit}."));
    }
    if let Some((tenant, number)) = memory.largest.first() {
        let number = bytes(*number);
        sentence.push_str(&format!(" The largest site is {tenant} with {number}."));
    }
    sentence
}

/// Returns the receiver of alerts, and how many it got.
fn alerts_sentence(parts: &ConsoleParts) -> Option<String> {
    let alerts = parts.operator.board.alerts();
    let alerts = Option::as_ref(&alerts)?;
    let waiting = match alerts.unsent {
        0 => String::new(),
        unsent => format!(", {} wait for the receiver", grouped(unsent)),
    };
    let (receiver, sent) = (&alerts.receiver, grouped(alerts.sent));
    Some(format!(
        "Alerts go to {receiver}: {sent} sent since startup{waiting}."
    ))
}

/// Returns a site with its first errors, at most `most`.
fn card(
    parts: &ConsoleParts,
    tenant: &TenantStatus,
    most: usize,
    findings: Option<&Findings>,
    now: SystemTime,
) -> BrokenSite {
    let found = findings.and_then(|findings| findings.tenants.get(&*tenant.id));
    let errors = found.map_or(&[][..], |found| &found.diagnostics);
    let errors = || errors.iter().filter(|one| one.severity == Severity::Error);
    let lines: &[String] = if found.is_none() { &tenant.errors } else { &[] };
    let all = errors().count().max(lines.len());
    BrokenSite {
        id: tenant.id.to_string(),
        state: tenant.state.name(),
        url: address(parts, tenant, findings).map(|address| parts.url(&address)),
        since: MomentView::new(tenant.since, now),
        problems: errors().take(most).map(ProblemView::new).collect(),
        more: all.saturating_sub(most),
        lines: lines.iter().take(most).cloned().collect(),
    }
}

/// Returns the sites with the most requests for missing paths.
fn missing(parts: &ConsoleParts) -> Vec<MissingPathsView> {
    let tenants = parts.snapshots.not_found.tenants().into_iter();
    let tenants = tenants.take(MAX_SITES_WITH_MISSING_PATHS);
    let missing = tenants.map(|(id, paths)| {
        let requests: u64 = paths.iter().map(|path| path.count).sum();
        let first = paths.first().map(|path| path.path.clone());
        MissingPathsView {
            id: id.to_string(),
            requests: count(usize::try_from(requests).unwrap_or(usize::MAX), "request"),
            paths: count(paths.len(), "path"),
            first: first.unwrap_or_default(),
        }
    });
    missing.collect()
}
