//! The names of previews: `corner@spring` is a preview of the tenant `corner`, at the host label `spring--corner`.
//!
//! **Invariant:** two ids have different host labels, except a preview and a tenant whose own id contains `--`. The tenant then has the host.

use thiserror::Error;

/// The character between the tenant's id and the label of a preview.
pub const PREVIEW_MARK: char = '@';

/// The text between the label and the tenant's id in the host of a preview. Hosts of previews thus have as many labels as hosts of tenants, and one wildcard certificate covers both.
const HOST_MARK: &str = "--";

/// The largest length of a host label (RFC 1035, section 2.3.4).
const MAX_HOST_LABEL: usize = 63;

/// The reason why a label is not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BadLabel {
    /// Not letters a-z, digits and inner hyphens.
    #[error("the label after `@` must consist of a-z, 0-9 and inner hyphens")]
    Characters,
    /// Two characters before `--` begin a reserved host label (RFC 5890, section 2.3.1): browsers decode `xn--`, and certificate authorities refuse the others.
    #[error("a label of two characters makes a reserved host name")]
    TwoCharacters,
    /// The host label would be too long.
    #[error("its host label would have {0} characters; the limit is {MAX_HOST_LABEL}")]
    TooLong(usize),
}

impl BadLabel {
    /// Returns what to do about the label of a preview of `tenant`.
    #[must_use]
    pub fn hint(self, tenant: &str) -> String {
        let longest = MAX_HOST_LABEL.saturating_sub(HOST_MARK.len() + tenant.len());
        let room = match self {
            Self::TooLong(_) => format!("with a label of at most {longest} characters, "),
            Self::Characters => String::new(),
            Self::TwoCharacters => {
                "with a label of one, or of three or more characters, ".to_owned()
            }
        };
        format!("rename the folder, {room}for example to `{tenant}@next`")
    }
}

/// Checks the label of a preview. `is_host_label`: whether the label has the characters of a host label.
pub(super) fn check_label(tenant: &str, label: &str, is_host_label: bool) -> Result<(), BadLabel> {
    let length = label.len() + HOST_MARK.len() + tenant.len();
    match label.len() {
        _ if length > MAX_HOST_LABEL => Err(BadLabel::TooLong(length)),
        _ if !is_host_label => Err(BadLabel::Characters),
        2 => Err(BadLabel::TwoCharacters),
        _ => Ok(()),
    }
}

/// Returns whether an id is the id of a preview.
#[must_use]
pub fn is_preview(id: &str) -> bool {
    id.contains(PREVIEW_MARK)
}

/// Returns the id of the tenant that a preview shows. Any other id is returned as it is.
#[must_use]
pub fn live_id(id: &str) -> &str {
    id.split_once(PREVIEW_MARK).map_or(id, |(tenant, _)| tenant)
}

/// Returns the id of the preview at a host label, unless the label is not that of a preview.
#[must_use]
pub fn preview_at(host_label: &str) -> Option<String> {
    let (label, tenant) = host_label.split_once(HOST_MARK)?;
    Some(format!("{tenant}{PREVIEW_MARK}{label}"))
}

/// Returns the host label of a tenant or a preview.
pub(super) fn host_label(id: &str) -> String {
    match id.split_once(PREVIEW_MARK) {
        Some((tenant, label)) => format!("{label}{HOST_MARK}{tenant}"),
        None => id.to_owned(),
    }
}
