//! Turns notifications of the system into notices, and recognises its limits.

use std::io;

use notify::{ErrorKind, Event, EventKind};

use crate::source::watch::{Notice, NoticeSender};

/// Returns the handler of notifications, which sends notices to the mailbox.
pub(super) fn notify_of_changes(
    sender: NoticeSender,
) -> impl Fn(notify::Result<Event>) + Send + 'static {
    move |event| {
        // A send fails only after the watch was dropped, which drops this handler, too.
        let _ = match event {
            Ok(event) if matches!(event.kind, EventKind::Access(_)) => Ok(()),
            Ok(event) if event.need_rescan() => sender.send(Notice::Everything),
            Ok(event) => event
                .paths
                .into_iter()
                .try_for_each(|path| sender.send(Notice::Path(path))),
            Err(_) => sender.send(Notice::Everything),
        };
    }
}

/// Returns whether the system has no more watches (`ENOSPC`) or file descriptors (`EMFILE`).
pub(super) fn is_limit(error: &notify::Error) -> bool {
    match &error.kind {
        ErrorKind::MaxFilesWatch => true,
        ErrorKind::Io(error) => {
            matches!(
                error.kind(),
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
            ) || error.raw_os_error() == Some(EMFILE)
        }
        _ => false,
    }
}

/// The error number for too many open file descriptors (POSIX `errno.h`), which is 24 on all supported systems.
const EMFILE: i32 = 24;
