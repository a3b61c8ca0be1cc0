//! The program as its users run it: commands, exports, signals, startup and shutdown.

mod commands;
mod customer_names;
mod exit_and_signals;
mod export;
mod shell_integration;
mod startup_and_shutdown;
