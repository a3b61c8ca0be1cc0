//! A simulated server: a disk, jobs, operators and visitors drive [`World::step`], and every step is checked.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant, SystemTime};

use content::name::TenantId;

use crate::model::agenda::ReloadScope;
use crate::model::event::{
    Action, BuildPlan, BuildResult, ChangeSet, ClockTime, CommandReply, Event, MeasuredPages,
    OutsideFacts, ReadingOutcome, ServedForm, StoreState, SurveyOutcome,
};
use crate::model::removal::removed_tenants::Remembered;
use crate::model::tenant::{BuildKey, ServedState, TenantState as States};
use crate::model::world::{Mode, World};
use crate::simulation::confirmation::{problem_of_pin, problem_of_restore};
use crate::simulation::history::{HistoryStep, TENANTS};
use crate::simulation::state::{
    ObservedWait, SETTLE_MAX, ServedPage, SharedInputs, SimulatedData, SimulatedDisk,
    SimulatedFolder, SimulatedJob,
};

/// The bytes of a tenant's pages.
const PAGES_BYTES: usize = 100;

/// The limit on turns until the world has no more actions. Beyond the limit, the world never settles.
const MAX_STEPS: usize = 100;

/// The time for which the history of a removed tenant is kept.
const REMOVED_RETENTION: Duration = Duration::from_secs(10);

/// The simulated server.
pub(super) struct SimulatedServer {
    pub(super) world: World,
    pub(super) now: ClockTime,
    pub(super) disk: SimulatedDisk,
    /// The shared inputs that the last survey read.
    surveyed: SharedInputs,
    pub(super) jobs: VecDeque<SimulatedJob>,
    pub(super) data: BTreeMap<TenantId, SimulatedData>,
    pub(super) snapshot: BTreeMap<TenantId, ServedPage>,
    waiting: BTreeSet<TenantId>,
    /// The tenant of each command in flight, by its ticket, and whether the command restores the tenant.
    commands: BTreeMap<u64, (TenantId, bool)>,
    tickets: u64,
    limit: usize,
    /// The tenants that wait for their files.
    pub(super) receiving: BTreeMap<TenantId, ObservedWait>,
    /// The first broken invariant.
    pub(super) broken: Option<String>,
}

pub(super) fn id(tenant: usize) -> TenantId {
    TenantId::new(TENANTS[tenant]).expect("a valid id")
}

/// Returns the world of a process that starts with this disk.
fn world_of(disk: &SimulatedDisk) -> World {
    let remembered = Remembered {
        pins: disk.pins.clone(),
        removed: disk.removed.clone(),
        tenants: disk.persisted.clone(),
    };
    let mut world = World::new(Mode::Serve, remembered);
    world.set_removed_retention(REMOVED_RETENTION);
    world.set_settle_max(SETTLE_MAX);
    world
}

impl SimulatedServer {
    pub(super) fn new(begin: Instant) -> Self {
        let folder = SimulatedFolder {
            version: 1,
            is_valid: true,
            is_locked: false,
            upload: None,
        };
        let disk = SimulatedDisk {
            folders: (0..TENANTS.len())
                .map(|tenant| (id(tenant), folder))
                .collect(),
            is_writable: true,
            shared: SharedInputs {
                has_theme: true,
                theme: 1,
                deployment: 1,
            },
            version: 1,
            ..SimulatedDisk::default()
        };
        let now = ClockTime {
            instant: begin + Duration::from_secs(3_600),
            time: SystemTime::UNIX_EPOCH,
        };
        let mut server = Self {
            world: world_of(&disk),
            now,
            disk,
            surveyed: SharedInputs::default(),
            jobs: VecDeque::new(),
            data: BTreeMap::new(),
            snapshot: BTreeMap::new(),
            waiting: BTreeSet::new(),
            commands: BTreeMap::new(),
            tickets: 0,
            limit: usize::MAX,
            receiving: BTreeMap::new(),
            broken: None,
        };
        server.send(Event::Requested(ReloadScope::Everything));
        server
    }

    pub(super) fn check(&mut self, holds: bool, invariant: impl FnOnce() -> String) {
        if !holds && self.broken.is_none() {
            self.broken = Some(invariant());
        }
    }

    /// Reports an event to the world, and performs its actions until there are none.
    pub(super) fn send(&mut self, event: Event) {
        self.handle(event);
        for _ in 0..MAX_STEPS {
            let facts = self.facts();
            if !self.handle(Event::QueueDrained(facts)) {
                return;
            }
        }
        self.check(false, || "the world never settles".to_owned());
    }

    fn facts(&self) -> OutsideFacts {
        let has = |is: fn(&SimulatedJob) -> bool| self.jobs.iter().any(is);
        let is_awaited = |id: &TenantId| {
            let is_live = |tenant| matches!(tenant, Some(ServedState::Live(_)));
            self.snapshot.get(id) == Some(&ServedPage::Waiting)
                && is_live(self.world.tenant(id.as_str()).map(States::serving))
        };
        OutsideFacts {
            has_readings: has(|job| {
                matches!(job, SimulatedJob::Read { .. } | SimulatedJob::Report { .. })
            }),
            has_builds: has(|job| {
                matches!(
                    job,
                    SimulatedJob::Build {
                        is_background: false,
                        ..
                    } | SimulatedJob::StandIn(_)
                )
            }),
            has_background: has(|job| {
                matches!(
                    job,
                    SimulatedJob::Build {
                        is_background: true,
                        ..
                    }
                )
            }),
            is_awaited: self.waiting.iter().any(is_awaited),
            can_survey: !has(|job| matches!(job, SimulatedJob::Survey { .. })),
            store: match self.disk.is_writable {
                true => StoreState::Ready(64),
                false => StoreState::ReadOnly,
            },
        }
    }

    fn handle(&mut self, event: Event) -> bool {
        let actions = self.world.step(event, self.now);
        let acts = !actions.is_empty();
        for action in actions {
            self.apply_action(action);
        }
        self.note_uploads();
        acts
    }

    fn apply_action(&mut self, action: Action) {
        match action {
            Action::BeginReload(_) | Action::ReportBuild(_) => {}
            Action::Survey(reload) => self.jobs.push_back(SimulatedJob::Survey {
                only: reload.tenants,
                removed: self.world.to_restore().cloned().collect(),
            }),
            Action::ReportRemoval(tenant) => {
                let is_there = self.world.tenant(tenant.as_str()).is_some();
                self.check(!is_there, || format!("{tenant} is removed and served"));
            }
            Action::ReportReturn(_) | Action::ReportPreview { .. } => {}
            Action::Restore(tenant) => self.restore(tenant),
            Action::ForgetHistory(tenant) => self.forget_history(&tenant),
            Action::PersistRemovals => self.disk.removed = self.world.removed().clone(),
            Action::Read {
                tenant,
                number,
                waits,
                ..
            } => self.start_reading(tenant, number, waits),
            Action::ReportUnresponsive { tenant, number } => {
                self.jobs.push_back(SimulatedJob::Report { tenant, number });
            }
            Action::Forget(tenant) => {
                self.data.remove(&tenant);
                self.waiting.remove(&tenant);
                self.snapshot.remove(&tenant);
            }
            Action::ReplaceContent(tenant) => {
                let data = self.data.entry(tenant).or_default();
                if let Some(folder) = data.arrived.take() {
                    data.read = Some(folder);
                    if folder.is_valid && !folder.is_locked {
                        data.content = Some(folder.version);
                    }
                }
            }
            Action::Plan(changes) => {
                let plans = self.plans(&changes);
                self.handle(Event::Planned {
                    plans,
                    took: Duration::ZERO,
                });
            }
            Action::Build { tenant, key, opens } => {
                let data = self.data.entry(tenant.clone()).or_default();
                let is_new = data.ordered.replace(key) != Some(key);
                self.check(is_new, || format!("{tenant} is built twice from {key:?}"));
                self.jobs.push_back(SimulatedJob::Build {
                    tenant,
                    key,
                    is_background: opens,
                });
            }
            Action::Serve { tenant, key } => self.serve(&tenant, key),
            Action::ServeStandIn(tenant) => {
                let data = self.data.entry(tenant).or_default();
                data.is_standing_in = true;
            }
            Action::Close(_) => {}
            Action::StandIn(tenant) => self.jobs.push_back(SimulatedJob::StandIn(tenant)),
            Action::Park { tenant, key } => self.park(tenant, key),
            Action::Evict { tenant, key } => self.evict(&tenant, key),
            Action::LoadPin { tenant, .. } => self.jobs.push_back(SimulatedJob::LoadPin(tenant)),
            Action::WritePin { tenant, to } => {
                self.jobs.push_back(SimulatedJob::WritePin { tenant, to })
            }
            Action::ServePin { tenant, is_pinned } => {
                let on_disk = self.disk.pins.get(&tenant).copied();
                let data = self.data.entry(tenant.clone()).or_default();
                data.pinned = on_disk.filter(|_| is_pinned);
                self.check(!is_pinned || on_disk.is_some(), || {
                    format!("{tenant} serves a pin that is not on disk")
                });
            }
            Action::Reply { ticket, reply } => self.reply(ticket, reply),
            Action::Persist(tenant) => {
                let is_served = self.world.tenant(tenant.as_str());
                let is_served = is_served.is_some_and(States::has_served);
                self.check(is_served, || format!("{tenant} is persisted without pages"));
                self.disk.persisted.insert(tenant);
            }
            Action::Publish(changes) => {
                self.publish(&changes);
                self.handle(Event::Published {
                    took: Duration::ZERO,
                });
            }
        }
    }

    fn start_reading(&mut self, tenant: TenantId, number: u64, waits: bool) {
        if waits {
            self.check_wait(&tenant);
        }
        self.data.entry(tenant.clone()).or_default();
        let begun = self.disk.folders.get(&tenant).copied();
        self.jobs.push_back(SimulatedJob::Read {
            tenant,
            number,
            waits,
            begun,
        });
    }

    fn restore(&mut self, tenant: TenantId) {
        let data = SimulatedData {
            // The persisted folder, which is older than every other version.
            content: Some(0),
            ..SimulatedData::default()
        };
        let before = self.data.insert(tenant.clone(), data);
        self.check(before.is_none(), || {
            format!("{tenant} is restored over its data")
        });
    }

    fn forget_history(&mut self, tenant: &TenantId) {
        let removed = self.disk.removed.get(tenant).copied();
        let is_over = removed.is_some_and(|removed| {
            let age = self.now.time.duration_since(removed.at);
            !removed.is_restored && age.is_ok_and(|age| age >= REMOVED_RETENTION)
        });
        let is_there = self.world.tenant(tenant.as_str()).is_some();
        self.check(is_over && !is_there, || {
            format!("{tenant} is forgotten too early: {removed:?}")
        });
        self.disk.persisted.remove(tenant);
        self.disk.pins.remove(tenant);
        self.disk.removed.remove(tenant);
    }

    fn serve(&mut self, tenant: &TenantId, key: BuildKey) {
        let data = self.data.entry(tenant.clone()).or_default();
        let before = data.served.replace((key, true));
        data.is_standing_in = false;
        let is_newer = before.is_none_or(|(before, _)| before.content <= key.content);
        self.check(is_newer, || {
            format!("{tenant} serves {key:?} after {before:?}")
        });
    }

    fn park(&mut self, tenant: TenantId, key: BuildKey) {
        let is_waiting = self.waiting.contains(&tenant);
        let data = self.data.entry(tenant).or_default();
        data.parked = Some(key);
        if let Some((served, in_memory)) = &mut data.served
            && *served == key
            && is_waiting
        {
            // The pool starts the job at once.
            *in_memory = true;
        }
    }

    fn evict(&mut self, tenant: &TenantId, key: BuildKey) {
        let is_waiting = self.waiting.contains(tenant);
        self.check(!is_waiting, || {
            format!("{tenant} is evicted while a request waits")
        });
        let data = self.data.entry(tenant.clone()).or_default();
        let is_pinned = data.pinned.is_some();
        data.parked = Some(key);
        if let Some((_, in_memory)) = &mut data.served {
            *in_memory = false;
        }
        self.check(!is_pinned, || {
            format!("{tenant} is evicted although it is pinned")
        });
    }

    fn reply(&mut self, ticket: u64, reply: CommandReply) {
        let command = self.commands.remove(&ticket);
        self.check(command.is_some(), || {
            format!("command {ticket} has two replies")
        });
        if let (Some((tenant, restores)), CommandReply::Done) = (command, reply) {
            let states = self.world.tenant(tenant.as_str());
            let shown = self.snapshot.get(&tenant).copied();
            let shown = self.world.is_started().then_some(shown);
            let problem = match restores {
                true => {
                    let removed = self.disk.removed.get(&tenant).copied();
                    problem_of_restore(states, removed, self.data.get(&tenant), shown)
                }
                false => problem_of_pin(states, self.disk.pins.get(&tenant).copied(), shown),
            };
            self.check(problem.is_none(), || format!("{tenant}: {problem:?}"));
        }
    }

    /// Derives the inputs of the tenants that the changes affect, like the runner.
    fn plans(&self, changes: &ChangeSet) -> Vec<BuildPlan> {
        let is_affected = |(tenant, _): &(&TenantId, &SimulatedData)| {
            changes.affects_all || changes.tenants.contains(*tenant)
        };
        let plan = |(tenant, data): (&TenantId, &SimulatedData)| {
            Some(BuildPlan {
                tenant: tenant.clone(),
                key: self.surveyed.key(data.content?),
                has_conflicts: false,
            })
        };
        let affected = self.data.iter().filter(is_affected);
        affected.filter_map(plan).collect()
    }

    /// Returns the pages that the next snapshot contains for a tenant.
    fn shown(&self, tenant: &TenantId) -> Option<ServedPage> {
        let states = self.world.tenant(tenant.as_str())?;
        let data = self.data.get(tenant).cloned().unwrap_or_default();
        match (states.is_published(), states.pinned(), data.served) {
            (false, ..) => None,
            (true, ..) if states.is_unavailable() => Some(ServedPage::Unavailable),
            (true, Some(number), _) => Some(ServedPage::Release(data.pinned.unwrap_or(number))),
            (true, None, Some((key, _))) => Some(ServedPage::Pages(key)),
            (true, None, None) if data.is_standing_in => Some(ServedPage::StandIn),
            (true, None, None) => Some(ServedPage::Waiting),
        }
    }

    /// Publishes a snapshot of the tenants in `changes`, and checks that other tenants are unchanged.
    fn publish(&mut self, changes: &ChangeSet) {
        for tenant in (0..TENANTS.len()).map(id) {
            let shown = self.shown(&tenant);
            let before = self.snapshot.get(&tenant).copied();
            let is_noted = changes.affects_all || changes.tenants.contains(&tenant);
            self.check(is_noted || shown == before, || {
                format!("{tenant} is not among the changes: {before:?}, then {shown:?}")
            });
            let is_there = self.world.tenant(tenant.as_str()).is_some();
            let has_pages = |shown: &ServedPage| {
                !matches!(shown, ServedPage::Waiting | ServedPage::Unavailable)
            };
            let (had_pages, has_pages) = (before.filter(has_pages), shown.filter(has_pages));
            let loses_pages = had_pages.is_some() && has_pages.is_none();
            self.check(!is_there || !loses_pages, || {
                format!("{tenant} showed {before:?}, and shows {shown:?}")
            });
            let is_pinned = self.disk.pins.contains_key(&tenant);
            let is_settled = !self
                .commands
                .values()
                .any(|(commanded, _)| *commanded == tenant);
            let shows_folder = matches!(
                shown,
                Some(ServedPage::Pages(_) | ServedPage::StandIn | ServedPage::Waiting)
            );
            self.check(!is_pinned || !is_settled || !shows_folder, || {
                format!("{tenant} is pinned, and shows {shown:?} of its folder")
            });
            match shown {
                Some(shown) => drop(self.snapshot.insert(tenant, shown)),
                None => drop(self.snapshot.remove(&tenant)),
            }
        }
        let snapshot = &self.snapshot;
        let is_served = |id: &TenantId| {
            let shown = snapshot.get(id);
            shown.is_some_and(|shown| *shown != ServedPage::Waiting)
        };
        let data = &self.data;
        let in_memory = |id: &TenantId| {
            data.get(id).is_some_and(|data| {
                data.served.is_some_and(|(_, here)| here)
                    || data.is_standing_in
                    || data.pinned.is_some()
            })
        };
        self.waiting.retain(|id| !(is_served(id) && in_memory(id)));
    }

    /// Ends a job, with a result or without.
    fn finish(&mut self, job: SimulatedJob, has_result: bool) {
        match job {
            SimulatedJob::Survey { only, removed } => {
                self.finish_survey(only, removed, has_result);
            }
            SimulatedJob::Read {
                tenant,
                number,
                waits,
                begun,
            } => {
                let (reading, is_changing) = self.reading(&tenant, begun, waits, has_result);
                self.send(Event::Read {
                    tenant,
                    number,
                    reading,
                    is_changing,
                });
            }
            SimulatedJob::Report { tenant, number } => {
                if let Some(data) = self.data.get_mut(&tenant) {
                    data.arrived = Some(SimulatedFolder {
                        version: 0,
                        is_valid: false,
                        is_locked: true,
                        upload: None,
                    });
                }
                self.send(Event::Read {
                    tenant,
                    number,
                    reading: ReadingOutcome::Changed {
                        has_errors: true,
                        is_unreadable: true,
                    },
                    is_changing: false,
                });
            }
            SimulatedJob::Build { tenant, key, .. } => {
                let is_requested = self.waiting.contains(&tenant);
                if let Some(data) = self.data.get_mut(&tenant)
                    && !has_result
                {
                    data.failed.insert(key);
                }
                let result = match has_result {
                    false => BuildResult::Failed,
                    true => BuildResult::Pages {
                        form: match is_requested {
                            true => ServedForm::Complete,
                            false => ServedForm::Unencoded,
                        },
                        is_persisted: false,
                        has_errors: false,
                        bytes: PAGES_BYTES,
                        is_requested,
                        is_urgent: is_requested,
                    },
                };
                self.send(Event::Built {
                    tenant,
                    key,
                    result,
                });
            }
            SimulatedJob::StandIn(tenant) => {
                let is_found = has_result && self.disk.persisted.contains(&tenant);
                self.send(Event::StoodIn { tenant, is_found });
            }
            SimulatedJob::LoadPin(tenant) => self.send(Event::PinLoaded {
                tenant,
                is_found: has_result,
            }),
            SimulatedJob::WritePin { tenant, to } => {
                let is_written = has_result && self.disk.is_writable;
                if is_written {
                    match to {
                        Some(number) => drop(self.disk.pins.insert(tenant.clone(), number)),
                        None => drop(self.disk.pins.remove(&tenant)),
                    }
                }
                self.send(Event::PinWritten { tenant, is_written });
            }
        }
    }

    fn finish_survey(
        &mut self,
        only: Option<BTreeSet<String>>,
        removed: Vec<TenantId>,
        has_result: bool,
    ) {
        let before = self.surveyed;
        if has_result {
            self.surveyed = self.disk.shared;
            let tenants = self.disk.folders.keys().cloned().collect();
            self.send(Event::Listed { tenants, only });
            for tenant in removed {
                let is_found = self.disk.persisted.contains(&tenant);
                self.send(Event::RemovedRead { tenant, is_found });
            }
            self.check_removed();
        }
        self.send(Event::Surveyed(match has_result {
            true if before == self.surveyed => SurveyOutcome::SameForAll,
            true => SurveyOutcome::NewForAll,
            false => SurveyOutcome::Failed,
        }));
    }

    /// Checks after a list that the world has exactly the tenants with a folder and the restored ones.
    fn check_removed(&mut self) {
        let folders = self.disk.folders.keys();
        let removed = self.world.removed().clone();
        let restored = removed.iter().filter(|(_, removed)| removed.is_restored);
        let restored: BTreeSet<&TenantId> = restored.map(|(id, _)| id).collect();
        let is_listed = folders
            .clone()
            .all(|id| self.world.tenant(id.as_str()).is_some());
        let is_both = folders.clone().any(|id| removed.contains_key(id));
        for tenant in (0..TENANTS.len()).map(id) {
            let is_there = self.world.tenant(tenant.as_str()).is_some();
            let has_folder = self.disk.folders.contains_key(&tenant);
            let is_restored = restored.contains(&tenant);
            self.check(is_there == (has_folder || is_restored), || {
                format!("{tenant}: folder {has_folder}, restored {is_restored}, known {is_there}")
            });
        }
        let on_disk = self.disk.removed.clone();
        self.check(is_listed && !is_both && removed == on_disk, || {
            format!("removed: {removed:?}, on disk {on_disk:?}")
        });
    }

    fn pop_job(&mut self, number: usize) -> Option<SimulatedJob> {
        let place = number.checked_rem(self.jobs.len())?;
        self.jobs.remove(place)
    }

    fn pass(&mut self, milliseconds: u64) {
        let time = Duration::from_millis(milliseconds);
        self.now.instant += time;
        self.now.time += time;
        let facts = self.facts();
        self.send(Event::QueueDrained(facts));
        self.check_uploads();
    }

    pub(super) fn perform(&mut self, step: HistoryStep) {
        match step {
            HistoryStep::Save { tenant, is_valid } => {
                self.disk.version += 1;
                let version = self.disk.version;
                if let Some(folder) = self.disk.folders.get_mut(&id(tenant)) {
                    (folder.version, folder.is_valid) = (version, is_valid);
                    folder.upload = None;
                    self.send(Event::Changed(ReloadScope::Tenant(
                        TENANTS[tenant].to_owned(),
                    )));
                }
            }
            HistoryStep::Upload { tenant, upload } => self.upload(tenant, upload),
            HistoryStep::Remove(tenant) => {
                self.disk.version += 1;
                let folder = SimulatedFolder {
                    version: self.disk.version,
                    is_valid: true,
                    is_locked: false,
                    upload: None,
                };
                if self.disk.folders.remove(&id(tenant)).is_none() {
                    self.disk.folders.insert(id(tenant), folder);
                }
                self.send(Event::Changed(ReloadScope::Tenant(
                    TENANTS[tenant].to_owned(),
                )));
            }
            HistoryStep::Lock(tenant) => {
                if let Some(folder) = self.disk.folders.get_mut(&id(tenant)) {
                    folder.is_locked = !folder.is_locked;
                    self.send(Event::Changed(ReloadScope::Tenant(
                        TENANTS[tenant].to_owned(),
                    )));
                }
            }
            HistoryStep::Theme(is_there) => {
                self.disk.shared.theme += 1;
                self.disk.shared.has_theme = is_there;
                self.send(Event::Changed(ReloadScope::Themes));
            }
            HistoryStep::Deployment => {
                self.disk.shared.deployment += 1;
                self.send(Event::Changed(ReloadScope::List));
            }
            HistoryStep::Finish(number) => {
                if let Some(job) = self.pop_job(number) {
                    self.finish(job, true);
                }
            }
            HistoryStep::Fail(number) => {
                if let Some(job) = self.pop_job(number) {
                    self.finish(job, false);
                }
            }
            HistoryStep::Repeat(number) => {
                if let Some(job) = self.pop_job(number) {
                    self.finish(job.clone(), true);
                    self.repeat(job);
                }
            }
            HistoryStep::Stall(number) => match self.pop_job(number) {
                Some(SimulatedJob::Read { tenant, number, .. }) => self.send(Event::Read {
                    tenant,
                    number,
                    reading: ReadingOutcome::Unresponsive,
                    is_changing: false,
                }),
                Some(job) => self.jobs.push_back(job),
                None => {}
            },
            HistoryStep::Panic(lost) => {
                self.pop_job(lost);
                self.jobs.retain(|job| {
                    !matches!(
                        job,
                        SimulatedJob::Survey { .. }
                            | SimulatedJob::LoadPin(_)
                            | SimulatedJob::WritePin { .. }
                    )
                });
                for data in self.data.values_mut() {
                    data.ordered = None;
                }
                self.send(Event::Recovered);
            }
            HistoryStep::Wait(milliseconds) => self.pass(milliseconds),
            HistoryStep::Request(tenant) => self.request(&id(tenant)),
            HistoryStep::Measure(tenants) => self.measure(tenants * PAGES_BYTES),
            HistoryStep::RollBack { tenant, release } => self.command(tenant, Some(release)),
            HistoryStep::Resume(tenant) => self.command(tenant, None),
            HistoryStep::Restore(tenant) => {
                let (tenant, ticket) = self.begin(tenant, true);
                self.send(Event::RestoreRequested { tenant, ticket });
            }
            HistoryStep::Disk(is_writable) => self.disk.is_writable = is_writable,
            HistoryStep::Restart => self.restart(),
        }
    }

    /// Reports the result of a finished job again.
    fn repeat(&mut self, job: SimulatedJob) {
        match job {
            SimulatedJob::Survey { .. } | SimulatedJob::StandIn(_) => {}
            // The pin is not written again.
            SimulatedJob::WritePin { tenant, .. } => self.send(Event::PinWritten {
                tenant,
                is_written: self.disk.is_writable,
            }),
            job => self.finish(job, true),
        }
    }

    fn request(&mut self, tenant: &TenantId) {
        let Some(data) = self.data.get_mut(tenant) else {
            return;
        };
        let in_memory = data.served.is_some_and(|(_, in_memory)| in_memory);
        let shown = self.snapshot.get(tenant);
        let is_shown = shown.is_some_and(|shown| *shown != ServedPage::Unavailable);
        if !is_shown || in_memory || data.pinned.is_some() || data.is_standing_in {
            return;
        }
        self.waiting.insert(tenant.clone());
        if let Some(key) = data.parked.take() {
            self.jobs.push_front(SimulatedJob::Build {
                tenant: tenant.clone(),
                key,
                is_background: false,
            });
        }
    }

    fn measure(&mut self, limit: usize) {
        self.limit = limit;
        let in_memory = |(tenant, data): (&TenantId, &SimulatedData)| {
            let (_, in_memory) = data.served?;
            in_memory.then(|| MeasuredPages {
                tenant: tenant.clone(),
                bytes: PAGES_BYTES,
                image_bytes: 0,
                is_requested: false,
                last_request: self.now.instant,
            })
        };
        let pages: Vec<MeasuredPages> = self.data.iter().filter_map(in_memory).collect();
        // A snapshot that follows the measurement may end the wait.
        let waiting = self.waiting.clone();
        self.send(Event::Measured {
            limit,
            pages: pages.clone(),
            waiting: waiting.clone(),
        });
        if !self.disk.is_writable {
            return;
        }
        let still_here = |measured: &&MeasuredPages| {
            let data = self.data.get(&measured.tenant);
            data.is_some_and(|data| data.served.is_some_and(|(_, in_memory)| in_memory))
        };
        let is_evictable = |measured: &&MeasuredPages| {
            let states = self.world.tenant(measured.tenant.as_str());
            !waiting.contains(&measured.tenant) && states.is_some_and(States::can_be_evicted)
        };
        let left: Vec<&MeasuredPages> = pages.iter().filter(still_here).collect();
        let has_excess = left.len() * PAGES_BYTES > limit && left.iter().any(is_evictable);
        self.check(!has_excess || self.world.has_unpersisted(), || {
            format!("{left:?} stay in memory beyond the limit of {limit} bytes")
        });
    }

    fn command(&mut self, tenant: usize, to: Option<u64>) {
        let (tenant, ticket) = self.begin(tenant, false);
        self.send(Event::PinRequested { tenant, to, ticket });
    }

    /// Begins a command. Returns its tenant and its ticket.
    fn begin(&mut self, tenant: usize, restores: bool) -> (TenantId, u64) {
        self.tickets += 1;
        let tenant = id(tenant);
        self.commands
            .insert(self.tickets, (tenant.clone(), restores));
        (tenant, self.tickets)
    }

    fn restart(&mut self) {
        self.world = world_of(&self.disk);
        self.surveyed = SharedInputs::default();
        self.jobs.clear();
        self.data.clear();
        self.snapshot.clear();
        self.waiting.clear();
        self.commands.clear();
        self.receiving.clear();
        self.send(Event::Requested(ReloadScope::Everything));
    }

    /// Ends all jobs in flight, and checks that the newest state of the disk is served.
    pub(super) fn settle(&mut self) {
        self.disk.is_writable = true;
        for folder in self.disk.folders.values_mut() {
            folder.is_locked = false;
        }
        self.end_uploads();
        for _ in 0..60 {
            self.pass(500);
            while let Some(job) = self.jobs.pop_front() {
                self.finish(job, true);
            }
        }
        self.check(self.commands.is_empty(), || {
            "a command has no reply".to_owned()
        });
        self.check(
            !self.world.has_unpersisted() || !self.disk.shared.has_theme,
            || "something is never persisted".to_owned(),
        );
        self.settle_removed();
        for (tenant, folder) in self.disk.folders.clone() {
            let states = self.world.tenant(tenant.as_str()).cloned();
            let is_reading = states.as_ref().is_none_or(States::is_in_flight);
            let shown = self.snapshot.get(&tenant).copied();
            let is_receiving = states.as_ref().is_some_and(States::is_receiving);
            self.check(!is_receiving, || {
                format!("{tenant} waits for complete files")
            });
            self.check(!is_reading, || {
                format!("{tenant} is never read or built: {states:?}")
            });
            let pin = self.disk.pins.get(&tenant).copied();
            let failed = self.data.get(&tenant).map(|data| data.failed.clone());
            let failed = failed.unwrap_or_default();
            let newest = self.disk.shared.key(folder.version);
            let newest = newest.filter(|key| folder.is_valid && !failed.contains(key));
            let unreadable = states.and_then(|states| states.unreadable_pin());
            match (pin, newest) {
                (Some(number), _) if shown.is_some() => self.check(
                    shown == Some(ServedPage::Release(number))
                        || (shown == Some(ServedPage::Unavailable) && unreadable == Some(number)),
                    || format!("{tenant} is pinned to {number}, and shows {shown:?}"),
                ),
                (None, Some(key)) => self.check(shown == Some(ServedPage::Pages(key)), || {
                    format!("{tenant} has {key:?}, and shows {shown:?}")
                }),
                _ => {}
            }
        }
    }

    /// Checks that restored tenants are served, and that the history of other tenants without a folder is forgotten.
    fn settle_removed(&mut self) {
        for tenant in (0..TENANTS.len()).map(id) {
            if self.disk.folders.contains_key(&tenant) {
                continue;
            }
            let removed = self.disk.removed.get(&tenant).copied();
            let shown = self.snapshot.get(&tenant).copied();
            let data = self.data.get(&tenant).cloned().unwrap_or_default();
            // A folder that was back for a time has newer content than the persisted folder.
            let key = self.disk.shared.key(data.content.unwrap_or(0));
            let can_build = key.is_some_and(|key| !data.failed.contains(&key));
            match removed {
                Some(removed) if removed.is_restored => {
                    let is_served = shown.is_some_and(|shown| shown != ServedPage::Waiting);
                    self.check(is_served || !can_build, || {
                        format!("{tenant} is restored, and shows {shown:?}")
                    });
                }
                _ => {
                    let is_kept = self.disk.persisted.contains(&tenant);
                    self.check(shown.is_none() && !is_kept && removed.is_none(), || {
                        format!("{tenant} has no folder, and shows {shown:?}; {removed:?}")
                    });
                }
            }
        }
    }
}
