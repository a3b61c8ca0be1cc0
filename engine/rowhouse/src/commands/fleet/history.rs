//! `rowhouse releases --store` and `rowhouse diff --store`: the versions of a tenant in the store.

use std::collections::BTreeMap;
use std::process::ExitCode;

use serde::Serialize;

use bucket::download::fetch::FetchError;
use bucket::history::{history, packed_folder};
use bucket::store::Bucket;
use fleet::pointer::{Cause, Pointer};
use supervisor::compare::files::{FileContent, compare_files};

use super::session::{never_published, no_version};
use super::{block_on, failure, local_time, open};
use crate::cli::ListFormat;
use crate::commands::operations::releases::print_changes;
use crate::commands::output::{ERRORS, print, print_message};

/// A version in the list.
#[derive(Debug, Serialize)]
struct VersionLine {
    version: u64,
    at: String,
    author: String,
    cause: Cause,
    is_current: bool,
    /// Whether replicas serve this version because it is pinned.
    is_pinned: bool,
    /// Whether the tenant was unpublished.
    is_withdrawn: bool,
    /// The version that this version has pinned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pins: Option<u64>,
}

impl VersionLine {
    fn new(pointer: &Pointer, current: &Pointer) -> Self {
        let version = pointer.version();
        Self {
            version,
            at: local_time(pointer.at),
            author: pointer.author.clone(),
            cause: pointer.cause,
            is_current: version == current.version(),
            is_pinned: current.pinned() == Some(version),
            is_withdrawn: pointer.content.is_empty(),
            pins: pointer
                .pinned()
                .filter(|_| pointer.cause == Cause::Rollback),
        }
    }

    fn to_text(&self) -> String {
        let rollback = self.pins.map(|pins| format!("rollback to {pins}"));
        let marks = [
            self.is_current.then(|| "current".to_owned()),
            self.is_pinned.then(|| "served, pinned".to_owned()),
            self.is_withdrawn.then(|| "withdrawn".to_owned()),
            (self.cause == Cause::Resume).then(|| "resume".to_owned()),
            rollback,
        ];
        let marks: Vec<String> = marks.into_iter().flatten().collect();
        let marks = marks.join(", ");
        let line = format!("{:>7}  {}  {}  {marks}", self.version, self.at, self.author);
        line.trim_end().to_owned()
    }
}

/// Prints the versions of a tenant, newest first.
pub(crate) fn list(tenant: &str, format: ListFormat, store: &str) -> anyhow::Result<ExitCode> {
    let bucket = open(store)?;
    let pointers = versions(&bucket, tenant)?;
    let Some(current) = pointers.first() else {
        print_message(&never_published(tenant, &bucket));
        return Ok(ExitCode::from(ERRORS));
    };
    let lines: Vec<VersionLine> = pointers
        .iter()
        .map(|pointer| VersionLine::new(pointer, current))
        .collect();
    match format {
        ListFormat::Json => print(&serde_json::to_string_pretty(&lines)?),
        ListFormat::Text => {
            print("version  since                author");
            for line in &lines {
                print(&line.to_text());
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the changes between the files of two versions: by default, of the newest and the one before.
pub(crate) fn diff(
    tenant: &str,
    from: Option<u64>,
    to: Option<u64>,
    store: &str,
) -> anyhow::Result<ExitCode> {
    let bucket = open(store)?;
    let pointers = versions(&bucket, tenant)?;
    let Some(newest) = pointers.first() else {
        print_message(&never_published(tenant, &bucket));
        return Ok(ExitCode::from(ERRORS));
    };
    let to = to.unwrap_or_else(|| newest.version());
    let from = from.unwrap_or_else(|| to.saturating_sub(1));
    if from == 0 {
        print_message(&format!("error: `{tenant}` has no earlier version"));
        return Ok(ExitCode::from(ERRORS));
    }
    let mut folders = Vec::new();
    for version in [from, to] {
        let mut found = pointers.iter();
        let Some(pointer) = found.find(|pointer| pointer.version() == version) else {
            print_message(&format!("error: {}", no_version(tenant, version)));
            return Ok(ExitCode::from(ERRORS));
        };
        match files(&bucket, pointer)? {
            Ok(files) => folders.push(files),
            Err(problem) => {
                print_message(&format!("error: {problem}"));
                return Ok(ExitCode::from(ERRORS));
            }
        }
    }
    let changes = compare_files(&folders[0], &folders[1]);
    if changes.is_empty() {
        print_message("nothing changed");
    }
    print_changes(&changes, false);
    Ok(ExitCode::SUCCESS)
}

/// Returns all versions of a tenant, newest first.
fn versions(bucket: &Bucket, tenant: &str) -> anyhow::Result<Vec<Pointer>> {
    let pointers = block_on(history(bucket, tenant))?;
    pointers.map_err(|error| failure(bucket, error))
}

/// Returns the files that a version has brought, or the reason that they cannot be read.
fn files(
    bucket: &Bucket,
    pointer: &Pointer,
) -> anyhow::Result<Result<BTreeMap<String, FileContent>, FetchError>> {
    let (_, content) = pointer.brought();
    let folder = match block_on(packed_folder(bucket, content, pointer.version()))? {
        Ok(folder) => folder,
        Err(FetchError::Store(error)) => return Err(failure(bucket, error)),
        Err(problem) => return Ok(Err(problem)),
    };
    let small = folder.files.into_iter();
    let small = small.map(|(path, bytes)| (path, FileContent::Bytes(bytes)));
    let large = folder.large.into_iter();
    let large = large.map(|(path, hash)| (path, FileContent::Hash(hash.0)));
    Ok(Ok(small.chain(large).collect()))
}

#[cfg(test)]
mod tests {
    use fleet::key::Nonce;
    use fleet::pointer::{NextVersion, Pin};

    use super::*;

    fn next(before: Option<&Pointer>, cause: Cause, pinned: Option<u64>) -> Pointer {
        let pin = pinned.map(|version| Pin {
            version,
            newest: Vec::new(),
        });
        let next = NextVersion {
            nonce: Nonce("n".to_owned()),
            content: Vec::new(),
            pin,
            at: u64::MAX,
            author: "ann".to_owned(),
            cause,
        };
        Pointer::next(before, next)
    }

    #[test]
    fn list_marks_the_pinned_version_and_the_rollback() {
        let first = next(None, Cause::Publish, None);
        let second = next(Some(&first), Cause::Rollback, Some(1));
        let third = next(Some(&second), Cause::Publish, Some(1));
        let line = |pointer: &Pointer| VersionLine::new(pointer, &third).to_text();
        assert_eq!(line(&third), "      3  -  ann  current, withdrawn");
        assert_eq!(line(&second), "      2  -  ann  withdrawn, rollback to 1");
        assert_eq!(line(&first), "      1  -  ann  served, pinned, withdrawn");
        let json = serde_json::to_string(&VersionLine::new(&second, &third)).expect("JSON");
        assert!(json.contains("\"cause\":\"rollback\""), "{json}");
    }
}
