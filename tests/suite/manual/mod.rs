//! The manual and the tutorials, compared with the program.

mod guides;
mod manual_site;
pub(crate) mod reference;
mod tutorials;
