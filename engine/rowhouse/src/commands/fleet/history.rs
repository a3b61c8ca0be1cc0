//! `rowhouse releases --store`: the versions of a tenant in the store.

use std::process::ExitCode;

use serde::Serialize;

use bucket::history::history;
use fleet::pointer::Pointer;

use super::{block_on, failure, local_time, open};
use crate::cli::ListFormat;
use crate::commands::output::{FAILED, print, print_message};

/// A version in the list.
#[derive(Debug, Serialize)]
struct VersionLine {
    version: u64,
    at: String,
    author: String,
    is_current: bool,
    /// Whether the tenant was unpublished.
    is_withdrawn: bool,
}

impl VersionLine {
    fn new(pointer: &Pointer, is_current: bool) -> Self {
        Self {
            version: pointer.version(),
            at: local_time(pointer.at),
            author: pointer.author.clone(),
            is_current,
            is_withdrawn: pointer.content.is_empty(),
        }
    }

    fn to_text(&self) -> String {
        let marks = [
            (self.is_current, "current"),
            (self.is_withdrawn, "withdrawn"),
        ];
        let marks: Vec<&str> = marks
            .into_iter()
            .filter_map(|(is_set, mark)| is_set.then_some(mark))
            .collect();
        let marks = marks.join(", ");
        let line = format!("{:>7}  {}  {}  {marks}", self.version, self.at, self.author);
        line.trim_end().to_owned()
    }
}

/// Prints the versions of a tenant, newest first.
pub(crate) fn list(tenant: &str, format: ListFormat, store: &str) -> anyhow::Result<ExitCode> {
    let bucket = open(store)?;
    let pointers = block_on(history(&bucket, tenant))?;
    let pointers = pointers.map_err(|error| failure(&bucket, error))?;
    if pointers.is_empty() {
        print_message(&format!(
            "error: `{tenant}` was never published to `{}`",
            bucket.address()
        ));
        return Ok(ExitCode::from(FAILED));
    }
    let lines: Vec<VersionLine> = pointers
        .iter()
        .enumerate()
        .map(|(place, pointer)| VersionLine::new(pointer, place == 0))
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
