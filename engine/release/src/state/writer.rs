//! The thread that writes entries, so that nobody else waits for the disk.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::mpsc::{Receiver, Sender};
use std::thread;

use tracing::warn;

use super::stamp::stamp;

/// How the name of a file ends that is not whole yet.
pub(super) const HALF: &str = "half";

/// Something for the writing thread to do.
pub(super) enum WriterJob {
    Write(String, Make),
    Remove(String),
    /// Says when everything before it is done.
    Done(Sender<()>),
}

/// Makes an entry's bytes, on the writing thread.
pub(super) type Make = Box<dyn FnOnce() -> Vec<u8> + Send>;

/// Begins to write into `folder`.
pub(super) fn start(folder: PathBuf, jobs: Receiver<WriterJob>) {
    thread::spawn(move || {
        let mut failed = false;
        while let Ok(first) = jobs.recv() {
            let mut last: BTreeMap<String, Option<Make>> = BTreeMap::new();
            let mut waiting = Vec::new();
            for job in std::iter::once(first).chain(jobs.try_iter()) {
                match job {
                    WriterJob::Write(name, make) => {
                        last.insert(name, Some(make));
                    }
                    WriterJob::Remove(name) => {
                        last.insert(name, None);
                    }
                    WriterJob::Done(done) => waiting.push(done),
                }
            }
            for (name, make) in last {
                let done = match make {
                    Some(make) => write(&folder, &name, &make()),
                    None => remove(&folder.join(name)),
                };
                // Said once: a full disk would fill the log, too.
                if let Err(error) = &done
                    && !failed
                {
                    warn!(folder = %folder.display(), %error, "nothing more is kept for the next start until this works again");
                }
                failed = done.is_err();
            }
            for done in waiting {
                // Who asked may be gone.
                let _ = done.send(());
            }
        }
    });
}

fn write(folder: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    // The process's number keeps two that share the folder apart.
    let half = folder.join(format!("{name}.{}.{HALF}", process::id()));
    // One after the other: an entry may be large, and needs no second copy in memory.
    let written = fs::File::create(&half).and_then(|mut file| {
        file.write_all(stamp(content).as_bytes())?;
        file.write_all(content)?;
        fs::rename(&half, folder.join(name))
    });
    if written.is_err() {
        let _ = fs::remove_file(&half);
    }
    written
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
