//! The progress of `publish`, in the last line of a terminal.
//!
//! **Invariant:** without a terminal it prints nothing.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The time between two updates.
const UPDATE_INTERVAL: Duration = Duration::from_millis(200);

/// A bar that disappears when it is dropped.
#[derive(Debug)]
pub(super) struct WorkBar(ProgressBar);

impl WorkBar {
    /// Shows work whose length is not known.
    pub(super) fn unlimited(message: &'static str, is_shown: bool) -> Self {
        let bar = Self::new(None, "  {spinner} {msg}", is_shown);
        bar.0.set_message(message);
        bar
    }

    /// Shows the number of published names.
    pub(super) fn steps(all: usize, is_shown: bool) -> Self {
        let all = u64::try_from(all).unwrap_or(u64::MAX);
        let template = "  publishing {human_pos} of {human_len} {wide_bar:.green/dim} {msg}";
        Self::new(Some(all), template, is_shown)
    }

    fn new(all: Option<u64>, template: &str, is_shown: bool) -> Self {
        let target = match is_shown {
            // Hidden if stderr is not a terminal.
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let style = ProgressStyle::with_template(template);
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::with_draw_target(all, target);
        bar.set_style(style.progress_chars("━━─"));
        bar.enable_steady_tick(UPDATE_INTERVAL);
        Self(bar)
    }

    /// Shows the name that is published now.
    pub(super) fn begin(&self, name: &str) {
        self.0.set_message(name.to_owned());
    }

    /// Counts a published name.
    pub(super) fn end(&self) {
        self.0.inc(1);
    }

    /// Prints lines above the bar.
    pub(super) fn above(&self, print: impl FnOnce()) {
        self.0.suspend(print);
    }
}

impl Drop for WorkBar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
