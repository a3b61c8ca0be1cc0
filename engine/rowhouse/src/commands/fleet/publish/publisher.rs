//! Checks folders, and publishes them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use content::name::TenantId;
use content::name::preview::is_preview;
use content::report::{Code, Diagnostic, Report, hint_for};
use fleet::key::{DEPLOYMENT, THEMES};
use fleet::publish::Edit;
use render::CachePolicy;
use supervisor::Registry;

use super::line::{Line, LineResult};
use super::places::{hosts, places, prevents, read};
use crate::cli::{ListFormat, PublishArguments};
use crate::commands::authoring::check::as_text;
use crate::commands::fleet::folder::pack;
use crate::commands::fleet::progress_bar::WorkBar;
use crate::commands::fleet::session::{Ending, Session};
use crate::commands::setup::registry;

/// The folders, and the store to which they are published.
pub(super) struct FolderPublisher<'a> {
    pub(super) arguments: &'a PublishArguments,
    pub(super) session: Session,
    pub(super) registry: Registry,
}

impl<'a> FolderPublisher<'a> {
    pub(super) fn new(arguments: &'a PublishArguments, session: Session) -> anyhow::Result<Self> {
        let registry = registry(&arguments.content, CachePolicy::default(), None, false)?;
        Ok(Self {
            arguments,
            session,
            registry: registry.without_compression(),
        })
    }

    pub(super) fn is_text(&self) -> bool {
        self.arguments.format == ListFormat::Text
    }

    /// Reads and checks the folders that have changed.
    pub(super) fn reload(&mut self) -> anyhow::Result<()> {
        let _bar = WorkBar::unlimited("checking the folders", self.is_text());
        self.registry.reload(Timestamp::now())?;
        Ok(())
    }

    /// Returns the path of each name that can be published.
    pub(super) fn places(&self) -> BTreeMap<String, PathBuf> {
        let mut places = places(&self.arguments.content, &self.registry);
        if self.arguments.preview.is_some() {
            places.retain(|name, _| can_have_preview(name));
        }
        places
    }

    /// Returns the name under which a folder is published.
    ///
    /// # Errors
    /// Returns a diagnostic if the folder cannot have the preview.
    pub(super) fn target(&self, name: &str) -> Result<String, Diagnostic> {
        let Some(label) = &self.arguments.preview else {
            return Ok(name.to_owned());
        };
        let target = TenantId::of_preview(name, label);
        target.map(|id| id.to_string()).map_err(|error| {
            let folder = self.arguments.content.tenants.join(name);
            let hint = "choose a shorter label for `--preview`";
            let message = format!("cannot publish the preview: {error}");
            Diagnostic::error(Code::BadFolderName, folder.display().to_string(), message).hint(hint)
        })
    }

    /// Returns an error about a name of the command line that does not exist.
    pub(super) fn unknown_name(&self, places: &BTreeMap<String, PathBuf>) -> Option<String> {
        let mut names = self.arguments.names.iter();
        let unknown = names.find(|name| !places.contains_key(*name))?;
        let hint = hint_for(unknown, places.keys().map(String::as_str));
        Some(format!("error: unknown tenant `{unknown}`: {hint}"))
    }

    /// Returns the names to publish, in their order: tenants need the themes and the addresses.
    pub(super) fn selected(&self, places: &BTreeMap<String, PathBuf>) -> Vec<String> {
        let names = &self.arguments.names;
        let is_named = |name: &&String| names.is_empty() || names.contains(name);
        let mut selected: Vec<String> = places.keys().filter(is_named).cloned().collect();
        selected.sort_by_key(|name| is_tenant(name));
        selected
    }

    /// Publishes a name, unless it has errors. Adds the errors of files that cannot be read to the report.
    pub(super) fn publish(
        &mut self,
        name: &str,
        path: &Path,
        report: &mut Report,
    ) -> anyhow::Result<Line> {
        let tenants = &self.arguments.content.tenants;
        let target = self.target(name).unwrap_or_else(|too_long| {
            report.push(too_long);
            name.to_owned()
        });
        let mut line = Line::new(&target, hosts(&self.registry, &target)).of_folder(name);
        let has_errors = report
            .iter()
            .any(|diagnostic| prevents(diagnostic, tenants, name));
        let files = match has_errors {
            true => None,
            false => read(name, path)
                .map_err(|unreadable| report.extend(unreadable))
                .ok(),
        };
        if let Some(files) = files {
            self.session.refuse_unfit_store()?;
            let packed = pack(files)?;
            let edit = match self.arguments.preview {
                Some(_) => Edit::Renew(packed.hashes),
                None => Edit::Publish(packed.hashes),
            };
            let addresses = match is_preview(&target) {
                true => Vec::new(),
                false => self.registry.claims(name),
            };
            let ending = self
                .session
                .change(&target, edit, &packed.uploads, addresses)?;
            line.set_ending(ending)?;
        }
        let of_line = report.iter().cloned();
        line.errors = of_line
            .filter(|diagnostic| prevents(diagnostic, tenants, name))
            .collect();
        Ok(line)
    }

    /// Prints the errors that prevent the publication of these lines.
    pub(super) fn print_errors(&self, report: Report, lines: &[Line]) {
        let tenants = &self.arguments.content.tenants;
        let prevented = |diagnostic: &Diagnostic| {
            lines
                .iter()
                .any(|line| prevents(diagnostic, tenants, &line.folder))
        };
        let mut errors = Report::default();
        errors.extend(report.into_iter().filter(prevented));
        if !errors.is_servable() {
            as_text(&errors, lines.len());
        }
    }
}

impl Line {
    /// Writes the end of a publication to the line.
    ///
    /// # Errors
    /// Returns an error if the store has refused the change.
    pub(super) fn set_ending(&mut self, ending: Ending) -> anyhow::Result<()> {
        match ending {
            Ending::Published(pointer) => self.set(LineResult::Published, &pointer),
            Ending::Repaired(pointer) => self.set(LineResult::Repaired, &pointer),
            Ending::Unchanged(pointer) => self.set(LineResult::Unchanged, &pointer),
            Ending::Conflict(pointer) => self.set(LineResult::Conflict, &pointer),
            Ending::Refused(reason) => anyhow::bail!(reason),
        }
        Ok(())
    }
}

/// Returns whether a name can be published as a preview.
pub(super) fn can_have_preview(name: &str) -> bool {
    is_tenant(name) && !is_preview(name)
}

/// Returns whether a name is a tenant, and neither the themes nor `deployment.yaml`.
fn is_tenant(name: &str) -> bool {
    ![THEMES, DEPLOYMENT].contains(&name)
}
