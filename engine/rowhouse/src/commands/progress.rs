//! A progress bar of the render queue, in the last line of a terminal.
//!
//! **Invariant:** without a terminal it prints nothing; the log and the metrics have the same facts.

use std::io::{self, Write};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use server::admin::status::{Availability, StatusBoard};

/// The delay before the bar appears. Shorter work needs no bar.
const BAR_DELAY: Duration = Duration::from_millis(800);
/// The time between two updates of the bar.
const UPDATE_INTERVAL: Duration = Duration::from_millis(200);

/// All bars. The log is written above them.
static BARS: LazyLock<MultiProgress> =
    LazyLock::new(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr()));

/// A writer to stderr that keeps the bars below the written lines.
#[derive(Debug)]
pub(super) struct BarWriter;

impl Write for BarWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        BARS.suspend(|| io::stderr().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Shows the number of rendered tenants until all are rendered. The bar has its own thread, since a paused terminal (Ctrl-S) blocks writes.
pub(super) fn show(board: Arc<StatusBoard>) {
    thread::spawn(move || {
        thread::sleep(BAR_DELAY);
        let mut bar: Option<ProgressBar> = None;
        loop {
            let (done, all) = rendered(&board);
            if done == all {
                break;
            }
            bar.get_or_insert_with(|| BARS.add(ProgressBar::new(all).with_style(style())))
                .update(|state| {
                    state.set_len(all);
                    state.set_pos(done);
                });
            thread::sleep(UPDATE_INTERVAL);
        }
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
    });
}

/// Returns the number of tenants that are not pending, and the number of all tenants.
fn rendered(board: &StatusBoard) -> (u64, u64) {
    let status = board.current();
    let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let tenants = status.tenants();
    let pending = tenants.filter(|tenant| tenant.state == Availability::Pending);
    let all = count(status.tenants.len());
    (all - count(pending.count()), all)
}

fn style() -> ProgressStyle {
    let template = "  rendering {human_pos} of {human_len} sites {wide_bar:.green/dim}";
    ProgressStyle::with_template(template)
        .map(|style| style.progress_chars("━━─"))
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use server::admin::status::{DeploymentStatus, TenantStatus, by_id};

    use super::*;

    fn tenant(id: &str, state: Availability) -> TenantStatus {
        TenantStatus {
            id: id.into(),
            state,
            since: SystemTime::now(),
            pages: 0,
            hosts: Arc::default(),
            compiled_in: Duration::ZERO,
            is_in_flight: false,
            errors: Vec::new(),
            pinned: None,
            unreadable_pin: None,
            receiving: Vec::new(),
            preview: None,
        }
    }

    #[test]
    fn all_states_but_pending_count_as_rendered() {
        let board = StatusBoard::default();
        board.replace(DeploymentStatus {
            tenants: by_id(Availability::ALL.map(|state| tenant(state.name(), state))),
            ..DeploymentStatus::default()
        });
        assert_eq!(rendered(&board), (6, 7));
    }
}
