//! `rowhouse store check` and `rowhouse store collect`.

use std::process::ExitCode;

use bucket::run;
use bucket::store::probe::probe;
use bucket::store::random_nonce;
use bucket::verify::verify;
use fleet::collect::Outcome;

use super::{block_on, failure, open, refusal};
use crate::cli::fleet::{StoreArguments, StoreCommand, StoreFlag};
use crate::commands::output::{ERRORS, counted, print, print_message};

/// Runs the work.
pub(crate) fn run(arguments: &StoreArguments) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        StoreCommand::Check(store) => check(store),
        StoreCommand::Collect(store) => collect(store),
    }
}

/// Probes the store, and reads all objects. The exit code is 1 if an object is damaged or missing.
fn check(store: &StoreFlag) -> anyhow::Result<ExitCode> {
    let bucket = open(&store.store)?;
    block_on(probe(&bucket, &random_nonce()))?.map_err(|error| refusal(&bucket, error))?;
    let result = block_on(verify(&bucket))?.map_err(|error| failure(&bucket, error))?;
    for damage in &result.damage {
        print(&format!(
            "{}: the object `{}` {}",
            damage.named_by, damage.object, damage.fault
        ));
    }
    print_message(&format!(
        "{}, {} and {} read: {} damaged or missing",
        counted(result.pointers, "pointer"),
        counted(result.objects, "content object"),
        counted(result.releases, "rendered release"),
        result.damage.len()
    ));
    if result.damage.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    print_message("hint: copy the objects back from a backup of the bucket");
    Ok(ExitCode::from(ERRORS))
}

/// Deletes content that no version names, and old rendered releases.
fn collect(store: &StoreFlag) -> anyhow::Result<ExitCode> {
    let bucket = open(&store.store)?;
    let ended = block_on(run::collect(&bucket, random_nonce()))?;
    match ended.map_err(|error| failure(&bucket, error))? {
        Outcome::Deleted(objects) => {
            print_message(&format!("{} deleted", counted(objects, "object")));
            Ok(ExitCode::SUCCESS)
        }
        Outcome::Interrupted => {
            print_message("another machine collects; nothing is left to do");
            Ok(ExitCode::SUCCESS)
        }
        Outcome::Damaged => {
            print_message("error: an object cannot be read: run `rowhouse store check`");
            Ok(ExitCode::from(ERRORS))
        }
    }
}
