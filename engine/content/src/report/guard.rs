//! Turns a panic during work for one tenant or theme into a diagnostic of that tenant or theme.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{Code, Diagnostic};

/// Runs one step of the work for `name`. A panic becomes a [`Code::ProgramFailed`] in `file`; the log has its message.
///
/// # Errors
/// If the work panics. State that the work was changing must then be discarded.
pub fn guard<T>(
    step: &str,
    name: &str,
    file: &str,
    work: impl FnOnce() -> T,
) -> Result<T, Diagnostic> {
    let work = || {
        inject(step, name);
        work()
    };
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| {
        let message =
            format!("internal error in the step `{step}` for `{name}`; see the log for the cause");
        Diagnostic::error(Code::ProgramFailed, file, message)
            .hint("undo the last change, and report the failure together with the folder")
    })
}

/// Injects a failure, for tests. Does nothing in release builds.
///
/// `ROWHOUSE_FAULTS` names a file of failures. The line `step:name` causes a panic, the line `step:name:sleep` a pause of one minute.
#[cfg(debug_assertions)]
pub fn inject(step: &str, name: &str) {
    let Some(file) = std::env::var_os("ROWHOUSE_FAULTS") else {
        return;
    };
    let faults = std::fs::read_to_string(file).unwrap_or_default();
    let point = format!("{step}:{name}");
    assert!(
        !faults.lines().any(|line| line == point),
        "injected at {point}"
    );
    if faults.lines().any(|line| line == format!("{point}:sleep")) {
        std::thread::sleep(std::time::Duration::from_secs(60));
    }
}

/// Does nothing: release builds inject no failures.
#[cfg(not(debug_assertions))]
pub const fn inject(_: &str, _: &str) {}
