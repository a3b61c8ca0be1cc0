//! What the commands that ask a running server share.
//!
//! **Invariant:** plain values.

use std::net::SocketAddr;

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

/// How a list is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ListFormat {
    /// A table
    Text,
    /// A JSON array
    Json,
}
