//! `rowhouse publish --watch`: publishes each folder that changes, until the process is interrupted.
//!
//! ```text
//! changes ── settled ──> reload ──> due names ──> published
//!                                       ▲             │ the store does not answer
//!                                       └─── later ───┘
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use content::address::deployment::FILE;
use content::report::Report;
use fleet::key::{DEPLOYMENT, THEMES};
use supervisor::source::watch::{DetectionMethod, FolderChanges, Watch};

use super::line::{Line, LineResult};
use super::publisher::FolderPublisher;
use crate::cli::ContentFlags;
use crate::commands::fleet::Unavailable;
use crate::commands::fleet::progress_bar::WorkBar;
use crate::commands::output::{FAILED, print, print_message};
use crate::commands::setup::themes_folder;

/// The time without a change after which the folders are read.
const SETTLE_TIME: Duration = Duration::from_millis(500);

/// The limit on the time for which changes settle: a program may write all the time.
const MAX_SETTLE_TIME: Duration = Duration::from_secs(10);

/// The limit on the wait for changes. The roots of the watch are checked after each wait.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// The wait after the first failure of the store. It doubles with each further one.
const FIRST_RETRY: Duration = Duration::from_secs(1);

/// The number of doublings of the wait.
const MAX_DOUBLINGS: u32 = 6;

/// The folders that are watched, and the names that wait.
pub(super) struct FolderWatch<'a> {
    publisher: FolderPublisher<'a>,
    watch: Watch,
    /// The changes since the folders were last read.
    unread: FolderChanges,
    /// The names that can be published.
    known: BTreeSet<String>,
    /// The names to publish next.
    due: BTreeSet<String>,
    /// The names that were left as they are, with their errors. A conflict has none.
    left: BTreeMap<String, String>,
    /// Whether the first publication of all names is over.
    is_following: bool,
    /// The number of times in a row that the store did not answer.
    failures: u32,
}

impl<'a> FolderWatch<'a> {
    /// Returns a watch over the folders of the publisher.
    pub(super) fn new(publisher: FolderPublisher<'a>) -> Self {
        // The watch starts before the first read, so that no change is missed.
        let roots = roots(&publisher.arguments.content);
        Self {
            watch: Watch::new(DetectionMethod::Notifications, roots),
            publisher,
            unread: FolderChanges::default(),
            known: BTreeSet::new(),
            due: BTreeSet::new(),
            left: BTreeMap::new(),
            is_following: false,
            failures: 0,
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
        self.due.extend(self.publisher.selected(&places));
        self.known.clone_from(&self.due);
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
        names.retain(|name| self.due.contains(name));
        let bar = WorkBar::steps(names.len(), self.publisher.is_text());
        for name in names {
            bar.begin(&name);
            match self.publisher.publish(&name, &places[&name], &mut report) {
                Ok(line) => bar.above(|| self.report(&line)),
                Err(error) if error.is::<Unavailable>() => {
                    if self.failures == 0 {
                        bar.above(|| {
                            print_message(&format!("error: {error:#}; trying again"));
                        });
                    }
                    let growth = 2_u32.pow(self.failures.min(MAX_DOUBLINGS));
                    self.failures += 1;
                    return Ok(Some(FIRST_RETRY * growth));
                }
                Err(error) => return Err(error),
            }
            bar.end();
            self.due.remove(&name);
        }
        drop(bar);
        self.due.clear();
        self.publisher.session.announce_unchanged()?;
        if self.failures > 0 {
            self.failures = 0;
            print_message("the store answers again");
        }
        if !self.is_following {
            self.is_following = true;
            let tenants = self.publisher.arguments.content.tenants.display();
            print_message(&format!(
                "publishing each folder of `{tenants}` that changes, until Ctrl-C"
            ));
        }
        Ok(None)
    }

    /// Prints the line of a name, unless it says nothing new.
    fn report(&mut self, line: &Line) {
        let errors = serde_json::to_string(&line.errors).unwrap_or_default();
        let is_news = match line.result {
            LineResult::Published | LineResult::Repaired | LineResult::Conflict => true,
            LineResult::Unchanged => !self.is_following || self.left.contains_key(&line.name),
            LineResult::Errors => self.left.get(&line.name) != Some(&errors),
        };
        match line.result {
            LineResult::Published | LineResult::Repaired | LineResult::Unchanged => {
                self.left.remove(&line.name);
            }
            LineResult::Conflict | LineResult::Errors => {
                self.left.insert(line.name.clone(), errors);
            }
        }
        if !is_news {
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
        for gone in self.known.difference(&names) {
            print_message(&format!(
                "{gone}  folder removed; still published: `rowhouse unpublish {gone}` withdraws it"
            ));
            self.left.remove(gone);
        }
        let changes = std::mem::take(&mut self.unread);
        match changed_names(&changes, &self.publisher.arguments.content) {
            Some(changed) => self.due.extend(changed),
            None => self.due.extend(names.iter().cloned()),
        }
        self.due.extend(names.difference(&self.known).cloned());
        self.due.extend(self.left.keys().cloned());
        self.known = names;
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
