//! How much memory there is.

use std::fs;
use std::path::Path;

/// What is taken where nothing can be found out.
const UNKNOWN: usize = 1 << 30;

/// Half of the memory of the machine, or of what a control group leaves of it (cgroup v2, `memory.max`), in bytes.
pub(super) fn half() -> usize {
    let group = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let allowed = limits(&group, Path::new("/sys/fs/cgroup"));
    let machine = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let all = allowed.into_iter().chain(total(&machine)).min();
    all.unwrap_or(UNKNOWN) / 2
}

/// What a process's control group and those above it may use: `0::/system.slice/rowhouse.service`.
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
}
