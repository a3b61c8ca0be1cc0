//! `rowhouse publish --watch`: publishes each folder that changes, until the process is interrupted.
//!
//! ```text
//! changes ── settled ──> reload ──> due names ──> published
//!                                       ▲             │ the store does not answer
//!                                       └─── later ───┘
//! ```
//!
//! [`PublishQueue`] decides what is due and what is told.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use content::address::deployment::FILE;
use content::report::Report;
use fleet::key::{DEPLOYMENT, THEMES};
use supervisor::source::watch::{DetectionMethod, FolderChanges, Watch};

use super::line::Line;
use super::publisher::FolderPublisher;
use super::queue::PublishQueue;
use crate::cli::ContentFlags;
use crate::commands::fleet::Unavailable;
use crate::commands::fleet::progress_bar::WorkBar;
use crate::commands::output::{FAILED, print, print_message};
use crate::commands::setup::themes_folder;

/// The time for which the store may leave requests without an answer, before the author is told. The publication goes on later.
const MAX_SILENCE: Duration = Duration::from_secs(2);

/// The time without a change after which the folders are read.
const SETTLE_TIME: Duration = Duration::from_millis(500);

/// The limit on the time for which changes settle: a program may write all the time.
const MAX_SETTLE_TIME: Duration = Duration::from_secs(10);

/// The limit on the wait for changes. The roots of the watch are checked after each wait.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// The folders that are watched, and the names that wait.
pub(super) struct FolderWatch<'a> {
    publisher: FolderPublisher<'a>,
    watch: Watch,
    /// The changes since the folders were last read.
    unread: FolderChanges,
    queue: PublishQueue,
}

impl<'a> FolderWatch<'a> {
    /// Returns a watch over the folders of the publisher.
    pub(super) fn new(mut publisher: FolderPublisher<'a>) -> Self {
        publisher.session.max_silence = MAX_SILENCE;
        // The watch starts before the first read, so that no change is missed.
        let roots = roots(&publisher.arguments.content);
        Self {
            watch: Watch::new(DetectionMethod::Notifications, roots),
            publisher,
            unread: FolderChanges::default(),
            queue: PublishQueue::default(),
        }
    }

    /// Publishes until the process is interrupted, or the store refuses the publisher.
    pub(super) fn run(mut self) -> anyhow::Result<ExitCode> {
        self.watch.begin();
        self.publisher.reload()?;
        let places = self.publisher.places();
        if let Some(unknown) = self.publisher.unknown_name(&places) {
            print_message(&unknown);
            return Ok(ExitCode::from(FAILED));
        }
        let names = self.publisher.selected(&places).into_iter().collect();
        self.queue.note_read(names, None);
        loop {
            let retry = self.publish_due()?;
            if let Some(changes) = self.next_changes(retry) {
                self.merge(changes);
                self.read();
            }
        }
    }

    /// Publishes the due names. Returns the time of the next attempt if the store does not answer.
    fn publish_due(&mut self) -> anyhow::Result<Option<Duration>> {
        let places = self.publisher.places();
        let mut report = self.publisher.registry.report();
        let mut names = self.publisher.selected(&places);
        names.retain(|name| self.queue.is_due(name));
        let bar = WorkBar::steps(names.len(), self.publisher.is_text());
        for name in names {
            bar.begin(&name);
            match self.publisher.publish(&name, &places[&name], &mut report) {
                Ok(line) => bar.above(|| self.report(&line)),
                Err(error) if error.is::<Unavailable>() => {
                    let retry = self.queue.note_silence();
                    if retry.is_first {
                        bar.above(|| {
                            print_message(&format!("error: {error:#}; trying again"));
                        });
                    }
                    return Ok(Some(retry.wait));
                }
                Err(error) => return Err(error),
            }
            bar.end();
        }
        drop(bar);
        self.publisher.session.announce_unchanged()?;
        let round = self.queue.note_round();
        if round.has_recovered {
            print_message("the store answers again");
        }
        if round.is_first {
            let tenants = self.publisher.arguments.content.tenants.display();
            print_message(&format!(
                "publishing each folder of `{tenants}` that changes, until Ctrl-C"
            ));
        }
        Ok(None)
    }

    /// Prints the line of a name, unless it says nothing new.
    fn report(&mut self, line: &Line) {
        if !self.queue.note_line(line) {
            return;
        }
        if self.publisher.is_text() {
            print(&line.to_text());
            let mut errors = Report::default();
            errors.extend(line.errors.iter().cloned());
            self.publisher
                .print_errors(errors, std::slice::from_ref(line));
        } else if let Ok(json) = serde_json::to_string(line) {
            print(&json);
        }
    }

    /// Waits for changes, for at most `limit`, and until they have settled.
    fn next_changes(&mut self, limit: Option<Duration>) -> Option<FolderChanges> {
        let begin = Instant::now();
        loop {
            let rest = limit.map(|limit| limit.saturating_sub(begin.elapsed()));
            if rest == Some(Duration::ZERO) {
                return None;
            }
            if let Some(changes) = self.watch.next(rest.unwrap_or(MAX_WAIT).min(MAX_WAIT)) {
                return Some(self.settled(changes));
            }
        }
    }

    fn settled(&mut self, first: FolderChanges) -> FolderChanges {
        let begin = Instant::now();
        let mut changes = self.watch.refresh(&first);
        merge(&mut changes, first);
        while begin.elapsed() < MAX_SETTLE_TIME {
            let Some(next) = self.watch.next(SETTLE_TIME) else {
                break;
            };
            merge(&mut changes, self.watch.refresh(&next));
            merge(&mut changes, next);
        }
        changes
    }

    fn merge(&mut self, changes: FolderChanges) {
        merge(&mut self.unread, changes);
    }

    /// Reads the folders, and notes the names that have changed.
    fn read(&mut self) {
        if let Err(problem) = self.publisher.reload() {
            print_message(&format!(
                "error: {problem:#}; nothing is published until this is corrected"
            ));
            return;
        }
        let places = self.publisher.places();
        let names: BTreeSet<String> = self.publisher.selected(&places).into_iter().collect();
        let changes = std::mem::take(&mut self.unread);
        let changed = changed_names(&changes, &self.publisher.arguments.content);
        for folder in self.queue.note_read(names, changed) {
            let gone = self.publisher.target(&folder).unwrap_or(folder);
            print_message(&format!(
                "{gone}  folder removed; still published: `rowhouse unpublish {gone}` withdraws it"
            ));
        }
    }
}

fn merge(changes: &mut FolderChanges, more: FolderChanges) {
    changes.paths.extend(more.paths);
    changes.affects_all |= more.affects_all;
}

/// Returns the folders and files to watch.
fn roots(content: &ContentFlags) -> Vec<PathBuf> {
    let themes = themes_folder(content.themes.as_deref());
    let deployment = content.deployment.clone();
    let tenants = std::iter::once(content.tenants.clone());
    tenants.chain(themes).chain(deployment).collect()
}

/// Returns the names whose folders have changed, or `None` if any may have changed.
fn changed_names(changes: &FolderChanges, content: &ContentFlags) -> Option<BTreeSet<String>> {
    let themes = themes_folder(content.themes.as_deref());
    let mut folders = vec![content.tenants.as_path()];
    folders.extend(themes.as_deref());
    if changes.affects_all || changes.has_outside_paths(&folders) {
        return None;
    }
    let below = changes.below(&content.tenants)?;
    let names = below.into_iter().map(|name| match &*name {
        FILE => DEPLOYMENT.to_owned(),
        _ => name,
    });
    let mut names: BTreeSet<String> = names.collect();
    let of_themes = themes.as_deref().map(|themes| changes.below(themes));
    match of_themes {
        Some(Some(changed)) if changed.is_empty() => {}
        Some(_) => drop(names.insert(THEMES.to_owned())),
        None => {}
    }
    Some(names)
}
