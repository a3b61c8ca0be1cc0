//! The token in the file of `--admin-token-file`.
//!
//! **Invariant:** the token is never printed.

use anyhow::{Context as _, anyhow};

use crate::cli::AdminTokenFlag;
use server::admin::AdminToken;
use server::settings::operator_file;

/// Returns the text of the file; `None` without the flag.
///
/// # Errors
/// Fails if the file cannot be read or has no valid token.
pub(crate) fn read(flag: &AdminTokenFlag) -> anyhow::Result<Option<String>> {
    let Some(file) = &flag.admin_token_file else {
        return Ok(None);
    };
    let why = || format!("cannot use `{}` of `--admin-token-file`", file.display());
    let bytes = operator_file::read(file).with_context(why)?;
    let text = String::from_utf8(bytes).with_context(why)?;
    AdminToken::new(&text)
        .map_err(|error| anyhow!(error))
        .with_context(why)?;
    Ok(Some(text))
}

/// Returns the token with which the admin listener compares the tokens of requests; `None` without the flag.
///
/// # Errors
/// Fails if the file cannot be read or has no valid token.
pub(crate) fn token(flag: &AdminTokenFlag) -> anyhow::Result<Option<AdminToken>> {
    let text = read(flag)?;
    Ok(text.and_then(|text| AdminToken::new(&text).ok()))
}
