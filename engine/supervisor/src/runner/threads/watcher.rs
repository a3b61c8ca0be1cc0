//! Runs the watch over folders on its own thread, so that the reload loop opens no file.
//!
//! The thread passes changes on before it lists the changed folders. A tenant or theme with new folders is passed on again once these are watched.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::thread;
use std::time::Duration;

use tracing::error;

use crate::deployment_config::DeploymentConfig;
use crate::model::agenda::{MIN_RETRY_DELAY, ReloadScope};
use crate::runner::reload_queue::ReloadSender;
use crate::source::watch::{FolderChanges, Notice, Watch};

/// The limit on the wait for changes. The roots of the watch are checked after each wait.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Starts a thread that sends the changed scopes to `reloads`. The thread ends with the reload loop.
pub(in crate::runner) fn start(mut watch: Watch, config: DeploymentConfig, reloads: ReloadSender) {
    let run = move || {
        while reloads.is_open() {
            let step = || pass_on_next(&mut watch, &config, &reloads);
            if catch_unwind(AssertUnwindSafe(step)).is_err() {
                error!("internal error while watching the folders; reloading all folders");
                // The next step watches and reloads all folders. The watch exists, so sending cannot fail.
                let _ = watch.sender().send(Notice::Everything);
                thread::sleep(MIN_RETRY_DELAY);
            }
        }
    };
    thread::spawn(run);
}

/// Waits for changes once, and passes them on.
fn pass_on_next(watch: &mut Watch, config: &DeploymentConfig, reloads: &ReloadSender) {
    watch.begin();
    let Some(changes) = watch.next(MAX_WAIT) else {
        return;
    };
    // Sending fails if the reload loop has ended, and so does this thread.
    let pass_on = |changes: &FolderChanges| {
        for scope in scopes(config, changes) {
            let _ = reloads.request(scope);
        }
    };
    pass_on(&changes);
    pass_on(&watch.refresh(&changes));
}

/// Returns the parts of the content that `changes` affect.
fn scopes(config: &DeploymentConfig, changes: &FolderChanges) -> Vec<ReloadScope> {
    let roots: Vec<&Path> = std::iter::once(config.tenants.as_path())
        .chain(config.themes.as_deref())
        .collect();
    if changes.affects_all || changes.has_outside_paths(&roots) {
        return vec![ReloadScope::Everything];
    }
    let themes = config.themes.as_deref();
    let is_theme = |themes| changes.below(themes).is_none_or(|names| !names.is_empty());
    let themes = themes.is_some_and(is_theme).then_some(ReloadScope::Themes);
    let tenants = match changes.below(&config.tenants) {
        None => vec![ReloadScope::Everything],
        Some(names) => names.into_iter().map(ReloadScope::Tenant).collect(),
    };
    themes.into_iter().chain(tenants).collect()
}
