//! An admin listener on a free port.
#![allow(dead_code, missing_docs, unreachable_pub, clippy::unwrap_used)]

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use super::wire::{Reply, get};
use server::admin::{self, Admin};
use server::control::Control;
use server::listen;
use server::snapshot_store::SnapshotStore;
use server::status::StatusBoard;

pub struct AdminListener {
    pub address: SocketAddr,
    pub board: Arc<StatusBoard>,
}

impl AdminListener {
    pub fn open(snapshots: &Arc<SnapshotStore>) -> Self {
        Self::with_control(snapshots, None)
    }

    pub fn with_control(snapshots: &Arc<SnapshotStore>, control: Option<Arc<dyn Control>>) -> Self {
        let listener = listen::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = listener.local_addr().unwrap();
        let board = Arc::new(StatusBoard::default());
        let shown = Admin {
            snapshots: Arc::clone(snapshots),
            board: Arc::clone(&board),
            access_log: None,
            hosts: vec!["monitoring.example".to_owned()],
            control,
            tls: None,
        };
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
