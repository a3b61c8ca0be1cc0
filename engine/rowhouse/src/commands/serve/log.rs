//! Where the program's events and the lines of its access log go: stderr.
//!
//! Both are written by threads of their own: a reader that does not read loses lines and holds nothing up.

use std::io::{self, IsTerminal as _};

use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use crate::cli::{AccessLogFlag as Form, ServeArguments};
use crate::commands::progress::AboveBars;
use server::access_log::{AccessLog, LogFormat};

/// Pieces of the access log that may wait to be written. A piece has some 16 KB, so that a log that nobody reads costs 2 MB.
const WAITING: usize = 128;

/// Events that may wait to be written. Room for all of them is taken at the start: some 30 bytes for each.
const EVENTS: usize = 16 << 10;

/// Starts both: the guards write what is left when they are dropped.
pub(crate) fn start(arguments: &ServeArguments) -> (Option<AccessLog>, Vec<WorkerGuard>) {
    let mut guards = vec![start_events()];
    let format = match arguments.access_log {
        Form::Off => None,
        Form::Text => Some(LogFormat::Text),
        Form::Json => Some(LogFormat::Json),
    };
    let access = format.map(|format| {
        let (writer, guard) = NonBlockingBuilder::default()
            .buffered_lines_limit(WAITING)
            .thread_name("access-log")
            .finish(io::stderr());
        guards.push(guard);
        AccessLog {
            format,
            addresses: arguments.log_addresses,
            writer,
        }
    });
    (access, guards)
}

/// Readable on a terminal, JSON elsewhere; `RUST_LOG` chooses what.
fn start_events() -> WorkerGuard {
    let buffer = || NonBlockingBuilder::default().buffered_lines_limit(EVENTS);
    let (writer, guard) = match io::stderr().is_terminal() {
        true => buffer().finish(AboveBars),
        false => buffer().finish(io::stderr()),
    };
    let chosen = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let events = tracing_subscriber::fmt::layer().with_writer(writer);
    let events = if io::stderr().is_terminal() {
        events.with_target(false).boxed()
    } else {
        events.json().flatten_event(true).boxed()
    };
    tracing_subscriber::registry()
        .with(events.with_filter(chosen))
        .init();
    // A panic is an event like the others: by itself the standard library writes it in pieces, with other lines between them.
    std::panic::set_hook(Box::new(tracing_panic::panic_hook));
    guard
}
