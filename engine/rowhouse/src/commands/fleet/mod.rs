//! Commands for the object store of a fleet: `publish`, `unpublish`, `store`, and `releases`, `diff`, `rollback` and `resume` with `--store`.

pub(crate) mod folder;
pub(crate) mod history;
pub(crate) mod pin;
mod progress_bar;
pub(crate) mod publish;
mod session;
pub(crate) mod store;

use std::env;
use std::fs;
use std::future::Future;

use anyhow::{Context as _, anyhow};

use jiff::Timestamp;
use jiff::tz::TimeZone;

use bucket::store::credentials;
use bucket::store::probe::ProbeError;
use bucket::store::{Bucket, StoreError};

use crate::cli::fleet::AuthorFlag;

/// The file with the host name of a Linux machine.
const HOST_NAME: &str = "/proc/sys/kernel/hostname";

/// A store that did not answer. A command that goes on tries again later.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Unavailable(String);

/// Opens the bucket.
fn open(store: &str) -> anyhow::Result<Bucket> {
    let opened = Bucket::open(store).and_then(|bucket| {
        credentials::require(store)?;
        Ok(bucket)
    });
    opened.map_err(|error| anyhow!("{error}: {}", error.hint()))
}

/// Runs requests to the store to their end.
fn block_on<T>(work: impl Future<Output = T>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the event loop")?;
    Ok(runtime.block_on(work))
}

/// Returns the error of a store, with what to do.
fn failure(bucket: &Bucket, error: StoreError) -> anyhow::Error {
    let hint = error.hint();
    let is_permanent = error.is_permanent();
    let error = anyhow::Error::new(error);
    // The innermost cause repeats the outer ones in the errors of most clients.
    let cause = error.chain().nth(1).map(ToString::to_string);
    let cause = cause.map(|cause| format!(" ({cause})")).unwrap_or_default();
    let text = format!("`{}`: {error}{cause}: {hint}", bucket.address());
    match is_permanent {
        true => anyhow!(text),
        false => Unavailable(text).into(),
    }
}

/// Returns the error of a probe, with what to do.
fn refusal(bucket: &Bucket, error: ProbeError) -> anyhow::Error {
    match error {
        ProbeError::Store(error) => failure(bucket, error),
        unfit => anyhow!(
            "`{}` cannot be used: {unfit}: use a store with conditional writes",
            bucket.address()
        ),
    }
}

/// Returns a time in the zone of this machine. `milliseconds` are those since 1970.
fn local_time(milliseconds: u64) -> String {
    let moment = i64::try_from(milliseconds).map(Timestamp::from_millisecond);
    match moment {
        Ok(Ok(moment)) => moment
            .to_zoned(TimeZone::system())
            .strftime("%Y-%m-%d %H:%M:%S")
            .to_string(),
        _ => "-".to_owned(),
    }
}

/// Returns the name of this machine.
pub(crate) fn host_name() -> String {
    let name = fs::read_to_string(HOST_NAME).ok();
    let name = name.or_else(|| env::var("HOSTNAME").ok());
    name.map_or_else(|| "unknown".to_owned(), |name| name.trim().to_owned())
}

/// Returns the name of the author: the flag, or else user and host.
fn author(flag: &AuthorFlag) -> String {
    let user = || {
        let names = ["USER", "LOGNAME"].into_iter();
        let mut names = names.filter_map(|name| env::var(name).ok());
        names.next().unwrap_or_else(|| "unknown".to_owned())
    };
    let named = flag.author.clone();
    named.unwrap_or_else(|| format!("{}@{}", user(), host_name()))
}
