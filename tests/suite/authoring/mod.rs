//! Work of authors: errors and warnings, drafts, themes, new sites and `serve --dev`.

pub(crate) mod dev_mode;
mod error_messages;
mod long_reports;
mod relative_links;
mod starters;
mod store_readiness;
mod template_failures;
mod themes;
mod unpublished_pages;
