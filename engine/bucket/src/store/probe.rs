//! Refuses a store that does not honour conditional writes.
//!
//! Without them, two publishers overwrite each other and neither notices. Some stores accept the condition and ignore it, so only a race shows the truth.

use bytes::Bytes;
use futures_util::future::join_all;

use fleet::exchange::{Answer, ObjectTag, Request};
use fleet::key::{Nonce, ObjectKey};

use crate::store::{Bucket, Change, StoreError, Uploads};

/// The number of writes that race.
const RACERS: usize = 32;

/// A store that is not fit for use.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// Several writes of one race have won, or none.
    #[error(
        "the store does not honour {condition}: {winners} of {RACERS} racing writes succeeded, and exactly 1 may"
    )]
    Condition {
        /// The condition.
        condition: &'static str,
        /// The number of writes that succeeded.
        winners: usize,
    },
    /// The object differs from what the winner wrote.
    #[error("the store lost a write that it confirmed")]
    Lost,
    /// Objects have no `ETag`, which conditional writes need.
    #[error("the store gives objects no ETag")]
    NoTag,
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Races writes for one object, which is deleted afterwards. `nonce` makes its name new.
///
/// # Errors
/// Returns an error if the store is not fit for use, or did not answer.
pub async fn probe(bucket: &Bucket, nonce: &Nonce) -> Result<(), ProbeError> {
    let key = ObjectKey::new(&format!("v1/probes/{}", nonce.0));
    let result = race_twice(bucket, &key).await;
    let deleted = bucket.send(&Request::Delete(key), &Uploads::new()).await;
    result?;
    deleted?;
    Ok(())
}

async fn race_twice(bucket: &Bucket, key: &ObjectKey) -> Result<(), ProbeError> {
    let create = |body| Request::Create(key.clone(), body);
    let tag = race(bucket, key, "If-None-Match: *", create).await?;
    let swap = |body| Request::Swap(key.clone(), tag.clone(), body);
    race(bucket, key, "If-Match", swap).await?;
    Ok(())
}

/// Sends racing writes with different bodies, and returns the tag of the winner's object.
async fn race(
    bucket: &Bucket,
    key: &ObjectKey,
    condition: &'static str,
    request: impl Fn(Bytes) -> Request,
) -> Result<ObjectTag, ProbeError> {
    let bodies = (0..RACERS).map(|racer| Bytes::from(format!("{condition} {racer}")));
    let bodies: Vec<Bytes> = bodies.collect();
    let uploads = Uploads::new();
    let requests: Vec<Request> = bodies.iter().cloned().map(request).collect();
    let answers = join_all(
        requests
            .iter()
            .map(|request| bucket.send(request, &uploads)),
    )
    .await;
    let mut winners = Vec::new();
    for (body, answer) in bodies.into_iter().zip(answers) {
        if answer? == Answer::Done {
            winners.push(body);
        }
    }
    let [winner] = &winners[..] else {
        return Err(ProbeError::Condition {
            condition,
            winners: winners.len(),
        });
    };
    match bucket.get(key, None).await? {
        Change::Object(object) if object.tag.0.is_empty() => Err(ProbeError::NoTag),
        Change::Object(object) if object.body == winner => Ok(object.tag),
        _ => Err(ProbeError::Lost),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn store_with_conditional_writes_passes_and_keeps_no_object() {
        let bucket = Bucket::in_memory();
        let nonce = Nonce("a1".to_owned());
        probe(&bucket, &nonce)
            .await
            .expect("the store in memory is fit");
        let left = Request::List("v1/".to_owned());
        let left = bucket.send(&left, &Uploads::new()).await.expect("answered");
        assert_eq!(left, Answer::Listed(Vec::new()));
    }
}
