//! How much memory there is.

use std::fs;
use std::path::Path;

/// What is taken where nothing can be found out.
const UNKNOWN: usize = 1 << 30;

/// The memory that the program takes beside tenants and work in progress, in bytes.
const PROGRAM: usize = 96 << 20;

/// The limits on the memory of work in progress, in bytes. Reading a tenant that is at its own limits takes no more than the first.
const WORK: (usize, usize) = (192 << 20, 1 << 30);

/// The memory for work in progress (reading, rendering) beside `memory` bytes for tenants: half as much, within [`WORK`], and what the machine or the cgroup leaves.
pub(super) fn for_work(memory: usize) -> u64 {
    let left = total_memory().saturating_sub(memory + PROGRAM);
    let bytes = work(memory, left);
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

fn work(memory: usize, left: usize) -> usize {
    let (least, most) = WORK;
    (memory / 2).clamp(least, most).min(left.max(PROGRAM / 2))
}

/// Half of the memory of the machine, or of what a cgroup leaves of it (cgroup v2, `memory.max`), in bytes.
pub(super) fn half() -> usize {
    total_memory() / 2
}

fn total_memory() -> usize {
    let group = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let allowed = limits(&group, Path::new("/sys/fs/cgroup"));
    let machine = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let all = allowed.into_iter().chain(total(&machine)).min();
    all.unwrap_or(UNKNOWN)
}

/// What a process's cgroup and those above it may use: `0::/system.slice/rowhouse.service`.
fn limits(group: &str, root: &Path) -> Vec<usize> {
    let Some(path) = group.lines().find_map(|line| line.strip_prefix("0::/")) else {
        return Vec::new();
    };
    let folders = Path::new(path).ancestors();
    folders
        .filter_map(|folder| {
            let text = fs::read_to_string(root.join(folder).join("memory.max")).ok()?;
            text.trim().parse().ok()
        })
        .collect()
}

/// `MemTotal` of `/proc/meminfo`.
fn total(machine: &str) -> Option<usize> {
    let line = machine
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_all_limits_counts() {
        let root = tempfile::tempdir().expect("a folder");
        let inner = root.path().join("a.slice/b.service");
        fs::create_dir_all(&inner).expect("a folder");
        fs::write(inner.join("memory.max"), "max\n").expect("a file");
        fs::write(root.path().join("a.slice/memory.max"), "1000\n").expect("a file");
        assert_eq!(limits("0::/a.slice/b.service\n", root.path()), [1000]);
        assert!(limits("0::/elsewhere\n", root.path()).is_empty());
        assert!(limits("", root.path()).is_empty());
        assert_eq!(total("MemFree: 1 kB\nMemTotal:       2 kB\n"), Some(2048));
        assert!(half() > 1 << 20);
    }

    #[test]
    fn work_in_progress_stays_below_what_tenants_and_the_limit_of_the_cgroup_leave() {
        const MIB: usize = 1 << 20;
        assert_eq!(work(256 * MIB, 8192 * MIB), 192 * MIB);
        assert_eq!(work(1024 * MIB, 8192 * MIB), 512 * MIB);
        assert_eq!(work(12_288 * MIB, 12_000 * MIB), 1024 * MIB);
        assert_eq!(work(512 * MIB, 160 * MIB), 160 * MIB);
        assert_eq!(work(128 * MIB, 0), 48 * MIB, "a little is always there");
    }
}
