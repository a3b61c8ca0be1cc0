//! How many connections fit into what the system lets the program open.
//!
//! Every connection takes a descriptor, and so do folders that are read, event loops and the admin listener. Visitors get what these leave, so that however many come, changes are still noticed and operators still answered.
//!
//! **Invariant:** opens nothing.

use std::num::NonZeroUsize;

use rlimit::{Resource, getrlimit, increase_nofile_limit};
use tracing::warn;

/// Descriptors that the program needs itself: 64 of the admin listener, and files and folders that are read at the same time.
const PROCESS_DESCRIPTORS: u64 = 256;
/// Those of an event loop: the system's queue, its wake-up and its signals.
const DESCRIPTORS_PER_WORKER: u64 = 4;

/// How many of `wanted` connections may be open at once. Raises the soft limit of descriptors (`RLIMIT_NOFILE`, see setrlimit(2)) to the hard one first, and warns where that does not suffice.
#[must_use]
pub fn connections_that_fit(wanted: usize, workers: NonZeroUsize) -> usize {
    // A sandbox may forbid to raise the limit, or to ask for it.
    let limit = increase_nofile_limit(u64::MAX)
        .or_else(|_| getrlimit(Resource::NOFILE).map(|(soft, _)| soft));
    let Ok(limit) = limit else {
        return wanted;
    };
    let own = own(workers);
    let fitting = fitting(wanted, limit, own);
    if fitting < wanted {
        let needed = own.saturating_add(u64::try_from(wanted).unwrap_or(u64::MAX));
        warn!(
            open_files = limit,
            connections = fitting,
            "the system allows too few open files for `--max-connections {wanted}`: set `LimitNOFILE={needed}` in the systemd unit, or `ulimit -n {needed}` before the start"
        );
    }
    fitting
}

fn own(workers: NonZeroUsize) -> u64 {
    let workers = u64::try_from(workers.get()).unwrap_or(u64::MAX);
    PROCESS_DESCRIPTORS.saturating_add(workers.saturating_mul(DESCRIPTORS_PER_WORKER))
}

/// At least one, or nobody is served at all.
fn fitting(wanted: usize, limit: u64, own: u64) -> usize {
    let left = usize::try_from(limit.saturating_sub(own)).unwrap_or(usize::MAX);
    wanted.min(left.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visitors_get_what_the_program_leaves() {
        assert_eq!(fitting(4096, u64::MAX, 264), 4096);
        assert_eq!(fitting(4096, 4360, 264), 4096);
        assert_eq!(fitting(4096, 4359, 264), 4095);
        assert_eq!(fitting(4096, 1024, 264), 760);
        assert_eq!(fitting(4096, 64, 264), 1);
        assert_eq!(own(NonZeroUsize::MIN), 260);
    }
}
