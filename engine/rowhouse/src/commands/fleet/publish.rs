//! `rowhouse publish` and `rowhouse unpublish`.

mod line;
mod places;
mod watch;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use jiff::Timestamp;

use content::report::{Diagnostic, Report, hint_for};
use fleet::key::{DEPLOYMENT, THEMES};
use fleet::publish::Edit;
use render::CachePolicy;
use supervisor::Registry;

use self::line::{Line, LineResult, exit_code};
use self::places::{hosts, places, prevents, read};
use self::watch::FolderWatch;
use super::folder::pack;
use super::progress_bar::WorkBar;
use super::session::{Ending, Session, never_published};
use crate::cli::fleet::UnpublishArguments;
use crate::cli::{ListFormat, PublishArguments};
use crate::commands::authoring::check::as_text;
use crate::commands::output::{FAILED, print, print_message};
use crate::commands::setup::registry;

/// Publishes tenants, themes and `deployment.yaml`.
pub(crate) fn publish(arguments: &PublishArguments) -> anyhow::Result<ExitCode> {
    if arguments.expect.is_some() && arguments.names.len() != 1 {
        anyhow::bail!("`--expect` is the version of one tenant: name the tenant");
    }
    let session = Session::open(&arguments.store.store, &arguments.author, arguments.expect)?;
    let mut publisher = FolderPublisher::new(arguments, session)?;
    if arguments.watch {
        return FolderWatch::new(publisher).run();
    }
    publisher.reload()?;
    let places = publisher.places();
    if let Some(unknown) = publisher.unknown_name(&places) {
        print_message(&unknown);
        return Ok(ExitCode::from(FAILED));
    }
    let mut report = publisher.registry.report();
    let names = publisher.selected(&places);
    let bar = WorkBar::steps(names.len(), publisher.is_text());
    let mut lines = Vec::new();
    for name in names {
        bar.begin(&name);
        let line = publisher.publish(&name, &places[&name], &mut report)?;
        if publisher.is_text() {
            bar.above(|| print(&line.to_text()));
        }
        lines.push(line);
        bar.end();
    }
    publisher.session.announce_unchanged()?;
    drop(bar);
    match arguments.format {
        ListFormat::Json => print(&serde_json::to_string_pretty(&lines)?),
        ListFormat::Text => publisher.print_errors(report, &lines),
    }
    Ok(exit_code(&lines))
}

/// Withdraws a tenant.
pub(crate) fn unpublish(arguments: &UnpublishArguments) -> anyhow::Result<ExitCode> {
    let mut session = Session::open(&arguments.store.store, &arguments.author, arguments.expect)?;
    let tenant = arguments.tenant.as_str();
    if session.current(tenant)?.is_none() {
        print_message(&never_published(tenant, &session.bucket));
        return Ok(ExitCode::from(FAILED));
    }
    let mut line = Line::new(tenant, Vec::new());
    let ending = session.change(tenant, Edit::Unpublish, &BTreeMap::new())?;
    line.set_ending(ending)?;
    session.announce_unchanged()?;
    print(&line.to_text());
    Ok(exit_code(&[line]))
}

/// The folders, and the store to which they are published.
struct FolderPublisher<'a> {
    arguments: &'a PublishArguments,
    session: Session,
    registry: Registry,
}

impl<'a> FolderPublisher<'a> {
    fn new(arguments: &'a PublishArguments, session: Session) -> anyhow::Result<Self> {
        let registry = registry(&arguments.content, CachePolicy::default(), None, false)?;
        Ok(Self {
            arguments,
            session,
            registry: registry.without_compression(),
        })
    }

    fn is_text(&self) -> bool {
        self.arguments.format == ListFormat::Text
    }

    /// Reads and checks the folders that have changed.
    fn reload(&mut self) -> anyhow::Result<()> {
        let _bar = WorkBar::unlimited("checking the folders", self.is_text());
        self.registry.reload(Timestamp::now())?;
        Ok(())
    }

    /// Returns the path of each name that can be published.
    fn places(&self) -> BTreeMap<String, PathBuf> {
        places(&self.arguments.content, &self.registry)
    }

    /// Returns an error about a name of the command line that does not exist.
    fn unknown_name(&self, places: &BTreeMap<String, PathBuf>) -> Option<String> {
        let mut names = self.arguments.names.iter();
        let unknown = names.find(|name| !places.contains_key(*name))?;
        let hint = hint_for(unknown, places.keys().map(String::as_str));
        Some(format!("error: unknown tenant `{unknown}`: {hint}"))
    }

    /// Returns the names to publish, in their order: tenants need the themes and the addresses.
    fn selected(&self, places: &BTreeMap<String, PathBuf>) -> Vec<String> {
        let names = &self.arguments.names;
        let is_named = |name: &&String| names.is_empty() || names.contains(name);
        let mut selected: Vec<String> = places.keys().filter(is_named).cloned().collect();
        selected.sort_by_key(|name| is_tenant(name));
        selected
    }

    /// Publishes a name, unless it has errors. Adds the errors of files that cannot be read to the report.
    fn publish(&mut self, name: &str, path: &Path, report: &mut Report) -> anyhow::Result<Line> {
        let tenants = &self.arguments.content.tenants;
        let mut line = Line::new(name, hosts(&self.registry, name));
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
            let edit = Edit::Publish(packed.hashes);
            line.set_ending(self.session.change(name, edit, &packed.uploads)?)?;
        }
        let of_line = report.iter().cloned();
        line.errors = of_line
            .filter(|diagnostic| prevents(diagnostic, tenants, name))
            .collect();
        Ok(line)
    }

    /// Prints the errors that prevent the publication of these lines.
    fn print_errors(&self, report: Report, lines: &[Line]) {
        let tenants = &self.arguments.content.tenants;
        let prevented = |diagnostic: &Diagnostic| {
            lines
                .iter()
                .any(|line| prevents(diagnostic, tenants, &line.name))
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
    fn set_ending(&mut self, ending: Ending) -> anyhow::Result<()> {
        match ending {
            Ending::Published(pointer) => self.set(LineResult::Published, &pointer),
            Ending::Unchanged(pointer) => self.set(LineResult::Unchanged, &pointer),
            Ending::Conflict(pointer) => self.set(LineResult::Conflict, &pointer),
            Ending::Refused(reason) => anyhow::bail!(reason),
        }
        Ok(())
    }
}

/// Returns whether a name is a tenant, and neither the themes nor `deployment.yaml`.
fn is_tenant(name: &str) -> bool {
    ![THEMES, DEPLOYMENT].contains(&name)
}
