//! Addresses of tenants: hosts, paths, aliases and redirects.

mod assignment;
mod deployment_file;
mod loopback_names;
mod previews;
mod redirects;
mod reserved_paths;
mod root_host;
