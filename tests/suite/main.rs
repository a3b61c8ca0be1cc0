//! The end-to-end suite, one module a concern.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod addresses;
mod attacks;
mod caching;
mod command_line;
mod demand;
mod deployment;
mod dev;
mod drafts;
mod editor_links;
mod endless;
mod errors;
mod export;
mod failing;
mod faults;
mod first_view;
mod floods;
mod headers;
mod heavy;
mod hostile;
mod islands;
mod lazy;
mod life;
mod limits;
mod links;
mod log;
mod media;
mod memory;
mod names;
mod neighbours;
mod pages;
mod photos;
mod pictures;
mod program;
mod redirects;
mod releases;
mod replaced;
mod reserved;
mod site_files;
mod state;
mod steps;
mod theming;
mod tutorial;
mod watching;
