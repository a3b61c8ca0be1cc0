//! The lines that `publish` and `unpublish` print.

use std::process::ExitCode;

use serde::Serialize;

use content::report::Diagnostic;
use fleet::pointer::Pointer;

use crate::commands::fleet::local_time;
use crate::commands::output::{CONFLICT, ERRORS};

/// The outcome of one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum LineResult {
    Published,
    /// Nothing has changed, and lost or damaged content was uploaded again.
    Repaired,
    Unchanged,
    Errors,
    Conflict,
}

/// A line of the output.
#[derive(Debug, Serialize)]
pub(super) struct Line {
    pub(super) name: String,
    /// The name of the folder, which is not that of its preview.
    #[serde(skip)]
    pub(super) folder: String,
    pub(super) result: LineResult,
    /// The current version in the store. `None` if it was not read.
    pub(super) version: Option<u64>,
    /// The version that replicas serve in its place, until an operator resumes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pinned: Option<u64>,
    /// The hosts at which visitors reach the tenant.
    pub(super) hosts: Vec<String>,
    /// The errors that prevent the publication.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) errors: Vec<Diagnostic>,
    /// The publisher that was first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) winner: Option<Winner>,
}

/// The publisher of a version.
#[derive(Debug, Serialize)]
pub(super) struct Winner {
    author: String,
    at: String,
}

impl Line {
    /// Returns a line for a name that is not published yet.
    pub(super) fn new(name: &str, hosts: Vec<String>) -> Self {
        Self {
            name: name.to_owned(),
            folder: name.to_owned(),
            result: LineResult::Errors,
            version: None,
            pinned: None,
            hosts,
            errors: Vec::new(),
            winner: None,
        }
    }

    /// Returns the line of a folder that is published under another name.
    pub(super) fn of_folder(self, folder: &str) -> Self {
        Self {
            folder: folder.to_owned(),
            ..self
        }
    }

    /// Writes the outcome of a publication to the line.
    pub(super) fn set(&mut self, result: LineResult, pointer: &Pointer) {
        self.result = result;
        self.version = Some(pointer.version());
        match result {
            LineResult::Conflict => self.winner = winner(pointer),
            _ => self.pinned = pointer.pinned(),
        }
    }

    /// Returns the line as people read it.
    pub(super) fn to_text(&self) -> String {
        let name = &self.name;
        let version = self.version.unwrap_or_default();
        let text = match (self.result, &self.winner) {
            (LineResult::Published, _) if self.hosts.is_empty() => {
                format!("{name}  version {version}")
            }
            (LineResult::Published, _) => {
                format!("{name}  version {version}  {}", self.hosts.join(" "))
            }
            (LineResult::Repaired, _) => {
                format!("{name}  version {version}  repaired: content was lost or damaged")
            }
            (LineResult::Unchanged, _) => format!("{name}  version {version}  unchanged"),
            (LineResult::Errors, _) => format!("{name}  errors; left as it is"),
            (LineResult::Conflict, Some(winner)) => format!(
                "{name}  conflict: version {version} is of {} by {}; left as it is",
                winner.at, winner.author
            ),
            (LineResult::Conflict, None) => {
                format!("{name}  conflict: no version yet; left as it is")
            }
        };
        match self.pinned {
            None => text,
            Some(pinned) => format!(
                "{text}  (pinned: version {pinned} is served until `rowhouse resume {name}`)"
            ),
        }
    }
}

fn winner(pointer: &Pointer) -> Option<Winner> {
    (pointer.version() > 0).then(|| Winner {
        author: pointer.author.clone(),
        at: local_time(pointer.at),
    })
}

pub(super) fn exit_code(lines: &[Line]) -> ExitCode {
    let has = |result| lines.iter().any(|line| line.result == result);
    match (has(LineResult::Conflict), has(LineResult::Errors)) {
        (true, _) => ExitCode::from(CONFLICT),
        (false, true) => ExitCode::from(ERRORS),
        (false, false) => ExitCode::SUCCESS,
    }
}

#[cfg(test)]
mod tests {
    use fleet::pointer::Pin;

    use super::*;

    #[test]
    fn pinned_tenant_is_told_with_the_way_to_resume() {
        let pointer = Pointer {
            pin: Some(Pin {
                version: 3,
                newest: Vec::new(),
            }),
            ..Pointer::none()
        };
        let mut line = Line::new("corner", vec!["corner.example".to_owned()]);
        line.set(LineResult::Published, &pointer);
        let text = line.to_text();
        assert!(
            text.starts_with("corner  version 0  corner.example  (pinned: version 3 is served")
        );
        assert!(text.ends_with("until `rowhouse resume corner`)"), "{text}");
        let text = serde_json::to_string(&line).expect("JSON");
        assert!(text.contains("\"pinned\":3"), "{text}");
        line.set(LineResult::Published, &Pointer::none());
        assert!(line.to_text().ends_with("corner.example"));
    }
}
