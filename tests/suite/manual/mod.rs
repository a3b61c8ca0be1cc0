//! The manual and the tutorials, compared with the program.

mod guides;
mod manual_site;
mod reference;
mod tutorials;
