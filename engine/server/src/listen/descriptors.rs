//! Fits the connection limit into the limit on open file descriptors.
//!
//! Connections, folders that are read, event loops and the admin listener all take descriptors. The connection limit leaves enough descriptors for everything else. So reloads and the admin listener work with any number of visitors.
//!
//! **Invariant:** opens no file.

use std::num::NonZeroUsize;

use rlimit::{Resource, getrlimit, increase_nofile_limit};
use tracing::warn;

/// Descriptors reserved for the process: 64 for the admin listener, and the rest for files and folders that are read at the same time.
const RESERVED_DESCRIPTORS: u64 = 256;
/// Descriptors of an event loop: epoll, wake-up and signals.
const DESCRIPTORS_PER_WORKER: u64 = 4;

/// Returns how many of `wanted` connections may be open at once.
///
/// Raises the soft limit on descriptors (`RLIMIT_NOFILE`, see setrlimit(2)) to the hard limit first. Logs a warning if the limit is still too low.
#[must_use]
pub fn connections_that_fit(wanted: usize, workers: NonZeroUsize) -> usize {
    // A sandbox may forbid raising the limit, or reading it.
    let limit = increase_nofile_limit(u64::MAX)
        .or_else(|_| getrlimit(Resource::NOFILE).map(|(soft, _)| soft));
    let Ok(limit) = limit else {
        return wanted;
    };
    let reserved = reserved(workers);
    let fitting = fitting_connections(wanted, limit, reserved);
    if fitting < wanted {
        let needed = reserved.saturating_add(u64::try_from(wanted).unwrap_or(u64::MAX));
        warn!(
            open_files = limit,
            connections = fitting,
            "too few open files are allowed for `--max-connections {wanted}`; serving fewer connections; set `LimitNOFILE={needed}` in the systemd unit, or `ulimit -n {needed}` before startup"
        );
    }
    fitting
}

fn reserved(workers: NonZeroUsize) -> u64 {
    let workers = u64::try_from(workers.get()).unwrap_or(u64::MAX);
    RESERVED_DESCRIPTORS.saturating_add(workers.saturating_mul(DESCRIPTORS_PER_WORKER))
}

/// Returns the connections that fit into `limit`, at least one.
fn fitting_connections(wanted: usize, limit: u64, reserved: u64) -> usize {
    let left = usize::try_from(limit.saturating_sub(reserved)).unwrap_or(usize::MAX);
    wanted.min(left.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_fit_into_the_descriptors_that_the_process_leaves() {
        assert_eq!(fitting_connections(4096, u64::MAX, 264), 4096);
        assert_eq!(fitting_connections(4096, 4360, 264), 4096);
        assert_eq!(fitting_connections(4096, 4359, 264), 4095);
        assert_eq!(fitting_connections(4096, 1024, 264), 760);
        assert_eq!(fitting_connections(4096, 64, 264), 1);
        assert_eq!(reserved(NonZeroUsize::MIN), 260);
    }
}
