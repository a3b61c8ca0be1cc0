//! The first page: how all is, what needs somebody, and the sites.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, SystemTime};

use content::report::Severity;
use serde::Serialize;
use server::admin::status::{State, Status, TenantStatus};
use server::tls::overview::{CertificateState, overview};

use super::charts::{Chart, charts, points};
use super::list::{List, address, chosen, is_broken, row};
use super::missing::missing_since;
use super::parts::{Asked, ConsoleParts};
use super::problems::ProblemView;
use super::words::{MomentView, bytes, count, grouped, span};
use supervisor::Findings;

/// Broken sites that are shown with their errors, two of each where there are few.
const MAX_BROKEN: usize = 5;
/// So many are few.
const MAX_ERRORS_PER_SITE: usize = 2;
/// Sites whose missing paths are counted on the first page.
const MAX_MISSING: usize = 10;
/// How long before its end a certificate is worth a word; new ones come a month before.
const ENDS_SOON: Duration = Duration::from_secs(14 * 24 * 60 * 60);
/// How long the reload loop may be silent; it goes round every second.
const MAX_SILENCE: Duration = Duration::from_secs(30);

#[derive(Debug, Serialize)]
pub(super) struct HomePage {
    summary: Summary,
    alarms: Vec<String>,
    charts: [Chart; 3],
    facts: Vec<Fact>,
    broken: Vec<Broken>,
    more_broken: usize,
    elsewhere: Vec<ProblemView>,
    list: List,
    missing: Vec<MissingPathsView>,
    /// Since when missing paths are counted.
    missing_since: MomentView,
}

/// In one line, how all is.
#[derive(Debug, Serialize)]
struct Summary {
    /// `good`, `busy` or `bad`.
    mood: &'static str,
    text: String,
    detail: &'static str,
}

/// Something that is to be known, with what it is called.
#[derive(Debug, Serialize)]
struct Fact {
    name: &'static str,
    value: String,
    more: String,
    /// Of a hundred, where the value is a share of something.
    share: Option<u64>,
}

/// A site that does not serve what its folder says.
#[derive(Debug, Serialize)]
struct Broken {
    id: String,
    state: &'static str,
    url: Option<String>,
    since: MomentView,
    problems: Vec<ProblemView>,
    more: usize,
    /// In a line each, where the owner of the tenants is too busy to say more.
    lines: Vec<String>,
}

/// A site with paths that were not found.
#[derive(Debug, Serialize)]
struct MissingPathsView {
    id: String,
    count: String,
    paths: String,
    first: String,
}

pub(super) fn view(parts: &ConsoleParts, asked: &Asked) -> HomePage {
    let now = SystemTime::now();
    let status = parts.operator.board.current().clone();
    let (shown, mut list) = chosen(&status, asked);
    let broken: Vec<&TenantStatus> = status
        .tenants()
        .filter(|tenant| is_broken(tenant))
        .collect();
    let is_first = list.page == 1 && list.query.is_empty() && list.chosen == "all";
    let of_first: &[&TenantStatus] = if is_first { &broken } else { &[] };
    let named = &of_first[..of_first.len().min(MAX_BROKEN)];
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
        summary: summary(parts, &status, broken.len(), has_errors_elsewhere),
        alarms: alarms(parts, &status, now),
        charts: charts(&points(&parts.snapshots.history.samples())),
        facts: facts(parts, &status, now),
        broken: cards.collect(),
        more_broken: of_first.len().saturating_sub(MAX_BROKEN),
        elsewhere: elsewhere.take(MAX_BROKEN).map(ProblemView::new).collect(),
        list,
        missing: missing(parts),
        missing_since: missing_since(parts, now),
    }
}

fn summary(
    parts: &ConsoleParts,
    status: &Status,
    broken: usize,
    has_errors_elsewhere: bool,
) -> Summary {
    let all = status.tenants.len();
    let pending = status
        .tenants()
        .filter(|tenant| tenant.state == State::Pending)
        .count();
    let (mood, text, detail) =
        if status.alarm.is_some() || parts.operator.board.silence() > MAX_SILENCE {
            (
                "bad",
                "Changes are not taken".to_owned(),
                "Visitors get what was good before.",
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
                "Visitors get the last good pages, where there are any.",
            )
        } else if !status.complete && pending == 0 {
            ("busy", "The sites are being read".to_owned(), "")
        } else if pending > 0 {
            let text = format!(
                "{} of {} still to be rendered",
                grouped(pending as u64),
                count(all, "site")
            );
            (
                "busy",
                text,
                "Each is rendered at once when somebody asks for it.",
            )
        } else if has_errors_elsewhere {
            (
                "bad",
                "Themes or the deployment have errors".to_owned(),
                "Visitors get the last good pages, where there are any.",
            )
        } else if all == 0 {
            (
                "busy",
                "There is no site yet".to_owned(),
                "`rowhouse new NAME` makes one.",
            )
        } else {
            let text = match all {
                1 => "The site is well".to_owned(),
                2 => "Both sites are well".to_owned(),
                _ => format!("All {} are well", count(all, "site")),
            };
            ("good", text, "")
        };
    Summary { mood, text, detail }
}

/// What somebody should know at once.
fn alarms(parts: &ConsoleParts, status: &Status, now: SystemTime) -> Vec<String> {
    let board = &parts.operator.board;
    let mut alarms: Vec<String> = status.alarm.iter().cloned().collect();
    let silence = board.silence();
    if silence > MAX_SILENCE {
        alarms.push(format!("no change has been taken for {}", span(silence)));
    }
    if board.restarts() > 0 {
        let times = count(
            usize::try_from(board.restarts()).unwrap_or(usize::MAX),
            "time",
        );
        alarms.push(format!(
            "what takes changes failed and was started again, {times} since the start"
        ));
    }
    if status.polling {
        alarms.push(
            "changes are noticed by looking once a second, since the system gives no notifications"
                .to_owned(),
        );
    }
    for certificate in parts
        .tls
        .iter()
        .flat_map(|tls| overview(&parts.snapshots, tls))
    {
        let end = certificate
            .not_after
            .map(|end| SystemTime::UNIX_EPOCH + Duration::from_secs(end));
        let is_ending = end.is_some_and(|end| end < now + ENDS_SOON);
        let says = match certificate.state {
            CertificateState::Missing if certificate.ordering => continue,
            CertificateState::Missing => "has no certificate".to_owned(),
            CertificateState::Expired => "has a certificate that is not valid now".to_owned(),
            CertificateState::Valid if is_ending => {
                let end = end.map(|end| MomentView::new(end, now).relative);
                format!("has a certificate that ends {}", end.unwrap_or_default())
            }
            CertificateState::Valid => continue,
        };
        let why = certificate
            .error
            .map_or_else(String::new, |error| format!(": {}", error.detail));
        alarms.push(format!("{} {says}{why}", certificate.host));
        if alarms.len() > MAX_BROKEN {
            alarms.push("and more: `rowhouse certificates` lists them".to_owned());
            break;
        }
    }
    alarms
}

fn facts(parts: &ConsoleParts, status: &Status, now: SystemTime) -> Vec<Fact> {
    let board = &parts.operator.board;
    let store = board.store();
    let tenants = || status.tenants();
    let is_again = |tenant: &&TenantStatus| tenant.is_under_way && tenant.state != State::Pending;
    let again = tenants().filter(is_again).count();
    let waiting = tenants().filter(|tenant| tenant.state == State::Pending);
    let waiting = waiting.count();
    let pages: usize = tenants().map(|tenant| tenant.pages).sum();
    let pinned = tenants().filter(|tenant| tenant.pinned.is_some()).count();
    let connections = &parts.snapshots.connections;
    let fact = |name, value: String, more: String| Fact {
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
    let memory = Fact {
        share: store
            .memory_limit
            .and_then(|limit| of(store.memory_bytes, limit)),
        ..fact(
            "Memory",
            bytes(store.memory_bytes),
            match store.memory_limit {
                Some(limit) => format!(
                    "of {}, with {}",
                    bytes(limit),
                    count(usize::try_from(store.tenants).unwrap_or(0), "site")
                ),
                None => "no limit".to_owned(),
            },
        )
    };
    let disk = match &parts.operator.store {
        None => fact(
            "Disk",
            "–".to_owned(),
            "nothing is kept without --state".to_owned(),
        ),
        Some(_) => {
            let queued = store.queued;
            let more = match queued {
                0 => format!("{} blobs of releases", grouped(store.disk_blobs)),
                queued => format!("{} releases still to be written", grouped(queued)),
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
            "To be rendered",
            grouped(waiting as u64),
            match (waiting, again) {
                (0, 0) => "no site waits".to_owned(),
                (_, 0) => "in their turn, or when asked for".to_owned(),
                (_, again) => format!("{} being rendered again", grouped(again as u64)),
            },
        ),
        memory,
        disk,
        Fact {
            share: of(open, limit),
            ..fact(
                "Connections",
                grouped(open),
                format!("of {}", grouped(limit)),
            )
        },
        fact(
            "Running for",
            span(up),
            format!("last change {} ago", span(parts.snapshots.age())),
        ),
    ]
}

fn card(
    parts: &ConsoleParts,
    tenant: &TenantStatus,
    most: usize,
    findings: Option<&Findings>,
    now: SystemTime,
) -> Broken {
    let found = findings.and_then(|findings| findings.tenants.get(&*tenant.id));
    let errors = found.map_or(&[][..], |found| &found.diagnostics);
    let errors = || errors.iter().filter(|one| one.severity == Severity::Error);
    let lines: &[String] = if found.is_none() { &tenant.errors } else { &[] };
    let all = errors().count().max(lines.len());
    Broken {
        id: tenant.id.to_string(),
        state: tenant.state.name(),
        url: address(parts, tenant, findings).map(|address| parts.url(&address)),
        since: MomentView::new(tenant.since, now),
        problems: errors().take(most).map(ProblemView::new).collect(),
        more: all.saturating_sub(most),
        lines: lines.iter().take(most).cloned().collect(),
    }
}

fn missing(parts: &ConsoleParts) -> Vec<MissingPathsView> {
    let tenants = parts.snapshots.not_found.tenants().into_iter();
    let missing = tenants
        .take(MAX_MISSING)
        .map(|(id, paths)| MissingPathsView {
            id: id.to_string(),
            count: grouped(paths.iter().map(|path| path.count).sum()),
            paths: count(paths.len(), "path"),
            first: paths
                .first()
                .map(|path| path.path.clone())
                .unwrap_or_default(),
        });
    missing.collect()
}
