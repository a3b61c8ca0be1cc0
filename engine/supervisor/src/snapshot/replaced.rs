//! Replaced files with hashed names, which pages opened before a change may still request.
//!
//! A page that was loaded yesterday requests yesterday's script when the visitor opens a menu today. Replaced files are therefore served for a day (`--keep-assets`), also after a restart, within the limits below.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use jiff::{SignedDuration, Timestamp};

use release::payload::Payload;
use release::snapshot::{Resource, ResourceTable};
use release::store::Rows;
use render::ASSETS;
use render::FileOwner;

/// The default time for which a replaced file is served: a page that references the file may be open or cached for that long.
pub(crate) const RETENTION_TIME: SignedDuration = SignedDuration::from_hours(24);
/// The limit on replaced files of one tenant, or of the shared files, in bytes of all content encodings. The oldest files are removed first.
pub const MAX_BYTES_PER_TENANT: u64 = 32 << 20;
/// The limit on replaced files of all tenants together, in bytes of all content encodings.
pub const MAX_BYTES: u64 = 96 << 20;
/// The limit on the number of replaced files of one tenant, or of the shared files. Even a small file takes a kilobyte of memory.
pub const MAX_FILES_PER_TENANT: u64 = 2_000;
/// The limit on the number of replaced files of all tenants together.
pub const MAX_FILES: u64 = 20_000;
/// The limit on replaced files of one tenant that are too large for memory, in bytes on disk.
pub const MAX_LARGE_BYTES_PER_TENANT: u64 = 1 << 30;
/// The limit on replaced files of all tenants that are too large for memory, in bytes on disk.
pub const MAX_LARGE_BYTES: u64 = 4 << 30;

/// The limits on the time and the disk space of replaced files.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Retention {
    pub(crate) time: SignedDuration,
    /// The limit on files that are too large for memory, in bytes; `u64::MAX` if the state has no limit.
    pub(crate) large_bytes: u64,
}

/// The replaced files of one tenant, or of the shared files, by their path below the mount.
#[derive(Debug, Default)]
pub(crate) struct ReplacedFiles {
    files: BTreeMap<Box<str>, ReplacedFile>,
    /// The files that count as served until now, such as the files of an earlier process.
    before: ResourceTable,
    /// The files as snapshots contain them.
    table: Arc<ResourceTable>,
    /// Whether files were added or removed since [`ReplacedFiles::reset_changed`] was last called.
    is_new: bool,
}

#[derive(Debug)]
struct ReplacedFile {
    resource: Arc<Resource>,
    at: Timestamp,
}

impl ReplacedFiles {
    /// Sets the files that count as served until now, although they are not in memory.
    pub(crate) fn set_served_before(&mut self, before: ResourceTable) {
        self.before = before;
    }

    /// Adds the files that only `before` has, and removes the files that `now` has again. Without `before`, the files set by [`ReplacedFiles::set_served_before`] are used.
    pub(crate) fn replace(
        &mut self,
        before: Option<&ResourceTable>,
        now: &ResourceTable,
        at: Timestamp,
    ) {
        let earlier = std::mem::take(&mut self.before);
        let length = self.files.len();
        self.files.retain(|path, _| !now.contains_key(path));
        let mut is_new = self.files.len() != length;
        for (path, resource) in before.unwrap_or(&earlier) {
            if path.starts_with(ASSETS) && !now.contains_key(path) {
                let resource = Arc::clone(resource);
                is_new = true;
                self.files
                    .insert(path.clone(), ReplacedFile { resource, at });
            }
        }
        self.update_table(is_new);
    }

    /// Adds files that were in no table: rendered images.
    pub(crate) fn add(&mut self, files: ResourceTable, at: Timestamp) {
        let is_new = !files.is_empty();
        let files = files.into_iter();
        let files = files.map(|(path, resource)| (path, ReplacedFile { resource, at }));
        self.files.extend(files);
        self.update_table(is_new);
    }

    /// Returns the replaced files: the same `Arc` until the files change.
    pub(crate) const fn table(&self) -> &Arc<ResourceTable> {
        &self.table
    }

    /// Assembles the table again if files were added or removed.
    fn update_table(&mut self, is_new: bool) {
        if is_new {
            self.is_new = true;
            let files = self.files.iter();
            let files = files.map(|(path, file)| (path.clone(), Arc::clone(&file.resource)));
            self.table = Arc::new(files.collect());
        }
    }

    /// Returns whether there are no files and no new changes.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty() && !self.is_new
    }

    /// Returns whether files were added or removed since [`ReplacedFiles::reset_changed`] was last called.
    pub(crate) const fn has_changed(&self) -> bool {
        self.is_new
    }

    /// Returns whether files were added or removed since the last call.
    pub(crate) fn reset_changed(&mut self) -> bool {
        std::mem::take(&mut self.is_new)
    }

    /// Returns the rows to persist: the replaced files, and the files of `now`, which are not replaced yet.
    ///
    /// A key is the time of the replacement (seconds as a little-endian `i64`, `i64::MAX` for files of `now`), followed by the path.
    pub(crate) fn rows(&self, now: &ResourceTable) -> Rows {
        let replaced = self.files.iter();
        let replaced = replaced.map(|(path, file)| (path, &file.resource, file.at.as_second()));
        let now = now.iter().filter(|(path, _)| path.starts_with(ASSETS));
        let now = now.map(|(path, resource)| (path, resource, i64::MAX));
        let rows = replaced.chain(now).filter_map(|(path, resource, at)| {
            let key = [&at.to_le_bytes()[..], path.as_bytes()].concat();
            Some((key.into(), identity(resource)?.clone()))
        });
        let mut rows: Rows = rows.collect();
        rows.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        rows
    }

    /// Restores the files from the rows of [`ReplacedFiles::rows`].
    pub(crate) fn of_rows(rows: Rows, whose: FileOwner, is_secure: bool) -> Self {
        let mut replaced = Self::default();
        for (key, bytes) in rows {
            let Some((at, path)) = key.split_first_chunk::<8>() else {
                continue;
            };
            let Ok(path) = std::str::from_utf8(path) else {
                continue;
            };
            // A copy, because a slice of the table would hold the complete table in memory.
            let bytes = || match &bytes {
                Payload::Memory(bytes) => Bytes::copy_from_slice(bytes).into(),
                large @ Payload::Large(_) => large.clone(),
            };
            let resource = || Arc::new(render::replaced_file(path, bytes(), whose, is_secure));
            match i64::from_le_bytes(*at) {
                i64::MAX => {
                    replaced.before.insert(path.into(), resource());
                }
                at => {
                    let at = Timestamp::from_second(at).unwrap_or_default();
                    let resource = resource();
                    replaced
                        .files
                        .insert(path.into(), ReplacedFile { resource, at });
                }
            }
        }
        replaced.update_table(!replaced.files.is_empty());
        // The restored files are persisted already.
        replaced.is_new = false;
        replaced
    }

    fn bytes(&self, size: FileSize) -> u64 {
        self.files.values().map(|file| size(&file.resource)).sum()
    }

    /// Removes the files that are too old, and the oldest files beyond the limits.
    pub(crate) fn prune(&mut self, now: Timestamp, retention: Retention) {
        let Retention { time, large_bytes } = retention;
        let length = self.files.len();
        self.files
            .retain(|_, file| now.duration_since(file.at).abs() < time);
        self.update_table(self.files.len() != length);
        make_room(&mut [self], MAX_BYTES_PER_TENANT, in_memory);
        make_room(
            &mut [self],
            MAX_LARGE_BYTES_PER_TENANT.min(large_bytes),
            on_disk,
        );
        make_room(&mut [self], MAX_FILES_PER_TENANT, |_| 1);
    }
}

/// Prunes the files of each tenant, and then removes the oldest files of all tenants beyond the common limits.
pub(crate) fn prune_all<'a>(
    tenants: impl Iterator<Item = &'a mut ReplacedFiles>,
    now: Timestamp,
    retention: Retention,
) {
    let mut with_files: Vec<&mut ReplacedFiles> = tenants
        .filter(|replaced| !replaced.files.is_empty())
        .collect();
    for replaced in &mut with_files {
        replaced.prune(now, retention);
    }
    make_room(&mut with_files, MAX_BYTES, in_memory);
    make_room(
        &mut with_files,
        MAX_LARGE_BYTES.min(retention.large_bytes),
        on_disk,
    );
    make_room(&mut with_files, MAX_FILES, |_| 1);
}

/// Returns the share of a limit that a file uses: bytes, or 1 for a limit on the number of files.
type FileSize = fn(&Resource) -> u64;

/// Removes the oldest files until the total size of the other files is at most `limit`.
fn make_room(all: &mut [&mut ReplacedFiles], limit: u64, size: FileSize) {
    let mut bytes: u64 = all.iter().map(|replaced| replaced.bytes(size)).sum();
    if bytes <= limit {
        return;
    }
    let files = all.iter().enumerate().flat_map(|(place, replaced)| {
        let files = replaced.files.iter();
        let files = files.map(move |(path, file)| (file.at, path, place, size(&file.resource)));
        files
            .filter(|(.., size)| *size > 0)
            .map(|(at, path, place, size)| (at, path.clone(), place, size))
    });
    let mut files: Vec<_> = files.collect();
    files.sort();
    for (_, path, place, size) in files {
        if bytes <= limit {
            break;
        }
        bytes -= size;
        all[place].files.remove(&path);
    }
    for replaced in all {
        let has_fewer = replaced.files.len() < replaced.table.len();
        replaced.update_table(has_fewer);
    }
}

fn identity(resource: &Resource) -> Option<&Payload> {
    match resource {
        // A body with another status, such as a redirect page, is not a file.
        Resource::Body(body) if body.status != StatusCode::OK => None,
        Resource::Body(body) => Some(&body.variants.identity()?.bytes),
        Resource::Redirect(_) => None,
    }
}

fn in_memory(resource: &Resource) -> u64 {
    size(resource, Payload::is_in_memory)
}

fn on_disk(resource: &Resource) -> u64 {
    size(resource, |bytes| !bytes.is_in_memory())
}

fn size(resource: &Resource, counts: fn(&Payload) -> bool) -> u64 {
    match resource {
        Resource::Body(body) => {
            let all = body.variants.iter().map(|variant| &variant.bytes);
            all.filter(|bytes| counts(bytes)).map(Payload::len).sum()
        }
        Resource::Redirect(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOR_A_DAY: Retention = Retention {
        time: RETENTION_TIME,
        large_bytes: u64::MAX,
    };

    fn table(files: &[(&str, usize)]) -> ResourceTable {
        let files = files.iter();
        files
            .map(|(path, length)| {
                let resource =
                    render::replaced_file(path, vec![7; *length].into(), FileOwner::Shared, true);
                ((*path).into(), Arc::new(resource))
            })
            .collect()
    }

    fn paths(replaced: &ReplacedFiles) -> Vec<&str> {
        let mut paths: Vec<&str> = replaced.table().keys().map(AsRef::as_ref).collect();
        paths.sort_unstable();
        paths
    }

    fn hour(hours: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_hours(hours)
    }

    #[test]
    fn replaced_file_is_served_for_a_day_despite_further_changes() {
        let mut replaced = ReplacedFiles::default();
        let mut before = table(&[("/assets/0.css", 10), ("/page", 10)]);
        for number in 1..=30 {
            let now = table(&[(&format!("/assets/{number}.css"), 10)]);
            replaced.replace(Some(&before), &now, hour(number));
            replaced.prune(hour(number), FOR_A_DAY);
            before = now;
        }
        let persisted = paths(&replaced);
        assert_eq!(persisted.len(), 24);
        assert!(
            persisted.contains(&"/assets/29.css") && persisted.contains(&"/assets/6.css"),
            "{persisted:?}"
        );
        replaced.prune(hour(100), FOR_A_DAY);
        assert!(paths(&replaced).is_empty());
    }

    #[test]
    fn file_that_is_current_again_is_no_longer_replaced() {
        let mut replaced = ReplacedFiles::default();
        let (one, two) = (
            table(&[("/assets/1.css", 9)]),
            table(&[("/assets/2.css", 9)]),
        );
        replaced.replace(Some(&one), &two, hour(0));
        assert_eq!(paths(&replaced), ["/assets/1.css"]);
        replaced.replace(Some(&two), &one, hour(1));
        assert_eq!(paths(&replaced), ["/assets/2.css"]);
    }

    #[test]
    fn oldest_files_beyond_limits_are_removed_first() {
        const LARGE: usize = 10 << 20;
        let mut many: Vec<ReplacedFiles> = (0..5).map(|_| ReplacedFiles::default()).collect();
        for (tenant, replaced) in many.iter_mut().enumerate() {
            for number in 0..5 {
                let at = hour(number * 2 + i64::from(tenant == 0));
                let before = table(&[(&format!("/assets/{number}.bin"), LARGE)]);
                replaced.replace(Some(&before), &ResourceTable::new(), at);
            }
        }
        many[1].prune(hour(10), FOR_A_DAY);
        assert_eq!(
            paths(&many[1]),
            ["/assets/2.bin", "/assets/3.bin", "/assets/4.bin"]
        );
        prune_all(many.iter_mut(), hour(10), FOR_A_DAY);
        let bytes: u64 = many.iter().map(|replaced| replaced.bytes(in_memory)).sum();
        assert!(
            bytes <= MAX_BYTES && bytes > MAX_BYTES - LARGE as u64,
            "{bytes}"
        );
        assert!(
            many.iter()
                .all(|replaced| paths(replaced).contains(&"/assets/4.bin"))
        );
        assert!(
            many.iter()
                .all(|replaced| !paths(replaced).contains(&"/assets/2.bin"))
        );
    }

    #[test]
    fn number_of_replaced_files_is_limited() {
        let mut replaced = ReplacedFiles::default();
        for round in 0..3 {
            let names =
                (0..2 * MAX_FILES_PER_TENANT).map(|file| format!("/assets/{round}-{file}.txt"));
            let names: Vec<String> = names.collect();
            let files: Vec<(&str, usize)> = names.iter().map(|name| (name.as_str(), 6)).collect();
            replaced.replace(Some(&table(&files)), &ResourceTable::new(), hour(round));
            replaced.prune(hour(round), FOR_A_DAY);
            let paths = paths(&replaced);
            assert_eq!(paths.len() as u64, MAX_FILES_PER_TENANT);
            let newest = format!("/assets/{round}-");
            assert!(
                paths.iter().all(|path| path.starts_with(&newest)),
                "the oldest files are removed first"
            );
        }
    }

    #[test]
    fn persisted_files_are_restored_with_files_served_before() {
        let mut replaced = ReplacedFiles::default();
        let (one, two) = (
            table(&[("/assets/1.css", 9)]),
            table(&[("/assets/2.css", 9)]),
        );
        replaced.replace(Some(&one), &two, hour(0));
        let rows = replaced.rows(&two);
        let mut back = ReplacedFiles::of_rows(rows, FileOwner::Shared, true);
        assert_eq!(paths(&back), ["/assets/1.css"]);
        back.replace(None, &table(&[("/assets/3.css", 9)]), hour(2));
        assert_eq!(paths(&back), ["/assets/1.css", "/assets/2.css"]);
        back.prune(hour(24), FOR_A_DAY);
        assert_eq!(paths(&back), ["/assets/2.css"]);
        let foreign = vec![(Bytes::from("short"), Payload::default())];
        assert!(paths(&ReplacedFiles::of_rows(foreign, FileOwner::Shared, true)).is_empty());
    }
}
