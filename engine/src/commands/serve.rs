//! `rowhouse serve`: bind, compile, answer, reload on SIGHUP, drain on SIGTERM.
//!
//! The addresses are bound before anything is compiled, so that a port in use is told at once.

use std::net::TcpListener;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use jiff::Timestamp;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::{error, info, warn};

use super::{FAILED, estate, log};
use crate::cli::{ServeArguments, WatchMethod};
use crate::reload::{Keeper, tell};
use crate::serve::access::AccessLog;
use crate::serve::admin::{self, Admin};
use crate::serve::events::Events;
use crate::serve::listen::bind;
use crate::serve::settings::ServeSettings;
use crate::serve::shelf::Shelf;
use crate::serve::status::StatusBoard;
use crate::watch::{Method, Notice};

/// Serves until a signal ends it.
pub(super) fn run(arguments: &ServeArguments) -> anyhow::Result<ExitCode> {
    let (access_log, _guards) = log::start(arguments);
    let begin = Instant::now();
    let visitors = bind(arguments.listen)?;
    let operators =
        bind(arguments.admin).context("the address for operators is set by `--admin`")?;
    let mut estate = estate(&arguments.content, arguments.dev)?;
    let snapshot = estate.reload(Timestamp::now())?;
    let shelf = Arc::new(Shelf::new(snapshot));
    let board = Arc::new(StatusBoard::default());
    tell(&estate, &board);
    let events = arguments.dev.then(|| Events::new(&estate.state(None)));
    let owner = Keeper {
        estate,
        shelf: Arc::clone(&shelf),
        board: Arc::clone(&board),
        events: events.clone(),
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
            events,
            begin,
            access_log,
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
    events: Option<Events>,
    begin: Instant,
    access_log: Option<AccessLog>,
}

impl House {
    async fn serve(self, arguments: &ServeArguments) -> anyhow::Result<ExitCode> {
        let mut stop = Stop::new()?;
        let mut again = Stop::new()?;
        let hang_up = signal(SignalKind::hangup()).context("cannot wait for SIGHUP")?;
        let settings = ServeSettings {
            grace: Duration::from_secs(arguments.grace),
            trusted_proxies: arguments.trusted_proxy.clone(),
            access_log: self.access_log,
            limits: arguments.limits.clone(),
            events: self.events,
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
