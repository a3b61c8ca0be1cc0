//! The page of the replicas that follow one bucket.
//!
//! **Invariant:** a pure function of the list; only the caller waits for the store.

use std::collections::BTreeSet;
use std::time::SystemTime;

use serde::Serialize;
use server::admin::replicas::{MAX_SILENCE, ReplicaList, ReplicaStatus};

use super::value_text::{MomentView, count, grouped};

/// The values of the page.
#[derive(Debug, Serialize)]
pub(super) struct ReplicasView {
    title: String,
    mood: &'static str,
    details: Vec<String>,
    rows: Vec<ReplicaRow>,
}

/// A row of the table.
#[derive(Debug, Serialize)]
struct ReplicaRow {
    host: String,
    /// The beginning of the id, which tells processes of one host apart.
    id: String,
    is_this: bool,
    state: &'static str,
    version: String,
    started: MomentView,
    heartbeat: MomentView,
    changes: String,
    tenants: String,
    problems: u64,
}

/// Returns the page of a list.
pub(super) fn view(list: ReplicaList, now: SystemTime) -> ReplicasView {
    let Some(replicas) = list.replicas else {
        return ReplicasView {
            title: "Replicas are not known".to_owned(),
            mood: "bad",
            details: vec![
                "The bucket has not answered yet. Reload the page in a moment.".to_owned(),
            ],
            rows: Vec::new(),
        };
    };
    let silent = replicas.iter().filter(|replica| is_silent(replica)).count();
    let troubled = replicas.iter().filter(|replica| replica.problems > 0);
    let troubled = troubled.count();
    let versions: BTreeSet<&str> = replicas.iter().map(|replica| &*replica.version).collect();
    let mood = match (list.is_current, silent, troubled) {
        (true, 0, 0) => "good",
        _ => "bad",
    };
    let unanswered = "The bucket did not answer. This is the last known list.";
    let details = [
        (!list.is_current).then(|| unanswered.to_owned()),
        (silent > 0).then(|| {
            "A silent replica has sent no heartbeat for more than two minutes. A replica that was killed is listed for a day.".to_owned()
        }),
        (troubled > 0).then(|| {
            let replicas = count(troubled, "replica");
            let verb = if troubled == 1 { "has" } else { "have" };
            format!("{replicas} {verb} problems with the bucket, which the console of the replica names.")
        }),
        (versions.len() > 1).then(|| {
            let versions = versions.len();
            format!("{versions} versions of the program are running, which is normal during an upgrade.")
        }),
    ];
    ReplicasView {
        title: title(replicas.len(), silent),
        mood,
        details: details.into_iter().flatten().collect(),
        rows: replicas
            .into_iter()
            .map(|replica| row(replica, now))
            .collect(),
    }
}

/// Returns the most important fact about the replicas.
fn title(all: usize, silent: usize) -> String {
    match (all, silent) {
        (1, 0) => "1 replica is live".to_owned(),
        (_, 0) => format!("All {} are live", count(all, "replica")),
        (_, 1) => format!("1 of {} is silent", count(all, "replica")),
        _ => format!("{silent} of {} are silent", count(all, "replica")),
    }
}

fn is_silent(replica: &ReplicaStatus) -> bool {
    replica.silence > MAX_SILENCE
}

fn row(replica: ReplicaStatus, now: SystemTime) -> ReplicaRow {
    let changes = match replica.lag {
        0 => "up to date".to_owned(),
        lag => format!(
            "{} behind",
            count(usize::try_from(lag).unwrap_or(usize::MAX), "change")
        ),
    };
    ReplicaRow {
        id: replica.id.chars().take(8).collect(),
        is_this: replica.is_this,
        state: match is_silent(&replica) {
            true => "silent",
            false => "live",
        },
        started: MomentView::new(replica.started, now),
        heartbeat: MomentView::new(now - replica.silence, now),
        changes,
        tenants: match replica.dormant {
            0 => grouped(replica.tenants),
            dormant => {
                let all = grouped(replica.tenants + dormant);
                format!("{} of {all} awake", grouped(replica.tenants))
            }
        },
        problems: replica.problems,
        host: replica.host,
        version: replica.version,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn replica(host: &str, version: &str, silence: u64, lag: u64) -> ReplicaStatus {
        ReplicaStatus {
            id: "0123456789abcdef".to_owned(),
            is_this: false,
            host: host.to_owned(),
            version: version.to_owned(),
            started: SystemTime::UNIX_EPOCH,
            silence: Duration::from_secs(silence),
            lag,
            tenants: 1_000,
            dormant: 0,
            problems: 0,
        }
    }

    fn page(replicas: Vec<ReplicaStatus>) -> ReplicasView {
        let list = ReplicaList {
            replicas: Some(replicas),
            is_current: true,
        };
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        view(list, now)
    }

    #[test]
    fn silent_replica_and_lag_are_marked() {
        let page = page(vec![
            replica("one", "1.0", 20, 0),
            replica("two", "1.0", 121, 3),
        ]);
        assert_eq!(
            (&*page.title, page.mood),
            ("1 of 2 replicas is silent", "bad")
        );
        let rows = page
            .rows
            .iter()
            .map(|row| (row.state, &*row.changes, &*row.heartbeat.relative));
        let rows: Vec<_> = rows.collect();
        assert_eq!(
            rows,
            [
                ("live", "up to date", "20 s ago"),
                ("silent", "3 changes behind", "2 min ago")
            ]
        );
        assert_eq!(page.details.len(), 1);
        assert!(page.details[0].starts_with("A silent replica"));
    }

    #[test]
    fn dormant_tenants_are_told_apart() {
        let all = page(vec![replica("one", "1.0", 0, 0)]);
        assert_eq!(all.rows[0].tenants, "1,000");
        let some = page(vec![ReplicaStatus {
            dormant: 999_000,
            ..replica("one", "1.0", 0, 0)
        }]);
        assert_eq!(some.rows[0].tenants, "1,000 of 1,000,000 awake");
    }

    #[test]
    fn several_versions_are_named() {
        let same = page(vec![
            replica("one", "1.0", 0, 0),
            replica("two", "1.0", 0, 0),
        ]);
        assert_eq!(
            (&*same.title, same.mood),
            ("All 2 replicas are live", "good")
        );
        assert!(same.details.is_empty());
        let mixed = page(vec![
            replica("one", "1.0", 0, 0),
            replica("two", "1.1", 0, 0),
        ]);
        assert!(mixed.details[0].starts_with("2 versions"));
    }

    #[test]
    fn each_problem_has_a_sentence() {
        let troubled = ReplicaStatus {
            problems: 2,
            ..replica("two", "1.1", 0, 0)
        };
        let page = page(vec![
            replica("one", "1.0", 121, 0),
            troubled,
            replica("three", "1.0", 121, 0),
        ]);
        assert_eq!(
            (&*page.title, page.mood),
            ("2 of 3 replicas are silent", "bad")
        );
        let parts = ["A silent replica", "1 replica has problems", "2 versions"];
        assert_eq!(page.details.len(), parts.len());
        for (detail, part) in page.details.iter().zip(parts) {
            assert!(detail.starts_with(part), "{detail}");
        }
    }

    #[test]
    fn list_of_a_silent_store_says_so() {
        let page = view(ReplicaList::default(), SystemTime::UNIX_EPOCH);
        assert_eq!((page.mood, page.rows.len()), ("bad", 0));
    }
}
