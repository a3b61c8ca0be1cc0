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
    detail: Option<String>,
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
            detail: Some(
                "The bucket has not answered yet. Reload the page in a moment.".to_owned(),
            ),
            rows: Vec::new(),
        };
    };
    let silent = replicas.iter().filter(|replica| is_silent(replica)).count();
    let versions: BTreeSet<&str> = replicas.iter().map(|replica| &*replica.version).collect();
    let detail = match (list.is_current, silent, versions.len()) {
        (false, ..) => Some("The bucket did not answer. This is the last known list.".to_owned()),
        (true, 0, 0 | 1) => None,
        (true, 0, versions) => Some(format!(
            "They run {versions} versions of the program, which is normal during an upgrade."
        )),
        (true, silent, _) => Some(format!(
            "{} without a heartbeat for more than two minutes. A replica that was killed is listed for a day.",
            count(silent, "replica")
        )),
    };
    let mood = match (list.is_current, silent) {
        (true, 0) => "good",
        _ => "bad",
    };
    ReplicasView {
        title: count(replicas.len(), "replica"),
        mood,
        detail,
        rows: replicas
            .into_iter()
            .map(|replica| row(replica, now))
            .collect(),
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
        assert_eq!((&*page.title, page.mood), ("2 replicas", "bad"));
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
        assert!(
            page.detail
                .is_some_and(|text| text.starts_with("1 replica without"))
        );
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
        assert_eq!((same.mood, same.detail), ("good", None));
        let mixed = page(vec![
            replica("one", "1.0", 0, 0),
            replica("two", "1.1", 0, 0),
        ]);
        assert!(mixed.detail.is_some_and(|text| text.contains("2 versions")));
    }

    #[test]
    fn list_of_a_silent_store_says_so() {
        let page = view(ReplicaList::default(), SystemTime::UNIX_EPOCH);
        assert_eq!((page.mood, page.rows.len()), ("bad", 0));
    }
}
