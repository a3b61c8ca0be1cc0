//! Tests of the counts of visits.

use http::StatusCode;
use jiff::civil::date;
use release::snapshot::ContentEncoding;
use std::time::Duration;

use super::page_request::{MAX_QUEUED_BUFFERS, buffer_of};
use super::*;

const FIREFOX: &[u8] = b"Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0";

const VIEW: PageRequest<'_> = PageRequest {
    tenant: "app",
    path: "/terms",
    agent: FIREFOX,
    referrer: b"",
    is_ahead: false,
};

fn settle(table: &mut VisitTable, today: Date, requests: &[PageRequest<'_>]) {
    table.settle(today, &[buffer_of(requests)], &TrafficTable::new());
}

fn listed(counts: &NameCounts) -> Vec<(String, u64)> {
    let all = counts.by_count().into_iter();
    all.map(|known| (known.name.into_string(), known.count))
        .collect()
}

/// Returns the numbers of tenants and names in all days.
fn sizes(table: &VisitTable) -> (usize, usize) {
    let all = || table.days.values().flat_map(HashMap::values);
    (all().count(), all().map(DayVisits::names).sum())
}

#[test]
fn views_bots_and_pages_fetched_ahead_are_counted_apart() {
    let mut table = VisitTable::default();
    let today = date(2026, 11, 27);
    let from = |referrer| PageRequest { referrer, ..VIEW };
    let requests = [
        from(b"News.example"),
        from(b"news.example"),
        from(b"192.0.2.1"),
        from(b"[2001"),
        from(b"a@b.example"),
        from(b"localhost"),
        PageRequest { path: "/", ..VIEW },
        PageRequest {
            agent: b"curl/8",
            referrer: b"bot.example",
            ..VIEW
        },
        PageRequest {
            is_ahead: true,
            ..VIEW
        },
    ];
    settle(&mut table, today, &requests);
    let day = &table.days[&today]["app"];
    assert_eq!((day.views, day.bots, day.ahead), (7, 1, 1));
    assert_eq!(table.views["app"], 7);
    assert_eq!(
        listed(&day.pages),
        [("/terms".to_owned(), 6), ("/".to_owned(), 1)]
    );
    assert_eq!(listed(&day.referrers), [("news.example".to_owned(), 2)]);
    assert_eq!((day.pages.other, day.referrers.other), (0, 0));
    assert_eq!(sizes(&table), (table.tenant_days, table.names));
}

#[test]
fn bytes_and_missing_pages_come_from_the_traffic() {
    let visits = Visits::default();
    let tenants: TrafficTable = [(Arc::from("app"), Arc::default())].into_iter().collect();
    let record = |status, bytes| {
        tenants["app"].record(status, ContentEncoding::Identity, bytes, Duration::ZERO);
    };
    record(StatusCode::OK, 100);
    visits.settle(&tenants);
    record(StatusCode::NOT_FOUND, 20);
    tenants["app"].record_not_found();
    visits.settle(&tenants);
    visits.settle(&tenants);
    let [(date, day)] = visits.of("app", 2).try_into().unwrap();
    assert!(date <= today());
    assert_eq!((day.bytes, day.not_found, day.views), (120, 1, 0));
    assert!(visits.of("other", MAX_DAYS).is_empty());
}

#[test]
fn names_stay_within_the_limit_under_an_attack_with_a_million_hosts() {
    let mut table = VisitTable::default();
    let today = date(2026, 11, 27);
    let tenants: Vec<String> = (0..40).map(|number| format!("t{number}")).collect();
    for round in 0..1_000 {
        let hosts: Vec<String> = (0..1_000)
            .map(|number| format!("h{round}-{number}.example"))
            .collect();
        let requests: Vec<_> = hosts
            .iter()
            .zip(tenants.iter().cycle())
            .map(|(host, tenant)| PageRequest {
                tenant,
                referrer: host.as_bytes(),
                ..VIEW
            })
            .collect();
        settle(&mut table, today, &requests);
    }
    assert_eq!(sizes(&table), (40, 40 * (MAX_NAMES_PER_DAY + 1)));
    assert_eq!(table.names, sizes(&table).1);
    let views: u64 = table.days[&today].values().map(|day| day.views).sum();
    let counted = table.days[&today].values().map(|day| {
        day.referrers.other
            + listed(&day.referrers)
                .iter()
                .map(|(_, count)| count)
                .sum::<u64>()
    });
    assert_eq!((views, counted.sum::<u64>()), (1_000_000, 1_000_000));
}

#[test]
fn names_of_the_oldest_days_are_merged_when_the_table_is_full() {
    let mut table = VisitTable::default();
    let first = date(2026, 1, 1);
    let tenants: Vec<String> = (0..100).map(|number| format!("t{number}")).collect();
    let paths: Vec<String> = (0..MAX_NAMES_PER_DAY)
        .map(|number| format!("/{number}"))
        .collect();
    let days = MAX_NAMES / (tenants.len() * paths.len()) + 3;
    let mut today = first;
    for _ in 0..days {
        let requests: Vec<_> = (tenants.iter())
            .flat_map(|tenant| {
                paths.iter().map(move |path| PageRequest {
                    tenant,
                    path,
                    ..VIEW
                })
            })
            .collect();
        settle(&mut table, today, &requests);
        today = today.tomorrow().unwrap();
        assert!(table.names <= MAX_NAMES, "{}", table.names);
        assert_eq!(sizes(&table), (table.tenant_days, table.names));
    }
    let pages = |date| table.days[&date]["t0"].pages.clone();
    assert_eq!((listed(&pages(first)).len(), pages(first).other), (0, 32));
    let last = pages(today.yesterday().unwrap());
    assert_eq!((listed(&last).len(), last.other), (MAX_NAMES_PER_DAY, 0));
}

#[test]
fn days_are_kept_for_their_time() {
    let mut table = VisitTable::default();
    let first = date(2026, 1, 1);
    let mut today = first;
    for _ in 0..MAX_DAYS + 1 {
        settle(&mut table, today, &[VIEW]);
        today = today.tomorrow().unwrap();
    }
    assert_eq!((table.days.len(), table.tenant_days), (MAX_DAYS, MAX_DAYS));
    assert!(!table.days.contains_key(&first));
    // Its persisted version is removed, too.
    assert!(table.changed.contains(&first));
    assert_eq!(first_of(date(2026, 3, 2), 2), date(2026, 3, 1));
}

#[test]
fn saved_days_are_restored() {
    let visits = Visits::default();
    visits.queue.push(buffer_of(
        &[PageRequest {
            referrer: b"news.example",
            ..VIEW
        }; 3],
    ));
    visits.settle(&TrafficTable::new());
    let changed = visits.take_changed();
    assert_eq!(changed.len(), 1);
    assert!(visits.take_changed().is_empty());
    let saved: Vec<_> = changed
        .iter()
        .map(|date| (*date, visits.save(*date).unwrap()))
        .collect();
    let after = Visits::default();
    after.restore(saved.clone());
    assert_eq!(after.of("app", 2), visits.of("app", 2));
    assert!(after.take_changed().is_empty());
    // Counting goes on.
    after.queue.push(buffer_of(&[VIEW]));
    after.settle(&TrafficTable::new());
    let views: u64 = after.of("app", 2).iter().map(|(_, day)| day.views).sum();
    assert_eq!(views, 4);

    after.forget("app");
    assert!(after.of("app", MAX_DAYS).is_empty());
    let changed = after.take_changed();
    assert!(changed.contains(&saved[0].0) && after.save(saved[0].0).is_none());
}

#[test]
fn damaged_or_hostile_days_stay_within_the_limits() {
    let visits = Visits::default();
    let names = |count: usize| -> String {
        let names = (0..count).map(|number| format!(r#"{{"name":"/{number}","count":1}}"#));
        names.collect::<Vec<_>>().join(",")
    };
    let day = |names: &str| {
        let empty = r#"{"listed":[],"other":0}"#;
        format!(r#"{{"app":{{"views":1,"ahead":0,"bots":0,"not_found":0,"bytes":0,"pages":{{"listed":[{names}],"other":0}},"referrers":{empty}}}}}"#)
            .into_bytes()
    };
    let today = today();
    let earlier = |days| first_of(today, days);
    visits.restore([
        (earlier(1), day(&names(100))),
        (earlier(2), b"{".to_vec()),
        (earlier(3), Vec::new()),
        (today.saturating_add(Span::new().days(9)), day("")),
        (today.saturating_sub(Span::new().days(500)), day("")),
    ]);
    let [(_, restored)] = visits.of("app", MAX_DAYS).try_into().unwrap();
    assert_eq!(restored.names(), MAX_NAMES_PER_DAY);
    // Days that are not restored are removed from the state.
    assert_eq!(visits.take_changed().len(), 4);
}

#[test]
fn requests_beyond_the_queue_are_dropped_and_counted() {
    let visits = Visits::default();
    for _ in 0..MAX_QUEUED_BUFFERS + 5 {
        visits.queue.push(buffer_of(&[VIEW]));
    }
    visits.settle(&TrafficTable::new());
    assert_eq!(visits.lost(), 5);
    let views: u64 = visits.of("app", 2).iter().map(|(_, day)| day.views).sum();
    assert_eq!(views, MAX_QUEUED_BUFFERS as u64);
}
