//! Finds the files and folders in a folder: each folder once, in order of names, and nothing outside it.
//!
//! Visits real folders first, then the targets of links. The same content thus gives the same result on every file system. If a link leads to a folder that was found already, the link is refused.
//! Reads no files until all are found. A folder that exceeds the limits costs only its listing, up to those limits.

use std::collections::{HashMap, VecDeque};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, statat};

use super::activity::Activity;
use super::folder_root::{FolderRoot, OpenError};
use super::limits::{FolderLimits, is_large_type};
use crate::report::guard::inject;
use crate::report::{Code, Diagnostic, Report};

/// The device and inode number of a folder. They identify it even if another folder takes its path.
pub type FolderIdentity = (u64, u64);

/// The files and folders found in a folder, by path with `/` between segments.
#[derive(Debug)]
pub struct FolderTree {
    /// All folders that are not hidden. The first is the folder itself, with an empty path.
    pub folders: Vec<(String, FolderIdentity)>,
    /// All files that are not hidden.
    pub files: Vec<String>,
    /// The files that were reached through a link.
    pub linked: Vec<String>,
    /// Whether a limit ended the search. The folder must then not be used.
    pub is_cut: bool,
    /// Whether the path is absent or a file.
    pub is_gone: bool,
    /// The entries that cannot be read, and why.
    pub(super) report: Report,
    /// The folder itself; `None` if it cannot be opened.
    pub(super) root: Option<FolderRoot>,
    pub(super) label: String,
    pub(super) limits: FolderLimits,
    pub(super) activity: Activity,
}

/// The total bytes of a folder's files that are held in memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FolderSizes {
    /// Bytes of all files.
    pub total: u64,
    /// Bytes of the files that are parsed: the manifest and the pages.
    pub text: u64,
}

impl FolderTree {
    /// Returns the listing of a folder that exists and cannot be read, with the reason.
    #[must_use]
    pub fn unavailable(label: &str, reason: Diagnostic) -> Self {
        let mut tree = Self {
            folders: Vec::new(),
            files: Vec::new(),
            linked: Vec::new(),
            is_cut: true,
            is_gone: false,
            report: Report::default(),
            root: None,
            label: label.to_owned(),
            limits: FolderLimits::default(),
            activity: Activity::default(),
        };
        tree.report.push(reason);
        tree
    }

    /// Returns the current sizes of the files, without opening any.
    #[must_use]
    pub fn sizes(&self) -> FolderSizes {
        let mut sizes = FolderSizes::default();
        for path in &self.files {
            self.activity.begin();
            let place = self.root.as_ref().map(|folder| folder.path().join(path));
            let Some(Ok(metadata)) = place.map(fs::metadata) else {
                continue;
            };
            let size = metadata.len();
            if size > self.limits.file && is_large_type(path) {
                continue;
            }
            sizes.total += size;
            if !path.starts_with("assets/") {
                sizes.text += size;
            }
        }
        self.activity.end();
        sizes
    }
}

/// Lists all files and folders in a folder. Skips names that begin with a dot, except `.well-known`.
///
/// Opens no file for its content. Through `activity`, another thread sees whether the file system responds.
#[must_use]
pub fn walk(
    directory: &Path,
    label: &str,
    limits: FolderLimits,
    activity: &Activity,
) -> FolderTree {
    activity.begin();
    inject("walk", label);
    let mut walker = Walker {
        tree: FolderTree {
            folders: Vec::new(),
            files: Vec::new(),
            linked: Vec::new(),
            is_cut: false,
            is_gone: !is_folder(directory),
            report: Report::default(),
            root: None,
            label: label.to_owned(),
            limits,
            activity: activity.clone(),
        },
        found: HashMap::new(),
        links: VecDeque::new(),
        entries: 0,
    };
    match fs::canonicalize(directory) {
        Ok(resolved) if holds_its_own_parent(directory, &resolved) => {
            walker.tree.refuse(
                Diagnostic::error(
                    Code::FolderTwice,
                    label,
                    format!(
                        "the symbolic link points to `{}`, which contains the link itself",
                        resolved.display()
                    ),
                )
                .hint("link to a folder elsewhere"),
            );
        }
        Ok(resolved) => walker.all(directory, resolved),
        Err(error) => walker.tree.unreadable("", &error),
    }
    activity.end();
    walker.tree
}

/// Returns whether a link points to a folder that contains the link. Its target would contain all sibling folders.
fn holds_its_own_parent(directory: &Path, resolved: &Path) -> bool {
    let parent = || directory.parent()?.canonicalize().ok();
    directory.is_symlink() && parent().is_some_and(|parent| parent.starts_with(resolved))
}

impl FolderTree {
    /// Returns the name of a file in reports, or of the folder itself for an empty path.
    pub(super) fn name_of(&self, path: &str) -> String {
        match path {
            "" => self.label.clone(),
            path => format!("{}/{path}", self.label),
        }
    }

    /// Reports an entry that cannot be read. After [`FolderLimits::errors`] of them, stops the search.
    pub(super) fn refuse(&mut self, diagnostic: Diagnostic) {
        self.report.push(diagnostic);
        let limit = self.limits.errors;
        if self.report.iter().len() >= limit {
            self.stop(format!(
                "{limit} files and folders cannot be read; the rest of the folder is not checked"
            ));
        }
    }

    /// Stops the search, because a limit of the entire folder is reached.
    pub(super) fn stop(&mut self, message: String) {
        if !self.is_cut {
            self.is_cut = true;
            self.report.push(too_large(self.label.clone(), message));
        }
    }

    pub(super) fn too_large(&mut self, path: &str, message: String) {
        self.refuse(too_large(self.name_of(path), message));
    }

    pub(super) fn unreadable(&mut self, path: &str, error: &io::Error) {
        let message = format!("the file or folder cannot be read: {error}");
        self.refuse(Diagnostic::error(
            Code::Unreadable,
            self.name_of(path),
            message,
        ));
    }

    pub(super) fn report_special_file(&mut self, path: &str) {
        let diagnostic = Diagnostic::error(
            Code::Unreadable,
            self.name_of(path),
            "this is not a regular file",
        );
        self.refuse(
            diagnostic.hint("remove the entry; pipes, sockets and devices have no content"),
        );
    }

    pub(super) fn report_open_error(&mut self, path: &str, error: OpenError) {
        match error {
            OpenError::System(error) => self.unreadable(path, &error),
            OpenError::Foreign(target) => self.refuse(
                Diagnostic::error(
                    Code::ForeignSymlink,
                    self.name_of(path),
                    format!(
                        "the symbolic link points out of the folder, to `{}`",
                        target.display()
                    ),
                )
                .hint("copy the file into the folder, or link the entire folder instead; within the folder, use relative links"),
            ),
        }
    }
}

fn too_large(file: String, message: String) -> Diagnostic {
    Diagnostic::error(Code::TooLarge, file, message)
        .hint("make the file or folder smaller, or move files elsewhere")
}

struct Walker {
    tree: FolderTree,
    /// The path at which each folder was first found.
    found: HashMap<FolderIdentity, String>,
    /// Links to visit after all real folders.
    links: VecDeque<String>,
    /// The number of entries listed, including hidden ones.
    entries: usize,
}

impl Walker {
    fn all(&mut self, directory: &Path, resolved: PathBuf) {
        match FolderRoot::new(directory, resolved) {
            Ok(root) => self.tree.root = Some(root),
            Err(error) => return self.tree.unreadable("", &error),
        }
        self.visit(String::new(), false);
        while let Some(link) = self.links.pop_front() {
            if self.tree.is_cut {
                return;
            }
            self.visit(link, true);
        }
    }

    /// Opens an entry to find out its type, and records it.
    fn visit(&mut self, path: String, is_link: bool) {
        let Some(root) = &self.tree.root else {
            return;
        };
        self.tree.activity.begin();
        let file = match root.open(Path::new(&path)) {
            Ok(file) => file,
            Err(error) => return self.tree.report_open_error(&path, error),
        };
        match file.metadata() {
            Ok(metadata) if metadata.is_dir() => {
                let identity = (metadata.dev(), metadata.ino());
                self.folder(file, path, identity);
            }
            Ok(metadata) if metadata.is_file() => {
                if is_link {
                    self.tree.linked.push(path.clone());
                }
                self.file(path);
            }
            Ok(_) => self.tree.report_special_file(&path),
            Err(error) => self.tree.unreadable(&path, &error),
        }
    }

    fn file(&mut self, path: String) {
        let limit = self.tree.limits.files;
        if self.tree.files.len() >= limit {
            return self
                .tree
                .stop(format!("the folder contains more than {limit} files"));
        }
        self.tree.files.push(path);
    }

    fn folder(&mut self, folder: fs::File, path: String, identity: FolderIdentity) {
        if let Some(first) = self.found.get(&identity) {
            let message = match first.as_str() {
                "" => "the symbolic link points to the entire folder, which contains the link"
                    .to_owned(),
                first => format!(
                    "the symbolic link points to a folder that is already read as `{}`",
                    self.tree.name_of(first)
                ),
            };
            let file = self.tree.name_of(&path);
            return self
                .tree
                .refuse(Diagnostic::error(Code::FolderTwice, file, message).hint(
                    "remove the link; each folder is read once, so that circular links end",
                ));
        }
        let limits = self.tree.limits;
        if depth(&path) > limits.depth {
            let message = format!("folders are nested more than {} levels deep", limits.depth);
            return self.tree.too_large(&path, message);
        }
        if self.tree.folders.len() >= limits.folders {
            let message = format!("the folder contains more than {} folders", limits.folders);
            return self.tree.stop(message);
        }
        self.found.insert(identity, path.clone());
        self.tree.folders.push((path.clone(), identity));
        match self.list(folder) {
            Ok(entries) => self.entries(&path, entries),
            Err(error) => self.tree.unreadable(&path, &error),
        }
    }

    /// Returns the entries of a folder that are not hidden, by name. Returns none if the limit on entries is exceeded.
    fn list(&mut self, folder: fs::File) -> io::Result<Vec<(Vec<u8>, FileType)>> {
        let mut listed = Vec::new();
        let mut entries = Dir::new(folder)?;
        while let Some(entry) = entries.read() {
            let entry = entry?;
            self.tree.activity.begin();
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            self.entries += 1;
            let limit = self.tree.limits.entries;
            if self.entries > limit {
                let message = format!(
                    "the folder contains more than {limit} entries, including hidden entries"
                );
                self.tree.stop(message);
                return Ok(Vec::new());
            }
            if name.starts_with(b".") && name != b".well-known" {
                continue;
            }
            let kind = match entry.file_type() {
                // Some file systems do not report the type in the listing.
                FileType::Unknown => {
                    let flags = AtFlags::SYMLINK_NOFOLLOW;
                    statat(entries.fd()?, entry.file_name(), flags)
                        .map_or(FileType::Unknown, |stat| {
                            FileType::from_raw_mode(stat.st_mode)
                        })
                }
                kind => kind,
            };
            listed.push((name.to_vec(), kind));
        }
        listed.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(listed)
    }

    fn entries(&mut self, folder: &str, entries: Vec<(Vec<u8>, FileType)>) {
        for (name, kind) in entries {
            if self.tree.is_cut {
                return;
            }
            let beside = |name: &str| match folder {
                "" => name.to_owned(),
                folder => format!("{folder}/{name}"),
            };
            let Ok(path) = std::str::from_utf8(&name).map(beside) else {
                let path = beside(&String::from_utf8_lossy(&name));
                let file = self.tree.name_of(&path);
                let message = "the name is not UTF-8";
                let diagnostic = Diagnostic::error(Code::NotUtf8, file, message);
                let hint = "rename the file or folder; an archive may have been unpacked with another character encoding";
                self.tree.refuse(diagnostic.hint(hint));
                continue;
            };
            match kind {
                FileType::RegularFile => self.file(path),
                FileType::Symlink => self.links.push_back(path),
                // Not even opened: opening a device may have an effect.
                FileType::Fifo
                | FileType::Socket
                | FileType::CharacterDevice
                | FileType::BlockDevice => self.tree.report_special_file(&path),
                FileType::Directory | FileType::Unknown => self.visit(path, false),
            }
        }
    }
}

fn depth(path: &str) -> usize {
    match path {
        "" => 0,
        path => path.matches('/').count() + 1,
    }
}

/// Returns whether a path is a folder, a link to a folder, or a dangling link.
#[must_use]
pub fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| is_folder_of(metadata.file_type(), path))
}

pub(super) fn is_folder_of(kind: fs::FileType, path: &Path) -> bool {
    match kind.is_symlink() {
        true => fs::metadata(path).map_or(true, |metadata| metadata.is_dir()),
        false => kind.is_dir(),
    }
}
