//! `rowhouse serve`: binds, reads the folders, serves, reloads on SIGHUP, drains on SIGTERM or when a new process takes over.
//!
//! Addresses are bound before any folder is read, so that a port in use is reported at once.
//! A service manager that passes listening sockets (`LISTEN_FDS`) keeps them open during a restart: connections wait in the queue of the socket, and are not refused.
//!
//! **Invariant:** the only module that knows every part of a running server.

mod alerts;
pub(crate) mod greeting;
pub(crate) mod https;
pub(crate) mod log;
#[cfg_attr(not(feature = "otlp"), path = "no_otlp.rs")]
pub(crate) mod otlp;
pub(crate) mod service_manager;
#[cfg(feature = "bucket")]
mod shared_certificates;
#[cfg_attr(not(feature = "bucket"), path = "no_store.rs")]
pub(crate) mod store;
pub(crate) mod takeover;

use std::cell::OnceCell;
use std::future::pending;
use std::io::IsTerminal as _;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use jiff::Timestamp;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;
use tokio::time::timeout;
use tracing::subscriber::{NoSubscriber, with_default};
use tracing::{error, info, warn};

use crate::cli::{ServeArguments, WatchMethod};
use crate::commands::memory;
use crate::commands::operations::admin_token;
use crate::commands::output::FAILED;
use crate::commands::progress;
use crate::commands::setup::{StateSettings, registry};
use crate::console::{ConsolePages, ConsoleParts};
use content::report::guard::guard;
use greeting::{Greeting, Overview};
use otlp::Spans;
use release::snapshot::Snapshot;
use release::store::RetentionLimits;
use server::access_log::spans::RequestSpans;
use server::acme::RenewalRequests;
use server::admin::status::StatusBoard;
use server::admin::{self, Admin};
use server::connection::events::EventChannel;
use server::listen::Listeners;
use server::listen::descriptors::connections_that_fit;
use server::settings::{Limits, ServeSettings};
use server::snapshot_store::SnapshotStore;
use store::FollowedStore;
use supervisor::source::watch::{DetectionMethod, Notice, NoticeSender, Watch};
use supervisor::{Inbox, Operator, Registry, ReloadLoop, log_report};
use takeover::control_socket::{ControlSocket, Replacement};
use takeover::successor::{self, Takeover};

/// The longest time to render tenants before the greeting on a terminal.
const GREETING_TIMEOUT: Duration = Duration::from_secs(2);

/// The longest time to render tenants before a takeover.
const WARM_UP_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest time without alerts after a takeover.
const MAX_ALERT_PAUSE: Duration = Duration::from_secs(60);

/// The shortest time for writing the state at shutdown, even if draining took the whole grace period.
const MIN_FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// The longest time after the signal for which the end waits until this replica has left the list of its fleet.
const MAX_LEAVE_TIME: Duration = Duration::from_secs(1);

/// Serves until a signal ends the process.
pub(super) fn run(arguments: &ServeArguments) -> anyhow::Result<ExitCode> {
    let (access_log, _guards) = log::start(arguments);
    let arguments = &store::with_address(arguments);
    let spans = arguments.otlp.as_ref().map(Spans::start).transpose()?;
    let begin = Instant::now();
    let runtime = event_loop()?;
    let (takeover, received) = runtime.block_on(successor::request(arguments))?.unzip();
    let mut received = received.unwrap_or_default();
    let (visitors, is_managed) = https::listeners(arguments, &mut received.visitors)?;
    check_sockets(takeover.as_ref(), is_managed)?;
    let shared = store::certificates(arguments)?;
    let tls = https::tls(arguments, &visitors, shared.clone())?;
    let token = admin_token::token(&arguments.token)?;
    let alert_settings = alerts::settings(arguments)?;
    let operators = https::listen(&mut received.admin, arguments.admin, "--admin")?;
    let process_memory = memory::of_process();
    let board = Arc::new(StatusBoard::default());
    board.set_handing_over(takeover.is_some());
    let followed = FollowedStore::open(arguments, &board)?;
    let mut registry = serving_registry(arguments, &board, followed.as_ref())?;
    // The socket is in the folder of the state, which the registry has opened.
    let control_socket = ControlSocket::of_arguments(
        arguments,
        received.control.take(),
        (&visitors, &operators),
        is_managed,
    )?;
    received.close();
    let store = registry.store().cloned();
    let inbox = Inbox::default();
    // The watch starts before the first read, so that no change is missed.
    let roots = watched_roots(&registry, followed.is_some());
    let watch = Watch::new(watch_method(arguments.watch), roots);
    let is_terminal = std::io::stderr().is_terminal();
    let snapshot = served_snapshot(&mut registry, takeover.as_ref(), is_terminal);
    let snapshot = store::or_empty(snapshot, followed.as_ref(), takeover.as_ref())?;
    let snapshots = Arc::new(SnapshotStore::new(snapshot));
    registry.set_served();
    let renewals = Arc::<RenewalRequests>::default();
    if let Some(tls) = &tls {
        https::start_acme(arguments, &visitors, tls, &renewals, &snapshots, shared)?;
    }
    let overview = is_terminal.then(|| Overview::of(&registry));
    report_start(&registry, &board, overview.is_some());
    let events = arguments
        .dev
        .then(|| EventChannel::new(&registry.diagnostics(None)));
    board.reloaded(begin.elapsed(), registry.any_alarm().map(ToOwned::to_owned));
    let changes = watch.sender();
    let reloads = ReloadLoop {
        registry,
        snapshots: Arc::clone(&snapshots),
        board: Arc::clone(&board),
        events: events.clone(),
        inbox: inbox.clone(),
    }
    .start(watch);
    store::follow(followed, &board, &reloads);
    let operator = Arc::new(Operator {
        store,
        inbox,
        reloads,
        board: Arc::clone(&board),
        tenants: arguments.content.tenants.clone(),
    });
    let console = ConsolePages::new(ConsoleParts {
        operator: Arc::clone(&operator),
        snapshots: Arc::clone(&snapshots),
        tls: tls.clone(),
        origin: arguments.content.origin.clone(),
        has_token: token.is_some(),
        memory: process_memory,
    });
    let running = ServerProcess {
        visitors,
        operators,
        admin: Admin {
            snapshots,
            board,
            access_log,
            hosts: arguments.admin_host.clone(),
            control: Some(operator.clone()),
            token,
            console: Some(Arc::new(console.context("cannot render the console")?)),
            tls,
            memory: process_memory,
            renewals,
        },
        changes,
        operator,
        events,
        begin,
        overview,
        spans: spans.as_ref().map(Spans::of_requests),
        control_socket,
        takeover,
    };
    alerts::start(
        alert_settings,
        &running.admin,
        running.operator.store.clone(),
    )?;
    runtime.block_on(running.serve(arguments))
}

/// Fails if the sockets of a service manager cannot be taken over.
fn check_sockets(takeover: Option<&Takeover>, is_managed: bool) -> anyhow::Result<()> {
    ensure!(
        takeover.is_none() || !is_managed,
        "`--takeover` cannot be used with the sockets of a service manager (`LISTEN_FDS`); restart the service instead"
    );
    Ok(())
}

/// Logs the diagnostics of the tenants, unless the greeting has the same report.
fn report_start(registry: &Registry, board: &StatusBoard, has_greeting: bool) {
    match has_greeting {
        true => with_default(NoSubscriber::default(), || log_report(registry, board)),
        false => log_report(registry, board),
    }
}

/// Returns the first snapshot to serve.
///
/// # Errors
/// Returns an error if the registry is not ready for a takeover.
fn served_snapshot(
    registry: &mut Registry,
    takeover: Option<&Takeover>,
    is_terminal: bool,
) -> anyhow::Result<Snapshot> {
    // The greeting lists the errors of the rendered tenants. The first requests after a takeover wait for no rendering.
    let render_timeout = match (takeover, is_terminal) {
        (Some(_), _) => Some(WARM_UP_TIMEOUT),
        (None, true) => Some(GREETING_TIMEOUT),
        (None, false) => None,
    };
    let snapshot = first_snapshot(registry, render_timeout)?;
    if takeover.is_some() {
        Takeover::check_ready(registry)?;
    }
    Ok(snapshot)
}

/// Returns the registry that the flags describe, in the mode of a server. It has not read a folder yet.
fn serving_registry(
    arguments: &ServeArguments,
    board: &StatusBoard,
    followed: Option<&FollowedStore>,
) -> anyhow::Result<Registry> {
    let memory = arguments.memory.unwrap_or_else(memory::half);
    let registry = registry(
        &arguments.content,
        arguments.caching.into(),
        state_settings(arguments),
        arguments.dev,
    )?;
    let registry = match followed {
        Some(followed) => followed.attach(registry, &arguments.content),
        None => registry.awaiting_uploads(Duration::from_secs(arguments.settle_max.into())),
    };
    Ok(registry
        .serving()
        .with_memory(memory)
        .with_work_memory(memory::for_work(memory))
        .with_asset_retention(Duration::from_secs(arguments.keep_assets.into()))
        .with_removed_retention(Duration::from_secs(arguments.keep_removed.into()))
        .with_preview_max_age(Duration::from_secs(arguments.preview_max_age.into()))
        .with_render_times(board.renders.clone()))
}

/// Returns the folders and files to watch. The tenants of a bucket are not in a folder.
fn watched_roots(registry: &Registry, is_following: bool) -> Vec<PathBuf> {
    let config = registry.config();
    let mut roots = config.roots();
    roots.retain(|root| !is_following || *root != config.tenants);
    roots
}

/// Reads the folders, renders tenants for at most `render_timeout`, and returns the snapshot.
fn first_snapshot(
    registry: &mut Registry,
    render_timeout: Option<Duration>,
) -> anyhow::Result<Snapshot> {
    // After a panic the snapshot is empty. The reload loop reads the folders again, and the process is not ready until then.
    let reload = || registry.reload(Timestamp::now());
    let reloaded = guard("start", "all", "tenants", reload);
    let snapshot = reloaded.unwrap_or_else(|_| Ok(Snapshot::default()))?;
    let Some(render_timeout) = render_timeout else {
        return Ok(snapshot);
    };
    let finish = || registry.finish_within(render_timeout, Timestamp::now());
    let finished = guard("start", "all", "tenants", finish);
    Ok(finished.ok().flatten().unwrap_or(snapshot))
}

/// Returns the event loop of the admin listener and of the signals.
fn event_loop() -> anyhow::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the event loop")
}

/// Returns the folder of `--state` with its limits.
fn state_settings(arguments: &ServeArguments) -> Option<StateSettings<'_>> {
    Some(StateSettings {
        folder: arguments.state.as_deref()?,
        limits: RetentionLimits {
            releases: arguments.keep_releases,
            bytes: arguments.state_size,
        },
        is_optional: arguments.state_optional,
    })
}

const fn watch_method(method: WatchMethod) -> DetectionMethod {
    match method {
        WatchMethod::Auto => DetectionMethod::Notifications,
        WatchMethod::Poll => DetectionMethod::Polling,
        WatchMethod::Off => DetectionMethod::Off,
    }
}

/// The parts of a running server.
struct ServerProcess {
    visitors: Listeners,
    operators: TcpListener,
    admin: Admin,
    /// The sender of notices to the watch.
    changes: NoticeSender,
    operator: Arc<Operator>,
    events: Option<EventChannel>,
    begin: Instant,
    /// The sites for the greeting; `None` without a terminal.
    overview: Option<Overview>,
    spans: Option<Arc<dyn RequestSpans>>,
    /// The socket for a new process that takes over.
    control_socket: Option<ControlSocket>,
    /// The takeover from a running server, which ends when this process accepts connections.
    takeover: Option<Takeover>,
}

/// The reason for the end of a server.
#[derive(Debug)]
enum Shutdown {
    /// A signal. Operators and service managers wait for the end.
    Signal,
    /// A new process has taken over.
    Replaced { _replacement: Replacement },
    /// The running server ended the takeover by this process.
    Refused,
}

impl Shutdown {
    /// Returns the time for which idle connections wait for one more request.
    const fn linger(&self) -> Duration {
        match self {
            Self::Signal => Duration::ZERO,
            Self::Replaced { .. } | Self::Refused => takeover::LINGER,
        }
    }
}

impl ServerProcess {
    async fn serve(mut self, arguments: &ServeArguments) -> anyhow::Result<ExitCode> {
        let mut stop = ShutdownSignals::new()?;
        let mut second = ShutdownSignals::new()?;
        let hang_up = signal(SignalKind::hangup()).context("cannot wait for SIGHUP")?;
        let workers = ServeSettings::default().workers;
        let mut limits = Limits::from(&arguments.limits);
        limits.connections = connections_that_fit(limits.connections, workers);
        self.announce(arguments)?;
        let listen = https::addresses(&self.visitors.clear)?;
        let settings = ServeSettings {
            workers,
            loopback_origin: https::loopback_origin(&arguments.content.origin, &listen),
            is_origin_secure: arguments.content.origin.is_secure(),
            grace: Duration::from_secs(arguments.grace),
            trusted_proxies: arguments.trusted_proxy.clone(),
            proxy_protocol: arguments.https.proxy_protocol,
            tls: self.admin.tls.clone(),
            access_log: self.admin.access_log.clone(),
            spans: self.spans,
            limits,
            events: self.events,
            fast_lane: !arguments.no_fast_lane,
        };
        let (snapshots, board) = (self.admin.snapshots.clone(), self.admin.board.clone());
        let (takeover, control_socket) = (self.takeover, self.control_socket);
        let operator = &self.operator;
        let shutdown = async {
            // Polled once this process accepts connections.
            if let Some(takeover) = takeover
                && !complete(takeover, Arc::clone(&operator.board)).await
            {
                return Shutdown::Refused;
            }
            let replaced = async {
                match control_socket {
                    Some(socket) => socket.replaced(operator).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                name = stop.wait() => {
                    info!(signal = name, grace_s = arguments.grace, "draining");
                    Shutdown::Signal
                }
                replacement = replaced => {
                    info!(grace_s = arguments.grace, "draining");
                    Shutdown::Replaced {
                        _replacement: replacement,
                    }
                }
            }
        };
        let ended = OnceCell::new();
        let admin_end = Notify::new();
        let serving = server::run(self.visitors, snapshots, settings, async {
            let shutdown = shutdown.await;
            service_manager::stopping();
            match shutdown {
                // Before the board says that the process drains, which ends the heartbeats.
                Shutdown::Signal => board.replicas.leave(),
                Shutdown::Replaced { .. } | Shutdown::Refused => admin_end.notify_one(),
            }
            board.drain();
            let linger = shutdown.linger();
            // The future completes once.
            let _ = ended.set((shutdown, Instant::now()));
            linger
        });
        let serving_admin = async {
            tokio::select! {
                result = admin::run(self.operators, self.admin.clone()) => result,
                // The other process answers on the same socket.
                () = admin_end.notified() => pending().await,
            }
        };
        tokio::select! {
            drained = serving => {
                let drained = drained?;
                let since = ended.get().map_or_else(Instant::now, |(_, at)| *at);
                let took = since.elapsed();
                info!(
                    took_ms = milliseconds(took),
                    waited_for = %drained.waited_for,
                    cut = %drained.cut,
                    "drained"
                );
                finish(&self.operator, since, Duration::from_secs(arguments.grace)).await;
                Ok(match ended.get() {
                    Some((Shutdown::Refused, _)) => ExitCode::from(FAILED),
                    _ => ExitCode::SUCCESS,
                })
            }
            result = serving_admin => {
                result.context("the admin listener ended")?;
                Ok(ExitCode::from(FAILED))
            }
            () = reload_on_hang_up(hang_up, self.changes, &self.admin.board) => Ok(ExitCode::from(FAILED)),
            () = async { second.wait().await; second.wait().await; } => {
                warn!("second signal received; exiting without draining");
                Ok(ExitCode::from(FAILED))
            }
        }
    }

    /// Announces that requests are served: in the greeting or the log, and to the service manager.
    fn announce(&mut self, arguments: &ServeArguments) -> anyhow::Result<()> {
        let listen = https::addresses(&self.visitors.clear)?;
        let secure = https::addresses(&self.visitors.tls)?;
        let redirect = https::addresses(&self.visitors.redirect)?;
        let admin = self.operators.local_addr()?;
        if self.admin.token.is_none() && !admin.ip().is_loopback() {
            warn!(
                %admin,
                "admin listener has no token; any program that can reach the listener can roll back sites; set `--admin-token-file`, or listen on 127.0.0.1"
            );
        }
        let took = self.begin.elapsed();
        let tenants = self.admin.board.current().tenants.len();
        if let Some(overview) = self.overview.take() {
            let greeting = Greeting {
                took,
                listen: [listen, secure].concat(),
                admin,
                overview,
            };
            greeting.print();
            progress::show(self.admin.board.clone());
        } else {
            let text = |addresses: &[SocketAddr]| {
                let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
                addresses.join(" ")
            };
            info!(
                origin = %arguments.content.origin,
                listen = text(&listen),
                https = (!secure.is_empty()).then(|| text(&secure)),
                http_redirect = (!redirect.is_empty()).then(|| text(&redirect)),
                %admin,
                tenants,
                took_ms = milliseconds(took),
                "serving"
            );
        }
        // Without the number of tenants: the status stays the same while tenants are added and removed.
        service_manager::ready(&format!("serving {}", arguments.content.origin));
        Ok(())
    }
}

/// Writes the state, and waits until the replica has left the list of its fleet. `since` is the time of the signal.
async fn finish(operator: &Operator, since: Instant, grace: Duration) {
    let left = grace.saturating_sub(since.elapsed());
    if !operator.flush(left.max(MIN_FLUSH_TIMEOUT)) {
        warn!("state not written completely; the next startup renders the missing pages again");
    }
    let left = MAX_LEAVE_TIME.saturating_sub(since.elapsed());
    // A replica that does not leave in time is listed for a day.
    let _ = timeout(left, operator.board.replicas.left()).await;
}

/// Completes a takeover, and resumes alerts once the former server has ended, or after [`MAX_ALERT_PAUSE`]. Returns whether this process goes on serving.
async fn complete(takeover: Takeover, board: Arc<StatusBoard>) -> bool {
    let Some(former) = takeover.complete().await else {
        return false;
    };
    tokio::spawn(async move {
        // A former server that hangs must not silence the alerts of this process.
        let _ = timeout(MAX_ALERT_PAUSE, former.ended()).await;
        board.set_handing_over(false);
    });
    true
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Reloads all folders at every SIGHUP.
async fn reload_on_hang_up(mut hang_up: Signal, changes: NoticeSender, board: &StatusBoard) {
    let mut attempts = board.attempts();
    while hang_up.recv().await.is_some() {
        service_manager::reloading();
        attempts.mark_unchanged();
        if changes.send(Notice::Everything).is_err() {
            error!("reload loop has ended; serving the current snapshot without further reloads");
            pending::<()>().await;
        }
        // The sender is in the board, which outlives this future: waiting cannot fail.
        let _ = attempts.changed().await;
        service_manager::ready("reloaded");
    }
}

/// The signals that end the process: SIGTERM and SIGINT.
struct ShutdownSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl ShutdownSignals {
    fn new() -> anyhow::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?,
            interrupt: signal(SignalKind::interrupt()).context("cannot wait for SIGINT")?,
        })
    }

    /// Waits for a signal and returns its name.
    async fn wait(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
