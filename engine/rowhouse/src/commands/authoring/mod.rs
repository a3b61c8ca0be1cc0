//! Commands for authors: check, export, import, scaffold and describe sites.
//!
//! **Invariant:** starts no server, except that `manual` serves through [`serve`](super::serve).

pub(crate) mod check;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod live;
pub(crate) mod manual;
pub(crate) mod new;
pub(crate) mod new_theme;
pub(crate) mod routes;
pub(crate) mod sarif;
pub(crate) mod schema;
pub(crate) mod shell;
