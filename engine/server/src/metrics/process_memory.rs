//! The memory of the process, and the limit above which the system ends it.
//!
//! **Invariant:** reads only `/proc/self/status`, and only on request.

use std::fs;

/// The sources of the memory figures of the process.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessMemory {
    /// The memory limit of the cgroup, or else the memory of the machine, in bytes.
    pub limit: Option<u64>,
    /// Returns the bytes that the program has allocated; `None` if the allocator does not count them.
    pub allocated: Option<fn() -> Option<u64>>,
}

/// The share of the limit above which memory use is an alarm, in percent. The alert `RowhouseMemoryNearLimit` has the same share.
const MAX_PERCENT: u64 = 85;

/// The memory of the process at one moment, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// The memory that the process has from the system: its resident set.
    pub resident: u64,
    /// The memory that the program has allocated, if the allocator counts it. The rest of the resident set is freed memory, and the program itself.
    pub allocated: Option<u64>,
    /// The limit of the cgroup, or else the memory of the machine.
    pub limit: Option<u64>,
}

impl ProcessMemory {
    /// Returns the current memory of the process; `None` where the system does not say it.
    #[must_use]
    pub fn read(&self) -> Option<MemoryUse> {
        let status = fs::read_to_string("/proc/self/status").ok()?;
        Some(MemoryUse {
            resident: resident(&status)?,
            allocated: self.allocated.and_then(|allocated| allocated()),
            limit: self.limit,
        })
    }
}

impl MemoryUse {
    /// Returns the share of the limit in percent; `None` without a limit.
    #[must_use]
    pub fn percent(&self) -> Option<u64> {
        let limit = self.limit.filter(|limit| *limit > 0)?;
        Some(self.resident.saturating_mul(100) / limit)
    }

    /// Returns whether so little memory is left that the system may soon end the process.
    #[must_use]
    pub fn is_near_limit(&self) -> bool {
        self.percent().is_some_and(|percent| percent > MAX_PERCENT)
    }
}

/// Returns `VmRSS` of the text of `/proc/self/status`, in bytes.
fn resident(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_set_is_read_in_bytes() {
        let status = "Name:\trowhouse\nVmHWM:\t  9 kB\nVmRSS:\t    2048 kB\nRssAnon:\t 1 kB\n";
        assert_eq!(resident(status), Some(2 << 20));
        assert_eq!(resident("Name:\trowhouse\n"), None);
        let now = ProcessMemory::default().read();
        assert!(now.is_none_or(|now| now.resident > 1 << 20), "{now:?}");
    }

    #[test]
    fn memory_is_near_limit_above_its_share() {
        let used = |resident, limit| MemoryUse {
            resident,
            allocated: None,
            limit,
        };
        assert!(!used(850, Some(1000)).is_near_limit());
        assert!(used(860, Some(1000)).is_near_limit());
        assert!(!used(u64::MAX, None).is_near_limit());
        assert_eq!(used(5, Some(0)).percent(), None);
    }
}
