//! `rowhouse token NAME`: a new token for a protected tenant, and the lines for `deployment.yaml`.
//!
//! **Invariant:** reads and writes no file, so the token is on the terminal only.

use std::process::ExitCode;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use server::access::token::{random_token, token_sha256};

use crate::cli::TokenArguments;
use crate::commands::output::print;
use content::address::deployment::FILE;

/// Days for which a credential is valid by default.
const VALID_DAYS: i64 = 90;

/// Stands for the tenant in the lines if the command does not name it.
const ANY_TENANT: &str = "TENANT";

/// Prints a new token and the lines to add.
pub(crate) fn run(arguments: &TokenArguments) -> anyhow::Result<ExitCode> {
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    let expires = match arguments.expires {
        Some(day) if day < today => anyhow::bail!(
            "the last day {day} is in the past: write a day from {today} on, or leave `--expires` out"
        ),
        Some(day) => day,
        None => today.saturating_add(Span::new().days(VALID_DAYS)),
    };
    let token = random_token()?;
    let user = arguments.user.as_deref().unwrap_or(&arguments.name);
    let lines = lines(arguments, user, &token_sha256(&token), expires)?;
    print(&format!(
        "user:  {user}\ntoken: {token}\n\n\
         Give both to the visitors. The token is shown once, and not stored.\n\
         Add these lines to `{FILE}` in the folder of tenants, below the keys that the file has already.\n\
         A new file also needs the line `root: ID`, with the tenant of the domain's root, if there is one.\n\n{lines}"
    ));
    Ok(ExitCode::SUCCESS)
}

/// Returns the lines for `deployment.yaml`.
fn lines(
    arguments: &TokenArguments,
    user: &str,
    token_sha256: &str,
    expires: Date,
) -> anyhow::Result<String> {
    let name = &arguments.name;
    // A JSON string is a YAML string.
    let user = serde_json::to_string(user)?;
    let tenant = arguments.tenant.as_ref();
    let tenant = tenant.map_or(ANY_TENANT, |tenant| tenant.as_str());
    Ok(format!(
        "access:\n  {name}:\n    user: {user}\n    token_sha256: {token_sha256}\n    expires: {expires}\n\
         tenants:\n  {tenant}:\n    access: [{name}]"
    ))
}
