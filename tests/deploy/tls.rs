//! Certificates that a test signs itself, and visitors who trust only these.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rowhouse_tests::binary;
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// The domain of the tests with certificate files.
pub(crate) const DOMAIN: &str = "studio.example";

/// The certificate authority of a test.
pub(crate) struct Signer {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key, as files.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Signer {
    pub(crate) fn new() -> Self {
        let mut parameters = CertificateParams::new(Vec::new()).expect("parameters");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let name = &mut parameters.distinguished_name;
        name.push(DnType::CommonName, "Signer of the test");
        let key = KeyPair::generate().expect("a key");
        Self {
            issuer: CertifiedIssuer::self_signed(parameters, key).expect("a signer"),
        }
    }

    /// Returns the root as PEM.
    pub(crate) fn root(&self) -> String {
        self.issuer.pem()
    }

    /// Returns chain and key as PEM, for the domain and all names below it.
    pub(crate) fn sign(&self) -> (String, String) {
        self.sign_for(vec![DOMAIN.to_owned(), format!("*.{DOMAIN}")])
    }

    /// Returns chain and key as PEM for other names.
    pub(crate) fn sign_for(&self, names: Vec<String>) -> (String, String) {
        let key = KeyPair::generate().expect("a key");
        let parameters = CertificateParams::new(names).expect("names");
        let certificate = parameters.signed_by(&key, &self.issuer);
        (
            certificate.expect("a certificate").pem(),
            key.serialize_pem(),
        )
    }

    /// Writes chain and key for the domain into a folder.
    pub(crate) fn write(&self, folder: &Path) -> Files {
        Files::write(folder, self.sign())
    }

    /// Returns the configuration of a visitor who trusts only this authority.
    pub(crate) fn visitor(&self) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).expect("a root");
        let mut config = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        // A resumed session shows no certificate.
        config.resumption = Resumption::disabled();
        Arc::new(config)
    }
}

impl Files {
    /// Writes chain and key into a folder.
    pub(crate) fn write(folder: &Path, (chain, key): (String, String)) -> Self {
        let files = Self {
            certificate: folder.join("chain.pem"),
            key: folder.join("key.pem"),
        };
        fs::write(&files.certificate, chain).expect("a file");
        fs::write(&files.key, key).expect("a file");
        files
    }

    /// Returns the command of a server with these files, and without limits on handshakes.
    pub(crate) fn serve(&self, tenants: &Path) -> Command {
        let mut command = Command::new(binary());
        command
            .args([
                "serve",
                "--origin",
                &format!("https://{DOMAIN}"),
                "--tenants",
            ])
            .arg(tenants)
            .arg("--certificate")
            .arg(&self.certificate)
            .arg("--certificate-key")
            .arg(&self.key)
            .args(["--handshake-rate", "100000"])
            .args(["--max-handshakes-per-address", "1000"]);
        command
    }
}

/// Returns a complete response on its own connection, and the certificate that the server showed.
pub(crate) fn visit(
    address: SocketAddr,
    config: &Arc<ClientConfig>,
    host: &str,
    path: &str,
) -> io::Result<(String, Vec<u8>)> {
    let socket = TcpStream::connect(address)?;
    socket.set_read_timeout(Some(Duration::from_secs(60)))?;
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let session = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(session, socket);
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n"
    )?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let chain = stream.conn.peer_certificates().unwrap_or_default();
    let shown = chain.first().map(|shown| shown.to_vec());
    Ok((
        String::from_utf8_lossy(&answer).into_owned(),
        shown.unwrap_or_default(),
    ))
}
