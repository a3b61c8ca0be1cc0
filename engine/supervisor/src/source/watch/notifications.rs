//! Turns notifications of the system into notices, and recognises its limits.

use std::io;

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{ErrorKind, Event, EventKind};

use crate::source::watch::{Notice, NoticeSender, OpenFiles, WatchDropped};

/// Returns the handler of notifications, which sends notices to the mailbox, and notes open files.
pub(super) fn notify_of_changes(
    sender: NoticeSender,
    open: OpenFiles,
) -> impl Fn(notify::Result<Event>) + Send + 'static {
    move |event| {
        // A send fails only after the watch was dropped, which drops this handler, too.
        let _ = match event {
            Ok(event) if event.need_rescan() => everything(&sender, &open),
            Ok(event) => notify_of(event, &sender, &open),
            Err(_) => everything(&sender, &open),
        };
    }
}

fn everything(sender: &NoticeSender, open: &OpenFiles) -> Result<(), WatchDropped> {
    open.clear();
    sender.send(Notice::Everything)
}

fn notify_of(event: Event, sender: &NoticeSender, open: &OpenFiles) -> Result<(), WatchDropped> {
    let is_notice = |path: &std::path::PathBuf| match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => open.close(path),
        EventKind::Access(_) => false,
        EventKind::Modify(ModifyKind::Data(_)) => {
            open.open(path);
            true
        }
        EventKind::Modify(ModifyKind::Name(_)) | EventKind::Remove(_) => {
            open.close(path);
            true
        }
        _ => true,
    };
    let mut paths = event.paths.into_iter().filter(is_notice);
    paths.try_for_each(|path| sender.send(Notice::Path(path)))
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
