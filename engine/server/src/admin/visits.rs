//! The visits of a tenant, as JSON.
//!
//! **Invariant:** counts nothing.

use std::sync::Arc;

use axum::extract::{Path, State as Shared};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use crate::admin::control::ControlError;
use crate::admin::query_number::{Parameters, number};
use crate::admin::status::StatusBoard;
use crate::metrics::visits::{DayVisits, MAX_DAYS, NameCount, NameCounts, first_of, today};
use crate::snapshot_store::SnapshotStore;

/// Days of a report unless the request says otherwise.
pub const DEFAULT_DAYS: usize = 30;

/// Maximum number of pages, and of referring hosts, in the sum of a report.
const MAX_SUMMED_NAMES: usize = 100;

/// The visits of a tenant in a number of days.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VisitsReport {
    /// The tenant's id.
    pub tenant: String,
    /// The first day of the report.
    pub from: Date,
    /// The last day of the report: today.
    pub to: Date,
    /// The time zone in which a day begins and ends: `UTC`.
    pub time_zone: String,
    /// The sum of all days.
    pub total: VisitCounts,
    /// The days with visits, oldest first.
    pub days: Vec<VisitDay>,
}

/// The visits of a day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VisitDay {
    /// The day, in UTC.
    pub day: Date,
    /// The counts of the day.
    #[serde(flatten)]
    pub counts: VisitCounts,
}

/// The counts of a day, or of several days.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VisitCounts {
    /// Page views, without bots.
    pub views: u64,
    /// Pages that browsers fetched before the visitor followed a link.
    pub fetched_ahead: u64,
    /// Pages that were sent to bots.
    pub bots: u64,
    /// Responses with status 404.
    pub not_found: u64,
    /// Bytes of response bodies.
    pub bytes: u64,
    /// Page views by page, most frequent first.
    pub pages: Vec<NamedViews>,
    /// Page views of all other pages together.
    pub other_pages: u64,
    /// Page views by the host of another site that linked to the page, most frequent first.
    pub referrers: Vec<NamedViews>,
    /// Page views from all other hosts together.
    pub other_referrers: u64,
}

/// The page views of a page or from a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedViews {
    /// The path of the page below the tenant's root, or the host.
    pub name: String,
    /// The page views.
    pub views: u64,
}

impl VisitsReport {
    /// Returns the visits of a tenant in the last `days` days.
    #[must_use]
    pub fn of(snapshots: &SnapshotStore, tenant: &str, days: usize) -> Self {
        snapshots.settle_visits();
        let to = today();
        let visits = snapshots.visits.of(tenant, days);
        let mut total = DayVisits::default();
        for (_, day) in &visits {
            total.add(day);
        }
        let sum = |names: fn(&DayVisits) -> &NameCounts| {
            let (mut listed, other) = NameCounts::sum(visits.iter().map(|(_, day)| names(day)));
            let rest = listed.split_off(listed.len().min(MAX_SUMMED_NAMES));
            (
                listed,
                other + rest.iter().map(|rest| rest.count).sum::<u64>(),
            )
        };
        let total = VisitCounts::new(&total, sum(|day| &day.pages), sum(|day| &day.referrers));
        let lines = visits.iter().map(|(date, day)| VisitDay {
            day: *date,
            counts: VisitCounts::new(
                day,
                (day.pages.by_count(), day.pages.other),
                (day.referrers.by_count(), day.referrers.other),
            ),
        });
        Self {
            tenant: tenant.to_owned(),
            from: first_of(to, days),
            to,
            time_zone: "UTC".to_owned(),
            total,
            days: lines.collect(),
        }
    }
}

impl VisitCounts {
    fn new(counts: &DayVisits, pages: (Vec<NameCount>, u64), hosts: (Vec<NameCount>, u64)) -> Self {
        let named = |listed: Vec<NameCount>| {
            let listed = listed.into_iter();
            listed
                .map(|known| NamedViews {
                    name: known.name.into_string(),
                    views: known.count,
                })
                .collect()
        };
        Self {
            views: counts.views,
            fetched_ahead: counts.ahead,
            bots: counts.bots,
            not_found: counts.not_found,
            bytes: counts.bytes,
            pages: named(pages.0),
            other_pages: pages.1,
            referrers: named(hosts.0),
            other_referrers: hosts.1,
        }
    }
}

/// The sources of the visits.
#[derive(Debug, Clone)]
pub(super) struct VisitSources {
    pub(super) board: Arc<StatusBoard>,
    pub(super) snapshots: Arc<SnapshotStore>,
}

/// Returns the routes of the visits.
pub(super) fn router<S: Clone + Send + Sync + 'static>(sources: VisitSources) -> Router<S> {
    Router::new()
        .route("/tenants/{id}/visits", get(visits))
        .with_state(sources)
}

/// Answers `GET /tenants/{id}/visits`.
async fn visits(
    Shared(sources): Shared<VisitSources>,
    Path(tenant): Path<String>,
    parameters: Parameters,
) -> Response {
    let days = match number(&parameters, "days") {
        Ok(days) => days.map_or(DEFAULT_DAYS, |days| {
            usize::try_from(days).unwrap_or(MAX_DAYS)
        }),
        Err(error) => return error.into_response(),
    };
    let report = VisitsReport::of(&sources.snapshots, &tenant, days.clamp(1, MAX_DAYS));
    if report.days.is_empty() && !is_known(&sources.board, &tenant) {
        return ControlError::UnknownTenant(tenant).into_response();
    }
    Json(report).into_response()
}

/// Returns whether the tenant exists or was removed a short time ago.
fn is_known(board: &Arc<StatusBoard>, tenant: &str) -> bool {
    let status = board.current();
    status.tenants.contains_key(tenant)
        || status.removed.iter().any(|removed| *removed.id == *tenant)
}
