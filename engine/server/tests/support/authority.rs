//! A certificate authority for tests, and clients that trust it.
#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    clippy::expect_used,
    clippy::unwrap_used
)]

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion,
};
use server::tls::Tls;
use server::tls::certificate::Certificate;
use server::tls::certificate_store::CertificateStore;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio_rustls::TlsConnector;

pub const BOTH_VERSIONS: &[&SupportedProtocolVersion] =
    &[&rustls::version::TLS13, &rustls::version::TLS12];

pub type TlsClient = StreamOwned<ClientConnection, TcpStream>;

pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    pub fn new() -> Self {
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self {
            issuer: CertifiedIssuer::self_signed(parameters, key).unwrap(),
        }
    }

    /// Returns a chain and its key as PEM.
    pub fn sign(&self, names: &[&str]) -> (String, String) {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let key = KeyPair::generate().unwrap();
        let parameters = CertificateParams::new(names).unwrap();
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    pub fn certificate(&self, names: &[&str]) -> Arc<Certificate> {
        let (chain, key) = self.sign(names);
        Arc::new(Certificate::from_pem(chain.as_bytes(), key.as_bytes()).unwrap())
    }

    /// Returns settings with a certificate for each list of names.
    pub fn tls(&self, lists: &[&[&str]]) -> Arc<Tls> {
        let certificates: Vec<_> = lists.iter().map(|names| self.certificate(names)).collect();
        let store = CertificateStore::default();
        store.set_files(&certificates);
        Arc::new(Tls::new(Arc::new(store), Some(8443)).unwrap())
    }

    /// Returns the roots that the clients trust.
    pub fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        roots
    }

    /// Returns a client that trusts only this certificate authority.
    pub fn client(
        &self,
        versions: &[&'static SupportedProtocolVersion],
        protocols: &[&str],
    ) -> Arc<ClientConfig> {
        let mut config =
            ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
                .with_protocol_versions(versions)
                .unwrap()
                .with_root_certificates(self.roots())
                .with_no_client_auth();
        config.alpn_protocols = protocols
            .iter()
            .map(|name| name.as_bytes().to_vec())
            .collect();
        Arc::new(config)
    }

    /// Starts a listener that forwards each connection over TLS while the test runs. Returns its address. A connection that begins with the HTTP/2 preface negotiates HTTP/2.
    pub fn tunnel(&self, server: SocketAddr, host: &str) -> SocketAddr {
        let client = |protocol| TlsConnector::from(self.client(BOTH_VERSIONS, &[protocol]));
        let (http1, http2) = (client("http/1.1"), client("h2"));
        let host = ServerName::try_from(host.to_owned()).unwrap();
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                while let Ok((near, _)) = listener.accept().await {
                    let (http1, http2, host) = (http1.clone(), http2.clone(), host.clone());
                    tokio::spawn(async move {
                        let mut start = [0; 3];
                        near.peek(&mut start).await?;
                        let client = if start == *b"PRI" { http2 } else { http1 };
                        let far = tokio::net::TcpStream::connect(server).await?;
                        near.set_nodelay(true)?;
                        far.set_nodelay(true)?;
                        let far = client.connect(host, far).await?;
                        let (near, far) = (tokio::io::split(near), tokio::io::split(far));
                        // A side that has closed its write half may still receive.
                        tokio::join!(pass_on(near.0, far.1), pass_on(far.0, near.1));
                        Ok::<_, std::io::Error>(())
                    });
                }
            });
        });
        address
    }
}

async fn pass_on(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) {
    let _ = tokio::io::copy(&mut from, &mut to).await;
    let _ = to.shutdown().await;
}

/// Connects and performs the client's part of the handshake.
pub fn secure(
    address: SocketAddr,
    config: &Arc<ClientConfig>,
    host: &str,
) -> std::io::Result<TlsClient> {
    let mut socket = TcpStream::connect(address)?;
    socket.set_read_timeout(Some(Duration::from_secs(10)))?;
    let host = ServerName::try_from(host.to_owned()).unwrap();
    let mut session = ClientConnection::new(Arc::clone(config), host).unwrap();
    while session.is_handshaking() {
        session.complete_io(&mut socket)?;
    }
    Ok(StreamOwned::new(session, socket))
}
