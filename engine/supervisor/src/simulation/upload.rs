//! Uploads to the simulated disk: files that grow, and files without an end.

use std::time::Duration;

use content::name::TenantId;

use crate::model::agenda::ReloadScope;
use crate::model::event::{Event, ReadingOutcome};
use crate::simulation::history::TENANTS;
use crate::simulation::server::{SimulatedServer, id};
use crate::simulation::state::{ObservedWait, SETTLE_MAX, SimulatedFolder, SimulatedJob, Upload};

/// The longest time without a job after [`SETTLE_MAX`]: the longest step of time, and a change that settles.
const MAX_DELAY: Duration = Duration::from_secs(6);

impl SimulatedServer {
    /// Begins or continues an upload, or ends it (`None`).
    pub(super) fn upload(&mut self, tenant: usize, upload: Option<Upload>) {
        self.disk.version += 1;
        let version = self.disk.version;
        if let Some(folder) = self.disk.folders.get_mut(&id(tenant)) {
            let folder_before = *folder;
            *folder = SimulatedFolder {
                version,
                is_valid: true,
                upload,
                ..folder_before
            };
            let scope = ReloadScope::Tenant(TENANTS[tenant].to_owned());
            self.send(Event::Changed(scope));
        }
    }

    /// Ends all uploads. A tenant that waits for its files notices that without a change, unless a reading has begun before.
    pub(super) fn end_uploads(&mut self) {
        for (tenant, name) in TENANTS.iter().enumerate() {
            let folder = self.disk.folders.get_mut(&id(tenant));
            let Some(folder) = folder.filter(|folder| folder.upload.is_some()) else {
                continue;
            };
            folder.upload = None;
            let states = self.world.tenant(name);
            if !states.is_some_and(|states| states.is_receiving() && !states.is_reading()) {
                let scope = ReloadScope::Tenant((*name).to_owned());
                self.send(Event::Changed(scope));
            }
        }
    }

    /// Returns the result of reading a folder, and whether a file is still changing.
    pub(super) fn reading(
        &mut self,
        tenant: &TenantId,
        folder: Option<SimulatedFolder>,
        waits: bool,
        has_result: bool,
    ) -> (ReadingOutcome, bool) {
        let Some((mut folder, data)) = folder.zip(self.data.get_mut(tenant)) else {
            return (ReadingOutcome::Gone, false);
        };
        let is_changing = folder.upload == Some(Upload::Growing);
        if waits && has_result && folder.upload.is_some() {
            let has_content = data.read.is_none() && data.content.is_none();
            if has_content {
                folder.is_valid = false;
                data.arrived = Some(folder);
            }
            let quiet_in = is_changing.then(|| Duration::from_millis(900));
            let reading = ReadingOutcome::Receiving {
                has_content,
                quiet_in,
            };
            return (reading, is_changing);
        }
        if data.read == Some(folder) && has_result {
            return (ReadingOutcome::Unchanged, is_changing);
        }
        folder.is_valid &= has_result && folder.upload != Some(Upload::Incomplete);
        data.arrived = Some(folder);
        let reading = ReadingOutcome::Changed {
            has_errors: !folder.is_valid || folder.is_locked,
            is_unreadable: folder.is_locked || !has_result,
        };
        (reading, is_changing && has_result)
    }

    /// Notes which tenants wait for their files, after an event.
    pub(super) fn note_uploads(&mut self) {
        let is_survey = |job: &SimulatedJob| matches!(job, SimulatedJob::Survey { .. });
        let has_survey = self.jobs.iter().any(is_survey);
        let now = self.now.instant;
        for (number, name) in TENANTS.iter().enumerate() {
            let states = self.world.tenant(name);
            let Some(states) = states.filter(|states| states.is_receiving()) else {
                self.receiving.remove(*name);
                continue;
            };
            let wait = self.receiving.entry(id(number)).or_insert(ObservedWait {
                since: now,
                idle_since: now,
            });
            if has_survey || states.is_reading() {
                // The result of the job decides.
                wait.idle_since = now;
            }
        }
    }

    /// Checks that a reading that may wait for files begins within the limit.
    pub(super) fn check_wait(&mut self, tenant: &TenantId) {
        // The result of the last reading may have ended the wait.
        let states = self.world.tenant(tenant.as_str());
        let is_waiting = states.is_some_and(|states| states.is_receiving());
        let wait = self.receiving.get(tenant).filter(|_| is_waiting);
        let is_over = wait.is_some_and(|wait| wait.since + SETTLE_MAX <= self.now.instant);
        self.check(!is_over, || {
            format!("{tenant} may wait for its files beyond the limit")
        });
    }

    /// Checks that each tenant whose wait is over is read without delay.
    pub(super) fn check_uploads(&mut self) {
        let now = self.now.instant;
        let is_late = |wait: &ObservedWait| {
            now.duration_since(wait.since) > SETTLE_MAX + MAX_DELAY
                && now.duration_since(wait.idle_since) > MAX_DELAY
        };
        let mut receiving = self.receiving.iter();
        let late = receiving.find(|(_, wait)| is_late(wait));
        let late = late.map(|(tenant, _)| tenant.clone());
        self.check(late.is_none(), || {
            format!("{late:?} waits for its files for too long")
        });
    }
}
