//! What the command line asks for, one file a verb. Only these print.
//!
//! Exit codes: 0 success, 1 errors in the content, 2 could not run.

mod check;
mod export;
mod greeting;
mod log;
mod new;
#[cfg_attr(not(feature = "otlp"), path = "no_otlp.rs")]
mod otlp;
mod probe;
mod routes;
mod sarif;
mod schema;
mod serve;
mod shell;
mod supervisor;

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use rowhouse_ui::Bundle;

use crate::cli::{Cli, Command, Content};
use crate::reload::{Persisted, Places, Registry};
use render::Islands;
use render::policy::Caching;

/// Errors were found.
const ERRORS: u8 = 1;
/// Could not run.
const FAILED: u8 = 2;

/// Runs a command to its end.
#[must_use]
pub fn run(cli: Cli) -> ExitCode {
    let result = match cli.command {
        None => serve::run(&cli.serve),
        Some(Command::Serve(arguments)) => serve::run(&arguments),
        Some(Command::Check(arguments)) => check::run(&arguments),
        Some(Command::Export(arguments)) => export::run(&arguments),
        Some(Command::Routes(arguments)) => routes::run(&arguments),
        Some(Command::New(arguments)) => new::run(&arguments),
        Some(Command::Probe(arguments)) => Ok(probe::run(&arguments)),
        Some(Command::Schema(arguments)) => schema::run(&arguments),
        Some(Command::Completions(arguments)) => Ok(shell::completions(&arguments)),
        Some(Command::Man(arguments)) => shell::man(&arguments),
    };
    result.unwrap_or_else(|error| {
        say(&format!("error: {error:#}"));
        ExitCode::from(FAILED)
    })
}

/// The registry that the flags describe, with nothing read yet. `state`: where things are kept; `dev`: for authors.
fn registry(
    content: &Content,
    caching: Caching,
    state: Option<&Path>,
    dev: bool,
) -> anyhow::Result<Registry> {
    let bundle = match &content.ui_dist {
        Some(directory) => Bundle::from_dir(directory),
        None => Bundle::embedded(),
    }
    .context("cannot use the islands")?;
    let beside = Path::new("themes");
    let places = Places {
        tenants: content.tenants.clone(),
        themes: content
            .themes
            .clone()
            .or_else(|| beside.is_dir().then(|| beside.to_owned())),
        deployment: content.deployment.clone(),
        origin: content.origin.clone(),
        caching,
    };
    let secure = content.origin.is_secure();
    let persisted = state.map(|state| Persisted::open(state, &places));
    let cache = persisted
        .as_ref()
        .map(Persisted::islands_cache)
        .unwrap_or_default();
    let mut islands = Islands::kept(bundle, secure, &cache);
    if dev {
        islands = islands.with_dev_script(secure);
    }
    let registry = Registry::new(places, Arc::new(islands));
    Ok(match persisted {
        None => registry,
        Some(persisted) => {
            persisted.keep_islands(&cache);
            registry.with_kept(persisted)
        }
    })
}

/// A line for people, to stderr.
fn say(line: &str) {
    anstream::eprintln!("{line}");
}

/// Data, to stdout; colours only where these are taken. A reader that went away is not a failure.
fn print(text: &str) {
    let _ = writeln!(anstream::stdout().lock(), "{text}");
}

/// The same, byte for byte.
fn write(bytes: &[u8]) {
    let _ = std::io::stdout().lock().write_all(bytes);
}
