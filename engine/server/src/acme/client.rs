//! The HTTPS client for the CA, with limits on the duration and the size of every response. The receiver of alerts has the same client.
//!
//! **Invariant:** knows no ACME; sends requests only to the caller's URLs.

use std::error::Error as StdError;
use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Body;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use jiff::fmt::rfc2822;
use rustls::ClientConfig;
use thiserror::Error as ThisError;

use crate::tls::probe::root_store;
use crate::tls::provider::provider;

/// Timeout for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for a complete response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size of a response. A certificate with its chain has a few thousand bytes.
const MAX_RESPONSE_BYTES: usize = 1024 * 1024;

/// The CA is overloaded or limits requests (429, 503).
#[derive(Debug, ThisError)]
#[error("{status}: {detail}")]
pub(super) struct AuthorityBusy {
    pub(super) status: StatusCode,
    pub(super) detail: String,
    /// The CA's `Retry-After` (RFC 9110, section 10.2.3).
    pub(super) retry_after: Option<Duration>,
}

/// The schemes of the URLs that a client requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Schemes {
    /// HTTPS only.
    Https,
    /// HTTP and HTTPS.
    All,
}

/// Creates a client that trusts the roots in a PEM, or Mozilla's roots.
///
/// # Errors
/// When the PEM has no root that can be used.
pub(crate) fn https_client<B>(
    roots: Option<&[u8]>,
    schemes: Schemes,
) -> Result<Client<HttpsConnector<HttpConnector>, B>, rustls::Error>
where
    B: Body<Data: Send> + Send,
{
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(root_store(roots)?)
        .with_no_client_auth();
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    let builder = HttpsConnectorBuilder::new().with_tls_config(config);
    let builder = match schemes {
        Schemes::Https => builder.https_only(),
        Schemes::All => builder.https_or_http(),
    };
    let connector = builder.enable_http1().wrap_connector(connector);
    let client = Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(RESPONSE_TIMEOUT)
        .build(connector);
    Ok(client)
}

/// A client for one CA.
#[derive(Debug, Clone)]
pub(super) struct AuthorityClient {
    http: Client<HttpsConnector<HttpConnector>, BodyWrapper<Bytes>>,
}

impl AuthorityClient {
    /// Creates a client that trusts the roots in a PEM, or Mozilla's roots.
    ///
    /// # Errors
    /// When the PEM has no root that can be used.
    pub(super) fn new(roots: Option<&[u8]>) -> Result<Self, rustls::Error> {
        let http = https_client(roots, Schemes::Https)?;
        Ok(Self { http })
    }
}

impl HttpClient for AuthorityClient {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let response = self.http.request(request);
        Box::pin(async move {
            let answer = async {
                let (head, body) = response.await.map_err(boxed)?.into_parts();
                let body = Limited::new(body, MAX_RESPONSE_BYTES)
                    .collect()
                    .await
                    .map_err(Error::Other)?;
                Ok::<_, Error>(Response::from_parts(head, body.to_bytes()))
            };
            let answer = tokio::time::timeout(RESPONSE_TIMEOUT, answer).await;
            let answer = answer.map_err(|_| Error::Str("no response in time"))??;
            if let StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE = answer.status()
            {
                return Err(boxed(busy(&answer, SystemTime::now())));
            }
            Ok(BytesResponse::from(answer.map(Full::new)))
        })
    }
}

fn boxed(error: impl StdError + Send + Sync + 'static) -> Error {
    Error::Other(Box::new(error))
}

fn busy(answer: &Response<Bytes>, now: SystemTime) -> AuthorityBusy {
    let problem: Option<serde_json::Value> = serde_json::from_slice(answer.body()).ok();
    let detail = problem.and_then(|problem| Some(problem.get("detail")?.as_str()?.to_owned()));
    let after = answer.headers().get(RETRY_AFTER);
    AuthorityBusy {
        status: answer.status(),
        detail: detail.unwrap_or_default(),
        retry_after: after.and_then(|after| retry_after(after.to_str().ok()?, now)),
    }
}

/// Parses `Retry-After`: seconds, or a date (RFC 9110, section 10.2.3).
pub(crate) fn retry_after(text: &str, now: SystemTime) -> Option<Duration> {
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    SystemTime::from(at).duration_since(now).ok()
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = UNIX_EPOCH + Duration::from_secs(784_111_777 - 60);
        let seconds = |text| retry_after(text, now).map(|after| after.as_secs());
        assert_eq!(seconds("120"), Some(120));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:37 GMT"), Some(60));
        assert_eq!(seconds("soon"), None);
        assert_eq!(seconds("-1"), None);
    }

    #[test]
    fn invalid_roots_are_refused() {
        assert!(AuthorityClient::new(None).is_ok());
        for bad in [
            "",
            "words",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        ] {
            assert!(AuthorityClient::new(Some(bad.as_bytes())).is_err(), "{bad}");
        }
    }
}
