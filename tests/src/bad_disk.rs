//! A folder on a bad disk, for one program only: a mount in its own namespace.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::skip;

/// Copies a folder onto a small disk in memory, makes that disk bad, mounts it over the folder, and starts the program. All steps have the same process id.
const BEGIN: &str = r#"
set -e
harm=$1 folder=$2
shift 2
disk=$(mktemp -d "$folder.XXXXXX")
mount -t tmpfs -o size=64m tmpfs "$disk"
cp -a "$folder/." "$disk"
[ "$harm" != full ] || cat /dev/zero >"$disk/filler" 2>/dev/null || true
mount --bind "$disk" "$folder"
[ "$harm" != read-only ] || mount -o remount,bind,ro "$folder"
exec "$@"
"#;

/// A folder that is on a bad disk for programs started by [`BadDisk::command`].
#[derive(Debug)]
pub struct BadDisk {
    harm: &'static str,
    folder: PathBuf,
    /// The command that gives a program its own mounts on this machine.
    namespace: &'static [&'static str],
}

impl BadDisk {
    /// Makes a disk without a free byte, which can be read. Returns `None` if the machine allows no mounts.
    #[must_use]
    pub fn full(folder: &Path) -> Option<Self> {
        Self::new("full", folder)
    }

    /// Makes a read-only disk. Returns `None` if the machine allows no mounts.
    #[must_use]
    pub fn read_only(folder: &Path) -> Option<Self> {
        Self::new("read-only", folder)
    }

    fn new(harm: &'static str, folder: &Path) -> Option<Self> {
        let is_root = rustix::process::geteuid().is_root();
        let namespace: &[&str] = match is_root {
            true => &["--mount"],
            false => &["--user", "--map-root-user", "--mount"],
        };
        let tried = Command::new("unshare")
            .args(namespace)
            .args(["mount", "-t", "tmpfs", "tmpfs"])
            .arg(folder)
            .output();
        if !tried.is_ok_and(|tried| tried.status.success()) {
            skip(
                "`unshare` and `mount` give a program no disk of its own here",
                is_root,
            );
            return None;
        }
        Some(Self {
            harm,
            folder: folder.to_owned(),
            namespace,
        })
    }

    /// Returns a command for a program, to which the caller adds arguments.
    #[must_use]
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("unshare");
        command
            .args(self.namespace)
            .args(["sh", "-c", BEGIN, "sh", self.harm])
            .arg(&self.folder)
            .arg(program);
        command
    }

    /// Returns a command with the program and arguments of another command.
    #[must_use]
    pub fn command_like(&self, other: &Command) -> Command {
        let mut command = self.command(other.get_program());
        command.args(other.get_args());
        command
    }

    /// Returns the folder as the process sees it, for other processes.
    #[must_use]
    pub fn path_for_process(&self, process: u32) -> PathBuf {
        let mut path = OsString::from(format!("/proc/{process}/root"));
        path.push(&self.folder);
        path.into()
    }

    /// Frees space on a full disk.
    pub fn free_space(&self, process: u32) {
        std::fs::remove_file(self.path_for_process(process).join("filler")).expect("room");
    }
}
