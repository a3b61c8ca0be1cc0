//! `rowhouse visits`: the visits of a tenant by day, from a running server.
//!
//! **Invariant:** counts nothing; prints what the admin listener says, without control characters.

use std::process::ExitCode;

use clap::builder::styling::Style;

use crate::cli::{VisitsArguments, VisitsFormat};
use crate::commands::operations::releases::{refused, request, without_controls};
use crate::commands::output::{print, print_message};
use server::admin::visits::{NamedViews, VisitCounts, VisitsReport};

/// The number of pages and of hosts in text. The rest is counted.
const MAX_LISTED: usize = 15;

const HEADING: Style = Style::new().bold();

/// Prints the visits of a tenant.
pub(crate) fn run(arguments: &VisitsArguments) -> anyhow::Result<ExitCode> {
    let tenant = &arguments.tenant;
    let target = format!("/tenants/{tenant}/visits?days={}", arguments.days);
    let response: Result<VisitsReport, _> = request(arguments.server, "GET", &target, "")?;
    Ok(match response {
        Err(refusal) => refused(&refusal),
        Ok(report) => {
            match arguments.format {
                VisitsFormat::Json => print(&serde_json::to_string_pretty(&report)?),
                VisitsFormat::Text if report.days.is_empty() => print_message(&format!(
                    "`{tenant}` has no visits from {} to {} (UTC)",
                    report.from, report.to
                )),
                VisitsFormat::Text => print(text(&report).trim_end()),
            }
            ExitCode::SUCCESS
        }
    })
}

/// Returns the tables of a report.
fn text(report: &VisitsReport) -> String {
    let columns = |first: String, counts: &VisitCounts| {
        let numbers = [
            counts.views,
            counts.fetched_ahead,
            counts.bots,
            counts.not_found,
            counts.bytes,
        ];
        [
            vec![first],
            numbers.map(|number| number.to_string()).to_vec(),
        ]
        .concat()
    };
    let names = ["day (UTC)", "views", "ahead", "bots", "404", "bytes"];
    let heading = names.map(ToOwned::to_owned).to_vec();
    let days = report.days.iter();
    let rows: Vec<_> = [heading]
        .into_iter()
        .chain(days.map(|day| columns(day.day.to_string(), &day.counts)))
        .chain([columns("all days".to_owned(), &report.total)])
        .collect();
    let total = &report.total;
    let mut text = table(&rows);
    push_names(&mut text, "views by page", &total.pages, total.other_pages);
    push_names(
        &mut text,
        "views by referring host",
        &total.referrers,
        total.other_referrers,
    );
    text
}

/// Adds a table of names with their views, if there are any.
fn push_names(text: &mut String, heading: &str, names: &[NamedViews], other: u64) {
    let (listed, rest) = names.split_at(names.len().min(MAX_LISTED));
    let other = other + rest.iter().map(|rest| rest.views).sum::<u64>();
    let mut rows = vec![vec![heading.to_owned(), String::new()]];
    rows.extend(
        listed
            .iter()
            .map(|one| vec![without_controls(&one.name), one.views.to_string()]),
    );
    if other > 0 {
        rows.push(vec!["other".to_owned(), other.to_string()]);
    }
    if rows.len() > 1 {
        text.push('\n');
        text.push_str(&table(&rows));
    }
}

/// Returns rows in columns: the first aligned to the left, all others to the right. The first row is the heading.
fn table(rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let width = width(column);
            line.push_str(&match column {
                0 => format!("{cell:width$}"),
                _ => format!("  {cell:>width$}"),
            });
        }
        let line = line.trim_end();
        text.push_str(&match number {
            0 => format!("{HEADING}{line}{HEADING:#}\n"),
            _ => format!("{line}\n"),
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use server::admin::visits::VisitDay;

    use super::*;

    #[test]
    fn report_has_days_pages_and_hosts() {
        let named = |name: &str, views| NamedViews {
            name: name.to_owned(),
            views,
        };
        let counts = VisitCounts {
            views: 12,
            fetched_ahead: 1,
            bots: 3,
            not_found: 0,
            bytes: 12_345,
            pages: vec![named("/", 9), named("/\u{1b}x", 3)],
            other_pages: 0,
            referrers: (0..20)
                .map(|number| named(&format!("{number}.example"), 1))
                .collect(),
            other_referrers: 2,
        };
        let day = |day| VisitDay {
            day: date(2026, 11, day),
            counts: counts.clone(),
        };
        let report = VisitsReport {
            tenant: "app".to_owned(),
            from: date(2026, 11, 1),
            to: date(2026, 11, 27),
            time_zone: "UTC".to_owned(),
            total: counts.clone(),
            days: vec![day(26), day(27)],
        };
        let text = anstream::adapter::strip_str(&text(&report)).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[..8],
            [
                "day (UTC)   views  ahead  bots  404  bytes",
                "2026-11-26     12      1     3    0  12345",
                "2026-11-27     12      1     3    0  12345",
                "all days       12      1     3    0  12345",
                "",
                "views by page",
                "/              9",
                "/\u{fffd}x            3",
            ]
        );
        assert_eq!(lines.last(), Some(&"other                    7"));
    }
}
