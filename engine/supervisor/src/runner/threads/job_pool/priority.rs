//! The priorities of threads. On Linux each thread has its own (`setpriority(2)`); on other systems nothing changes.

/// Identifies a thread of this process to the system.
#[cfg(target_os = "linux")]
pub(crate) type ThreadId = rustix::thread::Pid;

/// Identifies no thread, because priorities are not supported.
#[cfg(not(target_os = "linux"))]
pub(crate) type ThreadId = ();

/// A priority below that of normal threads, by niceness.
#[derive(Debug, Clone, Copy)]
#[repr(i32)]
pub(crate) enum Priority {
    /// The priority of work that no request waits for.
    Background = 10,
    /// The priority of slow jobs, which may never end.
    Slow = 15,
}

/// Returns the identity of this thread.
#[cfg(target_os = "linux")]
pub(crate) fn current_thread() -> ThreadId {
    rustix::thread::gettid()
}

/// Returns the identity of this thread.
#[cfg(not(target_os = "linux"))]
pub(crate) const fn current_thread() -> ThreadId {}

/// Lowers the priority of a thread, if the system supports that.
#[cfg(target_os = "linux")]
pub(crate) fn lower_priority(thread: ThreadId, priority: Priority) {
    // An error is ignored, because the priority does not affect the result.
    let _ = rustix::process::setpriority_process(Some(thread), priority as i32);
}

/// Lowers the priority of a thread, if the system supports that.
#[cfg(not(target_os = "linux"))]
pub(crate) const fn lower_priority(_: ThreadId, _: Priority) {}
