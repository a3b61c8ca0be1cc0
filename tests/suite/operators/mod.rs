//! Tools of operators: the console, the log, the settings and memory.

mod alerts;
mod console;
mod log_and_settings;
mod memory_use;
