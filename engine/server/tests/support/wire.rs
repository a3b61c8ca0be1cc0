//! A server on a free port, and a minimal client.
#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    clippy::expect_used,
    clippy::unwrap_used
)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use server::connection::drain::DrainReport;
use server::listen::{self, Listeners};
use server::settings::{ServeSettings, network};
use server::snapshot_store::SnapshotStore;
use tokio::sync::oneshot;

#[path = "authority.rs"]
pub mod authority;

use authority::Authority;

/// Returns settings that trust the test's own address as a proxy.
pub fn behind_a_proxy() -> ServeSettings {
    ServeSettings {
        trusted_proxies: vec![network("127.0.0.0/8").unwrap()],
        ..ServeSettings::default()
    }
}

/// Opens a socket on a free port.
pub fn bind() -> TcpListener {
    listen::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap()
}

pub struct Server {
    pub address: SocketAddr,
    pub snapshots: Arc<SnapshotStore>,
    stop: Option<oneshot::Sender<Duration>>,
    thread: Option<JoinHandle<DrainReport>>,
}

impl Server {
    pub fn start() -> Self {
        Self::with(ServeSettings::default())
    }

    pub fn with(settings: ServeSettings) -> Self {
        // Runs the same tests over TLS; see `over_tls.rs`.
        if env!("CARGO_CRATE_NAME") == "over_tls" {
            return Self::over_tls(settings);
        }
        // Runs the same tests without the fast lane; see `without_fast_lane.rs`.
        let settings = ServeSettings {
            fast_lane: settings.fast_lane && env!("CARGO_CRATE_NAME") != "without_fast_lane",
            ..settings
        };
        let clear = vec![bind()];
        let address = clear[0].local_addr().unwrap();
        Self::listening(clear.into(), address, settings)
    }

    /// Starts a server with TLS for all hosts of the sample. Clients connect without TLS, through a tunnel.
    fn over_tls(settings: ServeSettings) -> Self {
        let authority = Authority::new();
        let sample = crate::sample::snapshot();
        let hosts: Vec<&str> = sample.hosts.keys().map(|host| &**host).collect();
        let settings = ServeSettings {
            tls: Some(authority.tls(&[&hosts])),
            ..settings
        };
        let secure = bind();
        let tunnel = authority.tunnel(secure.local_addr().unwrap(), hosts[0]);
        let listeners = Listeners {
            tls: vec![secure],
            ..Listeners::default()
        };
        Self::listening(listeners, tunnel, settings)
    }

    /// Serves on these sockets. Clients of the test connect to `address`.
    pub fn listening(listeners: Listeners, address: SocketAddr, settings: ServeSettings) -> Self {
        let snapshots = Arc::new(SnapshotStore::new(crate::sample::snapshot()));
        let (stop, stopped) = oneshot::channel::<Duration>();
        let served = Arc::clone(&snapshots);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            let shutdown = async { stopped.await.unwrap_or_default() };
            runtime
                .block_on(server::run(listeners, served, settings, shutdown))
                .unwrap()
        });
        Self {
            address,
            snapshots,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    pub fn connect(&self) -> TcpStream {
        let socket = TcpStream::connect(self.address).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        socket
    }

    /// Sends one request on a connection of its own.
    pub fn ask(&self, request: &str) -> Reply {
        let mut socket = self.connect();
        socket.write_all(request.as_bytes()).unwrap();
        Reply::read_for(&mut socket, request.starts_with("HEAD")).expect("a reply")
    }

    pub fn stop(&mut self) {
        self.stop_with_linger(Duration::ZERO);
    }

    /// Stops the server. Idle connections wait for one more request for `linger`.
    pub fn stop_with_linger(&mut self, linger: Duration) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(linger);
        }
    }

    pub fn ended(&mut self) -> DrainReport {
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

pub fn get(path: &str, host: &str) -> String {
    request("GET", path, host, "")
}

pub fn request(method: &str, path: &str, host: &str, fields: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\n{fields}\r\n")
}

#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn read(socket: &mut TcpStream) -> Self {
        Self::try_read(socket).expect("a reply")
    }

    pub fn try_read(socket: &mut TcpStream) -> Option<Self> {
        Self::read_for(socket, false)
    }

    fn read_for(socket: &mut TcpStream, head_only: bool) -> Option<Self> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            if socket.read(&mut byte).ok()? == 0 {
                return None;
            }
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        let mut lines = head.trim_end().split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let headers: Vec<(String, String)> = lines
            .map(|line| {
                line.split_once(": ")
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .unwrap()
            })
            .collect();
        let length = headers
            .iter()
            .find(|(name, _)| name == "content-length")
            .map_or(0, |(_, value)| value.parse().unwrap());
        let mut body = vec![0; if head_only { 0 } else { length }];
        socket.read_exact(&mut body).ok()?;
        Some(Self {
            status,
            headers,
            body,
        })
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| &**value)
    }

    /// Returns all header fields except those that are unique to a response.
    pub fn stable_headers(&self) -> Vec<(String, String)> {
        let mut headers: Vec<_> = self
            .headers
            .iter()
            .filter(|(name, _)| !["date", "x-request-id"].contains(&&**name))
            .cloned()
            .collect();
        headers.sort();
        headers
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }
}
