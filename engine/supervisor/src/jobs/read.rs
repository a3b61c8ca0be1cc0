//! Jobs that read a tenant's folder and check its content.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use content::name::TenantId;
use content::source::Activity;
use release::store::Store;

use crate::jobs::arrival::ArrivalCheck;
use crate::jobs::outcome::{JobOutcome, ReadRequest};
use crate::runner::catalog::tenant::TenantData;
use crate::runner::settings::Settings;
use crate::runner::threads::job_pool::{Job, JobKind, JobStep};

/// The time limit for each call to the file system.
const FILE_SYSTEM_TIMEOUT: Duration = Duration::from_secs(10);

/// The context of a reading.
#[derive(Debug)]
pub(crate) struct ReadOptions<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) store: Option<Arc<Store>>,
    pub(crate) number: u64,
    /// Whether no other reading of the folder is in flight.
    pub(crate) is_only: bool,
    /// Whether the tenant may wait for files whose upload has not ended.
    pub(crate) waits: bool,
    /// Whether the tenant is new to this process.
    pub(crate) is_new: bool,
    /// Whether the content is compressed in memory.
    pub(crate) is_packed: bool,
}

/// Returns a job that reads the folder of a tenant.
pub(crate) fn read(id: TenantId, tenant: &TenantData, options: ReadOptions<'_>) -> Job<JobOutcome> {
    let ReadOptions {
        settings,
        store,
        number,
        is_only,
        waits,
        is_new,
        is_packed,
    } = options;
    // A reading in flight may replace the known fingerprint before this one ends.
    let known = tenant.reading.fingerprint.filter(|_| is_only);
    let folder = Arc::new(ReadRequest {
        id: id.clone(),
        label: settings.source.label(&id),
        source: Arc::clone(&settings.source),
        known: known.map(|known| (known, tenant.reading.report.clone())),
        large: folder_of_large_files(store.as_ref()),
        known_large: tenant.reading.large.clone(),
        store,
        is_new,
        is_packed,
        now: SystemTime::now(),
        activity: Activity::default(),
        arrivals: settings.settle_max.map(|settle_max| ArrivalCheck {
            settle_max,
            waits,
            last: Arc::clone(&tenant.reading.look),
            open: settings.open_files.clone(),
        }),
    });
    let is_secure = settings.is_secure();
    let watched = Arc::clone(&folder);
    let watchdog = move || {
        let is_stalled = watched.activity.is_stalled(FILE_SYSTEM_TIMEOUT);
        is_stalled.then(|| JobOutcome::Unresponsive(number, Arc::clone(&watched)))
    };
    Job {
        id,
        kind: JobKind::Read,
        is_background: false,
        watchdog: Some(Box::new(watchdog)),
        copy: None,
        weight: None,
        work: Box::new(move |_| {
            folder.read(is_secure, number, move |read, arrival, changed| {
                JobOutcome::Read(number, read.map(Box::new), Box::new(arrival), changed)
            })
        }),
    }
}

/// Returns a job that reports a folder whose file system does not respond, with the persisted data of its tenant.
pub(crate) fn report_unresponsive(
    id: TenantId,
    number: u64,
    folder: Arc<ReadRequest>,
    is_secure: bool,
) -> Job<JobOutcome> {
    let work = move |_| {
        let read = folder.unresponsive(FILE_SYSTEM_TIMEOUT, is_secure);
        JobStep::Done(JobOutcome::Read(
            number,
            Some(Box::new(read)),
            Box::default(),
            None,
        ))
    };
    Job {
        id,
        kind: JobKind::Report,
        is_background: false,
        watchdog: None,
        copy: None,
        weight: None,
        work: Box::new(work),
    }
}

/// Returns the folder for files that are too large for memory: the folder of the store, otherwise the folder for temporary files.
fn folder_of_large_files(store: Option<&Arc<Store>>) -> PathBuf {
    let folder = store.map(|store| store.folder().to_owned());
    let folder = folder.filter(|folder| folder.is_dir());
    folder.unwrap_or_else(std::env::temp_dir)
}
