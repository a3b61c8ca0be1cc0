//! An admin listener on a free port.
#![allow(dead_code, missing_docs, unreachable_pub, clippy::unwrap_used)]

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use bytes::Bytes;
use http::{Response, StatusCode};

use super::wire::{Reply, get};
use server::admin::console::Console;
use server::admin::control::Control;
use server::admin::status::StatusBoard;
use server::admin::{self, Admin, AdminToken};
use server::listen;
use server::metrics::process_memory::ProcessMemory;
use server::snapshot_store::SnapshotStore;

pub struct AdminListener {
    pub address: SocketAddr,
    pub board: Arc<StatusBoard>,
}

impl AdminListener {
    pub fn open(snapshots: &Arc<SnapshotStore>) -> Self {
        Self::with_control(snapshots, None)
    }

    pub fn with_control(snapshots: &Arc<SnapshotStore>, control: Option<Arc<dyn Control>>) -> Self {
        Self::with_token(snapshots, control, None)
    }

    pub fn with_token(
        snapshots: &Arc<SnapshotStore>,
        control: Option<Arc<dyn Control>>,
        token: Option<AdminToken>,
    ) -> Self {
        Self::with(snapshots, |admin| {
            admin.control = control;
            admin.token = token;
        })
    }

    /// Opens a listener whose settings `change` has changed.
    pub fn with(snapshots: &Arc<SnapshotStore>, change: impl FnOnce(&mut Admin)) -> Self {
        let listener = listen::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = listener.local_addr().unwrap();
        let board = Arc::new(StatusBoard::default());
        let mut shown = Admin {
            snapshots: Arc::clone(snapshots),
            board: Arc::clone(&board),
            access_log: None,
            hosts: vec!["monitoring.example".to_owned()],
            control: None,
            token: None,
            console: Some(Arc::new(OnePage)),
            tls: None,
            memory: ProcessMemory::default(),
            renewals: Arc::default(),
        };
        change(&mut shown);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(admin::run(listener, shown)).unwrap();
        });
        Self { address, board }
    }

    pub fn ask(&self, path: &str) -> (u16, String) {
        let reply = self.send(&get(path, "localhost"));
        (reply.status, reply.text())
    }

    pub fn send(&self, request: &str) -> Reply {
        let mut socket = TcpStream::connect(self.address).unwrap();
        socket.write_all(request.as_bytes()).unwrap();
        Reply::read(&mut socket)
    }

    pub fn counters(&self) -> String {
        let (status, text) = self.ask("/metrics");
        assert_eq!(status, 200);
        assert!(text.ends_with("# EOF\n"), "{text}");
        text
    }
}

/// A console that returns the requested path.
#[derive(Debug)]
struct OnePage;

impl Console for OnePage {
    fn page(&self, path: &str, query: &str) -> Response<Bytes> {
        let mut response = Response::new(format!("{path}?{query}").into());
        if path != "/" {
            *response.status_mut() = StatusCode::NOT_FOUND;
        }
        response
    }

    fn refusal(&self, tenant: &str, status: StatusCode, error: &str) -> Response<Bytes> {
        let mut response = Response::new(format!("{tenant}: {error}").into());
        *response.status_mut() = status;
        response
    }
}
