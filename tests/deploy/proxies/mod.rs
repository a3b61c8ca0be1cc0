//! Proxies and web servers in front of rowhouse, or with its exported files.

mod caddy;
mod exported_files;
mod load_balancer;
mod rolling_restart;
