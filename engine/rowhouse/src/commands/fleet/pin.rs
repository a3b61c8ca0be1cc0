//! `rowhouse rollback --store` and `rowhouse resume --store`: the pin of a tenant in the store.

use std::collections::BTreeMap;
use std::process::ExitCode;

use fleet::pointer::Pointer;
use fleet::publish::Edit;

use super::local_time;
use super::session::{Ending, Session, never_published};
use crate::cli::fleet::AuthorFlag;
use crate::commands::output::{CONFLICT, ERRORS, print_message};

/// Pins an earlier version of a tenant.
pub(crate) fn roll_back(
    tenant: &str,
    version: Option<u64>,
    store: &str,
    author: &AuthorFlag,
) -> anyhow::Result<ExitCode> {
    edit(tenant, Edit::RollBack(version), store, author, |pointer| {
        let pinned = pointer.pinned().unwrap_or_default();
        format!(
            "version {pinned} of `{tenant}` is served and pinned: publications have no effect until `rowhouse resume {tenant}`"
        )
    })
}

/// Ends the pin of a tenant.
pub(crate) fn resume(tenant: &str, store: &str, author: &AuthorFlag) -> anyhow::Result<ExitCode> {
    edit(
        tenant,
        Edit::Resume,
        store,
        author,
        |pointer| match pointer.content.is_empty() {
            true => format!("`{tenant}` is withdrawn, as before the rollback"),
            false => format!("the newest version of `{tenant}` is served again"),
        },
    )
}

/// Changes a tenant, and says what is served now.
fn edit(
    tenant: &str,
    edit: Edit,
    store: &str,
    author: &AuthorFlag,
    served: impl Fn(&Pointer) -> String,
) -> anyhow::Result<ExitCode> {
    let mut session = Session::open(store, author, None)?;
    if session.current(tenant)?.is_none() {
        print_message(&never_published(tenant, &session.bucket));
        return Ok(ExitCode::from(ERRORS));
    }
    let ending = session.change(tenant, edit, &BTreeMap::new(), Vec::new())?;
    session.announce_unchanged()?;
    Ok(match ending {
        Ending::Published(pointer) | Ending::Repaired(pointer) | Ending::Unchanged(pointer) => {
            print_message(&served(&pointer));
            ExitCode::SUCCESS
        }
        Ending::Conflict(winner) => {
            print_message(&format!(
                "error: conflict: version {} is of {} by {}; nothing was changed",
                winner.version(),
                local_time(winner.at),
                winner.author
            ));
            ExitCode::from(CONFLICT)
        }
        Ending::Refused(reason) => {
            print_message(&format!("error: {reason}"));
            ExitCode::from(ERRORS)
        }
    })
}
