//! Finds the files of a folder whose upload has not ended.
//!
//! A reading looks at the metadata of files that changed a short time ago, before it reads the folder. After the read, it checks that these files have an end.
//! The [`World`](crate::model::world::World) decides how long a tenant waits for its files.
//!
//! **Invariant:** a file that was saved in one write, or was moved into place, is complete at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;

use content::report::{Code, Diagnostic};
use content::source::{Folder, FolderTree, RecentFile, missing_end, missing_end_of_file};

use crate::source::watch::OpenFiles;

/// The time without a change after which a file that arrives in several writes is complete.
const QUIET_TIME: Duration = Duration::from_secs(1);

/// The limit on the reported files of a tenant.
const MAX_REPORTED: usize = 5;

/// The files that changed a short time ago, by path.
type RecentFiles = BTreeMap<String, RecentFile>;

/// The end of a page or a manifest that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextEnd {
    length: u64,
    has_newline: bool,
}

/// The data of the last reading that the next reading compares with.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastLook {
    recent: RecentFiles,
    /// The files that had grown since the look before.
    growing: BTreeSet<String>,
    /// The pages and the manifest.
    texts: BTreeMap<String, TextEnd>,
    /// The files without an end, which are checked until they are complete.
    incomplete: BTreeSet<String>,
}

/// The check of one reading for files whose upload has not ended.
#[derive(Debug, Clone)]
pub(crate) struct ArrivalCheck {
    /// See `--settle-max`. Only files that changed within this time are checked.
    pub(crate) settle_max: Duration,
    /// Whether the tenant may wait. Otherwise the folder is used as it is.
    pub(crate) waits: bool,
    pub(crate) last: Arc<LastLook>,
    pub(crate) open: OpenFiles,
}

/// The result of a check.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arrival {
    /// The files that the tenant waits for, one line each.
    pub(crate) files: Vec<String>,
    /// The time until all files are complete, if none of them changes. `None` if a file is open or has no end.
    pub(crate) quiet_in: Option<Duration>,
    /// Whether any file is still changing.
    pub(crate) is_changing: bool,
    /// Whether the folder was not read, because the tenant waits for its files.
    pub(crate) is_waiting: bool,
    pub(crate) look: LastLook,
}

/// The reason why a file may not be complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenReason {
    /// A program has written to the file, and has not closed it.
    Open,
    /// The file has grown since the last look.
    Growing,
    /// The file is empty.
    Empty,
    /// The text is much shorter than before, or has lost its last newline.
    CutText,
}

impl OpenReason {
    const fn text(self) -> &'static str {
        match self {
            Self::Open => "is open in the program that writes the file",
            Self::Growing => "is still growing",
            Self::Empty => "is empty",
            Self::CutText => "ends earlier than before",
        }
    }
}

impl ArrivalCheck {
    /// Looks at the files that changed a short time ago.
    pub(crate) fn look(&self, tree: &FolderTree, now: SystemTime) -> Arrival {
        let recent = tree.recent_files(now, self.settle_max.max(QUIET_TIME));
        let mut arrival = Arrival {
            quiet_in: Some(Duration::ZERO),
            ..Arrival::default()
        };
        let mut growing = BTreeSet::new();
        for (path, file) in &recent {
            let is_open = || tree.absolute_paths(path).any(|path| self.open.has(&path));
            let last_byte = || tree.last_byte(path);
            let Some(reason) = self.reason(path, *file, now, is_open, last_byte) else {
                continue;
            };
            arrival.is_changing = true;
            if reason == OpenReason::Growing {
                growing.insert(path.clone());
            }
            arrival.add(path, reason.text());
            arrival.quiet_in = match reason {
                OpenReason::Open => None,
                _ => arrival.quiet_in.map(|time| time.max(quiet_in(*file, now))),
            };
        }
        arrival.look = LastLook {
            recent,
            growing,
            texts: self.last.texts.clone(),
            incomplete: self.last.incomplete.clone(),
        };
        arrival.is_waiting = self.waits && arrival.is_changing;
        arrival
    }

    fn reason(
        &self,
        path: &str,
        file: RecentFile,
        now: SystemTime,
        is_open: impl Fn() -> bool,
        last_byte: impl Fn() -> Option<u8>,
    ) -> Option<OpenReason> {
        if is_open() {
            return Some(OpenReason::Open);
        }
        if quiet_in(file, now).is_zero() {
            return None;
        }
        let grows = |before: &RecentFile| {
            let gap = file.changed.duration_since(before.changed);
            before.inode == file.inode
                && before.length < file.length
                && gap.is_ok_and(|gap| gap < QUIET_TIME)
        };
        // Another tenant's change, or a timer, may have caused this look.
        let still_grows = |before: &RecentFile| *before == file && self.last.growing.contains(path);
        let before = self.last.recent.get(path);
        let text = self.last.texts.get(path);
        match () {
            () if file.length == 0 => Some(OpenReason::Empty),
            () if before.is_some_and(|before| grows(before) || still_grows(before)) => {
                Some(OpenReason::Growing)
            }
            () if text.is_some_and(|text| is_cut(*text, file.length, last_byte)) => {
                Some(OpenReason::CutText)
            }
            () => None,
        }
    }

    /// Checks the ends of the files that were read. Returns a diagnostic for each file without its end.
    pub(crate) fn check_ends(&self, folder: &Folder, arrival: &mut Arrival) -> Vec<Diagnostic> {
        let mut problems = Vec::new();
        let recent = std::mem::take(&mut arrival.look.incomplete);
        let recent = recent
            .into_iter()
            .chain(arrival.look.recent.keys().cloned());
        let candidates: BTreeSet<String> = recent.collect();
        for path in candidates {
            let in_memory = folder.files.get(&path).map(Bytes::as_ref);
            let large = folder.large.get(&path);
            let missing = in_memory
                .and_then(missing_end)
                .or_else(|| large.and_then(|large| missing_end_of_file(&large.file, large.length)));
            let Some(missing) = missing else {
                continue;
            };
            let message = format!("the file is incomplete: {missing} is missing");
            problems.push(
                Diagnostic::error(Code::IncompleteFile, folder.name_of(&path), message)
                    .hint("upload the file again; the last valid release is served until the file is complete"),
            );
            if arrival.look.recent.contains_key(&path) {
                arrival.add(&path, &format!("has no end: {missing} is missing"));
                arrival.quiet_in = None;
            }
            arrival.look.incomplete.insert(path);
        }
        let texts = folder.files.iter();
        let texts = texts.filter(|(path, _)| !path.starts_with("assets/"));
        let end = |(path, bytes): (&String, &Bytes)| (path.clone(), TextEnd::of(bytes));
        arrival.look.texts = texts.map(end).collect();
        arrival.is_waiting |= self.waits && !arrival.files.is_empty();
        problems
    }
}

impl Arrival {
    fn add(&mut self, path: &str, reason: &str) {
        if self.files.len() < MAX_REPORTED {
            self.files.push(format!("{path} {reason}"));
        }
    }
}

impl TextEnd {
    fn of(bytes: &[u8]) -> Self {
        Self {
            length: bytes.len() as u64,
            has_newline: bytes.last() == Some(&b'\n'),
        }
    }
}

/// Returns whether a text is less than half as long as before, or has lost its last newline.
fn is_cut(before: TextEnd, length: u64, last_byte: impl Fn() -> Option<u8>) -> bool {
    let is_unchanged = length == before.length;
    let has_lost_newline = || before.has_newline && last_byte() != Some(b'\n');
    !is_unchanged && (length < before.length / 2 || has_lost_newline())
}

/// Returns the time until a file has been unchanged for [`QUIET_TIME`].
fn quiet_in(file: RecentFile, now: SystemTime) -> Duration {
    // A time in the future comes from a clock that was set back.
    let age = now.duration_since(file.changed);
    QUIET_TIME.saturating_sub(age.unwrap_or(QUIET_TIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn at(milliseconds: u32) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000) + milliseconds * MS
    }

    fn file(length: u64, changed: u32) -> RecentFile {
        RecentFile {
            length,
            inode: 1,
            changed: at(changed),
        }
    }

    fn check(last: LastLook) -> ArrivalCheck {
        ArrivalCheck {
            settle_max: Duration::from_secs(60),
            waits: true,
            last: Arc::new(last),
            open: OpenFiles::default(),
        }
    }

    fn looked_at(path: &str, file: RecentFile) -> LastLook {
        LastLook {
            recent: [(path.to_owned(), file)].into(),
            ..LastLook::default()
        }
    }

    fn reason(last: LastLook, file: RecentFile, now: u32) -> Option<OpenReason> {
        let newline = || Some(b'\n');
        check(last).reason("pages/index.md", file, at(now), || false, newline)
    }

    #[test]
    fn file_that_grows_within_a_second_waits_until_it_rests() {
        let last = || looked_at("pages/index.md", file(10, 0));
        assert_eq!(
            reason(last(), file(20, 250), 310),
            Some(OpenReason::Growing)
        );
        assert_eq!(reason(last(), file(20, 250), 1_250), None);
        // Saved again after more than a second: a longer text is not an upload.
        assert_eq!(reason(last(), file(20, 1_500), 1_560), None);
        // Replaced by another file, or a shorter text.
        let moved = RecentFile {
            inode: 2,
            ..file(20, 250)
        };
        assert_eq!(reason(last(), moved, 310), None);
        assert_eq!(reason(last(), file(9, 250), 310), None);
        let growing = LastLook {
            growing: ["pages/index.md".to_owned()].into(),
            ..looked_at("pages/index.md", file(20, 250))
        };
        assert_eq!(
            reason(growing, file(20, 250), 700),
            Some(OpenReason::Growing),
            "a look without a change"
        );
    }

    #[test]
    fn saved_file_is_complete_at_once_and_empty_file_waits() {
        assert_eq!(reason(LastLook::default(), file(10, 0), 60), None);
        let empty = reason(LastLook::default(), file(0, 0), 60);
        assert_eq!(empty, Some(OpenReason::Empty));
        assert_eq!(reason(LastLook::default(), file(0, 0), 1_000), None);
    }

    #[test]
    fn open_file_waits_however_old_its_last_change_is() {
        let check = check(LastLook::default());
        let reason = check.reason("assets/hall.mp4", file(10, 0), at(50_000), || true, || None);
        assert_eq!(reason, Some(OpenReason::Open));
    }

    #[test]
    fn text_that_lost_its_end_is_cut() {
        let before = TextEnd::of(b"A text of a page.\n");
        let newline = || Some(b'\n');
        assert!(!is_cut(before, 30, newline) && !is_cut(before, 12, newline));
        assert!(is_cut(before, 8, newline), "less than half");
        assert!(is_cut(before, 17, || Some(b'.')));
        let without_newline = TextEnd::of(b"A text of a page.");
        assert!(!is_cut(without_newline, 16, || Some(b'.')));
    }

    #[test]
    fn file_without_an_end_is_awaited_while_recent_and_reported_until_complete() {
        let folder = |png: &'static [u8]| Folder {
            label: "tenants/app".to_owned(),
            files: [("assets/a.png".to_owned(), Bytes::from_static(png))].into(),
            ..Folder::default()
        };
        let (cut, complete) = (b"\x89PNG....".as_slice(), b"\x89PNG....IEND....".as_slice());
        let arrival = |look: LastLook| Arrival {
            look,
            quiet_in: Some(Duration::ZERO),
            ..Arrival::default()
        };
        let mut recent = arrival(looked_at("assets/a.png", file(8, 0)));
        let problems = check(LastLook::default()).check_ends(&folder(cut), &mut recent);
        assert!(recent.is_waiting && recent.quiet_in.is_none());
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].file, "tenants/app/assets/a.png");
        let known = LastLook {
            recent: RecentFiles::new(),
            ..recent.look
        };
        let mut later = arrival(known.clone());
        let problems = check(known.clone()).check_ends(&folder(cut), &mut later);
        assert_eq!((problems.len(), later.is_waiting), (1, false));
        let mut ended = arrival(known.clone());
        assert!(
            check(known)
                .check_ends(&folder(complete), &mut ended)
                .is_empty()
        );
        assert!(ended.look.incomplete.is_empty());
        let mut old = arrival(LastLook::default());
        let problems = check(LastLook::default()).check_ends(&folder(cut), &mut old);
        assert!(problems.is_empty(), "a file that was always so");
    }
}
