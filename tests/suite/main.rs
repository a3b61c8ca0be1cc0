//! The end-to-end suite, one module a concern.

mod addresses;
mod mistakes;
mod pages;
mod program;
