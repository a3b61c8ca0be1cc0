//! Failures, limits and broken tenants: other tenants are served as before.

mod broken_tenants;
mod circular_links;
mod confirmed_commands;
mod content_limits;
mod endless_pages;
mod injected_failures;
mod killed_process;
mod memory_limits;
