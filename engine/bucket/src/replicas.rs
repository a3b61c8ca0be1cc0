//! The heartbeats of replicas: each replica writes a small object about itself, so that operators see the whole fleet.
//!
//! Ages are differences of the store's times, so that the clocks of the machines do not matter.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use serde::{Deserialize, Serialize};

use fleet::exchange::{Answer, Request, StoreTime};
use fleet::key::{ObjectKey, REPLICAS};

use crate::store::{Bucket, Change, StoreError, Uploads};

/// The time after which a silent replica is gone. Its object is deleted by the next collection.
pub const GONE: Duration = Duration::from_secs(24 * 3_600);

/// The limit on requests in flight.
const MAX_REQUESTS: usize = 16;

/// The state of a replica, as it tells the others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// The name of the machine.
    pub host: String,
    /// The version of the program.
    pub version: String,
    /// When the process started, in seconds since 1970.
    pub started: u64,
    /// The time of this heartbeat by the replica's clock, in seconds since 1970.
    pub at: u64,
    /// The sequence number of the head that the replica has followed.
    pub sequence: u64,
    /// The number of tenants whose content the replica has.
    pub tenants: u64,
    /// The number of other tenants. Replicas of an earlier program have none.
    #[serde(default)]
    pub dormant: u64,
    /// The number of problems with the bucket.
    pub problems: u64,
}

/// A replica with its last heartbeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replica {
    /// The id of the replica.
    pub id: String,
    /// The last heartbeat.
    pub heartbeat: Heartbeat,
    /// The time since the last heartbeat.
    pub silence: Duration,
}

/// Writes the heartbeat of a replica.
///
/// # Errors
/// Returns an error if the store did not answer.
pub async fn beat(bucket: &Bucket, id: &str, heartbeat: &Heartbeat) -> Result<(), StoreError> {
    let key = ObjectKey::replica(id);
    // Serialising text and numbers into memory cannot fail.
    let body = Bytes::from(serde_json::to_vec(heartbeat).unwrap_or_default());
    write(bucket, key, body).await
}

/// Removes the heartbeat of a replica that ends.
///
/// # Errors
/// Returns an error if the store did not answer.
pub async fn leave(bucket: &Bucket, id: &str) -> Result<(), StoreError> {
    delete(bucket, ObjectKey::replica(id)).await
}

/// Returns the replicas of the last day by host. `heartbeat` is that of this replica, whose write shows the store's time.
///
/// # Errors
/// Returns an error if the store did not answer.
pub async fn list(
    bucket: &Bucket,
    id: &str,
    heartbeat: &Heartbeat,
) -> Result<Vec<Replica>, StoreError> {
    beat(bucket, id, heartbeat).await?;
    let found = read_all(bucket).await?;
    let own = ObjectKey::replica(id);
    let now = found.iter().find(|(key, ..)| *key == own);
    let now = now.map_or(0, |(_, _, modified)| *modified);
    let replicas = found.into_iter().filter_map(|(key, body, modified)| {
        let silence = Duration::from_millis(now.saturating_sub(modified));
        let replica = Replica {
            id: key.as_str().strip_prefix(REPLICAS)?.to_owned(),
            heartbeat: serde_json::from_slice(&body).ok()?,
            silence,
        };
        (silence < GONE).then_some(replica)
    });
    let mut replicas: Vec<Replica> = replicas.collect();
    replicas.sort_by(|one, other| {
        let place = |replica: &Replica| (replica.heartbeat.host.clone(), replica.id.clone());
        place(one).cmp(&place(other))
    });
    Ok(replicas)
}

/// Deletes the heartbeats of replicas that are gone. `now` is the store's time.
///
/// # Errors
/// Returns an error if the store did not answer.
pub(crate) async fn delete_gone(bucket: &Bucket, now: StoreTime) -> Result<(), StoreError> {
    let gone = StoreTime::try_from(GONE.as_millis()).unwrap_or(StoreTime::MAX);
    for (key, _, modified) in read_all(bucket).await? {
        if now.saturating_sub(modified) >= gone {
            delete(bucket, key).await?;
        }
    }
    Ok(())
}

/// Creates or replaces an object that one process writes. A write that another process has made first is not repeated.
pub(crate) async fn write(bucket: &Bucket, key: ObjectKey, body: Bytes) -> Result<(), StoreError> {
    let request = match bucket.get(&key, None).await? {
        Change::Object(object) => Request::Swap(key, object.tag, body),
        Change::None | Change::Missing => Request::Create(key, body),
    };
    bucket.send(&request, &Uploads::new()).await?;
    Ok(())
}

async fn delete(bucket: &Bucket, key: ObjectKey) -> Result<(), StoreError> {
    let request = Request::Delete(key);
    bucket.send(&request, &Uploads::new()).await?;
    Ok(())
}

/// Reads all heartbeats with the store's times of their writes.
async fn read_all(bucket: &Bucket) -> Result<Vec<(ObjectKey, Bytes, StoreTime)>, StoreError> {
    let list = Request::List(REPLICAS.to_owned());
    let Answer::Listed(keys) = bucket.send(&list, &Uploads::new()).await? else {
        return Ok(Vec::new());
    };
    let reads = keys.into_iter().map(async |key| {
        let read = bucket.get(&key, None).await;
        (key, read)
    });
    let reads: Vec<_> = stream::iter(reads)
        .buffer_unordered(MAX_REQUESTS)
        .collect()
        .await;
    let mut found = Vec::new();
    for (key, read) in reads {
        if let Change::Object(object) = read? {
            found.push((key, object.body, object.modified));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heartbeat(host: &str, sequence: u64) -> Heartbeat {
        Heartbeat {
            host: host.to_owned(),
            sequence,
            ..Heartbeat::default()
        }
    }

    #[tokio::test]
    async fn replicas_are_listed_by_host_with_their_last_heartbeat() {
        let bucket = Bucket::in_memory();
        for (id, beat_of) in [
            ("b", heartbeat("two", 1)),
            ("a", heartbeat("one", 1)),
            ("b", heartbeat("two", 2)),
        ] {
            beat(&bucket, id, &beat_of).await.expect("answered");
        }
        let key = ObjectKey::replica("damaged");
        write(&bucket, key, Bytes::from("garbage"))
            .await
            .expect("answered");
        let listed = list(&bucket, "c", &heartbeat("three", 3)).await;
        let listed = listed.expect("answered");
        let hosts = listed.iter().map(|replica| {
            let heartbeat = &replica.heartbeat;
            (
                &*heartbeat.host,
                heartbeat.sequence,
                replica.silence.as_secs(),
            )
        });
        let hosts: Vec<_> = hosts.collect();
        assert_eq!(hosts, [("one", 1, 0), ("three", 3, 0), ("two", 2, 0)]);
        leave(&bucket, "c").await.expect("answered");
        assert_eq!(read_all(&bucket).await.expect("answered").len(), 3);
    }

    #[tokio::test]
    async fn heartbeats_of_a_day_ago_are_deleted() {
        let bucket = Bucket::in_memory();
        beat(&bucket, "a", &heartbeat("one", 1))
            .await
            .expect("answered");
        let modified = read_all(&bucket).await.expect("answered")[0].2;
        let day = 24 * 3_600 * 1_000;
        delete_gone(&bucket, modified + day - 1)
            .await
            .expect("answered");
        assert_eq!(read_all(&bucket).await.expect("answered").len(), 1);
        delete_gone(&bucket, modified + day)
            .await
            .expect("answered");
        assert!(read_all(&bucket).await.expect("answered").is_empty());
    }
}
