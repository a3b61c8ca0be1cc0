//! Performs one order for one host, up to the certificate.
//!
//! **Invariant:** does not decide when or how often to order; persists nothing.

use std::sync::Arc;
use std::time::Duration;

use instant_acme::{
    Account, AuthorizationStatus, CertificateIdentifier, ChallengeType, Error, Identifier,
    NewOrder, Order, OrderStatus, Problem, RetryPolicy,
};
use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::sign::CertifiedKey;

use super::client::AuthorityBusy;
use super::issued_certificate::IssuedCertificate;
use super::plan::{ChallengeMethod, OrderFailure};
use super::shared::{SharedCertificates, SharedChallenge};
use crate::tls::certificate_store::CertificateStore;
use crate::tls::order_status::FailureKind;
use crate::tls::provider::provider;

/// Polling of an order: frequent at first, for two minutes at most.
const ORDER_RETRIES: RetryPolicy = RetryPolicy::new()
    .initial_delay(Duration::from_millis(200))
    .backoff(1.5)
    .timeout(Duration::from_secs(120));

/// Maximum length of a CA's message that is passed on, in characters.
const MAX_PROBLEM_CHARACTERS: usize = 400;

/// An open challenge. It is closed when dropped.
struct OpenChallenge<'s> {
    store: &'s CertificateStore,
    host: &'s str,
    token: String,
}

impl Drop for OpenChallenge<'_> {
    fn drop(&mut self) {
        self.store.close_challenge(self.host, &self.token);
    }
}

/// Orders a certificate for `host`. `replaces` is the certificate to be renewed, and `shared` the store of a fleet, in which other replicas find the answer to the challenge.
///
/// # Errors
/// When the CA does not issue the certificate.
pub(super) async fn order(
    account: &Account,
    host: &str,
    method: ChallengeMethod,
    replaces: Option<CertificateIdentifier<'static>>,
    store: &CertificateStore,
    shared: Option<&SharedCertificates>,
) -> Result<IssuedCertificate, OrderFailure> {
    let mut order = begin(account, host, replaces).await?;
    let challenge = open_challenge(&mut order, host, method, store, shared).await?;
    if let Some(challenge) = challenge {
        let ready = order.poll_ready(&ORDER_RETRIES).await;
        drop(challenge);
        if let Some(shared) = shared {
            shared.close_challenge(host).await;
        }
        let is_ready = matches!(ready, Ok(OrderStatus::Ready | OrderStatus::Valid));
        if !is_ready {
            let reason = reason(&mut order).await;
            return Err(reason.unwrap_or_else(|| match ready {
                Err(error) => of_request(error),
                Ok(status) => OrderFailure::new(
                    FailureKind::Authority,
                    format!("the order is {status:?}; the CA gave no reason"),
                ),
            }));
        }
    }
    let key = order.finalize().await.map_err(of_request)?;
    let chain = order
        .poll_certificate(&ORDER_RETRIES)
        .await
        .map_err(of_request)?;
    Ok(IssuedCertificate {
        chain,
        key,
        is_shared: false,
    })
}

async fn begin(
    account: &Account,
    host: &str,
    replaces: Option<CertificateIdentifier<'static>>,
) -> Result<Order, OrderFailure> {
    let names = [Identifier::Dns(host.to_owned())];
    if let Some(replaces) = replaces {
        // CAs exempt renewals from some limits (RFC 9773, section 5). If the CA does not support `replaces`, or considers the certificate replaced, the order is repeated without it.
        match account
            .new_order(&NewOrder::new(&names).replaces(replaces))
            .await
        {
            Ok(order) => return Ok(order),
            Err(Error::Unsupported(_)) => {}
            Err(Error::Api(problem)) if !is_limited(&problem) => {}
            Err(error) => return Err(of_request(error)),
        }
    }
    let order = account.new_order(&NewOrder::new(&names)).await;
    order.map_err(of_request)
}

fn is_limited(problem: &Problem) -> bool {
    type_of(problem) == Some("rateLimited")
}

/// Opens the order's challenge and asks the CA to validate it. Returns `None` if the CA has validated the name already.
async fn open_challenge<'s>(
    order: &mut Order,
    host: &'s str,
    method: ChallengeMethod,
    store: &'s CertificateStore,
    shared: Option<&SharedCertificates>,
) -> Result<Option<OpenChallenge<'s>>, OrderFailure> {
    let mut authorizations = order.authorizations();
    let Some(authorization) = authorizations.next().await else {
        return Err(OrderFailure::new(
            FailureKind::Authority,
            "the order has no authorization",
        ));
    };
    let mut authorization = authorization.map_err(of_request)?;
    match authorization.status {
        AuthorizationStatus::Valid => return Ok(None),
        AuthorizationStatus::Pending => {}
        status => {
            return Err(OrderFailure::new(
                FailureKind::Authority,
                format!("the authorization is {status:?}"),
            ));
        }
    }
    let wanted = match method {
        ChallengeMethod::Http => ChallengeType::Http01,
        ChallengeMethod::TlsAlpn => ChallengeType::TlsAlpn01,
    };
    let Some(mut challenge) = authorization.challenge(wanted) else {
        return Err(OrderFailure::new(
            FailureKind::Unreachable,
            format!("the CA offers no challenge of the type {method:?}"),
        ));
    };
    let proof = challenge.key_authorization();
    let open = OpenChallenge {
        store,
        host,
        token: challenge.token.clone(),
    };
    match method {
        ChallengeMethod::Http => {
            store.open_http_challenge(&challenge.token, &proof.as_str().into())
        }
        ChallengeMethod::TlsAlpn => {
            let certificate = proof_certificate(host, proof.digest().as_ref())
                .map_err(|error| OrderFailure::new(FailureKind::Refused, error))?;
            store.open_tls_challenge(host, &certificate);
        }
    }
    if let Some(shared) = shared {
        let answer = SharedChallenge {
            token: challenge.token.clone(),
            text: proof.as_str().to_owned(),
        };
        shared.open_challenge(host, &answer).await?;
    }
    challenge.set_ready().await.map_err(of_validation)?;
    Ok(Some(open))
}

/// Creates the certificate of a TLS-ALPN-01 challenge (RFC 8737, section 3) from the SHA-256 of the key authorization.
///
/// # Errors
/// Returns the reason if the host cannot be in a certificate.
pub(crate) fn proof_certificate(host: &str, digest: &[u8]) -> Result<Arc<CertifiedKey>, String> {
    let make = || {
        let key = KeyPair::generate()?;
        let mut parameters = CertificateParams::new(vec![host.to_owned()])?;
        parameters.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
        Ok::<_, rcgen::Error>((parameters.self_signed(&key)?, key))
    };
    let (certificate, key) = make().map_err(|error| error.to_string())?;
    let key = PrivateKeyDer::try_from(key.serialize_der());
    let key = key.map_err(ToOwned::to_owned)?;
    // Skips the check that certificate and key match: the parser would reject the critical extension.
    let key = provider().key_provider.load_private_key(key);
    let key = key.map_err(|error| error.to_string())?;
    let chain = vec![certificate.der().clone()];
    Ok(Arc::new(CertifiedKey::new(chain, key)))
}

/// Returns why the CA could not validate the name, if it says so.
async fn reason(order: &mut Order) -> Option<OrderFailure> {
    let mut authorizations = order.authorizations();
    let mut authorization = authorizations.next().await?.ok()?;
    let state = authorization.refresh().await.ok()?;
    let problem = state
        .challenges
        .iter()
        .find_map(|challenge| challenge.error.clone())?;
    Some(of_validation(Error::Api(problem)))
}

/// Classifies the failure of a request about the account or the order.
pub(super) fn of_request(error: Error) -> OrderFailure {
    let problem = match error {
        Error::Api(problem) => problem,
        Error::Other(error) => {
            return match error.downcast::<AuthorityBusy>() {
                Ok(busy) => of_busy(&busy),
                Err(error) => OrderFailure::new(FailureKind::Authority, message_of(&*error)),
            };
        }
        error => return OrderFailure::new(FailureKind::Authority, clean(&error.to_string())),
    };
    let kind = match type_of(&problem) {
        Some("rateLimited") => FailureKind::RateLimited,
        Some("rejectedIdentifier" | "unsupportedIdentifier" | "caa") => FailureKind::Refused,
        Some(
            "accountDoesNotExist"
            | "unauthorized"
            | "externalAccountRequired"
            | "invalidContact"
            | "unsupportedContact"
            | "userActionRequired",
        ) => FailureKind::Account,
        _ => FailureKind::Authority,
    };
    OrderFailure::new(kind, detail_of(&problem))
}

/// Classifies the failure of a validation.
fn of_validation(error: Error) -> OrderFailure {
    let Error::Api(problem) = error else {
        return of_request(error);
    };
    let kind = match type_of(&problem) {
        Some("dns") => FailureKind::Dns,
        Some("unauthorized" | "incorrectResponse" | "tls") => FailureKind::Elsewhere,
        Some("connection") => FailureKind::Unreachable,
        Some("caa" | "rejectedIdentifier" | "unsupportedIdentifier") => FailureKind::Refused,
        _ => return of_request(Error::Api(problem)),
    };
    OrderFailure::new(kind, detail_of(&problem))
}

fn of_busy(busy: &AuthorityBusy) -> OrderFailure {
    let kind = match busy.status {
        http::StatusCode::TOO_MANY_REQUESTS => FailureKind::RateLimited,
        _ => FailureKind::Authority,
    };
    OrderFailure {
        kind,
        detail: clean(&busy.to_string()),
        retry_after: busy.retry_after,
    }
}

/// Returns the type of a problem without its URN prefix (RFC 8555, section 6.7).
fn type_of(problem: &Problem) -> Option<&str> {
    let kind = problem.r#type.as_deref()?;
    kind.strip_prefix("urn:ietf:params:acme:error:")
}

/// Returns whether the CA does not know the account.
pub(super) fn is_unknown_account(failure: &OrderFailure) -> bool {
    failure.kind == FailureKind::Account && failure.detail.starts_with("accountDoesNotExist")
}

fn detail_of(problem: &Problem) -> String {
    let kind = type_of(problem).unwrap_or("error");
    let details = std::iter::once(&problem.detail)
        .chain(problem.subproblems.iter().map(|one| &one.detail))
        .flatten()
        .map(String::as_str);
    clean(&format!(
        "{kind}: {}",
        details.collect::<Vec<_>>().join("; ")
    ))
}

/// Joins the messages of an error and its causes.
fn message_of(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let causes: Vec<String> = causes.map(ToString::to_string).collect();
    clean(&causes.join(": "))
}

/// Cleans a CA's message for the log: replaces control characters and limits the length.
fn clean(text: &str) -> String {
    let plain = text.chars().map(|character| match character {
        character if character.is_control() => ' ',
        character => character,
    });
    plain.take(MAX_PROBLEM_CHARACTERS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(kind: &str, detail: &str) -> Error {
        let problem = serde_json::json!({
            "type": format!("urn:ietf:params:acme:error:{kind}"),
            "detail": detail,
        });
        Error::Api(serde_json::from_value(problem).unwrap())
    }

    #[test]
    fn problem_types_map_to_failure_kinds() {
        for (kind, request, validation) in [
            ("dns", FailureKind::Authority, FailureKind::Dns),
            (
                "connection",
                FailureKind::Authority,
                FailureKind::Unreachable,
            ),
            ("unauthorized", FailureKind::Account, FailureKind::Elsewhere),
            ("tls", FailureKind::Authority, FailureKind::Elsewhere),
            (
                "rateLimited",
                FailureKind::RateLimited,
                FailureKind::RateLimited,
            ),
            (
                "rejectedIdentifier",
                FailureKind::Refused,
                FailureKind::Refused,
            ),
            (
                "serverInternal",
                FailureKind::Authority,
                FailureKind::Authority,
            ),
            (
                "externalAccountRequired",
                FailureKind::Account,
                FailureKind::Account,
            ),
        ] {
            assert_eq!(of_request(problem(kind, "why")).kind, request, "{kind}");
            let failure = of_validation(problem(kind, "why"));
            assert_eq!(failure.kind, validation, "{kind}");
            assert_eq!(failure.detail, format!("{kind}: why"));
        }
        assert!(is_unknown_account(&of_request(problem(
            "accountDoesNotExist",
            ""
        ))));
        assert_eq!(
            of_request(Error::Str("nonsense")).kind,
            FailureKind::Authority
        );
    }

    #[test]
    fn busy_response_keeps_retry_after() {
        let busy = |status| {
            let busy = AuthorityBusy {
                status,
                detail: "too many".to_owned(),
                retry_after: Some(Duration::from_secs(60)),
            };
            of_request(Error::Other(Box::new(busy)))
        };
        let limited = busy(http::StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(limited.kind, FailureKind::RateLimited);
        assert_eq!(limited.retry_after, Some(Duration::from_secs(60)));
        let down = busy(http::StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(down.kind, FailureKind::Authority);
    }

    #[test]
    fn message_of_ca_is_one_line_of_limited_length() {
        let text = format!("a\nb\u{1b}[31m{}", "c".repeat(10_000));
        let clean = clean(&text);
        assert!(clean.starts_with("a b [31mccc") && clean.len() == MAX_PROBLEM_CHARACTERS);
    }
}
