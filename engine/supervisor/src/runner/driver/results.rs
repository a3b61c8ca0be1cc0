//! Describes the results of jobs as events of the [`World`](crate::model::world::World).
//!
//! **Invariant:** decides nothing, and starts no job.

use std::sync::Arc;

use jiff::Timestamp;

use content::name::TenantId;
use content::report::Report;
use render::CompiledTenant;

use crate::jobs::arrival::Arrival;
use crate::jobs::outcome::{BuildAttempt, FolderReading, JobOutcome, PageOrigin};
use crate::model::event::{BuildResult, Event, ReadingOutcome, ServedForm};
use crate::runner::catalog::tenant::has_unreadable_file;
use crate::runner::driver::{EventData, FinishedBuild};
use crate::runner::memory::bytes_of;
use crate::runner::registry::Registry;
use crate::state::releases::place;

impl Registry {
    /// Handles the result of a job.
    pub(crate) fn handle_result(&mut self, id: &TenantId, done: JobOutcome, now: Timestamp) {
        let tenant = id.clone();
        let mut event_data = EventData::Nothing;
        let event = match done {
            JobOutcome::Read(number, read, arrival, changed) => {
                if let Some(changed) = changed {
                    let tenant = tenant.clone();
                    let read = Event::PreviewRead {
                        tenant,
                        number,
                        changed,
                    };
                    self.handle(read, now);
                }
                let event = self.read_event(id, number, read.as_deref(), *arrival);
                event_data = read.map_or(EventData::Nothing, EventData::Read);
                event
            }
            JobOutcome::Gone(number) => Event::Read {
                tenant,
                number,
                reading: ReadingOutcome::Gone,
                is_changing: false,
            },
            JobOutcome::Unresponsive(number, folder) => {
                event_data = EventData::Unresponsive(folder);
                Event::Read {
                    tenant,
                    number,
                    reading: ReadingOutcome::Unresponsive,
                    is_changing: false,
                }
            }
            JobOutcome::Compiled(attempt) => {
                let BuildAttempt {
                    made_from,
                    waiting,
                    is_urgent,
                    compiled,
                    report,
                    took,
                    origin,
                } = *attempt;
                let result = self.result(id, compiled.as_ref(), &report, origin, is_urgent);
                let key = made_from.key;
                event_data = EventData::Built(Box::new(FinishedBuild {
                    made_from,
                    compiled: compiled.map(Arc::new),
                    waiting,
                    outcome: Some((report, took)),
                    origin,
                    is_encoding: false,
                }));
                Event::Built {
                    tenant,
                    key,
                    result,
                }
            }
            JobOutcome::Compressed(coded) => {
                let (made_from, compiled) = *coded;
                let (key, bytes) = (made_from.key, bytes_of(&compiled));
                event_data = EventData::Built(Box::new(FinishedBuild {
                    made_from,
                    compiled: Some(Arc::new(compiled)),
                    waiting: Vec::new(),
                    outcome: None,
                    origin: PageOrigin::Rendered,
                    is_encoding: true,
                }));
                Event::Encoded { tenant, key, bytes }
            }
            JobOutcome::StandIn(found) => {
                let is_found = found.is_some();
                event_data = found.map_or(EventData::Nothing, EventData::StandIn);
                Event::StoodIn { tenant, is_found }
            }
            JobOutcome::Release(release) => {
                let data = self.catalog.tenants.get(id);
                let placed = data
                    .zip(release)
                    .and_then(|(data, release)| place(data, *release));
                let is_found = placed.is_some();
                event_data = placed.map_or(EventData::Nothing, |placed| {
                    EventData::Release(Box::new(placed))
                });
                Event::PinLoaded { tenant, is_found }
            }
            JobOutcome::PinWritten(problem) => {
                let is_written = problem.is_none();
                self.commands.set_problem(problem);
                Event::PinWritten { tenant, is_written }
            }
        };
        self.handle_with(event, &mut event_data, now);
    }

    /// Describes the result of a reading for the model, and records the files whose upload has not ended.
    fn read_event(
        &mut self,
        id: &TenantId,
        number: u64,
        read: Option<&FolderReading>,
        arrival: Arrival,
    ) -> Event {
        let reading = match read {
            _ if arrival.is_waiting => ReadingOutcome::Receiving {
                has_content: read.is_some(),
                quiet_in: arrival.quiet_in,
            },
            None => ReadingOutcome::Unchanged,
            Some(read) => ReadingOutcome::Changed {
                has_errors: !read.report.is_servable(),
                is_unreadable: has_unreadable_file(&read.reading),
            },
        };
        let is_changing = arrival.is_changing;
        if let Some(tenant) = self.catalog.tenants.get_mut(id) {
            tenant.reading.set_arrival(arrival);
        }
        Event::Read {
            tenant: id.clone(),
            number,
            reading,
            is_changing,
        }
    }

    /// Describes the result of a build for the model.
    fn result(
        &self,
        id: &TenantId,
        compiled: Option<&CompiledTenant>,
        report: &Report,
        origin: PageOrigin,
        is_urgent: bool,
    ) -> BuildResult {
        let Some(compiled) = compiled else {
            return BuildResult::Failed;
        };
        let tenant = self.catalog.tenants.get(id);
        let has_unkept = tenant.is_some_and(|tenant| tenant.reading.mark.is_some());
        BuildResult::Pages {
            form: match (compiled.is_open(), compiled.is_uncompressed()) {
                (false, _) => ServedForm::Complete,
                (true, true) => ServedForm::Unencoded,
                (true, false) => ServedForm::Evicted,
            },
            is_persisted: origin.persisted_key().is_some() && !has_unkept,
            has_errors: !report.is_servable(),
            bytes: bytes_of(compiled),
            is_requested: self.job_pool.is_wanted(id),
            is_urgent,
        }
    }
}
