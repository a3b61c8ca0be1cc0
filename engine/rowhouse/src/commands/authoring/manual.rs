//! `rowhouse manual`: the manual, which is a tenant, served or written as files.
//!
//! It is served by the program as any other tenant is: from a folder, which is written for that and removed at the end. Its themes are those inside the program, and nothing that the environment says of another server holds for it.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::{Args, Command, FromArgMatches};

use super::export;
use crate::cli::{ExportArguments, ManualArguments, ServeArguments, manual_origin};
use crate::commands::output::say;
use crate::commands::serve;
use crate::manual::{self, write};

/// Serves or writes it.
pub(crate) fn run(arguments: &ManualArguments) -> anyhow::Result<ExitCode> {
    if let Some(folder) = &arguments.write {
        let files = manual::files()?;
        if folder.exists() {
            bail!("`{}` is there already: name a new folder", folder.display());
        }
        write(folder, &files)?;
        say(&format!(
            "wrote {} files to {}",
            files.len(),
            folder.display()
        ));
        return Ok(ExitCode::SUCCESS);
    }
    let place = tempfile::Builder::new()
        .prefix("rowhouse-manual-")
        .tempdir();
    let place = place.context("cannot make a folder for the manual")?;
    let (tenants, themes) = (place.path().join("tenants"), place.path().join("themes"));
    let deployment = manual::deployment()?;
    write(&tenants, &deployment.tenants)?;
    write(&themes, &deployment.themes)?;
    let mut flags: Vec<OsString> = vec!["rowhouse".into()];
    let mut add = |flag: &str, value: OsString| flags.extend([flag.into(), value]);
    add("--tenants", tenants.into());
    add("--themes", themes.into());
    let listen = arguments.listen;
    let origin = arguments.origin.as_ref().map(ToString::to_string);
    let origin = origin.unwrap_or_else(|| manual_origin(listen.port()));
    add("--origin", origin.into());
    if let Some(folder) = &arguments.export {
        flags.push(folder.into());
        let mut arguments: ExportArguments = parsed(flags)?;
        arguments.content.shows_kinds = true;
        return export::run(&arguments);
    }
    let mut add = |flag: &str, value: OsString| flags.extend([flag.into(), value]);
    add("--listen", listen.to_string().into());
    add("--admin", "127.0.0.1:0".into());
    let mut arguments: ServeArguments = parsed(flags)?;
    arguments.content.shows_kinds = true;
    serve::run(&arguments)
}

/// The arguments of a command with these flags, whatever variables there are.
fn parsed<T: Args + FromArgMatches>(flags: Vec<OsString>) -> anyhow::Result<T> {
    let command = T::augment_args(Command::new("rowhouse"));
    let command = command.mut_args(|argument| argument.env(None::<&'static str>));
    let matches = command.try_get_matches_from(flags)?;
    Ok(T::from_arg_matches(&matches)?)
}
