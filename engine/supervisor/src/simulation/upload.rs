//! Uploads to the simulated disk: files that grow, and files without an end.

use std::time::{Duration, Instant};

use content::name::TenantId;

use crate::model::agenda::ReloadScope;
use crate::model::event::{Event, ReadingOutcome};
use crate::simulation::history::TENANTS;
use crate::simulation::server::{SimulatedServer, id};
use crate::simulation::state::{SETTLE_MAX, SimulatedFolder, Upload};

/// The limit on a wait beyond [`SETTLE_MAX`]: the longest step of time, and a change that settles.
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

    /// Checks that no tenant waits for its files for ever, and that no tenant serves a file without an end.
    pub(super) fn check_uploads(&mut self) {
        for tenant in (0..TENANTS.len()).map(id) {
            let states = self.world.tenant(tenant.as_str());
            let is_waiting = states.is_some_and(|states| states.is_receiving());
            let is_reading = states.is_some_and(|states| states.is_reading());
            let now = self.now.instant;
            let since = match is_waiting {
                // The result of a job that is not finished decides.
                true if !is_reading => *self.receiving.entry(tenant.clone()).or_insert(now),
                true => continue,
                false => {
                    self.receiving.remove(&tenant);
                    continue;
                }
            };
            self.check(is_within_limit(since, now), || {
                format!("{tenant} waits for its files for too long")
            });
        }
    }
}

fn is_within_limit(since: Instant, now: Instant) -> bool {
    now.duration_since(since) <= SETTLE_MAX + MAX_DELAY
}
