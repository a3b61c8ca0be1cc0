//! Probes a running server as a browser would: performs a handshake, and checks the certificate for a host.
//!
//! **Invariant:** sends no request; trusts only the roots that the caller chooses.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig, ClientConnection, Error as TlsError, RootCertStore};
use thiserror::Error;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::provider::provider;

/// The result of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeResult {
    /// The TLS version, as in `TLSv1_3`.
    pub version: String,
    /// The ALPN protocol; empty if none was agreed on.
    pub protocol: String,
    /// Days until the certificate expires.
    pub days: u64,
}

/// Error that would stop a browser.
#[derive(Debug, Error)]
pub enum ProbeError {
    /// The root certificates cannot be used.
    #[error("cannot use the root certificates: {0}")]
    Roots(String),
    /// The text is not a host name.
    #[error("`{0}` is not a valid host name")]
    Host(String),
    /// None of the roots has signed the certificate.
    #[error(
        "invalid peer certificate: UnknownIssuer: if you trust its authority, name the root certificate with `--root`"
    )]
    UnknownIssuer,
    /// The certificate cannot be used for a server.
    #[error("invalid peer certificate: {0}")]
    Certificate(String),
    /// The server does not respond, or the handshake fails, for example because the certificate is not valid for the host.
    #[error("{0}")]
    Handshake(io::Error),
}

impl From<io::Error> for ProbeError {
    fn from(error: io::Error) -> Self {
        let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
        match cause {
            Some(TlsError::InvalidCertificate(CertificateError::UnknownIssuer)) => {
                Self::UnknownIssuer
            }
            // rustls formats these reasons for debugging.
            Some(TlsError::InvalidCertificate(CertificateError::Other(reason))) => {
                Self::Certificate(reason.to_string())
            }
            _ => Self::Handshake(error),
        }
    }
}

/// Returns the root certificates in a PEM, or Mozilla's root certificates.
///
/// # Errors
/// When the PEM has no root certificate, or an unusable root certificate.
pub(crate) fn root_store(pem: Option<&[u8]>) -> Result<RootCertStore, rustls::Error> {
    let Some(pem) = pem else {
        let roots = webpki_roots::TLS_SERVER_ROOTS.iter().cloned();
        return Ok(roots.collect());
    };
    let mut store = RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(pem) {
        store.add(root.map_err(|error| rustls::Error::General(error.to_string()))?)?;
    }
    match store.is_empty() {
        true => Err(rustls::Error::NoCertificatesPresented),
        false => Ok(store),
    }
}

/// Performs a handshake for `host` with the server at `address`.
///
/// `roots` is a PEM; without it, the roots of Mozilla are trusted. `timeout` applies to each step.
///
/// # Errors
/// When a browser that trusts these roots would not connect.
pub fn probe(
    address: SocketAddr,
    host: &str,
    roots: Option<&[u8]>,
    timeout: Duration,
) -> Result<ProbeResult, ProbeError> {
    let in_words = |error: rustls::Error| ProbeError::Roots(error.to_string());
    let roots = root_store(roots).map_err(in_words)?;
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(in_words)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let name = ServerName::try_from(host.to_owned());
    let name = name.map_err(|_| ProbeError::Host(host.to_owned()))?;
    let mut socket = TcpStream::connect_timeout(&address, timeout)?;
    socket.set_read_timeout(Some(timeout))?;
    socket.set_write_timeout(Some(timeout))?;
    let mut session = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    while session.is_handshaking() {
        session.complete_io(&mut socket)?;
    }
    let certificate = session.peer_certificates().and_then(|chain| chain.first());
    let version = session.protocol_version();
    let protocol = session.alpn_protocol().unwrap_or_default();
    Ok(ProbeResult {
        version: version.map_or_else(String::new, |version| format!("{version:?}")),
        protocol: String::from_utf8_lossy(protocol).into_owned(),
        days: certificate.map(days).unwrap_or_default(),
    })
}

/// Returns the number of days until a certificate expires.
fn days(certificate: &CertificateDer<'_>) -> u64 {
    let Ok((_, certificate)) = X509Certificate::from_der(certificate) else {
        return 0;
    };
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.map_or(0, |since| since.as_secs());
    let end = u64::try_from(certificate.validity().not_after.timestamp()).unwrap_or(0);
    end.saturating_sub(now) / (24 * 60 * 60)
}
