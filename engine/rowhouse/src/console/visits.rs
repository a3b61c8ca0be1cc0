//! The visits of a tenant: charts by day and by week, and the same values as tables.
//!
//! **Invariant:** shows one tenant only; counts nothing.

use std::fmt::Write as _;

use jiff::civil::Date;
use serde::Serialize;
use server::admin::visits::{DEFAULT_DAYS, NamedViews, VisitCounts, VisitsReport};
use server::metrics::visits::MAX_DAYS;

use super::parts::ConsoleParts;
use super::value_text::{bytes, grouped};

/// The weeks of the chart of a year.
const WEEKS: usize = 53;
const DAYS_PER_WEEK: usize = 7;
/// The number of pages and of referring hosts; `rowhouse visits` prints more.
const MAX_LISTED: usize = 10;

/// The width of a chart, in units of its SVG.
const WIDTH: f64 = 240.0;
/// The height of a chart, in units of its SVG.
const HEIGHT: f64 = 56.0;
/// The height of the smallest bar, so that one view is visible beside a thousand.
const MIN_BAR: f64 = 2.0;
/// The share of a bar in its place; the rest is space.
const BAR_SHARE: f64 = 0.75;

/// The values of the part *Visits*.
#[derive(Debug, Serialize)]
pub(super) struct VisitsView {
    /// Whether there were visits in the last year.
    has_visits: bool,
    charts: [BarChart; 2],
    views: String,
    fetched_ahead: String,
    bots: String,
    not_found: String,
    bytes: String,
    days: Vec<Row>,
    weeks: Vec<Row>,
    pages: NameList,
    referrers: NameList,
    is_persisted: bool,
}

#[derive(Debug, Serialize)]
struct BarChart {
    title: &'static str,
    total: String,
    highest: String,
    /// The label of the left end.
    begin: &'static str,
    /// The bars, as the `d` of an SVG path.
    bars: String,
}

/// A row of a table, with its numbers as text.
#[derive(Debug, Serialize)]
struct Row {
    day: String,
    views: String,
    bots: String,
    not_found: String,
    bytes: String,
}

#[derive(Debug, Serialize)]
struct NameList {
    listed: Vec<NameRow>,
    /// The views of all other names; empty if there are none.
    other: String,
}

#[derive(Debug, Serialize)]
struct NameRow {
    name: String,
    views: String,
}

/// Returns the visits of a tenant.
pub(super) fn view(parts: &ConsoleParts, id: &str) -> VisitsView {
    let year = VisitsReport::of(&parts.snapshots, id, MAX_DAYS);
    let month = VisitsReport::of(&parts.snapshots, id, DEFAULT_DAYS);
    let is_persisted = parts.operator.store.is_some();
    from_reports(&year, month, is_persisted)
}

fn from_reports(year: &VisitsReport, month: VisitsReport, is_persisted: bool) -> VisitsView {
    let mut by_day = [0; DEFAULT_DAYS];
    let mut by_week = [0; WEEKS];
    let mut weeks: [Option<(Date, VisitCounts)>; WEEKS] = std::array::from_fn(|_| None);
    for day in &year.days {
        let age = usize::try_from((year.to - day.day).get_days()).unwrap_or(0);
        // The newest is on the right.
        if let Some(views) = by_day.iter_mut().rev().nth(age) {
            *views += day.counts.views;
        }
        let week = age / DAYS_PER_WEEK;
        if let (Some(views), Some(sum)) = (by_week.iter_mut().rev().nth(week), weeks.get_mut(week))
        {
            *views += day.counts.views;
            match sum {
                Some((_, sum)) => add(sum, &day.counts),
                None => *sum = Some((day.day, day.counts.clone())),
            }
        }
    }
    let total = month.total;
    let days = month.days.iter().rev();
    VisitsView {
        has_visits: !year.days.is_empty(),
        charts: [
            chart("Page views per day", "30 days ago", &by_day),
            chart("Page views per week", "a year ago", &by_week),
        ],
        views: grouped(total.views),
        fetched_ahead: grouped(total.fetched_ahead),
        bots: grouped(total.bots),
        not_found: grouped(total.not_found),
        bytes: bytes(total.bytes),
        days: days.map(|day| row(day.day, &day.counts)).collect(),
        weeks: (weeks.iter().flatten())
            .map(|(first, counts)| row(*first, counts))
            .collect(),
        pages: name_list(total.pages, total.other_pages),
        referrers: name_list(total.referrers, total.other_referrers),
        is_persisted,
    }
}

fn add(sum: &mut VisitCounts, counts: &VisitCounts) {
    sum.views += counts.views;
    sum.bots += counts.bots;
    sum.not_found += counts.not_found;
    sum.bytes += counts.bytes;
}

fn row(day: Date, counts: &VisitCounts) -> Row {
    Row {
        day: day.to_string(),
        views: grouped(counts.views),
        bots: grouped(counts.bots),
        not_found: grouped(counts.not_found),
        bytes: bytes(counts.bytes),
    }
}

fn name_list(mut names: Vec<NamedViews>, other: u64) -> NameList {
    let rest = names.split_off(names.len().min(MAX_LISTED));
    let other = other + rest.iter().map(|rest| rest.views).sum::<u64>();
    let row = |named: NamedViews| NameRow {
        name: named.name,
        views: grouped(named.views),
    };
    NameList {
        listed: names.into_iter().map(row).collect(),
        other: match other {
            0 => String::new(),
            other => grouped(other),
        },
    }
}

/// Returns the chart of values, the newest last.
fn chart(title: &'static str, begin: &'static str, values: &[u64]) -> BarChart {
    let highest = values.iter().copied().max().unwrap_or(0);
    BarChart {
        title,
        total: grouped(values.iter().sum()),
        highest: grouped(highest),
        begin,
        bars: bars(values, highest),
    }
}

/// Returns the `d` of an SVG path with a bar for each value above zero.
#[expect(clippy::cast_precision_loss, reason = "for a chart")]
fn bars(values: &[u64], highest: u64) -> String {
    let place = WIDTH / values.len().max(1) as f64;
    let mut path = String::new();
    for (index, value) in values.iter().enumerate().filter(|(_, value)| **value > 0) {
        let height = (*value as f64 / highest as f64 * HEIGHT).max(MIN_BAR);
        let left = place * (index as f64 + (1.0 - BAR_SHARE) / 2.0);
        let (right, top) = (left + place * BAR_SHARE, HEIGHT - height);
        // Writing to a string does not fail.
        let _ = write!(path, "M{left:.1} {HEIGHT}V{top:.1}H{right:.1}V{HEIGHT}Z");
    }
    path
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use server::admin::visits::VisitDay;

    use super::*;

    fn counts(views: u64) -> VisitCounts {
        let named = |name: String| NamedViews { name, views: 1 };
        VisitCounts {
            views,
            fetched_ahead: 0,
            bots: 2,
            not_found: 1,
            bytes: 1_000,
            pages: (0..12).map(|number| named(format!("/{number}"))).collect(),
            other_pages: 3,
            referrers: Vec::new(),
            other_referrers: 0,
        }
    }

    fn report(days: &[(Date, u64)]) -> VisitsReport {
        VisitsReport {
            tenant: "app".to_owned(),
            from: date(2025, 10, 24),
            to: date(2026, 11, 27),
            time_zone: "UTC".to_owned(),
            total: counts(days.iter().map(|(_, views)| views).sum()),
            days: (days.iter())
                .map(|(day, views)| VisitDay {
                    day: *day,
                    counts: counts(*views),
                })
                .collect(),
        }
    }

    #[test]
    fn day_with_three_views_is_visible_beside_a_busy_day() {
        let days = [(date(2026, 11, 20), 3), (date(2026, 11, 27), 90_000)];
        let view = from_reports(&report(&days), report(&days), true);
        let [by_day, by_week] = &view.charts;
        assert_eq!(
            by_day.bars,
            "M177.0 56V54.0H183.0V56ZM233.0 56V0.0H239.0V56Z"
        );
        assert_eq!((&*by_day.total, &*by_day.highest), ("90,003", "90,000"));
        assert_eq!(by_week.bars.matches('M').count(), 2);
        let rows: Vec<_> = view
            .days
            .iter()
            .map(|row| (&*row.day, &*row.views))
            .collect();
        assert_eq!(rows, [("2026-11-27", "90,000"), ("2026-11-20", "3")]);
        assert_eq!(view.weeks.len(), 2);
        assert_eq!(
            (view.pages.listed.len(), &*view.pages.other),
            (MAX_LISTED, "5")
        );
        assert_eq!(
            (view.referrers.listed.len(), &*view.referrers.other),
            (0, "")
        );
    }

    #[test]
    fn days_of_a_week_are_added_and_older_ones_are_left_out() {
        let days = [
            (date(2025, 10, 24), 7),
            (date(2026, 11, 21), 1),
            (date(2026, 11, 24), 2),
        ];
        let view = from_reports(&report(&days), report(&days[1..]), true);
        assert_eq!((&*view.charts[1].total, view.weeks.len()), ("3", 1));
        let week = &view.weeks[0];
        assert_eq!(
            (&*week.day, &*week.views, &*week.bots),
            ("2026-11-21", "3", "4")
        );
    }

    #[test]
    fn site_without_visits_has_no_bars() {
        let view = from_reports(&report(&[]), report(&[]), false);
        assert!(!view.has_visits && view.charts[0].bars.is_empty());
    }
}
