//! The flags that the commands for a running server share.
//!
//! **Invariant:** knows no command.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::values;

/// The address of the running server.
#[derive(Debug, Clone, Copy, Args)]
pub struct RunningServer {
    /// Admin address of the running server
    #[arg(
        long,
        env = "ROWHOUSE_ADMIN",
        value_name = "ADDRESS",
        default_value = "127.0.0.1:8081",
        value_parser = values::address
    )]
    pub admin: SocketAddr,
}

/// The token of requests that change something.
#[derive(Debug, Clone, Args)]
pub struct AdminTokenFlag {
    /// File with the token for changes: `rollback`, `resume`, `restore`, console
    ///
    /// The token has at least 16 characters. Without this flag, any program that reaches the admin listener can roll back, resume and restore tenants, and the console is read-only. The server reads the file at startup.
    #[arg(long, env = "ROWHOUSE_ADMIN_TOKEN_FILE", value_name = "FILE")]
    pub admin_token_file: Option<PathBuf>,
}

/// The output format of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ListFormat {
    /// A table
    Text,
    /// A JSON array
    Json,
}
