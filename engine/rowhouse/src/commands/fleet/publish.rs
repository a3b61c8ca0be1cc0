//! `rowhouse publish` and `rowhouse unpublish`.

mod line;
mod places;
mod publisher;
mod queue;
mod watch;

use std::collections::BTreeMap;
use std::process::ExitCode;

use content::name::preview::{is_preview, live_id};
use fleet::key::SHARED;
use fleet::publish::Edit;

use self::line::{Line, exit_code};
use self::publisher::{FolderPublisher, can_have_preview};
use self::watch::FolderWatch;
use super::progress_bar::WorkBar;
use super::session::{Session, never_published};
use crate::cli::fleet::UnpublishArguments;
use crate::cli::{ListFormat, PublishArguments};
use crate::commands::output::{FAILED, print, print_message};

/// Publishes tenants, themes and `deployment.yaml`.
pub(crate) fn publish(arguments: &PublishArguments) -> anyhow::Result<ExitCode> {
    if arguments.expect.is_some() && arguments.names.len() != 1 {
        anyhow::bail!("`--expect` is the version of one tenant: name the tenant");
    }
    if let Some(unfit) = name_without_preview(arguments) {
        anyhow::bail!(unfit);
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

/// Returns the error about a name of the command line that is not a tenant whose preview is published.
fn name_without_preview(arguments: &PublishArguments) -> Option<String> {
    let label = arguments.preview.as_ref()?;
    let mut names = arguments.names.iter();
    let name = names.find(|name| !can_have_preview(name))?;
    Some(match is_preview(name) && !SHARED.contains(&&**name) {
        true => format!(
            "`{name}` is a preview already: publish it without `--preview`, or name `{}`",
            live_id(name)
        ),
        false => format!(
            "`{name}` has no previews: name tenants, or no name for `<id>@{label}` of each tenant"
        ),
    })
}

/// Withdraws a tenant.
pub(crate) fn unpublish(arguments: &UnpublishArguments) -> anyhow::Result<ExitCode> {
    let mut session = Session::open(&arguments.store.store, &arguments.author, arguments.expect)?;
    let tenant = arguments.tenant.as_str();
    if session.current(tenant)?.is_none() {
        // A pull request is also closed before its preview was ever published. `--expect` names a version that does not exist.
        if arguments.tenant.is_preview() && arguments.expect.is_none() {
            let address = session.bucket.address();
            print_message(&format!(
                "nothing to unpublish: `{tenant}` was never published to `{address}`"
            ));
            return Ok(ExitCode::SUCCESS);
        }
        print_message(&never_published(tenant, &session.bucket));
        return Ok(ExitCode::from(FAILED));
    }
    let mut line = Line::new(tenant, Vec::new());
    let ending = session.change(tenant, Edit::Unpublish, &BTreeMap::new(), Vec::new())?;
    line.set_ending(ending)?;
    session.announce_unchanged()?;
    print(&line.to_text());
    Ok(exit_code(&[line]))
}
