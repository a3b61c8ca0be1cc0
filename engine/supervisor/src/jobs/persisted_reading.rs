//! Persisted readings of folders. A reading is restored if the file metadata is unchanged, so that ten thousand folders are neither read nor parsed at startup.
//!
//! **Invariant:** a restored reading equals the result of reading the folder again.

use std::sync::Arc;

use bytes::Bytes;

use content::name::TenantId;
use content::report::{Diagnostic, Report};
use content::source::FileHashes;
use content::tenant::Site;
use release::pack::{pack, unpack};
use release::payload::Payload;
use release::store::{Rows, rows_in_memory};

use crate::jobs::packed_folder::PackedFolder;

/// The result of reading a folder that can be served.
#[derive(Debug)]
pub(crate) struct PersistedReading {
    /// The outline of its content.
    pub(crate) site: Arc<Site>,
    pub(crate) packed: Arc<PackedFolder>,
    pub(crate) files: FileHashes,
    pub(crate) report: Report,
}

/// The keys of the rows of a reading, in order.
const KEYS: [&str; 4] = ["site", "folder", "files", "report"];

impl PersistedReading {
    /// Returns the rows of the reading. Returns `None` if it cannot be serialised, or if the folder has files that are not in memory.
    pub(crate) fn rows(&self) -> Option<Rows> {
        let files = self.files.iter();
        let files = pack(files.map(|(path, hash)| (path.as_bytes(), &hash[..])));
        let report: Vec<&Diagnostic> = self.report.iter().collect();
        let values = [
            self.site.outline_to_bytes()?.into(),
            self.packed.to_bytes()?,
            files.into(),
            serde_json::to_vec(&report).ok()?.into(),
        ];
        let values = values.map(Payload::from);
        Some(KEYS.into_iter().map(Bytes::from).zip(values).collect())
    }

    /// Returns the reading with these rows, or `None` if the rows are not a valid reading.
    pub(crate) fn of_rows(id: &TenantId, label: &str, rows: Rows) -> Option<Self> {
        let rows: [(Bytes, Bytes); 4] = rows_in_memory(rows)?.try_into().ok()?;
        let [site, packed, files, report] = rows.map(|(_, value)| value);
        let file = |(path, hash): (Bytes, Bytes)| {
            let path = String::from_utf8(path.to_vec()).ok()?;
            Some((path, hash.as_ref().try_into().ok()?))
        };
        let said: Vec<Diagnostic> = serde_json::from_slice(&report).ok()?;
        let mut report = Report::default();
        report.extend(said);
        Some(Self {
            site: Arc::new(Site::outline_of_bytes(id.clone(), label.to_owned(), &site)?),
            packed: Arc::new(PackedFolder::of_bytes(label.to_owned(), &packed)),
            files: unpack(&files)?
                .into_iter()
                .map(file)
                .collect::<Option<_>>()?,
            report,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::time::{Duration, SystemTime};

    use content::report::Code;
    use content::source::Activity;
    use release::store::{RetentionLimits, Store};
    use tempfile::TempDir;

    use super::*;
    use crate::jobs::outcome::{FolderReading, JobOutcome, ReadRequest};
    use crate::jobs::packed_folder::FolderContent;
    use crate::source::TenantSource as _;
    use crate::source::folders::FolderSource;
    use crate::state::tables::write_reading;

    fn store(folder: &TempDir) -> Arc<Store> {
        let keep = RetentionLimits {
            releases: 1,
            bytes: 1 << 30,
        };
        Arc::new(Store::open(folder.path().join("state"), keep))
    }

    fn to_read(path: &Path, store: &Arc<Store>) -> ReadRequest {
        let name = path.file_name().expect("a name").to_string_lossy();
        let id = TenantId::new(&name).expect("an id");
        let tenants = path.parent().expect("a folder").to_owned();
        let source = FolderSource::new(tenants, PathBuf::new(), None);
        ReadRequest {
            label: source.label(&id),
            source: Arc::new(source),
            id,
            known: None,
            large: std::env::temp_dir(),
            known_large: BTreeMap::new(),
            store: Some(Arc::clone(store)),
            is_new: true,
            is_packed: true,
            now: SystemTime::now() + Duration::from_secs(3_600),
            activity: Activity::default(),
            arrivals: None,
        }
    }

    fn read(folder: &ReadRequest) -> Option<FolderReading> {
        let done = |read: Option<FolderReading>, arrival, changed| {
            JobOutcome::Read(0, read.map(Box::new), Box::new(arrival), changed)
        };
        match Arc::new(folder.clone()).read(false, 1, done).finish() {
            JobOutcome::Read(_, read, ..) => read.map(|read| *read),
            other => panic!("{other:?} is not a reading"),
        }
    }

    fn reading_of(read: FolderReading) -> PersistedReading {
        let FolderContent::Packed(packed) = read.content else {
            panic!("the folder is not packed");
        };
        PersistedReading {
            site: Arc::new(read.site.expect("a site")),
            packed,
            files: read.files,
            report: read.report,
        }
    }

    /// Reads a folder, and persists the reading with an extra diagnostic, by which tests recognise a restored reading.
    fn persist(folder: &ReadRequest, store: &Store) {
        let read = read(folder).expect("something new");
        let mark = read.mark.expect("a mark");
        let mut reading = reading_of(read);
        let marker = Diagnostic::error(Code::FillIn, folder.label.clone(), "restored");
        reading.report.extend([marker]);
        write_reading(store, &folder.id, mark, reading);
        store.finish();
    }

    fn is_restored(folder: &ReadRequest) -> bool {
        let read = read(folder).expect("something new");
        let mut diagnostics = read.report.iter();
        diagnostics.any(|diagnostic| diagnostic.message == "restored")
    }

    fn write_tenant(directory: &TempDir) -> PathBuf {
        let tenant = directory.path().join("corner");
        fs::create_dir_all(tenant.join("pages")).expect("a folder");
        fs::write(tenant.join("tenant.yaml"), "name: Corner\n").expect("a file");
        let page = "---\ntitle: Corner\n---\nWelcome.\n";
        fs::write(tenant.join("pages/index.md"), page).expect("a file");
        tenant
    }

    #[test]
    fn restored_reading_equals_a_new_reading() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut count = 0;
        for tenants in ["tenants", "tests/fixtures/sites/tenants"] {
            for tenant in fs::read_dir(root.join(tenants)).expect("tenants") {
                let path = tenant.expect("an entry").path();
                if !path.join("tenant.yaml").is_file() {
                    continue;
                }
                let directory = TempDir::new().expect("a folder");
                let store = store(&directory);
                let folder = to_read(&path, &store);
                let read = read(&folder).expect("something new");
                let fingerprint = read.fingerprint.expect("a fingerprint");
                let reading = reading_of(read);
                let rows = reading.rows().expect("rows");
                let back =
                    PersistedReading::of_rows(&folder.id, &folder.label, rows).expect("a reading");
                assert_eq!(format!("{back:?}"), format!("{reading:?}"), "{path:?}");
                assert_eq!(back.packed.folder(), reading.packed.folder());
                assert_eq!(back.files.fingerprint(), fingerprint);
                count += 1;
            }
        }
        assert!(count >= 8, "{count} tenants");
    }

    #[test]
    fn folder_with_changed_content_or_label_is_read_again() {
        let directory = TempDir::new().expect("a folder");
        let (path, store) = (write_tenant(&directory), store(&directory));
        let folder = to_read(&path, &store);
        persist(&folder, &store);
        assert!(is_restored(&folder), "the folder is unchanged");
        let elsewhere = ReadRequest {
            label: "other/corner".to_owned(),
            ..to_read(&path, &store)
        };
        assert!(!is_restored(&elsewhere), "reports would name another label");
        let known = ReadRequest {
            is_new: false,
            ..to_read(&path, &store)
        };
        assert!(!is_restored(&known), "the reading of this process is newer");
        let page = "---\ntitle: Corner\n---\nWilkomme.\n";
        fs::write(path.join("pages/index.md"), page).expect("a file");
        let read = read(&folder).expect("something new");
        assert!(read.mark.is_some(), "the reading is to be persisted");
        let read = reading_of(read).packed.folder().expect("a folder");
        assert_eq!(read.files["pages/index.md"], page);
        assert!(!is_restored(&folder));
    }

    #[test]
    fn folder_with_a_damaged_reading_is_read_again() {
        let directory = TempDir::new().expect("a folder");
        let path = write_tenant(&directory);
        let first = store(&directory);
        persist(&to_read(&path, &first), &first);
        drop(first);
        let is_restored = || is_restored(&to_read(&path, &store(&directory)));
        let records = directory.path().join("state/tables/records");
        let intact = fs::read(&records).expect("a file");
        for damage in [intact.len() / 2, intact.len() - 1] {
            let mut bytes = intact.clone();
            bytes[damage] ^= 1;
            fs::write(&records, bytes).expect("a file");
            assert!(!is_restored(), "with a flipped bit at {damage}");
            fs::write(&records, &intact[..damage]).expect("a file");
            assert!(!is_restored(), "cut at {damage}");
        }
        fs::write(&records, intact).expect("a file");
        assert!(is_restored(), "intact again");
    }
}
