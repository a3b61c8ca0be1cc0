//! `rowhouse manual`: serves the manual, or writes it as files.
//!
//! The manual is a tenant, which is written to a temporary folder and served from there, with the built-in themes. The environment variables of another server do not apply to the manual.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::{Args, Command, FromArgMatches};

use super::export;
use crate::cli::{ExportArguments, ManualArguments, ServeArguments, manual_origin};
use crate::commands::output::print_message;
use crate::commands::serve;
use crate::manual::{self, write};

/// Serves the manual, or writes it as a tenant or as an export.
pub(crate) fn run(arguments: &ManualArguments) -> anyhow::Result<ExitCode> {
    if let Some(folder) = &arguments.write {
        let files = manual::files()?;
        if folder.exists() {
            bail!("`{}` already exists: name a new folder", folder.display());
        }
        write(folder, &files)?;
        print_message(&format!(
            "wrote {} files to {}",
            files.len(),
            folder.display()
        ));
        return Ok(ExitCode::SUCCESS);
    }
    let scratch = tempfile::Builder::new()
        .prefix("rowhouse-manual-")
        .tempdir();
    let scratch = scratch.context("cannot create a folder for the manual")?;
    let (tenants, themes) = (
        scratch.path().join("tenants"),
        scratch.path().join("themes"),
    );
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
        arguments.content.shows_section_examples = true;
        return export::run(&arguments);
    }
    let mut add = |flag: &str, value: OsString| flags.extend([flag.into(), value]);
    add("--listen", listen.to_string().into());
    add("--admin", "127.0.0.1:0".into());
    let mut arguments: ServeArguments = parsed(flags)?;
    arguments.content.shows_section_examples = true;
    serve::run(&arguments)
}

/// Parses the flags of a command and ignores environment variables.
fn parsed<T: Args + FromArgMatches>(flags: Vec<OsString>) -> anyhow::Result<T> {
    let command = T::augment_args(Command::new("rowhouse"));
    let command = command.mut_args(|argument| argument.env(None::<&'static str>));
    let matches = command.try_get_matches_from(flags)?;
    Ok(T::from_arg_matches(&matches)?)
}
