//! Opens what lies beneath a folder, and nothing else, whatever links say and whoever exchanges files meanwhile.
//!
//! Each step of a path is opened by itself, from the handle of the folder before it, and without following links; where a link stands, its text takes the place of the step.
//! So nothing that is exchanged between two steps leads out. `openat2` of Linux does the same in one call, but refuses every absolute link, and would need all of this beside it for older kernels, for sandboxes that forbid it, and for other systems.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags, openat, readlinkat};
use rustix::io::Errno;

/// So many links one path may have, as on Linux (`path_resolution(7)`).
const LINKS: usize = 40;

/// Without waiting for who writes into a pipe.
const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOCTTY);

/// On the way to something else. `PATH` asks for no right to list the folder, and tells no watcher of it.
#[cfg(any(target_os = "linux", target_os = "android"))]
const PASS: OFlags = READ.union(OFlags::DIRECTORY).union(OFlags::PATH);
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const PASS: OFlags = READ.union(OFlags::DIRECTORY);

/// A folder that is open.
#[derive(Debug)]
pub(super) struct Beneath {
    root: File,
    /// The folder's own path and the one that it was given: absolute links may begin with either.
    names: [PathBuf; 2],
}

/// Why something beneath a folder cannot be opened.
#[derive(Debug)]
pub(super) enum Refused {
    /// A link leads out of the folder: its text.
    Foreign(PathBuf),
    /// The system's reason.
    System(io::Error),
}

impl From<Errno> for Refused {
    fn from(error: Errno) -> Self {
        Self::System(error.into())
    }
}

impl Beneath {
    /// Opens the folder itself, whose links are followed wherever they lead: `resolved` is its own path.
    pub(super) fn new(directory: &Path, resolved: PathBuf) -> io::Result<Self> {
        let root = openat(
            rustix::fs::CWD,
            &resolved,
            READ.union(OFlags::DIRECTORY),
            Mode::empty(),
        )?;
        Ok(Self {
            root: root.into(),
            names: [resolved, std::path::absolute(directory)?],
        })
    }

    /// Its own path.
    pub(super) fn path(&self) -> &Path {
        &self.names[0]
    }

    /// Opens a file or folder for reading. The handle may be of anything that has a name: a pipe or a device, too.
    pub(super) fn open(&self, path: &Path) -> Result<File, Refused> {
        let mut rest = steps(path);
        let mut passed: Vec<File> = Vec::new();
        let mut links = 0;
        let mut target = path.to_owned();
        while let Some(step) = rest.pop() {
            if step == ".." {
                let left = passed.pop();
                left.ok_or_else(|| Refused::Foreign(target.clone()))?;
                continue;
            }
            let here = passed.last().unwrap_or(&self.root);
            let is_last = rest.is_empty();
            let flags = if is_last { READ } else { PASS };
            let error = match openat(here, &step, flags, Mode::empty()) {
                Ok(opened) if is_last => return Ok(opened.into()),
                Ok(opened) => {
                    passed.push(opened.into());
                    continue;
                }
                Err(error) => error,
            };
            // Systems do not agree on what they say of a link; that it is none is said by all.
            let Ok(text) = readlinkat(here, &step, Vec::new()) else {
                return Err(error.into());
            };
            links += 1;
            if links > LINKS {
                return Err(Errno::LOOP.into());
            }
            target = PathBuf::from(OsString::from_vec(text.into_bytes()));
            if target.is_absolute() {
                let mut names = self.names.iter();
                let within = names.find_map(|name| target.strip_prefix(name).ok());
                rest.extend(steps(
                    within.ok_or_else(|| Refused::Foreign(target.clone()))?,
                ));
                passed.clear();
            } else {
                rest.extend(steps(&target));
            }
        }
        // The path is the folder itself, or ends where a link leads back: what is open there served only to pass.
        let here = passed.last().unwrap_or(&self.root);
        let flags = READ.union(OFlags::DIRECTORY);
        Ok(openat(here, ".", flags, Mode::empty())?.into())
    }
}

/// The steps of a path, the last one first.
fn steps(path: &Path) -> Vec<OsString> {
    path.components()
        .rev()
        .filter(|component| matches!(component, Component::Normal(_) | Component::ParentDir))
        .map(|component| component.as_os_str().to_owned())
        .collect()
}
