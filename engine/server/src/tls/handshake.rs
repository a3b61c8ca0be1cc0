//! Performs the TLS handshake of a connection.
//!
//! **Invariant:** enforces no limit; the caller limits the duration and the number of handshakes.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use rustls::server::Acceptor;
use rustls::sign::CertifiedKey;
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::sleep;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

use super::certificate::Certificate;
use super::config::{ALPN_ACME, ALPN_HTTP2, Tls, requested_name};
use crate::acme::proof_certificate;
use crate::snapshot_store::{RequestNotice, RequestedAddress, SnapshotStore};

/// The host name and the certificate of a handshake.
#[derive(Debug)]
pub(crate) struct SecureName {
    /// The host name that the client requested.
    host: Box<str>,
    certificate: Arc<Certificate>,
}

impl SecureName {
    /// Returns whether requests for `host` may arrive on the connection: the handshake named it, or the certificate covers it (RFC 9110, section 7.4).
    pub(crate) fn covers(&self, host: &str) -> bool {
        *self.host == *host || self.certificate.covers(host)
    }
}

/// A visitor's connection after the handshake.
#[derive(Debug)]
pub(crate) struct TlsConnection {
    pub(crate) stream: TlsStream<TcpStream>,
    pub(crate) name: Rc<SecureName>,
    /// Whether ALPN chose HTTP/2.
    pub(crate) is_http2: bool,
}

/// The longest wait of a handshake for the certificate of a dormant tenant.
const DORMANT_TIMEOUT: Duration = Duration::from_secs(5);

/// The interval at which such a handshake looks for the certificate.
const DORMANT_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The fatal alert `unrecognized_name` as a TLS record (RFC 8446, sections 5.1 and 6; RFC 6066, section 3).
const UNRECOGNIZED_NAME: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];

/// Performs the server's side of a handshake.
///
/// Returns `None` if the connection ends with it: a CA has seen the answer to its challenge, or there is no certificate for the name.
///
/// # Errors
/// When the client aborts, or supports no common version or suite. The client has been sent an alert then.
pub(crate) async fn accept_tls(
    socket: TcpStream,
    tls: &Tls,
    snapshots: &SnapshotStore,
) -> io::Result<Option<TlsConnection>> {
    let counters = &snapshots.handshakes;
    let result = try_accept(socket, tls, snapshots).await;
    if result.is_err() {
        counters.failed.fetch_add(1, Relaxed);
    }
    result
}

async fn try_accept(
    socket: TcpStream,
    tls: &Tls,
    snapshots: &SnapshotStore,
) -> io::Result<Option<TlsConnection>> {
    let counters = &snapshots.handshakes;
    let mut start = LazyConfigAcceptor::new(Acceptor::default(), socket).await?;
    let (host, is_challenge) = {
        let hello = start.client_hello();
        let is_challenge = hello
            .alpn()
            .is_some_and(|mut protocols| protocols.any(|protocol| protocol == ALPN_ACME));
        (requested_name(&hello).unwrap_or_default(), is_challenge)
    };
    let is_claimed = snapshots.is_claimed(&host);
    if is_challenge && let Some(certificate) = challenge(tls, &host, is_claimed).await {
        let mut stream = start.into_stream(tls.for_challenge(certificate)).await?;
        counters.challenges.fetch_add(1, Relaxed);
        stream.shutdown().await?;
        return Ok(None);
    }
    if is_claimed && tls.certificates.find(&host).is_none() {
        wait_for_tenant(tls, snapshots, &host).await;
    }
    let certificate = tls.certificates.find(&host).filter(|_| is_claimed);
    let Some(certificate) = certificate else {
        let counter = match is_claimed {
            true => &counters.no_certificate,
            false => &counters.unknown_name,
        };
        counter.fetch_add(1, Relaxed);
        // rustls would send `access_denied`.
        start.io.write_all(&UNRECOGNIZED_NAME).await?;
        start.io.shutdown().await?;
        return Ok(None);
    };
    let stream = start.into_stream(Arc::clone(&tls.visitors)).await?;
    let (_, session) = stream.get_ref();
    counters.complete(session.protocol_version(), session.handshake_kind());
    let is_http2 = session.alpn_protocol() == Some(ALPN_HTTP2);
    let host = host.into();
    Ok(Some(TlsConnection {
        stream,
        name: Rc::new(SecureName { host, certificate }),
        is_http2,
    }))
}

/// Wakes the dormant tenant of a host, and waits for a limited time for its certificate, which other replicas may have ordered.
async fn wait_for_tenant(tls: &Tls, snapshots: &SnapshotStore, host: &str) {
    let begun = Instant::now();
    while begun.elapsed() < DORMANT_TIMEOUT
        && let Some(tenant) = snapshots.dormant(RequestedAddress::Host(host, "/"))
        && tls.certificates.find(host).is_none()
    {
        snapshots.send_notice(RequestNotice::Dormant(&tenant));
        sleep(DORMANT_CHECK_INTERVAL).await;
    }
}

/// Returns the certificate of the open challenge of a host: of this process, or of another replica if the host is claimed.
async fn challenge(tls: &Tls, host: &str, is_claimed: bool) -> Option<Arc<CertifiedKey>> {
    if let Some(own) = tls.certificates.challenge(host) {
        return Some(own);
    }
    let shared = tls.shared.as_ref().filter(|_| is_claimed)?;
    let found = shared.find(host).await?;
    proof_certificate(host, &Sha256::digest(&found.text)).ok()
}
