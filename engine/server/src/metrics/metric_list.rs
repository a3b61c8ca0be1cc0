//! A sample of `/metrics` with every metric, for the manual.

use std::fmt::Error;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use http::StatusCode;

use crate::admin::status::{
    AlertStatus, Availability, DeploymentStatus, MemoryStatus, StateStatus, StatusBoard,
    StoreStatus, TenantStatus, by_id,
};
use crate::metrics::process_memory::MemoryUse;
use crate::metrics::{Counters, render};
use crate::snapshot_store::SnapshotStore;
use crate::tls::order_status::FailureKind;
use crate::tls::overview::{CertificateLine, CertificateProblem, CertificateState};
use release::snapshot::ContentEncoding;

/// Returns the `/metrics` text of a server with one request and one tenant: every metric with its help text, type and labels.
///
/// # Errors
/// Never; see [`render`].
pub fn text() -> Result<String, Error> {
    let snapshots = Arc::new(SnapshotStore::default());
    let shared = &snapshots.shared;
    shared.record(StatusCode::OK, ContentEncoding::Identity, 0, Duration::ZERO);
    let board = Arc::new(StatusBoard::default());
    board.set_store(StoreStatus {
        memory_limit: Some(0),
        state: Some(StateStatus::default()),
        ..StoreStatus::default()
    });
    board.set_alerts(AlertStatus::default());
    board.set_memory(MemoryStatus {
        largest: vec![("sample".into(), 0)],
        ..MemoryStatus::default()
    });
    let tenant = TenantStatus {
        id: "sample".into(),
        state: Availability::Live,
        since: UNIX_EPOCH,
        pages: 0,
        hosts: Arc::default(),
        compiled_in: Duration::ZERO,
        is_in_flight: false,
        errors: Vec::new(),
        pinned: None,
        unreadable_pin: None,
        receiving: Vec::new(),
        preview: None,
    };
    board.replace(DeploymentStatus {
        tenants: by_id([tenant]),
        ..DeploymentStatus::default()
    });
    let certificate = CertificateLine {
        host: "sample.example".to_owned(),
        state: CertificateState::Valid,
        source: None,
        file_names: Vec::new(),
        not_after: Some(0),
        ordering: false,
        waiting: None,
        last_try: Some(0),
        next_try: None,
        error: Some(CertificateProblem {
            kind: FailureKind::Dns,
            detail: String::new(),
        }),
    };
    render(Counters {
        snapshots,
        board,
        access_log: None,
        certificates: vec![certificate],
        memory: Some(MemoryUse {
            resident: 0,
            allocated: Some(0),
            limit: Some(0),
        }),
    })
}
