//! `rowhouse serve`: bind, compile, answer, reload on SIGHUP, drain on SIGTERM.
//!
//! The addresses are bound before anything is compiled, so that a port in use is told at once.

use std::io::IsTerminal as _;
use std::net::TcpListener;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use jiff::Timestamp;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::{Metadata, error, info, warn};
use tracing_appender::non_blocking::WorkerGuard;
use tracing_subscriber::filter::{FilterExt as _, filter_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use super::{FAILED, estate};
use crate::cli::{AccessLog, ServeArguments, WatchMethod};
use crate::reload::{Keeper, tell};
use crate::serve::access;
use crate::serve::admin::{self, Admin};
use crate::serve::listen::bind;
use crate::serve::settings::ServeSettings;
use crate::serve::shelf::Shelf;
use crate::serve::status::StatusBoard;
use crate::watch::{Method, Notice};

/// Serves until a signal ends it.
pub(super) fn run(arguments: &ServeArguments) -> anyhow::Result<ExitCode> {
    let _log = start_log(arguments.access_log);
    let begin = Instant::now();
    let visitors = bind(arguments.listen)?;
    let operators =
        bind(arguments.admin).context("the address for operators is set by `--admin`")?;
    let mut estate = estate(&arguments.content)?;
    let snapshot = estate.reload(Timestamp::now())?;
    let shelf = Arc::new(Shelf::new(snapshot));
    let board = Arc::new(StatusBoard::default());
    tell(&estate, &board);
    let owner = Keeper {
        estate,
        shelf: Arc::clone(&shelf),
        board: Arc::clone(&board),
    }
    .start(match arguments.watch {
        WatchMethod::Auto => Method::Notifications,
        WatchMethod::Poll => Method::Polling,
        WatchMethod::Off => Method::Off,
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the event loop")?;
    runtime.block_on(async {
        let house = House {
            visitors,
            operators,
            shelf,
            board,
            owner,
            begin,
        };
        house.serve(arguments).await
    })
}

/// What is running.
struct House {
    visitors: TcpListener,
    operators: TcpListener,
    shelf: Arc<Shelf>,
    board: Arc<StatusBoard>,
    owner: Sender<Notice>,
    begin: Instant,
}

impl House {
    async fn serve(self, arguments: &ServeArguments) -> anyhow::Result<ExitCode> {
        let mut stop = Stop::new()?;
        let mut again = Stop::new()?;
        let hang_up = signal(SignalKind::hangup()).context("cannot wait for SIGHUP")?;
        let settings = ServeSettings {
            grace: Duration::from_secs(arguments.grace),
            access_log: arguments.access_log != AccessLog::Off,
            ..ServeSettings::default()
        };
        info!(
            origin = %arguments.content.origin,
            listen = %self.visitors.local_addr()?,
            admin = %self.operators.local_addr()?,
            tenants = self.board.current().tenants.len(),
            took_ms = u64::try_from(self.begin.elapsed().as_millis()).unwrap_or(u64::MAX),
            "serving"
        );
        let admin = admin::run(
            self.operators,
            Admin {
                shelf: Arc::clone(&self.shelf),
                board: Arc::clone(&self.board),
            },
        );
        let shutdown = async {
            let name = stop.wait().await;
            info!(signal = name, grace_s = arguments.grace, "draining");
            self.board.replace(crate::serve::status::Status {
                ready: false,
                ..crate::serve::status::Status::clone(&self.board.current())
            });
        };
        let serving =
            crate::serve::run(vec![self.visitors], self.shelf.clone(), settings, shutdown);
        tokio::select! {
            drained = serving => {
                let drained = drained?;
                info!(cut = drained.cut, "drained");
                Ok(ExitCode::SUCCESS)
            }
            result = admin => {
                result.context("the admin listener ended")?;
                Ok(ExitCode::from(FAILED))
            }
            () = pass_on(hang_up, self.owner) => Ok(ExitCode::from(FAILED)),
            () = async { again.wait().await; again.wait().await; } => {
                warn!("a second signal: ending at once");
                Ok(ExitCode::from(FAILED))
            }
        }
    }
}

/// Passes every SIGHUP on as a wish to read all folders again.
async fn pass_on(mut hang_up: Signal, owner: Sender<Notice>) {
    while hang_up.recv().await.is_some() {
        if owner.send(Notice::Everything).is_err() {
            error!("nobody keeps the folders any longer; what is served stays");
            std::future::pending::<()>().await;
        }
    }
}

/// SIGTERM and SIGINT.
struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    fn new() -> anyhow::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?,
            interrupt: signal(SignalKind::interrupt()).context("cannot wait for SIGINT")?,
        })
    }

    async fn wait(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// Readable on a terminal, JSON elsewhere; `RUST_LOG` chooses what. The access log has its own form.
///
/// Both are written by threads of their own: a reader that does not read loses lines and holds nothing up.
fn start_log(access: AccessLog) -> WorkerGuard {
    let (writer, guard) = tracing_appender::non_blocking(std::io::stderr());
    let chosen = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let events = tracing_subscriber::fmt::layer().with_writer(writer.clone());
    let events = if std::io::stderr().is_terminal() {
        events.with_target(false).boxed()
    } else {
        events.json().flatten_event(true).boxed()
    };
    let is_access = |metadata: &Metadata<'_>| metadata.target() == access::TARGET;
    let events = events.with_filter(chosen.and(filter_fn(move |metadata| !is_access(metadata))));
    let lines = tracing_subscriber::fmt::layer().with_writer(writer);
    let lines = match access {
        AccessLog::Off => None,
        AccessLog::Text => Some(lines.with_target(false).boxed()),
        AccessLog::Json => Some(lines.json().flatten_event(true).with_target(false).boxed()),
    };
    tracing_subscriber::registry()
        .with(events)
        .with(lines.with_filter(filter_fn(is_access)))
        .init();
    guard
}
