//! What the commands that ask a running server share.
//!
//! **Invariant:** plain values.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Which running server is meant.
#[derive(Debug, Clone, Copy, Args)]
pub struct RunningServer {
    /// The server's admin address
    #[arg(
        long,
        env = "ROWHOUSE_ADMIN",
        value_name = "ADDRESS",
        default_value = "127.0.0.1:8081"
    )]
    pub admin: SocketAddr,
}

/// What changes something comes with, where the server wants it.
#[derive(Debug, Clone, Args)]
pub struct AdminTokenFlag {
    /// A file with a token of 16 characters or more, which whatever changes something has to come with: `rollback`, `resume`, and the buttons of the console
    ///
    /// Without it the server takes `rollback` and `resume` of any program that reaches its admin address, and the console changes nothing. It is read at the start.
    #[arg(long, env = "ROWHOUSE_ADMIN_TOKEN_FILE", value_name = "FILE")]
    pub admin_token_file: Option<PathBuf>,
}

/// How a list is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ListFormat {
    /// A table
    Text,
    /// A JSON array
    Json,
}
