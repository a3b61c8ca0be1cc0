//! The tenants that a replica knows: awake with their content on the disk, or dormant in one row each.
//!
//! The follower and the thread that wakes tenants share this state. Neither holds its lock while the store or the disk works.
//!
//! **Invariant:** an awake tenant keeps its last complete version until another version is complete, or until it goes to sleep.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fleet::exchange::{ObjectTag, StoredObject};
use fleet::key::{ObjectKey, SHARED};
use fleet::pointer::{ContentObject, Pointer};
use fleet::residence::{Action, Event, Residence};

use crate::download::cache::{Index, IndexLine};
use crate::download::fetch::FetchError;
use crate::follow::rows::{Rows, SharedRows, TenantVersion};
use crate::store::{Change, ListedObject};

/// The time for which the row of a woken tenant stays, because no snapshot has its addresses yet. Requests wait as long.
const ARRIVAL_TIME: Duration = Duration::from_secs(12);

/// The address of the tenant at the root of the origin.
const ROOT: &str = "/";

/// A version that is not on the disk yet.
#[derive(Debug, Clone)]
pub(crate) struct PendingVersion {
    pub(crate) version: TenantVersion,
    pub(crate) content: Vec<ContentObject>,
    /// When the version could last not be used.
    pub(crate) failed: Option<Instant>,
}

/// The tenants that a replica knows.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) index: Index,
    pub(crate) pending: BTreeMap<String, PendingVersion>,
    /// The reasons that the newest versions of tenants cannot be used.
    pub(crate) problems: BTreeMap<String, String>,
    /// The known tenants without a pointer.
    pub(crate) missing: BTreeSet<String>,
    /// The tags of the pointers without content.
    withdrawn: BTreeMap<String, ObjectTag>,
    pub(crate) rows: SharedRows,
    residence: Residence,
    /// The versions whose content is being fetched because of a request.
    waking: BTreeMap<String, TenantVersion>,
    /// The tenants that have woken, and when.
    arrivals: VecDeque<(Instant, String)>,
    /// The changes that the index on the disk lacks.
    unsaved: Vec<IndexLine>,
    begun: Instant,
}

impl Known {
    pub(crate) fn new(index: Index, rows: Rows) -> Self {
        let mut known = Self {
            index,
            pending: BTreeMap::new(),
            problems: BTreeMap::new(),
            missing: BTreeSet::new(),
            withdrawn: BTreeMap::new(),
            rows: SharedRows::new(rows),
            residence: Residence::new(usize::MAX),
            waking: BTreeMap::new(),
            arrivals: VecDeque::new(),
            unsaved: Vec::new(),
            begun: Instant::now(),
        };
        known.set_limit(usize::MAX);
        known
    }

    /// Sets the largest number of awake tenants. Tenants beyond the limit go to sleep.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.residence = Residence::new(limit);
        let tenants = self.index.tenants.iter();
        let mut tenants: Vec<(bool, String)> = tenants
            .filter(|(name, _)| !is_shared(name))
            .map(|(name, version)| (!is_root(version), name.clone()))
            .collect();
        tenants.sort();
        for (_, name) in tenants {
            if !self.residence.admit(&name) {
                self.sleep(&name);
            }
        }
    }

    /// Sets the tenants that never go to sleep.
    pub(crate) fn set_needed(&mut self, needed: BTreeSet<String>) {
        self.residence.set_needed(needed);
    }

    /// Records that all pointers were listed and read.
    pub(crate) fn set_listed(&mut self) {
        if !self.index.is_listed {
            self.index.is_listed = true;
            self.unsaved.push(IndexLine::Listed);
        }
    }

    /// Returns whether all tenants of the last list are known, and there were any.
    pub(crate) fn has_all_tenants(&self) -> bool {
        let is_tenant = |name: &String| !is_shared(name);
        let has_any = self.index.tenants.keys().any(is_tenant) || !self.rows.read().is_empty();
        self.index.is_listed && has_any
    }

    /// Returns the number of tenants without content on the disk.
    pub(crate) fn dormant(&self) -> usize {
        self.rows.read().len().saturating_sub(self.arrivals.len())
    }

    /// Compares the listed pointers with the known ones. Returns the names of pointers that must be read.
    pub(crate) fn compare(
        &mut self,
        listed: Vec<ListedObject>,
        changed: &mut BTreeSet<String>,
    ) -> Vec<String> {
        let is_missing = |name: &str| {
            let found = listed.binary_search_by(|object| object.name.as_str().cmp(name));
            found.is_err()
        };
        let rows = self.rows.clone();
        let (awake, rows) = (self.index.tenants.keys(), rows.read());
        let known = awake.map(String::as_str).chain(rows.names());
        self.missing = known
            .filter(|name| is_missing(name))
            .map(ToOwned::to_owned)
            .collect();
        drop(rows);
        let mut unknown = Vec::new();
        for ListedObject { name, tag } in listed {
            match tag.is_some_and(|tag| self.has_tag(&name, &tag)) {
                // The version is known, and not on the disk yet.
                true if self.pending.contains_key(&name) => {}
                true => self.apply(name, Change::None, changed),
                false => unknown.push(name),
            }
        }
        unknown
    }

    /// Returns whether the pointer with this tag was read.
    fn has_tag(&self, name: &str, tag: &ObjectTag) -> bool {
        if let Some(pending) = self.pending.get(name) {
            return pending.version.has_tag(tag);
        }
        if let Some(version) = self.index.tenants.get(name) {
            return version.has_tag(tag);
        }
        if let Some(withdrawn) = self.withdrawn.get(name) {
            return withdrawn.opaque() == tag.opaque();
        }
        let row = self.rows.read().get(name);
        row.is_some_and(|row| row.has_tag(tag))
    }

    /// Returns the tag of the pointer of an awake tenant, whose content the replica has.
    pub(crate) fn tag(&self, name: &str) -> Option<ObjectTag> {
        let version = self.index.tenants.get(name)?;
        Some(ObjectTag(version.tag.clone()))
    }

    /// Applies the state of a pointer.
    pub(crate) fn apply(&mut self, name: String, change: Change, changed: &mut BTreeSet<String>) {
        let object = match change {
            Change::Missing => {
                if self.index.tenants.contains_key(&name) || self.rows.read().has(&name) {
                    self.missing.insert(name);
                }
                return;
            }
            Change::None => {
                self.missing.remove(&name);
                // A version that could not be used was followed by the known version.
                self.pending.remove(&name);
                if self.problems.remove(&name).is_some() {
                    changed.insert(name);
                }
                return;
            }
            Change::Object(object) => object,
        };
        self.missing.remove(&name);
        let StoredObject { body, tag, .. } = object;
        // No command withdraws a shared folder. Without the rules in `deployment.yaml`, protected tenants would be open.
        let is_fit = |pointer: &Pointer| !is_shared(&name) || !pointer.content.is_empty();
        let Some(pointer) = Pointer::of_bytes(&body).filter(is_fit) else {
            self.set_damaged(name, changed);
            return;
        };
        self.withdrawn.remove(&name);
        if pointer.content.is_empty() {
            self.withdraw(name, tag, changed);
            return;
        }
        let Some(version) = TenantVersion::of(&pointer, &tag) else {
            self.set_damaged(name, changed);
            return;
        };
        if is_root(&version) {
            // The pages of other tenants show data of the tenant at the root.
            for action in self.step(Event::Requested(&name)) {
                if let Action::Sleep(asleep) = action {
                    changed.insert(asleep);
                }
            }
        }
        if is_shared(&name) || self.residence.admit(&name) {
            let version = PendingVersion {
                version,
                content: pointer.content,
                failed: None,
            };
            self.pending.insert(name, version);
            return;
        }
        if self.problems.remove(&name).is_some() {
            changed.insert(name.clone());
        }
        self.rows.write().insert(&name, &version);
        self.unsaved.push(IndexLine::Dormant(name, version));
    }

    /// Removes a tenant whose pointer has no content.
    fn withdraw(&mut self, name: String, tag: ObjectTag, changed: &mut BTreeSet<String>) {
        self.withdrawn.insert(name.clone(), tag);
        self.pending.remove(&name);
        self.problems.remove(&name);
        self.step(Event::Withdrawn(&name));
        let was_awake = self.index.tenants.remove(&name).is_some();
        let was_dormant = self.rows.write().remove(&name).is_some();
        if was_awake || was_dormant {
            self.unsaved.push(IndexLine::Gone(name.clone()));
            changed.insert(name);
        }
    }

    fn set_damaged(&mut self, name: String, changed: &mut BTreeSet<String>) {
        let problem = FetchError::Pointer(ObjectKey::pointer(&name));
        self.set_problem(name, &problem, changed);
    }

    pub(crate) fn set_problem(
        &mut self,
        name: String,
        problem: &FetchError,
        changed: &mut BTreeSet<String>,
    ) {
        let problem = problem.to_string();
        if self.problems.get(&name) != Some(&problem) {
            self.problems.insert(name.clone(), problem);
            changed.insert(name);
        }
    }

    /// Records whether the index has the newest version of a shared folder.
    pub(crate) fn set_current(&mut self, name: &str, is_current: bool) {
        let has_changed = match is_current {
            true => self.index.current.insert(name.to_owned()),
            false => self.index.current.remove(name),
        };
        if has_changed {
            let current = self.index.current.clone();
            self.unsaved.push(IndexLine::Current(current));
        }
    }

    /// Records that the content of a pending version is on the disk.
    pub(crate) fn complete(&mut self, name: String, changed: &mut BTreeSet<String>) {
        let Some(pending) = self.pending.remove(&name) else {
            return;
        };
        if is_shared(&name) {
            self.set_current(&name, true);
        }
        self.step(Event::Fetched(&name));
        // The age of a preview begins with its newest version, also if the content is that of the version before.
        let (folder, at) = (pending.version.folder.clone(), pending.version.at);
        let had_problem = self.problems.remove(&name).is_some();
        let former = self.awake(&name, pending.version);
        let is_same = |former: &TenantVersion| former.folder == folder && former.at == at;
        if had_problem || !former.is_some_and(|former| is_same(&former)) {
            changed.insert(name);
        }
    }

    /// Adds a version to the awake tenants. Returns the version that it replaces.
    fn awake(&mut self, name: &str, version: TenantVersion) -> Option<TenantVersion> {
        if self.rows.read().has(name) {
            self.arrivals.push_back((Instant::now(), name.to_owned()));
        }
        let line = IndexLine::Awake(name.to_owned(), version.clone());
        self.unsaved.push(line);
        self.index.tenants.insert(name.to_owned(), version)
    }

    /// Removes the rows of tenants that have woken some time ago.
    pub(crate) fn end_arrivals(&mut self) {
        let is_over = |(woken, _): &(Instant, String)| woken.elapsed() > ARRIVAL_TIME;
        while self.arrivals.front().is_some_and(is_over)
            && let Some((_, name)) = self.arrivals.pop_front()
        {
            if self.index.tenants.contains_key(&name) {
                self.rows.write().remove(&name);
            }
        }
    }

    /// Applies an event. Returns the decisions; tenants that go to sleep are dormant already.
    pub(crate) fn step(&mut self, event: Event<'_>) -> Vec<Action> {
        let actions = self.residence.step(event, self.begun.elapsed());
        for action in &actions {
            match action {
                Action::Sleep(name) => self.sleep(name),
                Action::Fetch(name) => {
                    let row = self.rows.read().get(name);
                    self.waking.extend(row.map(|row| (name.clone(), row)));
                }
            }
        }
        actions
    }

    /// Moves a tenant from the awake to the dormant ones.
    fn sleep(&mut self, name: &str) {
        let pending = self.pending.remove(name);
        let awake = self.index.tenants.remove(name);
        self.problems.remove(name);
        if let Some(version) = pending.map(|pending| pending.version).or(awake) {
            self.rows.write().insert(name, &version);
            let line = IndexLine::Dormant(name.to_owned(), version);
            self.unsaved.push(line);
        }
    }

    /// Returns the version of a tenant that is waking.
    pub(crate) fn waking(&self, name: &str) -> Option<TenantVersion> {
        self.waking.get(name).cloned()
    }

    /// Ends the fetch of a tenant because of a request: with the version that is on the disk now, or without.
    pub(crate) fn end_waking(&mut self, name: &str, fetched: Option<TenantVersion>) {
        self.waking.remove(name);
        if !self.residence.has(name) {
            // The tenant was withdrawn meanwhile.
            return;
        }
        match fetched {
            Some(version) => {
                self.awake(name, version);
                self.step(Event::Fetched(name));
            }
            // The follower downloads a newer version.
            None if self.pending.contains_key(name) => drop(self.step(Event::Fetched(name))),
            None => drop(self.step(Event::Failed(name))),
        }
    }

    /// Returns the names of the folders that are in use.
    pub(crate) fn used_folders(&self) -> BTreeSet<&str> {
        let versions = self.index.tenants.values().chain(self.waking.values());
        versions.map(|version| &*version.folder.0).collect()
    }

    /// Returns the number of lines of an index without replaced lines.
    pub(crate) fn lines(&self) -> usize {
        self.index.tenants.len() + self.rows.read().len()
    }

    /// Returns the changes that the index on the disk lacks, and forgets them.
    pub(crate) fn take_unsaved(&mut self) -> Vec<IndexLine> {
        std::mem::take(&mut self.unsaved)
    }

    /// Returns the number of changes that the index on the disk lacks.
    pub(crate) const fn unsaved(&self) -> usize {
        self.unsaved.len()
    }

    /// Puts changes back that could not be written.
    pub(crate) fn restore_unsaved(&mut self, mut lines: Vec<IndexLine>) {
        lines.append(&mut self.unsaved);
        self.unsaved = lines;
    }
}

/// The tenants that several threads know together.
#[derive(Debug, Clone)]
pub(crate) struct SharedKnown(Arc<Mutex<Known>>);

impl SharedKnown {
    pub(crate) fn new(known: Known) -> Self {
        Self(Arc::new(Mutex::new(known)))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether a tenant claims the root of the origin.
fn is_root(version: &TenantVersion) -> bool {
    version.addresses.iter().any(|address| address == ROOT)
}

/// Returns whether a name is the name of a folder that all tenants share.
pub(crate) fn is_shared(name: &str) -> bool {
    SHARED.contains(&name)
}
