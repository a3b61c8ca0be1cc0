//! The log and the access log, both on stderr.
//!
//! Two threads write them. If the reader of stderr stalls, lines are lost, and no request waits.
//!
//! **Invariant:** logging never blocks a request.

use std::io::{self, IsTerminal as _};

use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use crate::cli::{AccessLogFlag as Form, ServeArguments};
use crate::commands::progress::BarWriter;
use server::access_log::{AccessLog, LogFormat};

/// The number of chunks of the access log that may be queued. A chunk has about 16 KB, so a stalled reader costs at most 2 MB.
const MAX_QUEUED_CHUNKS: usize = 128;

/// The number of events that may be queued. The queue is allocated at startup, with about 30 bytes for each event.
const MAX_QUEUED_EVENTS: usize = 16 << 10;

/// Starts both logs. A guard writes the queued lines when it is dropped.
pub(crate) fn start(arguments: &ServeArguments) -> (Option<AccessLog>, Vec<WorkerGuard>) {
    let mut guards = vec![start_events()];
    let format = match arguments.access_log {
        Form::Off => None,
        Form::Text => Some(LogFormat::Text),
        Form::Json => Some(LogFormat::Json),
    };
    let access = format.map(|format| {
        let (writer, guard) = NonBlockingBuilder::default()
            .buffered_lines_limit(MAX_QUEUED_CHUNKS)
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

/// Starts the log: text on a terminal, JSON elsewhere. `RUST_LOG` filters it.
fn start_events() -> WorkerGuard {
    let buffer = || NonBlockingBuilder::default().buffered_lines_limit(MAX_QUEUED_EVENTS);
    let (writer, guard) = match io::stderr().is_terminal() {
        true => buffer().finish(BarWriter),
        false => buffer().finish(io::stderr()),
    };
    // notify warns of each watched folder that is gone. The reload loop finds removed folders itself.
    let filter = EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| EnvFilter::new("info,notify=error,object_store=warn"));
    let events = tracing_subscriber::fmt::layer().with_writer(writer);
    let events = if io::stderr().is_terminal() {
        events.with_target(false).boxed()
    } else {
        events.json().flatten_event(true).boxed()
    };
    tracing_subscriber::registry()
        .with(events.with_filter(filter))
        .init();
    // A panic is logged as one event. The standard library would write it in pieces, with other lines between them.
    std::panic::set_hook(Box::new(tracing_panic::panic_hook));
    guard
}
