//! The names that `publish --watch` publishes next, and which of their lines are news.
//!
//! ```text
//! changed ──> due ── published ──> nothing to do
//!              ▲ ├── conflict, errors ──> left: due again with the next change of any folder
//!              └─┴── the store does not answer: due again after a wait
//! ```
//!
//! **Invariant:** no I/O and no clock.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::line::{Line, LineResult};

/// The wait after the first failure of the store. It doubles with each further one.
const FIRST_RETRY: Duration = Duration::from_secs(1);

/// The number of doublings of the wait.
const MAX_DOUBLINGS: u32 = 5;

/// The names that wait, and what the author was told.
#[derive(Debug, Default)]
pub(super) struct PublishQueue {
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

/// The next attempt after a store did not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Retry {
    /// Whether the store has answered before, so that the author is told.
    pub(super) is_first: bool,
    /// The wait before the next attempt.
    pub(super) wait: Duration,
}

/// The end of a round: all due names are published or left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Round {
    /// Whether the store did not answer before.
    pub(super) has_recovered: bool,
    /// Whether this was the first round.
    pub(super) is_first: bool,
}

impl PublishQueue {
    /// Returns whether a name is to be published now.
    pub(super) fn is_due(&self, name: &str) -> bool {
        self.due.contains(name)
    }

    /// Notes that the folders were read. `changed` are the names whose folders have changed; `None` if any may have. Returns the known names that are gone.
    pub(super) fn note_read(
        &mut self,
        names: BTreeSet<String>,
        changed: Option<BTreeSet<String>>,
    ) -> Vec<String> {
        let gone: Vec<String> = self.known.difference(&names).cloned().collect();
        for name in &gone {
            self.left.remove(name);
        }
        self.due
            .extend(changed.unwrap_or_else(|| names.iter().cloned().collect()));
        self.due.extend(names.difference(&self.known).cloned());
        self.due.extend(self.left.keys().cloned());
        self.known = names;
        gone
    }

    /// Notes the end of the publication of a name. Returns whether its line is news.
    pub(super) fn note_line(&mut self, line: &Line) -> bool {
        let errors = serde_json::to_string(&line.errors).unwrap_or_default();
        let is_news = match line.result {
            LineResult::Published | LineResult::Repaired | LineResult::Conflict => true,
            // The store may have lost only the answer to an earlier attempt.
            LineResult::Unchanged => {
                !self.is_following || self.failures > 0 || self.left.contains_key(&line.folder)
            }
            LineResult::Errors => self.left.get(&line.folder) != Some(&errors),
        };
        match line.result {
            LineResult::Published | LineResult::Repaired | LineResult::Unchanged => {
                self.left.remove(&line.folder);
            }
            LineResult::Conflict | LineResult::Errors => {
                self.left.insert(line.folder.clone(), errors);
            }
        }
        self.due.remove(&line.folder);
        is_news
    }

    /// Notes that the store did not answer. The due names stay due.
    pub(super) fn note_silence(&mut self) -> Retry {
        let growth = 2_u32.pow(self.failures.min(MAX_DOUBLINGS));
        self.failures += 1;
        Retry {
            is_first: self.failures == 1,
            wait: FIRST_RETRY * growth,
        }
    }

    /// Notes that no due name is left.
    pub(super) fn note_round(&mut self) -> Round {
        // Names that cannot be published any more.
        self.due.clear();
        Round {
            has_recovered: std::mem::take(&mut self.failures) > 0,
            is_first: !std::mem::replace(&mut self.is_following, true),
        }
    }
}

#[cfg(test)]
mod tests {
    use fleet::key::Nonce;
    use fleet::pointer::{Cause, NextVersion, Pointer};

    use super::*;

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn pointer(author: &str) -> Pointer {
        let next = NextVersion {
            nonce: Nonce("n".to_owned()),
            content: Vec::new(),
            pin: None,
            at: 0,
            author: author.to_owned(),
            cause: Cause::Publish,
        };
        Pointer::next(None, next)
    }

    fn line(name: &str, result: LineResult, author: &str) -> Line {
        let mut line = Line::new(name, Vec::new());
        line.set(result, &pointer(author));
        line
    }

    /// A queue after the first publication of these names.
    fn following(known: &[&str]) -> PublishQueue {
        let mut queue = PublishQueue::default();
        queue.note_read(names(known), None);
        for name in known {
            assert!(queue.note_line(&line(name, LineResult::Unchanged, "ann")));
        }
        assert!(queue.note_round().is_first);
        queue
    }

    #[test]
    fn conflict_names_the_winner_and_the_next_change_publishes_the_folder() {
        let mut queue = following(&["corner", "mill"]);
        queue.note_read(names(&["corner", "mill"]), Some(names(&["mill"])));
        let conflict = line("mill", LineResult::Conflict, "ben@other");
        let text = conflict.to_text();
        assert!(text.contains("conflict: version 1 is of"), "{text}");
        assert!(text.ends_with("by ben@other; left as it is"), "{text}");
        assert!(queue.note_line(&conflict), "the winner is news");
        queue.note_round();
        assert!(!queue.is_due("mill"));
        // A change of another folder.
        queue.note_read(names(&["corner", "mill"]), Some(names(&["corner"])));
        assert!(queue.is_due("mill") && queue.is_due("corner"));
        assert!(queue.note_line(&line("mill", LineResult::Published, "ann")));
        assert!(!queue.note_line(&line("corner", LineResult::Unchanged, "ann")));
        queue.note_round();
        queue.note_read(names(&["corner", "mill"]), Some(names(&["corner"])));
        assert!(!queue.is_due("mill"), "published by now");
    }

    #[test]
    fn preview_is_due_when_its_folder_changes() {
        let mut queue = following(&["corner"]);
        queue.note_read(names(&["corner"]), Some(names(&["corner"])));
        let preview = line("corner@spring", LineResult::Published, "ann").of_folder("corner");
        assert!(queue.note_line(&preview));
        assert!(!queue.is_due("corner"));
        queue.note_read(names(&["corner"]), Some(names(&["corner"])));
        assert!(queue.is_due("corner"));
    }

    #[test]
    fn silent_store_is_told_once_and_its_names_stay_due_until_it_answers() {
        let mut queue = following(&["corner", "mill"]);
        queue.note_read(names(&["corner", "mill"]), None);
        assert!(queue.note_line(&line("corner", LineResult::Published, "ann")));
        let waits: Vec<(bool, u64)> = (0..8)
            .map(|_| queue.note_silence())
            .map(|retry| (retry.is_first, retry.wait.as_secs()))
            .collect();
        let seconds = [1, 2, 4, 8, 16, 32, 32, 32];
        assert_eq!(waits.iter().map(|wait| wait.1).collect::<Vec<_>>(), seconds);
        assert_eq!(waits.iter().filter(|wait| wait.0).count(), 1);
        assert!(queue.is_due("mill") && !queue.is_due("corner"));
        // A change while the store is silent.
        queue.note_read(names(&["corner", "mill"]), Some(names(&["corner"])));
        assert!(queue.is_due("mill") && queue.is_due("corner"));
        // The first attempt had its effect, and only its answer was lost.
        assert!(queue.note_line(&line("mill", LineResult::Unchanged, "ann")));
        assert!(queue.note_line(&line("corner", LineResult::Published, "ann")));
        let round = queue.note_round();
        assert!(round.has_recovered && !round.is_first);
        assert!(!queue.note_round().has_recovered);
        assert!(queue.note_silence().is_first, "a new silence is told again");
    }

    #[test]
    fn same_errors_are_told_once_and_a_removed_folder_is_not_due() {
        let mut queue = following(&["corner", "mill"]);
        let wrong = Line::new("mill", Vec::new());
        queue.note_read(names(&["corner", "mill"]), Some(names(&["mill"])));
        assert!(queue.note_line(&wrong));
        queue.note_read(names(&["corner", "mill"]), Some(names(&["corner"])));
        assert!(queue.is_due("mill"));
        assert!(!queue.note_line(&wrong));
        let gone = queue.note_read(names(&["corner"]), Some(names(&[])));
        assert_eq!(gone, ["mill"]);
        assert!(!queue.is_due("mill"));
    }
}
