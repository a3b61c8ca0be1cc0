//! Random histories. Each seed determines the steps of one history.

use fastrand::Rng;

use crate::simulation::state::Upload;

pub(super) const TENANTS: [&str; 3] = ["corner", "harbour", "mill"];

/// The number of steps of one history.
const STEPS: usize = 200;

/// One step of a history: an event outside the world.
#[derive(Debug, Clone, Copy)]
pub(super) enum HistoryStep {
    /// An author saves a page.
    Save { tenant: usize, is_valid: bool },
    /// A file is being uploaded, or its upload ends (`None`).
    Upload {
        tenant: usize,
        upload: Option<Upload>,
    },
    /// A folder is removed, or added again if it is missing.
    Remove(usize),
    /// A file becomes unreadable, or readable again.
    Lock(usize),
    /// The theme changes, or is removed (`false`).
    Theme(bool),
    /// The deployment or the addresses change.
    Deployment,
    /// A job ends.
    Finish(usize),
    /// A job ends without a result.
    Fail(usize),
    /// A job reports its result twice.
    Repeat(usize),
    /// A call of a job to the file system does not return.
    Stall(usize),
    /// The event loop panics. Results that it was handling and jobs that it was handing over are lost.
    Panic(usize),
    /// Time passes, in milliseconds.
    Wait(u64),
    /// A visitor requests a page.
    Request(usize),
    /// The memory of pages is measured, with room for this many tenants.
    Measure(usize),
    /// An operator rolls a tenant back.
    RollBack { tenant: usize, release: u64 },
    /// An operator resumes a tenant.
    Resume(usize),
    /// An operator restores a removed tenant.
    Restore(usize),
    /// The store becomes writable, or read-only.
    Disk(bool),
    /// The process is restarted.
    Restart,
}

/// The source of the steps.
struct StepSource(Rng);

impl StepSource {
    fn below(&mut self, limit: usize) -> usize {
        self.0.usize(..limit)
    }

    fn step(&mut self) -> HistoryStep {
        let tenant = self.below(TENANTS.len());
        match self.below(44) {
            0..=4 => HistoryStep::Save {
                tenant,
                is_valid: self.below(4) > 0,
            },
            5 => HistoryStep::Remove(tenant),
            6 => HistoryStep::Lock(tenant),
            7 => HistoryStep::Theme(self.below(3) > 0),
            8 => HistoryStep::Deployment,
            9..=19 => HistoryStep::Finish(self.below(8)),
            20 => HistoryStep::Fail(self.below(8)),
            21 => HistoryStep::Repeat(self.below(8)),
            22 => HistoryStep::Stall(self.below(8)),
            23 => HistoryStep::Panic(self.below(8)),
            24..=29 => HistoryStep::Wait([1, 20, 100, 400, 3_000][self.below(5)]),
            30..=32 => HistoryStep::Request(tenant),
            33..=34 => HistoryStep::Measure(self.below(4)),
            35 => HistoryStep::RollBack {
                tenant,
                release: 1 + self.below(3) as u64,
            },
            36 => HistoryStep::Resume(tenant),
            37 => HistoryStep::Disk(self.below(3) > 0),
            38 if self.below(3) == 0 => HistoryStep::Restart,
            39 => HistoryStep::Remove(tenant),
            40 => HistoryStep::Restore(tenant),
            41..=42 => HistoryStep::Upload {
                tenant,
                upload: [Some(Upload::Growing), Some(Upload::Incomplete), None][self.below(3)],
            },
            _ => HistoryStep::Finish(0),
        }
    }
}

/// Returns the history of a seed.
pub(super) fn history(seed: u64) -> Vec<HistoryStep> {
    let mut source = StepSource(Rng::with_seed(seed));
    (0..STEPS).map(|_| source.step()).collect()
}
