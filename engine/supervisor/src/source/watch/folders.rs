//! Which folders are watched, each once, and by which paths the tenants or themes know them.
//!
//! The system has one watch for a folder, however many links lead to it, and names one path. Whoever else has a link to that folder is to hear of a change as well.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::ops::Bound;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use content::source::{self, Activity, FolderLimits, Identity};

/// A folder that is to be watched.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WatchedPath {
    /// Where it is watched.
    pub(super) at: PathBuf,
    /// The path by which it belongs to a tenant.
    pub(super) shown: PathBuf,
}

/// The folders of all tenants and themes.
#[derive(Debug, Default)]
pub(super) struct WatchedFolders {
    /// By the directory of the tenant or theme.
    of: HashMap<PathBuf, Vec<(Identity, WatchedPath)>>,
    places: HashMap<Identity, BTreeSet<WatchedPath>>,
    watched: HashMap<Identity, PathBuf>,
    /// In the order of paths, so that those in a folder follow it.
    at: BTreeMap<PathBuf, Identity>,
}

/// What is to be done to watch as things are now: first all of the one, then all of the other.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct WatchSteps {
    /// What needs no watch any longer.
    pub(super) gone: Vec<PathBuf>,
    /// What is to be watched. A watch that is there already may have been lost with a folder that was moved or replaced, and setting it again costs nothing.
    pub(super) wanted: Vec<WatchedPath>,
}

impl WatchedFolders {
    /// Takes what the folders of a directory are now; whether they were others before.
    pub(super) fn replace(
        &mut self,
        directory: PathBuf,
        now: Vec<(Identity, WatchedPath)>,
        touched: &mut BTreeSet<Identity>,
    ) -> bool {
        let before = self.of.remove(&directory).unwrap_or_default();
        let is_changed = before != now;
        for (identity, place) in before {
            touched.insert(identity);
            if let Some(places) = self.places.get_mut(&identity) {
                places.remove(&place);
            }
        }
        for (identity, place) in &now {
            touched.insert(*identity);
            self.places
                .entry(*identity)
                .or_default()
                .insert(place.clone());
        }
        if !now.is_empty() {
            self.of.insert(directory, now);
        }
        is_changed
    }

    /// What follows for the watches of folders that were touched.
    pub(super) fn steps(&mut self, touched: BTreeSet<Identity>) -> WatchSteps {
        let mut steps = WatchSteps::default();
        let mut wanted = Vec::new();
        for identity in touched {
            let places = self.places.get(&identity);
            let watched = self.watched.get(&identity);
            let same = places
                .into_iter()
                .flatten()
                .find(|place| Some(&place.at) == watched);
            if let (None, Some(at)) = (same, watched) {
                steps.gone.push(at.clone());
                self.at.remove(at);
                self.watched.remove(&identity);
            }
            match same.or_else(|| places.and_then(BTreeSet::first)) {
                Some(place) => wanted.push((identity, place.clone())),
                None => {
                    self.places.remove(&identity);
                }
            }
        }
        for (identity, place) in wanted {
            self.watched.insert(identity, place.at.clone());
            self.at.insert(place.at.clone(), identity);
            steps.wanted.push(place);
        }
        steps
    }

    /// Every path that tenants and themes have for one of which the system tells.
    pub(super) fn shown(&self, path: PathBuf) -> Vec<PathBuf> {
        let places = |at: &Path| self.places.get(self.at.get(at)?);
        if let Some(places) = places(&path) {
            return places.iter().map(|place| place.shown.clone()).collect();
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return vec![path];
        };
        match places(parent) {
            Some(places) => places.iter().map(|place| place.shown.join(name)).collect(),
            None => vec![path],
        }
    }

    /// Returns every path that tenants and themes have for a folder and for the watched folders in it.
    pub(super) fn shown_below(&self, folder: &Path) -> Vec<PathBuf> {
        let from = (Bound::Included(folder), Bound::Unbounded);
        let watched = self.at.range::<Path, _>(from);
        let watched = watched.take_while(|(at, _)| at.starts_with(folder));
        let places = watched.filter_map(|(_, identity)| self.places.get(identity));
        let mut shown = self.shown(folder.to_owned());
        shown.extend(places.flatten().map(|place| place.shown.clone()));
        shown
    }

    /// How many folders are watched.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.watched.len()
    }

    /// All directories of tenants and themes.
    pub(super) fn directories(&self) -> impl Iterator<Item = &PathBuf> {
        self.of.keys()
    }
}

/// The folders of a directory that are to be watched. `None` when it cannot be opened or is over a limit, so that it has to be polled.
pub(super) fn find(directory: &Path) -> Option<Vec<(Identity, WatchedPath)>> {
    if !source::is_folder(directory) {
        return Some(Vec::new());
    }
    let tree = source::walk(directory, "", FolderLimits::default(), &Activity::default());
    if tree.is_cut || tree.folders.is_empty() {
        return None;
    }
    let own = |(path, identity): &(String, Identity)| {
        let path = directory.join(path);
        let place = WatchedPath {
            at: path.clone(),
            shown: path,
        };
        (*identity, place)
    };
    let mut found: Vec<(Identity, WatchedPath)> = tree.folders.iter().map(own).collect();
    // What a linked file says is changed in the folder that it leads to, and that one may be hidden.
    if let (false, Ok(root)) = (tree.linked.is_empty(), directory.canonicalize()) {
        for path in &tree.linked {
            let path = directory.join(path);
            let target = path.canonicalize().ok();
            if let (Some(at), Some(shown)) =
                (target.as_deref().and_then(Path::parent), path.parent())
                && at.starts_with(&root)
                && let Ok(metadata) = fs::metadata(at)
            {
                let identity = (metadata.dev(), metadata.ino());
                let (at, shown) = (at.to_owned(), shown.to_owned());
                if !found.iter().any(|(other, _)| *other == identity) {
                    found.push((identity, WatchedPath { at, shown }));
                }
            }
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(number: u64, path: &str) -> (Identity, WatchedPath) {
        let path = PathBuf::from(path);
        let place = WatchedPath {
            at: path.clone(),
            shown: path,
        };
        ((1, number), place)
    }

    fn take(
        folders: &mut WatchedFolders,
        directory: &str,
        now: &[(Identity, WatchedPath)],
    ) -> WatchSteps {
        let mut touched = BTreeSet::new();
        folders.replace(directory.into(), now.to_vec(), &mut touched);
        folders.steps(touched)
    }

    fn wanted(steps: &WatchSteps) -> Vec<&str> {
        let paths = steps.wanted.iter();
        paths
            .map(|place| place.at.to_str().expect("UTF-8"))
            .collect()
    }

    #[test]
    fn a_folder_with_two_links_has_one_watch_and_two_names() {
        let mut folders = WatchedFolders::default();
        let steps = take(&mut folders, "/t/a", &[place(1, "/t/a")]);
        assert_eq!((wanted(&steps), steps.gone.len()), (vec!["/t/a"], 0));
        let steps = take(&mut folders, "/t/b", &[place(1, "/t/b")]);
        assert_eq!((wanted(&steps), steps.gone.len()), (vec!["/t/a"], 0));
        let shown = folders.shown("/t/a/x".into());
        assert_eq!(shown, [Path::new("/t/a/x"), Path::new("/t/b/x")]);
        let steps = take(&mut folders, "/t/a", &[]);
        assert_eq!(steps.gone, [Path::new("/t/a")]);
        assert_eq!(wanted(&steps), ["/t/b"], "the other one is watched now");
        assert_eq!(folders.shown("/t/b/x".into()), [Path::new("/t/b/x")]);
    }

    #[test]
    fn another_folder_at_the_same_path_is_watched_anew() {
        let mut folders = WatchedFolders::default();
        take(&mut folders, "/t/a", &[place(1, "/t/a")]);
        let steps = take(&mut folders, "/t/a", &[place(2, "/t/a")]);
        assert_eq!(steps.gone, [Path::new("/t/a")]);
        assert_eq!(wanted(&steps), ["/t/a"]);
        assert_eq!(folders.shown("/t/a/x".into()), [Path::new("/t/a/x")]);
        let steps = take(&mut folders, "/t/a", &[]);
        assert_eq!(steps.gone, [Path::new("/t/a")]);
        assert!(folders.places.is_empty() && folders.watched.is_empty() && folders.at.is_empty());
    }
}
