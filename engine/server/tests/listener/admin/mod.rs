//! The admin listener: its routes, its console and its commands for releases.

mod console_access;
mod release_commands;
mod routes_and_counters;
