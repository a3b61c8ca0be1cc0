//! One handshake: from a socket to a visitor's stream.
//!
//! **Invariant:** limits nothing itself; its caller has the time and the number of handshakes.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use rustls::server::Acceptor;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

use super::certificate::Certificate;
use super::config::{ACME, H2, Tls, asked_name};
use crate::snapshot_store::SnapshotStore;

/// What a handshake was about.
#[derive(Debug)]
pub(crate) struct SecureName {
    /// The host that the client requested.
    host: Box<str>,
    certificate: Arc<Certificate>,
}

impl SecureName {
    /// Whether requests for a host may come on this connection: it is the one that the handshake named, or the certificate covers it, too (RFC 9110, section 7.4).
    pub(crate) fn covers(&self, host: &str) -> bool {
        *self.host == *host || self.certificate.covers(host)
    }
}

/// A visitor's connection after its handshake.
#[derive(Debug)]
pub(crate) struct Secured {
    pub(crate) stream: TlsStream<TcpStream>,
    pub(crate) name: Rc<SecureName>,
    /// Whether HTTP/2 was agreed on.
    pub(crate) http2: bool,
}

/// The alert `unrecognized_name`, fatal, as a record of its own (RFC 8446, sections 5.1 and 6; RFC 6066, section 3).
const UNRECOGNIZED_NAME: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];

/// Does the server's part of a handshake. `None` where it is over after it: an authority has seen the answer to its challenge, or nobody here has the name.
///
/// # Errors
/// When the client breaks off, or speaks no TLS that is spoken here. It was sent an alert then.
pub(crate) async fn shake_hands(
    socket: TcpStream,
    tls: &Tls,
    snapshots: &SnapshotStore,
) -> io::Result<Option<Secured>> {
    let counters = &snapshots.handshakes;
    let result = attempt(socket, tls, snapshots).await;
    if result.is_err() {
        counters.failed.fetch_add(1, Relaxed);
    }
    result
}

async fn attempt(
    socket: TcpStream,
    tls: &Tls,
    snapshots: &SnapshotStore,
) -> io::Result<Option<Secured>> {
    let counters = &snapshots.handshakes;
    let mut start = LazyConfigAcceptor::new(Acceptor::default(), socket).await?;
    let (host, is_challenge) = {
        let hello = start.client_hello();
        let is_challenge = hello
            .alpn()
            .is_some_and(|mut protocols| protocols.any(|protocol| protocol == ACME));
        (asked_name(&hello).unwrap_or_default(), is_challenge)
    };
    if is_challenge && tls.certificates.challenge(&host).is_some() {
        let mut stream = start.into_stream(Arc::clone(&tls.challenges)).await?;
        counters.challenges.fetch_add(1, Relaxed);
        stream.shutdown().await?;
        return Ok(None);
    }
    let is_claimed = snapshots.current().hosts.contains_key(&*host);
    let certificate = tls.certificates.find(&host).filter(|_| is_claimed);
    let Some(certificate) = certificate else {
        let counter = match is_claimed {
            true => &counters.no_certificate,
            false => &counters.unknown_name,
        };
        counter.fetch_add(1, Relaxed);
        // Rustls would say `access_denied`.
        start.io.write_all(&UNRECOGNIZED_NAME).await?;
        start.io.shutdown().await?;
        return Ok(None);
    };
    let stream = start.into_stream(Arc::clone(&tls.visitors)).await?;
    let (_, session) = stream.get_ref();
    counters.complete(session.protocol_version(), session.handshake_kind());
    let http2 = session.alpn_protocol() == Some(H2);
    let host = host.into();
    Ok(Some(Secured {
        stream,
        name: Rc::new(SecureName { host, certificate }),
        http2,
    }))
}
