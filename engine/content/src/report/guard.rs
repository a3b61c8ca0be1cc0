//! Work that may fail in ways nobody thought of, on behalf of one tenant or theme: a panic becomes its error.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{Code, Diagnostic};

/// Runs one step of the work for `name`. A panic in it becomes a [`Code::ProgramFailed`] in `file`; what the panic said is in the log.
///
/// # Errors
/// When the work panics. What it was changing must be given up or made anew.
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
        let message = format!(
            "the program itself failed at the step `{step}` for `{name}`; the log says where"
        );
        Diagnostic::error(Code::ProgramFailed, file, message)
            .hint("take back the last change, and report it with the folder that shows it")
    })
}

/// A failure on demand, for tests: panics where the file that `ROWHOUSE_FAULTS` names has the line `step:name`, and sleeps for a minute at `step:name:sleep`. Release builds have nothing of this.
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

/// Nothing, in a release build.
#[cfg(not(debug_assertions))]
pub const fn inject(_: &str, _: &str) {}
