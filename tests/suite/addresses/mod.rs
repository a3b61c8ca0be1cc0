//! Addresses of tenants: hosts, paths, aliases and redirects.

pub(crate) mod assignment;
mod deployment_file;
mod redirects;
mod reserved_paths;
