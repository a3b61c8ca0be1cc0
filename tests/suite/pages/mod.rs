//! Compiled pages, and the files beside them.

pub(crate) mod broken_links;
mod caching;
mod company;
mod compiled_pages;
mod first_view;
mod islands;
mod languages;
mod markdown_forms;
mod right_to_left;
mod site_files;
