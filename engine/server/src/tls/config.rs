//! Configures TLS: versions, cipher suites, ALPN protocols, and the choice of the certificate.
//!
//! **Invariant:** sees no byte of a connection.

use std::fmt;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, SupportedProtocolVersion};

use super::certificate_store::CertificateStore;
use super::order_status::OrderBoard;
use super::provider::provider;
use super::shared_challenges::SharedChallenges;

/// HTTP/2 in ALPN (RFC 9113, section 3.1).
pub(crate) const ALPN_HTTP2: &[u8] = b"h2";
/// The TLS-ALPN-01 challenge in ALPN (RFC 8737, section 4).
pub(crate) const ALPN_ACME: &[u8] = b"acme-tls/1";

/// The supported TLS versions.
const TLS_VERSIONS: &[&SupportedProtocolVersion] =
    &[&rustls::version::TLS13, &rustls::version::TLS12];

/// The TLS configuration of the server, and its certificates.
pub struct Tls {
    /// The certificates in use.
    pub certificates: Arc<CertificateStore>,
    /// The state of certificate orders.
    pub attempts: Arc<OrderBoard>,
    /// The challenges that other replicas of a fleet have opened; `None` for a server on its own.
    pub shared: Option<SharedChallenges>,
    /// The public HTTPS port, if it is not 443. Redirects to HTTPS name it.
    pub port: Option<u16>,
    pub(super) visitors: Arc<ServerConfig>,
    challenges: ServerConfig,
}

impl fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl Tls {
    /// Creates the TLS configuration with these certificates.
    ///
    /// # Errors
    /// When the operating system's random number generator fails.
    pub fn new(
        certificates: Arc<CertificateStore>,
        port: Option<u16>,
    ) -> Result<Self, rustls::Error> {
        let builder = || {
            let builder = ServerConfig::builder_with_provider(provider());
            Ok::<_, rustls::Error>(
                builder
                    .with_protocol_versions(TLS_VERSIONS)?
                    .with_no_client_auth(),
            )
        };
        let mut visitors =
            builder()?.with_cert_resolver(Arc::new(VisitorResolver(Arc::clone(&certificates))));
        visitors.alpn_protocols = vec![ALPN_HTTP2.to_vec(), b"http/1.1".to_vec()];
        visitors.ticketer = aws_lc_rs::Ticketer::new()?;
        let mut challenges = builder()?.with_cert_resolver(Arc::new(ChallengeResolver(None)));
        challenges.alpn_protocols = vec![ALPN_ACME.to_vec()];
        Ok(Self {
            certificates,
            attempts: Arc::default(),
            shared: None,
            port,
            visitors: Arc::new(visitors),
            challenges,
        })
    }

    /// Returns the configuration of a handshake that answers a challenge with this certificate.
    pub(super) fn for_challenge(&self, certificate: Arc<CertifiedKey>) -> Arc<ServerConfig> {
        let mut config = self.challenges.clone();
        config.cert_resolver = Arc::new(ChallengeResolver(Some(certificate)));
        Arc::new(config)
    }
}

/// Chooses a visitor's certificate by the requested host name.
#[derive(Debug)]
struct VisitorResolver(Arc<CertificateStore>);

impl ResolvesServerCert for VisitorResolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = requested_name(&hello)?;
        Some(Arc::clone(&self.0.find(&name)?.key))
    }
}

/// Returns the certificate of an open TLS-ALPN-01 challenge.
#[derive(Debug)]
struct ChallengeResolver(Option<Arc<CertifiedKey>>);

impl ResolvesServerCert for ChallengeResolver {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.clone()
    }
}

/// Returns the server name that a client requests, in the snapshot's form: lower case, without a trailing dot.
pub(crate) fn requested_name(hello: &ClientHello<'_>) -> Option<String> {
    let name = hello.server_name()?;
    Some(name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticket_keys_are_replaced_within_a_day() {
        let tls = Tls::new(Arc::default(), None).unwrap();
        let tickets = &tls.visitors.ticketer;
        // rustls replaces the keys after this time, and still accepts tickets of the previous keys.
        let day = 24 * 60 * 60;
        assert!(tickets.enabled() && (60..=day).contains(&tickets.lifetime()));
        let ticket = tickets.encrypt(b"session").unwrap();
        assert_eq!(tickets.decrypt(&ticket).unwrap(), b"session");
        // Each process has its own keys, which are never on disk.
        let other = Tls::new(Arc::default(), None).unwrap();
        assert_eq!(other.visitors.ticketer.decrypt(&ticket), None);
    }
}
