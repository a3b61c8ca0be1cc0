//! The signals that `serve` handles, in one list for the manual.

/// Every signal with its effect on `serve`, and the exit code as a shell reports it; `None` if the process keeps running.
pub(crate) const SIGNALS: [(&str, &str, Option<u8>); 5] = [
    (
        "`SIGHUP`",
        "reads all folders again, and serves the changed tenants",
        None,
    ),
    (
        "`SIGTERM`, `SIGINT`",
        "accepts no new connections, finishes the requests in flight within `--grace`, and writes the state",
        Some(0),
    ),
    (
        "a second `SIGTERM` or `SIGINT`",
        "ends the process at once; the state may lack the newest releases",
        Some(2),
    ),
    (
        "`SIGQUIT`",
        "ends the process at once, with a core dump if the system allows one",
        Some(131),
    ),
    (
        "`SIGKILL`",
        "ends the process at once; the state stays readable, and confirmed commands stay in effect",
        Some(137),
    ),
];
