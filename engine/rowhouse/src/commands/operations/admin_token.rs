//! The token of the file that `--admin-token-file` names.

use anyhow::{Context as _, anyhow};

use crate::cli::AdminTokenFlag;
use server::admin::AdminToken;
use server::settings::operator_file;

/// What the file holds, where one is named.
///
/// # Errors
/// When it cannot be read, or holds no token.
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

/// The same, as the admin listener compares with it.
///
/// # Errors
/// As above.
pub(crate) fn token(flag: &AdminTokenFlag) -> anyhow::Result<Option<AdminToken>> {
    let text = read(flag)?;
    Ok(text.and_then(|text| AdminToken::new(&text).ok()))
}
