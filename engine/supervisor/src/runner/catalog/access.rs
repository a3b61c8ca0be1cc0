//! The rules of access in force, from `deployment.yaml` and from the rules that held before.
//!
//! An error in the file closes tenants, and never opens one:
//!
//! | file | tenants that the last valid file protects | other tenants |
//! |---|---|---|
//! | valid | - | as the file says; an open tenant that was protected only once the file was unchanged for a while |
//! | valid, and protects an unknown tenant | - | the tenants without an entry whose names are nearest are closed |
//! | not valid, or cannot be read | keep their credentials | tenants that were added since are closed, if the file may protect them |
//! | removed while the program runs | closed | tenants that were added since are closed, if the file protected any tenant |
//! | not valid at the first startup | - | closed, if the file may protect them |
//! | absent at a startup | closed, if the state names them | open |
//!
//! **Invariant:** pure: the file, the rules before and the persisted rules decide.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::SystemTime;

use content::address::deployment::DeploymentFile;
use content::name::TenantId;
use release::snapshot::access::{AccessRule, AccessTable, Credential};

/// The state of `deployment.yaml`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FileState {
    /// The file in force was just read.
    Valid,
    /// There is no file, and there was none since startup.
    Absent,
    /// The file was removed, or `--deployment` names a file that does not exist.
    Missing,
    /// The file has errors or cannot be read. Its text may be meant to protect tenants.
    Invalid { may_protect: bool },
}

/// The rules in force, and the facts that outlive the file.
#[derive(Debug, Default)]
pub(crate) struct AccessControl {
    /// `None` until the file was looked for. Every tenant is closed until then.
    table: Option<Arc<AccessTable>>,
    /// The tenants that the last valid file protects.
    protected: BTreeSet<Box<str>>,
    /// The tenants that an earlier process closed because they were added while the file was not valid.
    closed_before: BTreeSet<Box<str>>,
    /// The tenants that stay open while the file is not valid. `None` while the file is valid or protects no tenant.
    open: Option<BTreeSet<Box<str>>>,
    /// The tenants that are closed because an entry may misspell their names, by entry.
    misspelt: BTreeMap<Box<str>, BTreeSet<Box<str>>>,
    /// The entries in force that have named a tenant. The entry of a removed tenant closes no tenant that was open beside it.
    found: BTreeSet<Box<str>>,
    /// The tenants that the entry of a removed tenant may mean, because they were closed before, or protected by an earlier process.
    suspected: BTreeSet<Box<str>>,
    /// Whether the rules have changed since [`Self::mark_applied`].
    is_new: bool,
}

/// The facts that outlive the process: the ids of protected tenants, and of tenants that were added while the file was not valid.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PersistedAccess {
    pub(crate) protected: BTreeSet<Box<str>>,
    pub(crate) closed: BTreeSet<Box<str>>,
    /// The protected tenants that existed.
    pub(crate) found: BTreeSet<Box<str>>,
}

impl AccessControl {
    /// Restores the persisted facts.
    pub(crate) fn restore(&mut self, persisted: PersistedAccess) {
        self.suspected = persisted.protected.clone();
        self.found = persisted.found;
        self.protected = persisted.protected;
        self.closed_before = persisted.closed;
    }

    /// Returns the rules in force.
    pub(crate) fn table(&self) -> Arc<AccessTable> {
        let closed = || Arc::new(AccessTable::default().with_others_closed([]));
        let table = self.table.clone().unwrap_or_else(closed);
        match self.misspelt.is_empty() {
            true => table,
            false => Arc::new((*table).clone().with_closed(self.closed_as_misspelt())),
        }
    }

    /// Returns the tenants that are closed because an entry may misspell their names, by entry.
    pub(crate) const fn misspelt(&self) -> &BTreeMap<Box<str>, BTreeSet<Box<str>>> {
        &self.misspelt
    }

    fn closed_as_misspelt(&self) -> impl Iterator<Item = Box<str>> {
        self.misspelt.values().flatten().cloned()
    }

    /// Returns whether the rules have changed since [`Self::mark_applied`].
    pub(crate) const fn is_new(&self) -> bool {
        self.is_new
    }

    /// Records that pages and sitemaps follow the rules.
    pub(crate) const fn mark_applied(&mut self) {
        self.is_new = false;
    }

    /// Returns the tenants that the last valid file protects and `file` does not.
    pub(crate) fn opened_by(&self, file: &DeploymentFile) -> Vec<&str> {
        let protected: BTreeSet<&str> = file.protected().map(|(id, _)| id).collect();
        let before = self.protected.iter().map(|id| &**id);
        before.filter(|id| !protected.contains(id)).collect()
    }

    /// Returns whether the last valid file protects a tenant.
    pub(crate) fn has_protected(&self) -> bool {
        !self.protected.is_empty()
    }

    /// Applies the state of the file. `in_force`: the last valid file. `tenants`: the tenants that have addresses.
    pub(crate) fn update(
        &mut self,
        state: FileState,
        in_force: Option<&DeploymentFile>,
        tenants: &BTreeSet<&TenantId>,
    ) {
        let rules = in_force.into_iter().flat_map(rules);
        let rules: Vec<(Box<str>, AccessRule)> = rules.collect();
        if matches!(state, FileState::Valid) {
            self.protected = rules.iter().map(|(id, _)| id.clone()).collect();
            self.closed_before.clear();
        }
        let closed = self.protected.iter().cloned();
        let closed = closed.map(|id| (id, AccessRule::Closed));
        let (table, may_protect) = match state {
            FileState::Valid => (AccessTable::new(rules), false),
            FileState::Absent => (AccessTable::new(closed), false),
            FileState::Missing => {
                let may_protect = in_force.is_none() || self.has_protected();
                (AccessTable::new(closed), may_protect)
            }
            // A rule of the file in force replaces the closed one.
            FileState::Invalid { may_protect } => {
                (AccessTable::new(closed.chain(rules)), may_protect)
            }
        };
        let is_known = self.table.is_some() || in_force.is_some();
        let was_open = |id: &&TenantId| is_known && !self.closed_before.contains(id.as_str());
        self.open = may_protect.then(|| {
            let open = self.open.take();
            open.unwrap_or_else(|| {
                let open = tenants.iter().copied().filter(was_open);
                open.map(|id| id.as_str().into()).collect()
            })
        });
        let table = match &self.open {
            Some(open) => table.with_others_closed(open.iter().cloned()),
            None => table,
        };
        if self.table.as_deref() != Some(&table) {
            self.table = Some(Arc::new(table));
            self.is_new = true;
        }
    }

    /// Closes the tenants whose names `file` may misspell. `tenants`: all tenants. `is_added`: whether a tenant was added since the last call, or since an earlier process.
    pub(crate) fn close_misspelt<'t>(
        &mut self,
        file: Option<&DeploymentFile>,
        tenants: impl Iterator<Item = &'t str> + Clone,
        is_known: impl Fn(&str) -> bool,
        is_added: impl Fn(&str) -> bool,
    ) {
        let mut misspelt = BTreeMap::new();
        if let Some(file) = file {
            let entries = file.protected().map(|(id, _)| id);
            let found = entries.filter(|id| is_known(id) || self.found.contains(*id));
            self.found = found.map(Box::from).collect();
            for entry in file.unknown_protected(&is_known) {
                let is_leftover = self.found.contains(entry);
                let may_mean =
                    |id: &&str| !is_leftover || is_added(id) || self.suspected.contains(*id);
                let meant = file.meant_by(entry, tenants.clone().filter(may_mean));
                if !meant.is_empty() {
                    let meant: BTreeSet<Box<str>> = meant.into_iter().map(Box::from).collect();
                    misspelt.insert(entry.into(), meant);
                }
            }
        }
        self.suspected = misspelt.values().flatten().cloned().collect();
        if self.misspelt != misspelt {
            self.misspelt = misspelt;
            self.is_new = true;
        }
    }

    /// Returns the facts to persist. `tenants`: the tenants that have addresses.
    pub(crate) fn persistable<'t>(
        &self,
        tenants: impl Iterator<Item = &'t TenantId>,
    ) -> PersistedAccess {
        let closed = match &self.open {
            Some(open) => {
                let added = tenants.filter(|id| !open.contains(id.as_str()));
                added.map(|id| id.as_str().into()).collect()
            }
            None => self.closed_before.clone(),
        };
        let protected = self.protected.iter().cloned();
        PersistedAccess {
            protected: protected.chain(self.closed_as_misspelt()).collect(),
            closed,
            found: self.found.intersection(&self.protected).cloned().collect(),
        }
    }

    /// Returns a sentence about the tenants that are closed, if any are.
    pub(crate) fn closed_sentence(&self) -> Option<String> {
        let table = self.table();
        let closed = table.named();
        let closed = closed.filter(|(_, rule)| **rule == AccessRule::Closed);
        let mut closed: Vec<String> = closed.map(|(id, _)| format!("`{id}`")).collect();
        closed.sort_unstable();
        let others = match (table.closes_others(), table.has_open()) {
            (true, false) => return Some("every tenant answers 503".to_owned()),
            (true, true) => Some("a tenant that is added answers 503".to_owned()),
            (false, _) => None,
        };
        let named = (!closed.is_empty()).then(|| match closed.len() {
            1 => format!("the protected tenant {} answers 503", closed[0]),
            _ => format!("the protected tenants {} answer 503", closed.join(", ")),
        });
        let sentences: Vec<String> = named.into_iter().chain(others).collect();
        (!sentences.is_empty()).then(|| sentences.join(", and "))
    }
}

/// Returns the rules of a valid file.
fn rules(file: &DeploymentFile) -> impl Iterator<Item = (Box<str>, AccessRule)> {
    file.protected().map(|(id, credentials)| {
        let credentials = credentials.into_iter().filter_map(|credential| {
            Some(Credential {
                user: credential.user.as_str().into(),
                token_sha256: credential.token_sha256.bytes()?,
                ends: credential.ends().map(SystemTime::from),
            })
        });
        (id.into(), AccessRule::Credentials(credentials.collect()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: Option<&str> = None;
    const CLOSED: Option<&str> = Some("closed");
    const KEY: Option<&str> = Some("credentials");

    fn file(text: &str) -> DeploymentFile {
        let hash = "0".repeat(64);
        let access = format!("access: {{client: {{user: a, token_sha256: \"{hash}\"}}}}\n{text}");
        DeploymentFile::read("deployment.yaml", &access).0.unwrap()
    }

    fn ids(names: &[&str]) -> Vec<TenantId> {
        let ids = names.iter().map(|name| TenantId::new(name).unwrap());
        ids.collect()
    }

    /// Applies a state of the file while `before` have addresses, and returns the rules of three tenants.
    fn apply<'r>(
        control: &mut AccessControl,
        state: FileState,
        in_force: Option<&DeploymentFile>,
        before: &[&str],
    ) -> [Option<&'r str>; 3] {
        let before = ids(before);
        control.update(state, in_force, &before.iter().collect());
        let table = control.table();
        ["secret", "public", "added"].map(|id| {
            table.rule(id).map(|rule| match rule {
                AccessRule::Closed => "closed",
                AccessRule::Credentials(_) => "credentials",
            })
        })
    }

    const INVALID: FileState = FileState::Invalid { may_protect: true };
    const HARMLESS: FileState = FileState::Invalid { may_protect: false };
    const BOTH: &[&str] = &["secret", "public"];
    const ALL: &[&str] = &["secret", "public", "added"];

    #[test]
    fn every_tenant_is_closed_until_the_file_was_looked_for() {
        assert_eq!(
            AccessControl::default().table().rule("public"),
            Some(&AccessRule::Closed)
        );
    }

    #[test]
    fn error_closes_and_never_opens() {
        let valid = file("tenants: {secret: {access: [client]}}");
        let mut control = AccessControl::default();
        let in_force = Some(&valid);
        let steps = [
            (FileState::Valid, &[][..], [KEY, OPEN, OPEN]),
            (INVALID, BOTH, [KEY, OPEN, CLOSED]),
            // A tenant that was added while the file was not valid stays closed.
            (INVALID, ALL, [KEY, OPEN, CLOSED]),
            (FileState::Missing, ALL, [CLOSED, OPEN, CLOSED]),
            (INVALID, ALL, [KEY, OPEN, CLOSED]),
            (FileState::Valid, ALL, [KEY, OPEN, OPEN]),
            (HARMLESS, BOTH, [KEY, OPEN, OPEN]),
        ];
        for (number, (state, before, expected)) in steps.into_iter().enumerate() {
            let rules = apply(&mut control, state, in_force, before);
            assert_eq!(rules, expected, "step {number}");
        }
    }

    #[test]
    fn first_startup_with_an_error_closes_every_tenant() {
        let mut control = AccessControl::default();
        assert_eq!(apply(&mut control, INVALID, None, &[]), [CLOSED; 3]);
        assert_eq!(apply(&mut control, INVALID, None, ALL), [CLOSED; 3]);
        let mut control = AccessControl::default();
        assert_eq!(
            apply(&mut control, FileState::Missing, None, &[]),
            [CLOSED; 3]
        );
        let mut control = AccessControl::default();
        assert_eq!(apply(&mut control, HARMLESS, None, &[]), [OPEN; 3]);
        // Tenants that were served without a file stay open.
        let mut control = AccessControl::default();
        assert_eq!(apply(&mut control, FileState::Absent, None, &[]), [OPEN; 3]);
        let rules = apply(&mut control, INVALID, None, BOTH);
        assert_eq!(rules, [OPEN, OPEN, CLOSED]);
    }

    /// Returns the rules after `after` follow the tenants `before`.
    fn close<'r>(
        control: &mut AccessControl,
        file: &DeploymentFile,
        before: &[&str],
        after: &[&str],
    ) -> [Option<&'r str>; 3] {
        control.close_misspelt(
            Some(file),
            after.iter().copied(),
            |id| after.contains(&id),
            |id| !before.contains(&id),
        );
        apply(control, FileState::Valid, Some(file), after)
    }

    #[test]
    fn misspelt_entry_closes_the_nearest_tenant_without_an_entry() {
        for (entries, expected) in [
            ("secrte: {access: [client]}", [CLOSED, OPEN, OPEN]),
            ("SECRET: {access: [client]}", [CLOSED, OPEN, OPEN]),
            ("secrte: {access: [client]}, secret: {}", [OPEN; 3]),
            ("secrte: {aliases: [/a]}", [OPEN; 3]),
            ("elsewhere: {access: [client]}", [OPEN; 3]),
            (
                "secret: {access: [client]}, publi: {access: [client]}",
                [KEY, CLOSED, OPEN],
            ),
        ] {
            let file = file(&format!("tenants: {{{entries}}}"));
            let mut control = AccessControl::default();
            assert_eq!(close(&mut control, &file, &[], ALL), expected, "{entries}");
            assert!(control.is_new());
            let closed = control.persistable(ids(ALL).iter()).protected;
            assert_eq!(closed.contains("public"), expected[1] == CLOSED);
        }
    }

    #[test]
    fn entry_of_a_removed_tenant_closes_only_a_tenant_that_is_added() {
        let file = file("tenants: {secret: {access: [client]}}");
        let mut control = AccessControl::default();
        let both = &["secret", "secret-2"][..];
        close(&mut control, &file, &[], both);
        control.mark_applied();
        let rule = |control: &AccessControl, id| control.table().rule(id).cloned();
        close(&mut control, &file, both, &["secret-2"]);
        assert_eq!(rule(&control, "secret-2"), None);
        assert!(!control.is_new());
        // The folder was renamed.
        let renamed = &["secret-2", "secrets"][..];
        for before in [&["secret-2"][..], renamed] {
            close(&mut control, &file, before, renamed);
            assert_eq!(rule(&control, "secrets"), Some(AccessRule::Closed));
            assert_eq!(rule(&control, "secret-2"), None);
        }
    }

    #[test]
    fn restart_remembers_entries_of_removed_tenants() {
        let file = file("tenants: {secret: {access: [client]}}");
        let restart = |persisted: &PersistedAccess, tenants: &[&str]| {
            let mut control = AccessControl::default();
            control.restore(persisted.clone());
            control.update(FileState::Valid, Some(&file), &BTreeSet::new());
            let is_known = |id: &str| tenants.contains(&id);
            control.close_misspelt(Some(&file), tenants.iter().copied(), is_known, |_| false);
            control
        };
        let mut control = AccessControl::default();
        close(&mut control, &file, &[], &["secret", "secret-2"]);
        let persisted = control.persistable([].iter());
        assert_eq!(persisted.found, BTreeSet::from(["secret".into()]));
        let control = restart(&persisted, &["secret-2"]);
        assert!(control.misspelt().is_empty());
        assert_eq!(control.table().rule("secret-2"), None);
        // Without the state, the entry may mean the other tenant.
        let control = restart(&PersistedAccess::default(), &["secret-2"]);
        let closed = Some(&AccessRule::Closed);
        assert_eq!(control.table().rule("secret-2"), closed);
        // A tenant that was closed stays closed.
        let persisted = PersistedAccess {
            found: persisted.found,
            ..control.persistable([].iter())
        };
        let control = restart(&persisted, &["secret-2"]);
        assert_eq!(control.table().rule("secret-2"), closed);
    }

    #[test]
    fn restart_remembers_protected_and_closed_tenants() {
        let valid = file("tenants: {secret: {access: [client]}}");
        let mut control = AccessControl::default();
        apply(&mut control, FileState::Valid, Some(&valid), &[]);
        apply(&mut control, INVALID, Some(&valid), BOTH);
        let persisted = control.persistable(ids(ALL).iter());
        let restart = || {
            let mut control = AccessControl::default();
            control.restore(persisted.clone());
            control
        };
        // With the valid file from the state.
        let rules = apply(&mut restart(), INVALID, Some(&valid), ALL);
        assert_eq!(rules, [KEY, OPEN, CLOSED]);
        let mut control = restart();
        let rules = apply(&mut control, FileState::Absent, None, ALL);
        assert_eq!(rules, [CLOSED, OPEN, OPEN]);
        assert!(
            control
                .persistable(ids(ALL).iter())
                .protected
                .contains("secret")
        );
        let sentence = control.closed_sentence().unwrap();
        assert_eq!(sentence, "the protected tenant `secret` answers 503");
        // Only a valid file lifts the protection.
        let open = file("tenants: {}");
        let rules = apply(&mut control, FileState::Valid, Some(&open), ALL);
        assert_eq!(rules, [OPEN; 3]);
        assert_eq!(
            control.persistable(ids(ALL).iter()),
            PersistedAccess::default()
        );
    }
}
