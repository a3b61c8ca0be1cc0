//! Decides whether a request may have the content of a protected tenant.
//!
//! **Invariant:** pure: the rule, the facts of the request and the time decide.

use std::time::{Duration, SystemTime};

use release::snapshot::access::AccessRule;
use subtle::Choice;

use crate::access::basic::BasicCredential;

/// The facts of a request for a protected tenant.
pub(crate) struct AccessRequest<'r> {
    pub(crate) transport: Transport,
    pub(crate) credential: Option<&'r BasicCredential>,
    /// The time until the client subnet may try again, if its failed attempts are at the limit.
    pub(crate) wait: Option<Duration>,
}

/// How a request arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    /// Others cannot read the credential.
    Confidential,
    /// Others may read the credential. The server has an HTTPS listener, whose port is named if it is not 443.
    ClearBesideHttps(Option<u16>),
    /// Others may read the credential, and there is no HTTPS.
    Clear,
}

/// The decision about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccessDecision {
    /// The content.
    Allow,
    /// 401: the request has no credential.
    Challenge,
    /// 401: the credential is wrong or has expired.
    Fail,
    /// 429: the client subnet failed too often.
    Limit(Duration),
    /// 307 to HTTPS.
    RedirectToHttps(Option<u16>),
    /// 403: the deployment has no HTTPS.
    Refuse,
    /// 503: the credentials of the tenant are not known.
    Close,
}

/// Decides about a request.
pub(crate) fn decide(
    rule: &AccessRule,
    request: &AccessRequest<'_>,
    now: SystemTime,
) -> AccessDecision {
    let AccessRule::Credentials(credentials) = rule else {
        return AccessDecision::Close;
    };
    match request.transport {
        Transport::Confidential => {}
        Transport::ClearBesideHttps(port) => return AccessDecision::RedirectToHttps(port),
        Transport::Clear => return AccessDecision::Refuse,
    }
    let Some(given) = request.credential else {
        return AccessDecision::Challenge;
    };
    if let Some(wait) = request.wait {
        return AccessDecision::Limit(wait);
    }
    // Every credential is compared, so that the time does not say which of them is almost right.
    let mut is_equal = Choice::from(0);
    for credential in credentials {
        let is_valid = credential.ends.is_none_or(|ends| now < ends);
        is_equal |= given.equals(credential) & Choice::from(u8::from(is_valid));
    }
    match is_equal.into() {
        true => AccessDecision::Allow,
        false => AccessDecision::Fail,
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use http::header::AUTHORIZATION;
    use http::{HeaderMap, HeaderValue};
    use release::snapshot::access::Credential;
    use sha2::{Digest as _, Sha256};

    use super::*;

    const WAIT: Duration = Duration::from_secs(6);

    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_000)
    }

    fn credential(user: &str, token: &str, ends: Option<u64>) -> Credential {
        let ends = ends.map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        Credential {
            user: user.into(),
            token_sha256: Sha256::digest(token).into(),
            ends,
        }
    }

    #[test]
    fn only_a_valid_credential_over_a_confidential_transport_is_allowed() {
        use AccessDecision::{Allow, Challenge, Close, Fail, Limit, RedirectToHttps, Refuse};
        let rule = AccessRule::Credentials(Box::new([
            credential("client", "secret", None),
            credential("press", "news", Some(1_001)),
            credential("old", "gone", Some(1_000)),
        ]));
        let nothing = AccessRule::Credentials(Box::new([]));
        let confidential = Transport::Confidential;
        for (rule, transport, given, wait, expected) in [
            (&rule, confidential, None, None, Challenge),
            (&rule, confidential, None, Some(WAIT), Challenge),
            (&rule, confidential, Some("client:secret"), None, Allow),
            (&rule, confidential, Some("press:news"), None, Allow),
            (&rule, confidential, Some("old:gone"), None, Fail),
            (&rule, confidential, Some("client:news"), None, Fail),
            (&rule, confidential, Some("press:secret"), None, Fail),
            (&rule, confidential, Some("Client:secret"), None, Fail),
            (&rule, confidential, Some("client:"), None, Fail),
            (&rule, confidential, Some(":secret"), None, Fail),
            (
                &rule,
                confidential,
                Some("client:secret"),
                Some(WAIT),
                Limit(WAIT),
            ),
            (&rule, Transport::Clear, Some("client:secret"), None, Refuse),
            (&rule, Transport::Clear, None, None, Refuse),
            (
                &rule,
                Transport::ClearBesideHttps(Some(8443)),
                Some("client:secret"),
                None,
                RedirectToHttps(Some(8443)),
            ),
            (&nothing, confidential, Some("client:secret"), None, Fail),
            (
                &AccessRule::Closed,
                confidential,
                Some("client:secret"),
                None,
                Close,
            ),
            (&AccessRule::Closed, Transport::Clear, None, None, Close),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(given) = given {
                let field = format!("Basic {}", STANDARD.encode(given));
                headers.insert(AUTHORIZATION, HeaderValue::from_str(&field).unwrap());
            }
            let credential = BasicCredential::read(&headers);
            let request = AccessRequest {
                transport,
                credential: credential.as_ref(),
                wait,
            };
            let decision = decide(rule, &request, now());
            assert_eq!(decision, expected, "{given:?} {transport:?} {wait:?}");
        }
    }
}
