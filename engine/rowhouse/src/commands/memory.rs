//! The memory of the machine and the cgroup, and the shares of it for tenants and for rendering.
//!
//! **Invariant:** reads only `/proc` and `/sys/fs/cgroup`.

use std::fs;
use std::path::Path;

use server::metrics::process_memory::ProcessMemory;

/// The memory to assume if the system does not say how much there is, in bytes.
const ASSUMED_MEMORY_BYTES: usize = 1 << 30;

/// The memory of the program itself, without tenants and rendering, in bytes.
const PROGRAM_MEMORY_BYTES: usize = 96 << 20;

/// The least and the most memory for reading and rendering, in bytes. The least is enough to read a tenant of the maximum size.
const WORK_MEMORY_BYTES: (usize, usize) = (192 << 20, 1 << 30);

/// Returns the memory for reading and rendering, in bytes, beside `memory` bytes for tenants. It is half as much, within [`WORK_MEMORY_BYTES`] and what the machine or the cgroup leaves.
pub(super) fn for_work(memory: usize) -> u64 {
    let left = total_memory().saturating_sub(memory + PROGRAM_MEMORY_BYTES);
    let bytes = work(memory, left);
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

fn work(memory: usize, left: usize) -> usize {
    let (least, most) = WORK_MEMORY_BYTES;
    (memory / 2)
        .clamp(least, most)
        .min(left.max(PROGRAM_MEMORY_BYTES / 2))
}

/// Returns half of the memory of the machine, or of the limit of its cgroup (cgroup v2, `memory.max`), in bytes.
pub(super) fn half() -> usize {
    total_memory() / 2
}

/// Returns the sources of the memory figures of this process.
pub(super) fn of_process() -> ProcessMemory {
    ProcessMemory {
        limit: known_memory().and_then(|bytes| u64::try_from(bytes).ok()),
        allocated: Some(allocated),
    }
}

/// Returns the bytes that the program has allocated.
#[cfg(feature = "jemalloc")]
fn allocated() -> Option<u64> {
    // The figures are those of the last epoch.
    tikv_jemalloc_ctl::epoch::advance().ok()?;
    let bytes = tikv_jemalloc_ctl::stats::allocated::read().ok()?;
    u64::try_from(bytes).ok()
}

/// Returns `None`: mimalloc does not count allocated bytes in release builds.
#[cfg(not(feature = "jemalloc"))]
const fn allocated() -> Option<u64> {
    None
}

fn total_memory() -> usize {
    known_memory().unwrap_or(ASSUMED_MEMORY_BYTES)
}

/// Returns the memory of the machine, or the limit of the cgroup if that is less; `None` if the system does not say it.
fn known_memory() -> Option<usize> {
    let group = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let allowed = limits(&group, Path::new("/sys/fs/cgroup"));
    let machine = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    allowed.into_iter().chain(total(&machine)).min()
}

/// Returns the memory limits of a cgroup and of those above it, in bytes. `group` is the text of `/proc/self/cgroup`: `0::/system.slice/rowhouse.service`.
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

/// Returns `MemTotal` of the text of `/proc/meminfo`, in bytes.
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
    fn limits_of_all_cgroups_above_are_found() {
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
    fn work_memory_is_half_of_the_tenants_within_its_limits() {
        const MIB: usize = 1 << 20;
        assert_eq!(work(256 * MIB, 8192 * MIB), 192 * MIB);
        assert_eq!(work(1024 * MIB, 8192 * MIB), 512 * MIB);
        assert_eq!(work(12_288 * MIB, 12_000 * MIB), 1024 * MIB);
        assert_eq!(work(512 * MIB, 160 * MIB), 160 * MIB);
        assert_eq!(work(128 * MIB, 0), 48 * MIB, "a little is always there");
    }
}
