//! The watched folders, each with one watch, and the paths that tenants and themes have for them.
//!
//! The system has one watch for a folder, and its notifications name one path. If several tenants link to the folder, a change concerns all of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::ops::Bound;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use super::poll::is_changed_itself;
use content::source::{self, Activity, FolderIdentity, FolderLimits};

/// A path of a folder that is to be watched.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WatchedPath {
    /// The path that is watched.
    pub(super) at: Arc<Path>,
    /// The path within a tenant or theme.
    pub(super) shown: Arc<Path>,
}

/// The folders of all tenants and themes.
#[derive(Debug, Default)]
pub(super) struct WatchedFolders {
    /// The folders, by the directory of their tenant or theme.
    of: HashMap<PathBuf, Vec<(FolderIdentity, WatchedPath)>>,
    /// The paths of each folder. Almost every folder has one path, and a set would take ten times the memory.
    places: HashMap<FolderIdentity, Vec<WatchedPath>>,
    watched: HashMap<FolderIdentity, Arc<Path>>,
    /// The folders by watched path, in an order in which subfolders follow their folder.
    at: BTreeMap<Arc<Path>, FolderIdentity>,
}

/// The difference between the former and the new folders of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FolderDifference {
    /// The folders are the same.
    Same,
    /// Folders were removed.
    Removed,
    /// Folders were added, and others may have been removed.
    Added,
}

/// The listing of the directory of a tenant or theme.
#[derive(Debug, Default)]
pub(super) struct DirectoryListing {
    /// The folders to watch.
    pub(super) folders: Vec<(FolderIdentity, WatchedPath)>,
    /// The files that are read, by path in the directory.
    files: Vec<String>,
}

impl DirectoryListing {
    /// Returns whether a folder or a file has changed since `since`. An entry that was added or removed has changed its folder.
    pub(super) fn has_changed(&self, directory: &Path, since: SystemTime) -> bool {
        let mut folders = self.folders.iter().map(|(_, place)| &place.at);
        let mut files = self.files.iter().map(|path| directory.join(path));
        let has_changed = |path: &Path| is_changed_itself(path, since);
        folders.any(|path| has_changed(path)) || files.any(|path| has_changed(&path))
    }
}

/// The watches to remove and to set, in that order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct WatchSteps {
    /// The paths that need no watch any longer.
    pub(super) gone: Vec<Arc<Path>>,
    /// The paths to watch, including watched paths: a moved or replaced folder loses its watch, and setting a watch again is cheap.
    pub(super) wanted: Vec<WatchedPath>,
}

impl WatchedFolders {
    /// Replaces the folders of a directory, and adds the former and the new folders to `touched`.
    pub(super) fn replace(
        &mut self,
        directory: PathBuf,
        now: Vec<(FolderIdentity, WatchedPath)>,
        touched: &mut BTreeSet<FolderIdentity>,
    ) -> FolderDifference {
        let before = self.of.remove(&directory).unwrap_or_default();
        let known: BTreeSet<_> = before.iter().collect();
        let difference = if now.iter().any(|folder| !known.contains(folder)) {
            FolderDifference::Added
        } else if now.len() < before.len() {
            FolderDifference::Removed
        } else {
            FolderDifference::Same
        };
        for (identity, place) in before {
            touched.insert(identity);
            if let Some(places) = self.places.get_mut(&identity) {
                places.retain(|known| *known != place);
            }
        }
        for (identity, place) in &now {
            touched.insert(*identity);
            let places = self.places.entry(*identity);
            let places = places.or_insert_with(|| Vec::with_capacity(1));
            if !places.contains(place) {
                places.push(place.clone());
            }
        }
        if !now.is_empty() {
            self.of.insert(directory, now);
        }
        difference
    }

    /// Returns the watches to remove and to set for the touched folders.
    pub(super) fn steps(&mut self, touched: BTreeSet<FolderIdentity>) -> WatchSteps {
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
            match same.or_else(|| places.and_then(|places| places.iter().min())) {
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

    /// Returns all paths that tenants and themes have for the path of a notification.
    pub(super) fn shown(&self, path: PathBuf) -> Vec<PathBuf> {
        let places = |at: &Path| self.places.get(self.at.get(at)?);
        if let Some(places) = places(&path) {
            return places
                .iter()
                .map(|place| place.shown.to_path_buf())
                .collect();
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return vec![path];
        };
        match places(parent) {
            Some(places) => places.iter().map(|place| place.shown.join(name)).collect(),
            None => vec![path],
        }
    }

    /// Returns all paths that tenants and themes have for a folder and for the watched folders in it.
    pub(super) fn shown_below(&self, folder: &Path) -> Vec<PathBuf> {
        let from = (Bound::Included(folder), Bound::Unbounded);
        let watched = self.at.range::<Path, _>(from);
        let watched = watched.take_while(|(at, _)| at.starts_with(folder));
        let places = watched.filter_map(|(_, identity)| self.places.get(identity));
        let mut shown = self.shown(folder.to_owned());
        shown.extend(places.flatten().map(|place| place.shown.to_path_buf()));
        shown
    }

    /// Returns the number of watched folders.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.watched.len()
    }

    /// Returns the directories of tenants and themes that have watched folders.
    pub(super) fn directories(&self) -> impl Iterator<Item = &PathBuf> {
        self.of.keys()
    }
}

/// Lists a directory. Returns `None` if the directory must be polled, because it cannot be opened or exceeds a limit.
pub(super) fn list(directory: &Path) -> Option<DirectoryListing> {
    if !source::is_folder(directory) {
        return Some(DirectoryListing::default());
    }
    let tree = source::walk(directory, "", FolderLimits::default(), &Activity::default());
    if tree.is_cut || tree.folders.is_empty() {
        return None;
    }
    let own = |(path, identity): &(String, FolderIdentity)| {
        let path: Arc<Path> = directory.join(path).into();
        let place = WatchedPath {
            at: Arc::clone(&path),
            shown: path,
        };
        (*identity, place)
    };
    let mut found: Vec<(FolderIdentity, WatchedPath)> = tree.folders.iter().map(own).collect();
    // A linked file changes in the folder of its target, which may be hidden.
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
                let (at, shown) = (at.into(), shown.into());
                if !found.iter().any(|(other, _)| *other == identity) {
                    found.push((identity, WatchedPath { at, shown }));
                }
            }
        }
    }
    Some(DirectoryListing {
        folders: found,
        files: tree.files,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(number: u64, path: &str) -> (FolderIdentity, WatchedPath) {
        let path: Arc<Path> = PathBuf::from(path).into();
        let place = WatchedPath {
            at: Arc::clone(&path),
            shown: path,
        };
        ((1, number), place)
    }

    fn update(
        folders: &mut WatchedFolders,
        directory: &str,
        now: &[(FolderIdentity, WatchedPath)],
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

    fn gone(steps: &WatchSteps) -> Vec<&str> {
        let paths = steps.gone.iter();
        paths.map(|at| at.to_str().expect("UTF-8")).collect()
    }

    #[test]
    fn folder_with_two_links_has_one_watch_and_two_paths() {
        let mut folders = WatchedFolders::default();
        let steps = update(&mut folders, "/t/a", &[place(1, "/t/a")]);
        assert_eq!((wanted(&steps), steps.gone.len()), (vec!["/t/a"], 0));
        let steps = update(&mut folders, "/t/b", &[place(1, "/t/b")]);
        assert_eq!((wanted(&steps), steps.gone.len()), (vec!["/t/a"], 0));
        let shown = folders.shown("/t/a/x".into());
        assert_eq!(shown, [Path::new("/t/a/x"), Path::new("/t/b/x")]);
        let steps = update(&mut folders, "/t/a", &[]);
        assert_eq!(gone(&steps), ["/t/a"]);
        assert_eq!(
            wanted(&steps),
            ["/t/b"],
            "the folder is watched at its other path"
        );
        assert_eq!(folders.shown("/t/b/x".into()), [Path::new("/t/b/x")]);
    }

    #[test]
    fn listing_has_changed_after_any_change_of_its_folders_and_files() {
        let root = tempfile::TempDir::new().expect("a folder");
        let tenant = root.path().canonicalize().expect("a path").join("app");
        fs::create_dir_all(tenant.join("pages")).expect("a folder");
        fs::create_dir(tenant.join(".hidden")).expect("a folder");
        for path in ["tenant.yaml", "pages/a.md", "pages/b.md", ".hidden/c.md"] {
            fs::write(tenant.join(path), "first").expect("a file");
        }
        std::os::unix::fs::symlink("../.hidden/c.md", tenant.join("pages/c.md")).expect("a link");
        let changes: [&dyn Fn(); 5] = [
            &|| fs::write(tenant.join("pages/a.md"), "second").expect("a file"),
            &|| fs::write(tenant.join(".hidden/c.md"), "second").expect("a file"),
            &|| fs::write(tenant.join("pages/d.md"), "first").expect("a file"),
            &|| fs::remove_file(tenant.join("pages/b.md")).expect("a file"),
            &|| fs::create_dir(tenant.join("assets")).expect("a folder"),
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let listing = list(&tenant).expect("a listing");
            std::thread::sleep(std::time::Duration::from_millis(50));
            let since = SystemTime::now();
            assert!(!listing.has_changed(&tenant, since), "before {number}");
            std::thread::sleep(std::time::Duration::from_millis(50));
            change();
            assert!(listing.has_changed(&tenant, since), "after {number}");
        }
    }

    #[test]
    fn replaced_folder_is_watched_again() {
        let mut folders = WatchedFolders::default();
        update(&mut folders, "/t/a", &[place(1, "/t/a")]);
        let steps = update(&mut folders, "/t/a", &[place(2, "/t/a")]);
        assert_eq!(gone(&steps), ["/t/a"]);
        assert_eq!(wanted(&steps), ["/t/a"]);
        assert_eq!(folders.shown("/t/a/x".into()), [Path::new("/t/a/x")]);
        let steps = update(&mut folders, "/t/a", &[]);
        assert_eq!(gone(&steps), ["/t/a"]);
        assert!(folders.places.is_empty() && folders.watched.is_empty() && folders.at.is_empty());
    }
}
