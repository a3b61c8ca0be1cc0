//! A folder of bytes by name that outlives the process: what makes a restart fast and safe.
//!
//! Everything in it can be lost: it only saves work, or keeps what was good before. So nothing here is an error. What cannot be read is not there, what cannot be written is said once, and the process goes on without.
//!
//! - Each entry is one file, whose first line has the format's version and the digest of the rest. A file that was cut short, damaged or written by somebody else is ignored with one line in the log.
//! - Files are written beside their names and then renamed, so that a reader, in this process or in another, sees the old one or the new one.
//! - Writing happens on a thread of its own: whoever hands out bytes does not wait for the disk. Of several versions of an entry that wait, only the last is written.
//! - Each deployment has a folder of its own within the directory, so that several processes can share one.
//!
//! **Invariant:** knows nothing of what the bytes mean.

mod pack;
mod stamp;
mod writer;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use sha2::{Digest, Sha256};
use tracing::warn;

pub use self::pack::{pack, unpack};
use self::stamp::{content, hex};
use self::writer::WriterJob;

/// Deployments that nobody has started for so long are forgotten.
const FORGOTTEN: Duration = Duration::from_secs(60 * 60 * 24 * 60);

/// Files that a process left half written. A living one needs seconds.
const LEFT_BEHIND: Duration = Duration::from_secs(60 * 60);

/// The entries of one deployment.
#[derive(Debug)]
pub struct State {
    folder: PathBuf,
    writer: Sender<WriterJob>,
}

impl State {
    /// Opens the entries of the deployment that `name` tells from others; they need not be there.
    ///
    /// Removes what was left behind by processes that ended in the middle, and deployments that are long gone.
    #[must_use]
    pub fn open(directory: &Path, name: &str) -> Self {
        let folder = Self::place(directory, name);
        match fs::create_dir_all(&folder) {
            // Marks the folder as used.
            Ok(()) => drop(fs::write(folder.join("used"), name)),
            Err(error) => {
                warn!(folder = %folder.display(), %error, "nothing is kept for the next start");
            }
        }
        forget(directory, &folder);
        let (writer, jobs) = channel();
        writer::start(folder.clone(), jobs);
        Self { folder, writer }
    }

    /// Where the entries of the deployment of that name lie, whether there are any or not.
    #[must_use]
    pub fn place(directory: &Path, name: &str) -> PathBuf {
        directory.join(hex(&Sha256::digest(name)[..8]))
    }

    /// Where the entries of this deployment lie.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// An entry, when there is one and it is whole.
    #[must_use]
    pub fn read(&self, name: &str) -> Option<Bytes> {
        let path = self.folder.join(name);
        let bytes = match fs::read(&path) {
            Ok(bytes) => Bytes::from(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                warn!(file = %path.display(), %error, "an entry of the state cannot be read");
                return None;
            }
        };
        let content = content(&bytes);
        if content.is_none() {
            warn!(file = %path.display(), "an entry of the state is damaged or foreign, and ignored");
        }
        content
    }

    /// Whether an entry is there, whole or not.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.folder.join(name).is_file()
    }

    /// Whether an entry is there with just this content. Of the file only the first line is read.
    #[must_use]
    pub fn holds(&self, name: &str, content: &[u8]) -> bool {
        let stamp = stamp::stamp(content);
        let mut start = vec![0; stamp.len()];
        let read = fs::File::open(self.folder.join(name))
            .and_then(|mut file| io::Read::read_exact(&mut file, &mut start));
        read.is_ok() && start == stamp.as_bytes()
    }

    /// Writes an entry soon. `make` is called on the writing thread, unless another version comes before its turn.
    pub fn write(&self, name: String, make: impl FnOnce() -> Vec<u8> + Send + 'static) {
        // The thread ends with the process.
        let _ = self.writer.send(WriterJob::Write(name, Box::new(make)));
    }

    /// Removes an entry soon.
    pub fn remove(&self, name: String) {
        let _ = self.writer.send(WriterJob::Remove(name));
    }

    /// The names of all entries that begin with `prefix`, without it.
    #[must_use]
    pub fn names(&self, prefix: &str) -> Vec<String> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names
            .filter_map(|name| Some(name.strip_prefix(prefix)?.to_owned()))
            .collect();
        names.sort();
        names
    }

    /// Waits until everything is on the disk that was handed out before.
    pub fn finish(&self) {
        let (done, is_done) = channel();
        if self.writer.send(WriterJob::Done(done)).is_ok() {
            // An error means that the thread is gone, and nothing is left to wait for.
            let _ = is_done.recv();
        }
    }
}

/// Removes other deployments that are long gone, and half-written files of this one.
fn forget(directory: &Path, own: &Path) {
    let older = |path: &Path, than: Duration| {
        let written = fs::metadata(path).and_then(|metadata| metadata.modified());
        let age = written.map(|written| SystemTime::now().duration_since(written));
        matches!(age, Ok(Ok(age)) if age > than)
    };
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        // Only what has this mark was made here: the directory may hold other things.
        let used = path.join("used");
        if path != own && used.is_file() && older(&used, FORGOTTEN) {
            let _ = fs::remove_dir_all(&path);
        }
    }
    for entry in fs::read_dir(own).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|end| end == writer::HALF) && older(&path, LEFT_BEHIND) {
            let _ = fs::remove_file(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(directory: &Path) -> State {
        let state = State::open(directory, "here");
        state.write("one".to_owned(), || b"content".to_vec());
        state.finish();
        state
    }

    fn file(directory: &Path, name: &str) -> PathBuf {
        State::open(directory, "here").folder.join(name)
    }

    #[test]
    fn an_entry_outlives_its_process_and_stays_with_its_deployment() {
        let directory = tempfile::tempdir().expect("a folder");
        assert_eq!(written(directory.path()).read("two"), None);
        let again = State::open(directory.path(), "here");
        assert_eq!(again.read("one").as_deref(), Some(&b"content"[..]));
        assert!(again.holds("one", b"content") && !again.holds("one", b"Content"));
        assert!(!again.holds("two", b"content"));
        assert_eq!(again.names("o"), ["ne"]);
        assert_eq!(State::open(directory.path(), "there").read("one"), None);
        again.remove("one".to_owned());
        again.finish();
        assert_eq!(again.read("one"), None);
    }

    #[test]
    fn the_last_of_several_versions_is_kept() {
        let directory = tempfile::tempdir().expect("a folder");
        let state = State::open(directory.path(), "here");
        for number in 0..100_u8 {
            state.write("one".to_owned(), move || vec![number]);
        }
        state.finish();
        assert_eq!(state.read("one").as_deref(), Some(&[99][..]));
    }

    #[test]
    fn what_is_cut_short_damaged_or_foreign_is_not_there() {
        let directory = tempfile::tempdir().expect("a folder");
        let state = written(directory.path());
        let path = file(directory.path(), "one");
        let whole = fs::read(&path).expect("a file");
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).expect("a file");
            assert_eq!(state.read("one"), None, "{length} bytes");
        }
        for place in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[place] ^= 1;
            fs::write(&path, damaged).expect("a file");
            assert_eq!(state.read("one"), None, "byte {place}");
        }
        fs::write(&path, [0xff; 4096]).expect("a file");
        assert_eq!(state.read("one"), None);
    }

    #[test]
    fn a_place_that_cannot_be_written_is_no_error() {
        let directory = tempfile::tempdir().expect("a folder");
        let blocked = directory.path().join("file");
        fs::write(&blocked, "").expect("a file");
        let state = State::open(&blocked, "here");
        state.write("one".to_owned(), || b"content".to_vec());
        state.finish();
        assert_eq!(state.read("one"), None);
    }

    #[test]
    fn only_what_is_long_gone_is_forgotten() {
        let directory = tempfile::tempdir().expect("a folder");
        let state = written(directory.path());
        let strange = directory.path().join("strange");
        fs::create_dir(&strange).expect("a folder");
        let long_ago = SystemTime::now() - FORGOTTEN - Duration::from_secs(1);
        let half = state.folder.join("two.1.half");
        for path in [&half, &state.folder.join("used")] {
            let file = fs::File::create(path).expect("a file");
            file.set_modified(long_ago).expect("a time");
        }
        let other = State::open(directory.path(), "there");
        assert!(!state.folder.exists(), "a deployment that is gone");
        assert!(strange.exists(), "what others put there");
        assert!(other.folder.exists());
    }
}
