//! The receiver of alerts: its URL, and a client that sends messages to it.
//!
//! **Invariant:** never shows the URL. Paths and user names of webhooks are secrets.

use std::error::Error as StdError;
use std::fmt;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::Full;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use percent_encoding::percent_decode_str;
use thiserror::Error;

use super::message::AlertFormat;
use super::plan::AlertLine;
use crate::acme::client::{Schemes, https_client, retry_after};

/// Timeout for a complete response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Error of a URL that cannot be used. The message does not have the URL.
#[derive(Debug, Error)]
pub enum WebhookError {
    /// The text is not a URL with a scheme and a host.
    #[error("write a URL with scheme and host, such as `https://hooks.example/path`")]
    NotAUrl,
    /// The URL of ntfy has no topic.
    #[error("write the URL of the topic, such as `https://ntfy.sh/topic`")]
    NoTopic,
    /// The URL of Alertmanager does not name its API.
    #[error("write the URL of the API, such as `http://127.0.0.1:9093/api/v2/alerts`")]
    NotAlertmanager,
}

/// The receiver of alerts.
#[derive(Clone)]
pub struct Webhook {
    uri: Uri,
    /// The user name and password of the URL.
    authorization: Option<HeaderValue>,
    format: AlertFormat,
    /// The topic of ntfy; empty for other formats.
    topic: String,
    /// The scheme and the host.
    shown: String,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Webhook")
            .field("receiver", &self.shown)
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}

impl Webhook {
    /// Parses the URL of a receiver: HTTP or HTTPS, with an optional user name and password.
    ///
    /// # Errors
    /// When the text is not a URL, or not a URL of the format.
    pub fn new(url: &str, format: AlertFormat) -> Result<Self, WebhookError> {
        let uri: Uri = url.trim().parse().map_err(|_| WebhookError::NotAUrl)?;
        let scheme = uri.scheme_str().unwrap_or_default().to_owned();
        let authority = uri.authority().ok_or(WebhookError::NotAUrl)?.as_str();
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        if !matches!(&*scheme, "http" | "https") || host.is_empty() {
            return Err(WebhookError::NotAUrl);
        }
        let shown = format!("{scheme}://{host}");
        let (path, topic) = match format {
            AlertFormat::Ntfy => {
                let topic = uri.path().trim_matches('/');
                if topic.is_empty() || topic.contains('/') {
                    return Err(WebhookError::NoTopic);
                }
                // Messages in JSON go to the root of the server, and name their topic.
                ("/", topic.to_owned())
            }
            AlertFormat::Alertmanager if !uri.path().ends_with("/api/v2/alerts") => {
                return Err(WebhookError::NotAlertmanager);
            }
            _ => (
                uri.path_and_query().map_or("/", |path| path.as_str()),
                String::new(),
            ),
        };
        Ok(Self {
            authorization: user.and_then(basic),
            uri: format!("{shown}{path}")
                .parse()
                .map_err(|_| WebhookError::NotAUrl)?,
            format,
            topic,
            shown,
        })
    }

    /// Returns the scheme and the host of the URL.
    #[must_use]
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Returns the format of messages.
    pub(super) const fn format(&self) -> AlertFormat {
        self.format
    }

    fn request(&self, lines: &[AlertLine], server: &str) -> Request<Full<Bytes>> {
        let body = self.format.body(lines, server, &self.topic).to_string();
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        let fields = request.headers_mut();
        fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        fields.insert(USER_AGENT, HeaderValue::from_static("rowhouse"));
        fields.extend(
            self.authorization
                .clone()
                .map(|value| (AUTHORIZATION, value)),
        );
        request
    }
}

/// Returns the `Authorization` field for the user name and password of a URL (RFC 7617).
fn basic(user: &str) -> Option<HeaderValue> {
    let decoded: Vec<u8> = percent_decode_str(user).collect();
    let mut value =
        HeaderValue::from_str(&format!("Basic {}", BASE64_STANDARD.encode(decoded))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Why a message was not delivered.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SendFailure {
    /// The reason, without the URL.
    pub(super) reason: String,
    /// The wait that the receiver asks for.
    pub(super) retry_after: Option<Duration>,
}

/// A client for one receiver.
#[derive(Debug)]
pub(super) struct WebhookClient {
    webhook: Webhook,
    http: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl WebhookClient {
    /// Creates a client that trusts the roots in a PEM, or Mozilla's roots.
    ///
    /// # Errors
    /// When the PEM has no root that can be used.
    pub(super) fn new(webhook: Webhook, roots: Option<&[u8]>) -> Result<Self, rustls::Error> {
        let http = https_client(roots, Schemes::All)?;
        Ok(Self { webhook, http })
    }

    /// Sends a message.
    pub(super) async fn send(&self, lines: &[AlertLine], server: &str) -> Result<(), SendFailure> {
        let response = self.http.request(self.webhook.request(lines, server));
        let response = tokio::time::timeout(RESPONSE_TIMEOUT, response).await;
        let failure = |reason| SendFailure {
            reason,
            retry_after: None,
        };
        let response = response
            .map_err(|_| {
                failure(format!(
                    "no response within {} s",
                    RESPONSE_TIMEOUT.as_secs()
                ))
            })?
            .map_err(|error| failure(causes(&error)))?;
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        let after = response.headers().get(RETRY_AFTER);
        Err(SendFailure {
            reason: reason(status),
            retry_after: after
                .and_then(|after| retry_after(after.to_str().ok()?, SystemTime::now())),
        })
    }
}

/// Returns the status of a refused message. The body may quote the request, and is not shown.
fn reason(status: StatusCode) -> String {
    let hint = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::NOT_FOUND => {
            ": check the URL"
        }
        StatusCode::BAD_REQUEST => ": check the format",
        status if status.is_redirection() => ": the URL redirects; write the new URL",
        _ => "",
    };
    format!("status {status}{hint}")
}

/// Returns the messages of an error and of its causes.
fn causes(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn webhook(url: &str, format: AlertFormat) -> Result<Webhook, String> {
        Webhook::new(url, format).map_err(|error| error.to_string())
    }

    #[test]
    fn secrets_of_a_url_are_not_shown() {
        let url = "https://user:pass%40word@hooks.example:8443/services/T0/B0/secret?key=secret";
        let webhook = webhook(url, AlertFormat::Slack).unwrap();
        assert_eq!(webhook.shown(), "https://hooks.example:8443");
        let request = webhook.request(&[], "studio.example");
        assert_eq!(
            request.uri(),
            "https://hooks.example:8443/services/T0/B0/secret?key=secret"
        );
        assert_eq!(
            request.headers()[AUTHORIZATION],
            "Basic dXNlcjpwYXNzQHdvcmQ="
        );
        for text in [format!("{webhook:?}"), format!("{:?}", request.headers())] {
            assert!(!text.contains("secret") && !text.contains("dXNl"), "{text}");
        }
    }

    #[test]
    fn ntfy_is_sent_to_the_root_with_its_topic() {
        let ntfy = webhook("https://ntfy.sh/my-topic", AlertFormat::Ntfy).unwrap();
        assert_eq!(ntfy.uri, "https://ntfy.sh/");
        assert_eq!(ntfy.topic, "my-topic");
    }

    #[test]
    fn bad_url_is_refused_without_being_quoted() {
        for (url, format, hint) in [
            (
                "hooks.example/secret",
                AlertFormat::Json,
                "with scheme and host",
            ),
            ("secret", AlertFormat::Json, "with scheme and host"),
            (
                "ftp://hooks.example/secret",
                AlertFormat::Json,
                "with scheme and host",
            ),
            ("https://", AlertFormat::Json, "with scheme and host"),
            ("https://ntfy.sh/", AlertFormat::Ntfy, "URL of the topic"),
            (
                "https://ntfy.sh/secret/json",
                AlertFormat::Ntfy,
                "URL of the topic",
            ),
            (
                "http://127.0.0.1:9093/secret",
                AlertFormat::Alertmanager,
                "/api/v2/alerts",
            ),
        ] {
            let error = webhook(url, format).unwrap_err();
            assert!(error.contains(hint) && !error.contains("secret"), "{error}");
        }
    }
}
