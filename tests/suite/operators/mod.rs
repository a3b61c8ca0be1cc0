//! Tools of operators: the console, the log and the settings.

mod console;
mod log_and_settings;
